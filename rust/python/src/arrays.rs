//! Access to numpy's memory: contiguous buffers in, contiguous buffers out. The `unsafe` code is
//! confined to this module.
//!
//! Other Python threads may read or even change an array's memory while the interpreter is
//! released. So noise is added in a small array of our own: each count is read once and each noisy
//! count is written once.

use crate::to_py;

use geomdp_core::wipe::{clear_registers, without_trace};
use geomdp_core::{Count, Error};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle, available_parallelism};
use zeroize::Zeroizing;

/// Counts processed at a time; a multiple of the kernel's lanes.
const CHUNK: usize = 2048;
/// Counts per thread between two checks for signals: some tens of milliseconds.
const SLICE: usize = 1 << 21;
/// The number of counts from which several threads pay off.
const PAYS: usize = 1 << 17;
/// In place of a number of threads: pick the number automatically.
pub(crate) const AUTOMATIC: usize = 0;

/// Returns a contiguous buffer.
pub(crate) fn buffer<T: Element>(
    array: &Bound<'_, PyAny>,
    writable: bool,
) -> PyResult<PyBuffer<T>> {
    let buffer = PyBuffer::<T>::get(array)?;
    if !buffer.is_c_contiguous() || (writable && buffer.readonly()) {
        return Err(PyValueError::new_err(
            "the buffer must be contiguous, and writable if written to",
        ));
    }
    Ok(buffer)
}

/// Copies the items from `start` on into `chunk`.
pub(crate) fn read<T: Element>(buffer: &PyBuffer<T>, start: usize, chunk: &mut [T]) {
    assert!(start + chunk.len() <= buffer.item_count());
    // SAFETY: the buffer is contiguous and holds these items, as just asserted. It stays alive and
    // keeps its size while it is exported. `chunk` is our own and does not overlap it. Any bytes
    // are a valid integer.
    unsafe {
        let items = buffer.buf_ptr().cast::<T>().add(start);
        items.copy_to_nonoverlapping(chunk.as_mut_ptr(), chunk.len());
    }
}

/// Copies `chunk` over the items from `start` on.
fn write<T: Element>(buffer: &PyBuffer<T>, start: usize, chunk: &[T]) {
    assert!(start + chunk.len() <= buffer.item_count() && !buffer.readonly());
    // SAFETY: as in `read`; the buffer is also writable, as just asserted.
    unsafe {
        let items = buffer.buf_ptr().cast::<T>().add(start);
        items.copy_from_nonoverlapping(chunk.as_ptr(), chunk.len());
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

/// Calls `work` on all indices of a buffer with the interpreter released, and checks for signals
/// now and then.
fn in_slices(
    py: Python<'_>,
    len: usize,
    interruptible: bool,
    threads: usize,
    work: impl Fn(Range<usize>) -> Result<(), Error> + Sync,
) -> PyResult<()> {
    for slice in (0..len).step_by(SLICE * threads) {
        let slice = slice..len.min(slice + SLICE * threads);
        py.detach(|| {
            let done = match threads {
                1 => work(slice),
                _ => share(slice, threads, &work),
            };
            // Clear registers before anything else runs, such as a signal handler.
            clear_registers();
            done
        })
        .map_err(to_py)?;
        if interruptible {
            py.check_signals()?;
        }
    }
    Ok(())
}

/// Adds noise to the items of `counts` and writes the results to `out`, which may be the same
/// buffer. `noise_from` returns a function that adds noise to the counts from an index on; the
/// index is a multiple of [`CHUNK`].
pub(crate) fn add_noise<T, N>(
    py: Python<'_>,
    noise_from: impl Fn(usize) -> Result<N, Error> + Sync,
    counts: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    interruptible: bool,
    threads: usize,
) -> PyResult<()>
where
    T: Count + Element + zeroize::DefaultIsZeroes,
    N: FnMut(&mut [T]) -> Result<(), Error>,
{
    let (counts, out) = (buffer::<T>(counts, false)?, buffer::<T>(out, true)?);
    let len = counts.item_count();
    if out.item_count() != len {
        return Err(PyValueError::new_err(
            "out must have as many items as counts",
        ));
    }
    let work = |range: Range<usize>| {
        let mut noise = noise_from(range.start)?;
        let mut own = Zeroizing::new(vec![T::default(); CHUNK.min(range.len())]);
        for start in range.clone().step_by(CHUNK) {
            let own = &mut own[..CHUNK.min(range.end - start)];
            read(&counts, start, own);
            noise(own)?;
            write(&out, start, own);
        }
        Ok(())
    };
    in_slices(py, len, interruptible, threads_for(len, threads), work)
}
