//! The island where numpy's memory is touched: contiguous buffers in, contiguous buffers out.
//!
//! Other Python threads may look at, or even change, the memory of an array while the interpreter is
//! released. So noise is made in a small array of our own, and each count is read once and each
//! noisy count written once.

use crate::to_py;
use geomdp_core::ct::clear_registers;
use geomdp_core::tape::without_trace;
use geomdp_core::{Count, Error};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle, available_parallelism};
use zeroize::Zeroizing;

/// Counts that are noised at a time; a multiple of the kernel's lanes.
const CHUNK: usize = 2048;
/// Counts of each thread between two looks for signals: some tens of milliseconds.
const SLICE: usize = 1 << 21;
/// Counts from which on threads are worth starting.
const PAYS: usize = 1 << 17;
/// Instead of a number of threads.
pub(crate) const AS_MANY_AS_PAY: usize = 0;

/// A contiguous buffer.
pub(crate) fn buffer<T: Element>(
    array: &Bound<'_, PyAny>,
    writable: bool,
) -> PyResult<PyBuffer<T>> {
    let buffer = PyBuffer::<T>::get(array)?;
    if !buffer.is_c_contiguous() || (writable && buffer.readonly()) {
        return Err(PyValueError::new_err(
            "a contiguous and writable buffer is needed",
        ));
    }
    Ok(buffer)
}

/// Copies the items from `start` on into `chunk`.
pub(crate) fn read<T: Element>(buffer: &PyBuffer<T>, start: usize, chunk: &mut [T]) {
    assert!(start + chunk.len() <= buffer.item_count());
    // SAFETY: the buffer is contiguous and holds these items, as just asserted; it stays alive and
    // of one size while it is exported. `chunk` is our own and so does not overlap it. Any bytes
    // are a valid integer.
    unsafe {
        let items = buffer.buf_ptr().cast::<T>().add(start);
        items.copy_to_nonoverlapping(chunk.as_mut_ptr(), chunk.len());
    }
}

/// Copies `chunk` over the items from `start` on.
fn write<T: Element>(buffer: &PyBuffer<T>, start: usize, chunk: &[T]) {
    assert!(start + chunk.len() <= buffer.item_count() && !buffer.readonly());
    // SAFETY: as in `read`; and the buffer is writable, as just asserted.
    unsafe {
        let items = buffer.buf_ptr().cast::<T>().add(start);
        items.copy_from_nonoverlapping(chunk.as_ptr(), chunk.len());
    }
}

/// How many threads to share these counts among.
fn threads_for(len: usize, asked: usize) -> usize {
    if asked == AS_MANY_AS_PAY && len < PAYS {
        return 1;
    }
    let most = len.div_ceil(CHUNK).max(1);
    match asked {
        AS_MANY_AS_PAY => available_parallelism().map_or(1, NonZero::get).min(most),
        asked => asked.min(most),
    }
}

/// Shares a range of indices among threads, this one among them. Every share but the last is a
/// multiple of [`CHUNK`] long.
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
            // Where no thread can be had, this one does its work.
            done = done.and(match other.map(ScopedJoinHandle::join) {
                Ok(result) => result.unwrap_or_else(|panic| resume_unwind(panic)),
                Err(_) => work(part(start)),
            });
        }
        done
    })
}

/// Calls `work` on all indices of a buffer, without the interpreter, and looks for signals now and
/// then.
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
            // Before anything else runs, such as what a signal calls.
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

/// Noise for the items of `counts`, written to `out`, which may be the same buffer. `noise_from` gives
/// what adds noise to the counts from an index on, a multiple of [`CHUNK`].
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
