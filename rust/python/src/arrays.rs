//! The island where numpy's memory is touched: contiguous buffers in, contiguous buffers out.
//!
//! Other Python threads may look at, or even change, the memory of an array while the interpreter is
//! released. So noise is made in a small array of our own, and each count is read once and each
//! noisy count written once.

use crate::to_py;
use geomdp_core::ct::clear_registers;
use geomdp_core::{Count, Error};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use zeroize::Zeroizing;

/// Counts that are noised at a time; a multiple of the kernel's lanes.
const CHUNK: usize = 2048;
/// Counts between two looks for signals: some tens of milliseconds.
const SLICE: usize = 1 << 21;

fn buffer<T: Element>(array: &Bound<'_, PyAny>, writable: bool) -> PyResult<PyBuffer<T>> {
    let buffer = PyBuffer::<T>::get(array)?;
    if !buffer.is_c_contiguous() || (writable && buffer.readonly()) {
        return Err(PyValueError::new_err(
            "a contiguous and writable buffer is needed",
        ));
    }
    Ok(buffer)
}

/// Copies the items from `start` on into `chunk`.
fn read<T: Element>(buffer: &PyBuffer<T>, start: usize, chunk: &mut [T]) {
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

/// Calls `work` on every chunk of a buffer's indices, without the interpreter, and looks for signals
/// now and then.
fn in_chunks(
    py: Python<'_>,
    len: usize,
    interruptible: bool,
    mut work: impl FnMut(usize, usize) -> Result<(), Error> + Send,
) -> PyResult<()> {
    for slice in (0..len).step_by(SLICE) {
        let end = len.min(slice + SLICE);
        py.detach(|| {
            let done = (slice..end)
                .step_by(CHUNK)
                .try_for_each(|start| work(start, CHUNK.min(end - start)));
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

/// Noise for the items of `counts`, written to `out`, which may be the same buffer.
pub(crate) fn add_noise<T: Count + Element + zeroize::DefaultIsZeroes>(
    py: Python<'_>,
    mut noise: impl FnMut(&mut [T]) -> Result<(), Error> + Send,
    counts: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    interruptible: bool,
) -> PyResult<()> {
    let (counts, out) = (buffer::<T>(counts, false)?, buffer::<T>(out, true)?);
    let len = counts.item_count();
    if out.item_count() != len {
        return Err(PyValueError::new_err(
            "out must have as many items as counts",
        ));
    }
    let mut own = Zeroizing::new(vec![T::default(); CHUNK.min(len)]);
    in_chunks(py, len, interruptible, |start, size| {
        let own = &mut own[..size];
        read(&counts, start, own);
        noise(own)?;
        write(&out, start, own);
        Ok(())
    })
}

/// Fills a buffer of bytes, chunk by chunk.
pub(crate) fn fill(
    py: Python<'_>,
    out: &Bound<'_, PyAny>,
    mut work: impl FnMut(&mut [u8]) -> Result<(), Error> + Send,
) -> PyResult<()> {
    let out = buffer::<u8>(out, true)?;
    let mut own = Zeroizing::new([0; CHUNK]);
    in_chunks(py, out.item_count(), true, |start, size| {
        let own = &mut own[..size];
        work(own)?;
        write(&out, start, own);
        Ok(())
    })
}
