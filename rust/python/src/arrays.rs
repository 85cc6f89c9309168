//! Access to numpy's memory: contiguous buffers in, contiguous buffers out. The `unsafe` code is
//! confined to this module.
//!
//! Other Python threads may read or even change an array's items while the interpreter is released.
//! So noise is added in a small array of our own: each count is read once and each noisy count is
//! written once. A count that changes meanwhile has its old or its new value, or a mixture of both;
//! its noise is drawn for that value.

use crate::to_py;

use geomdp_core::groups;
use geomdp_core::keyed::ReleaseKey;
use geomdp_core::tape::key_from_os;
use geomdp_core::top::Best;
use geomdp_core::wipe::{clear_registers, without_trace};
use geomdp_core::{Count, Error, LANES, Mechanism};
use pyo3::buffer::{Element, ElementType, PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;
use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::slice;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle, available_parallelism};
use zeroize::Zeroizing;

/// Counts processed at a time.
const CHUNK: usize = 2048;
/// Counts per thread between two checks for signals: some tens of milliseconds.
const SLICE: usize = 1 << 21;
// Parts begin at multiples of these.
const _: () = assert!(CHUNK.is_multiple_of(LANES) && SLICE.is_multiple_of(CHUNK));
/// The number of counts from which several threads pay off.
const PAYS: usize = 1 << 17;
/// In place of a number of threads: pick the number automatically.
pub(crate) const AUTOMATIC: usize = 0;

/// An array's contiguous memory, which numpy leaves in place.
pub(crate) struct Memory {
    buffer: PyUntypedBuffer,
    /// Weak references to the array and to those that it is a view of. numpy's
    /// `resize(refcheck=False)` disregards exported buffers, but refuses arrays with such references.
    keep: Vec<Py<PyWeakrefReference>>,
}

impl Memory {
    pub(crate) fn of(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(array)?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("the buffer must be contiguous"));
        }
        let mut keep = Vec::new();
        let mut next = Some(array.clone());
        while let Some(array) = next {
            // Bytes and the like cannot be referred to, or resized.
            keep.extend(PyWeakrefReference::new(&array).map(Bound::unbind));
            let base = array.getattr(intern!(array.py(), "base")).ok();
            next = base.filter(|base| !base.is_none());
        }
        Ok(Self { buffer, keep })
    }

    /// The type of the items.
    pub(crate) fn item(&self) -> ElementType {
        ElementType::from_format(self.buffer.format())
    }

    /// The items. Fails if they are of another type.
    pub(crate) fn items<T: Element>(self) -> PyResult<Items<T>> {
        let (buffer, _keep) = (self.buffer.into_typed()?, self.keep);
        Ok(Items { buffer, _keep })
    }
}

/// The items of an array.
pub(crate) struct Items<T> {
    buffer: PyBuffer<T>,
    _keep: Vec<Py<PyWeakrefReference>>,
}

impl<T: Element> Items<T> {
    pub(crate) fn of(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        Memory::of(array)?.items()
    }

    pub(crate) fn len(&self) -> usize {
        self.buffer.item_count()
    }

    /// Copies the items from `start` on into `chunk`.
    pub(crate) fn read(&self, start: usize, chunk: &mut [T]) {
        assert!(start + chunk.len() <= self.len());
        // SAFETY: the buffer is contiguous and holds these items, as just asserted. While it is
        // exported, its owner neither frees nor moves it: `Memory` sees to that for numpy's
        // `resize`, and nothing else short of `__setstate__` on an array, or code that is itself
        // unsafe, such as ctypes, would. `chunk` is our own and does not overlap it. Any bytes are
        // a valid integer. Another thread may write to these items at the same time. By the rules
        // of Rust and C that is a data race; here it is a copy by `memcpy`, as numpy's own copies
        // without the interpreter are, and no item is read twice.
        unsafe {
            let items = self.buffer.buf_ptr().cast::<T>().add(start);
            items.copy_to_nonoverlapping(chunk.as_mut_ptr(), chunk.len());
        }
    }

    /// Copies `chunk` over the items from `start` on.
    fn write(&self, start: usize, chunk: &[T]) {
        assert!(start + chunk.len() <= self.len() && !self.buffer.readonly());
        // SAFETY: as in `read`; the buffer is also writable, as just asserted.
        unsafe {
            let items = self.buffer.buf_ptr().cast::<T>().add(start);
            items.copy_from_nonoverlapping(chunk.as_ptr(), chunk.len());
        }
    }
}

impl<T: Element + Default> Items<T> {
    /// Overwrites the items of a range with 0.
    fn clear(&self, range: Range<usize>) {
        for start in range.clone().step_by(CHUNK) {
            self.write(
                start,
                &[T::default(); CHUNK][..CHUNK.min(range.end - start)],
            );
        }
    }
}

/// The number of threads for this many counts.
fn threads_for(len: usize, asked: usize) -> usize {
    if asked == AUTOMATIC && len < PAYS {
        return 1;
    }
    let most = len.div_ceil(CHUNK).max(1);
    match asked {
        AUTOMATIC => available_parallelism().map_or(1, NonZero::get).min(most),
        asked => asked.min(most),
    }
}

/// Shares a range of indices among threads, including this one. The length of every share except
/// the last is a multiple of [`CHUNK`].
fn share(
    range: Range<usize>,
    threads: usize,
    work: &(impl Fn(Range<usize>) -> Result<(), Error> + Sync),
) -> Result<(), Error> {
    let size = range.len().div_ceil(threads).next_multiple_of(CHUNK);
    let part = |start: usize| start..range.end.min(start.saturating_add(size));
    thread::scope(|scope| {
        let others: Vec<_> = (range.clone().step_by(size).skip(1))
            .map(|start| {
                let work = move || without_trace(|| work(part(start)));
                (start, thread::Builder::new().spawn_scoped(scope, work))
            })
            .collect();
        let mut done = work(part(range.start));
        for (start, other) in others {
            // If no thread can be started, this one does its work.
            done = done.and(match other.map(ScopedJoinHandle::join) {
                Ok(result) => result.unwrap_or_else(|panic| resume_unwind(panic)),
                Err(_) => work(part(start)),
            });
        }
        done
    })
}

/// Calls `work` on all indices of a buffer with the interpreter released. Now and then it checks
/// for signals and calls `progress` with the number of indices done since. If anything fails, it
/// calls `undo` with all indices that `work` has had.
fn in_slices(
    py: Python<'_>,
    len: usize,
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
    work: impl Fn(Range<usize>) -> Result<(), Error> + Sync,
    undo: impl Fn(Range<usize>),
) -> PyResult<()> {
    for start in (0..len).step_by(SLICE * threads) {
        let slice = start..len.min(start + SLICE * threads);
        let done = py.detach(|| {
            let done = match threads {
                1 => work(slice.clone()),
                _ => share(slice.clone(), threads, &work),
            };
            // Before anything else runs, such as a signal handler.
            clear_registers();
            done
        });
        let told = || {
            progress.map_or(Ok(()), |call| call.call1((slice.len(),)).map(drop))?;
            py.check_signals()
        };
        if let Err(error) = done.map_err(to_py).and_then(|()| told()) {
            undo(0..slice.end);
            return Err(error);
        }
    }
    Ok(())
}

/// Adds noise to the items of `counts` and writes the results to `out`, which may be the same
/// memory. `from` returns a function that adds noise to the counts from an index on; the index is a
/// multiple of [`CHUNK`]. If the call fails or is interrupted, what it has written is overwritten
/// with 0, so that no part of a release passes for the whole.
pub(crate) fn add_noise<T, N>(
    py: Python<'_>,
    from: impl Fn(usize) -> Result<N, Error> + Sync,
    counts: &Items<T>,
    out: &Items<T>,
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
) -> PyResult<()>
where
    T: Count + Element + zeroize::DefaultIsZeroes,
    N: FnMut(&mut [T]) -> Result<(), Error>,
{
    let from = |index| Ok([from(index)?]);
    add_noises(py, from, counts, slice::from_ref(out), progress, threads)
}

/// [`add_noise`] several times, each to what the last time wrote, with an output for each.
pub(crate) fn add_noises<T, N, A>(
    py: Python<'_>,
    from: impl Fn(usize) -> Result<A, Error> + Sync,
    counts: &Items<T>,
    outs: &[Items<T>],
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
) -> PyResult<()>
where
    T: Count + Element + zeroize::DefaultIsZeroes,
    N: FnMut(&mut [T]) -> Result<(), Error>,
    A: AsMut<[N]>,
{
    let len = counts.len();
    if (outs.iter()).any(|out| out.len() != len || out.buffer.readonly()) {
        return Err(PyValueError::new_err(
            "out must be writable, with as many items as counts",
        ));
    }
    let work = |range: Range<usize>| {
        let mut add_noises = from(range.start)?;
        let mut own = Zeroizing::new(vec![T::default(); CHUNK.min(range.len())]);
        for start in range.clone().step_by(CHUNK) {
            let own = &mut own[..CHUNK.min(range.end - start)];
            counts.read(start, own);
            for (add_noise, out) in add_noises.as_mut().iter_mut().zip(outs) {
                add_noise(own)?;
                out.write(start, own);
            }
        }
        Ok(())
    };
    let undo = |range: Range<usize>| outs.iter().for_each(|out| out.clear(range.clone()));
    in_slices(py, len, progress, threads_for(len, threads), work, undo)
}

/// Adds noise to the counts of cells, and writes 0 for those below their thresholds: see
/// [`groups::Noise::reach`]. All arrays are equally long.
pub(crate) fn reach(
    py: Python<'_>,
    noise: &groups::Noise,
    key: &ReleaseKey,
    [counts, thresholds, out]: &[Items<i64>; 3],
    threads: usize,
) -> PyResult<()> {
    let len = counts.len();
    if [thresholds.len(), out.len()] != [len; 2] || out.buffer.readonly() {
        return Err(PyValueError::new_err(
            "out must be writable, and all arrays equally long",
        ));
    }
    let work = |range: Range<usize>| {
        let mut own = Zeroizing::new([[0; CHUNK]; 2]);
        for start in range.clone().step_by(CHUNK) {
            let size = CHUNK.min(range.end - start);
            let [noisy, least] = own.each_mut().map(|part| &mut part[..size]);
            counts.read(start, noisy);
            thresholds.read(start, least);
            noise.reach(key, start, noisy, least)?;
            out.write(start, noisy);
        }
        Ok(())
    };
    in_slices(py, len, None, threads_for(len, threads), work, |range| {
        out.clear(range)
    })
}

/// Draws the places of the `k` largest of `len` noisy counts. `read` writes the counts from an index
/// on to a chunk.
pub(crate) fn top<T: Count + zeroize::DefaultIsZeroes>(
    py: Python<'_>,
    mechanism: &Mechanism,
    len: usize,
    k: usize,
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
    read: impl Fn(usize, &mut [T]) + Sync,
) -> PyResult<Vec<u64>> {
    let mut named = Zeroizing::new(Vec::with_capacity(k));
    for _ in 0..k {
        let key = key_from_os().map_err(to_py)?;
        let best = Mutex::new(Best::default());
        let work = |range: Range<usize>| {
            let mut pick = mechanism.pick_at(&key, range.start, &named)?;
            let mut own = Zeroizing::new(vec![T::default(); CHUNK.min(range.len())]);
            for start in range.clone().step_by(CHUNK) {
                let own = &mut own[..CHUNK.min(range.end - start)];
                read(start, own);
                pick.compare(own)?;
            }
            let mut best = best.lock().unwrap_or_else(PoisonError::into_inner);
            best.merge(&pick.best());
            Ok(())
        };
        in_slices(py, len, progress, threads_for(len, threads), work, |_| ())?;
        let best = best.into_inner().unwrap_or_else(PoisonError::into_inner);
        named.push(best.place());
    }
    Ok(named.to_vec())
}
