//! Release keys, and columns of ids.

use crate::arrays::{buffer, read};
use crate::to_py;
use geomdp_core::keyed::{self, AddressedDraws, Addresses, IdKind};
use geomdp_core::tape::without_trace;
use geomdp_core::{Count, Error};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Counts whose ids are copied at a time, to the stack and the first-level cache.
pub(crate) const CHUNK: usize = 512;

/// The secret of a release, until it is wiped.
#[pyclass(frozen, module = "geomdp._core")]
pub(crate) struct ReleaseKey {
    // Boxed, so that moving the key leaves no copy behind.
    inner: Mutex<Option<Box<keyed::ReleaseKey>>>,
}

impl ReleaseKey {
    pub(crate) fn with<R>(
        &self,
        work: impl FnOnce(&keyed::ReleaseKey) -> PyResult<R>,
    ) -> PyResult<R> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match &*inner {
            Some(key) => work(key),
            None => Err(PyValueError::new_err(
                "the release key is wiped: start another release, with a new key",
            )),
        }
    }
}

#[pymethods]
impl ReleaseKey {
    /// Creates a key from these bytes, or from fresh bytes of the operating system.
    #[new]
    fn new(secret: Option<[u8; 32]>) -> PyResult<Self> {
        without_trace(|| {
            let key = match secret {
                Some(secret) => keyed::ReleaseKey::from_secret(&secret),
                None => keyed::ReleaseKey::from_os().map_err(to_py)?,
            };
            let inner = Mutex::new(Some(Box::new(key)));
            Ok(Self { inner })
        })
    }

    fn secret<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.with(|key| Ok(PyBytes::new(py, key.secret())))
    }

    fn wipe(&self) {
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Columns of ids, which together identify each count.
#[pyclass(module = "geomdp._core")]
pub(crate) struct Ids {
    size: usize,
    columns: Vec<Column>,
}

enum Column {
    Signed(Integers<i64>),
    Unsigned(Integers<u64>),
    Bytes(Bytes),
}

struct Integers<T: Element> {
    ids: PyBuffer<T>,
    nulls: Option<PyBuffer<u8>>,
}

struct Bytes {
    /// The start of each id, and the end of the last one.
    places: Vec<usize>,
    data: Vec<u8>,
    nulls: Option<Vec<u8>>,
}

impl Ids {
    pub(crate) fn kinds(&self) -> Vec<IdKind> {
        let kind = |column: &Column| match column {
            Column::Bytes(_) => IdKind::Bytes,
            _ => IdKind::Integers,
        };
        self.columns.iter().map(kind).collect()
    }

    /// Adds noise to the counts of the rows from `start` on. These rows must exist.
    pub(crate) fn add_noise<T: Count>(
        &self,
        draws: &mut AddressedDraws<'_, T>,
        addresses: &mut Addresses<'_>,
        start: usize,
        counts: &mut [T],
    ) -> Result<(), Error> {
        let starts = (start..).step_by(CHUNK);
        for (start, counts) in starts.zip(counts.chunks_mut(CHUNK)) {
            let rows = start..start + counts.len();
            addresses.restart(rows.len());
            for column in &self.columns {
                match column {
                    Column::Signed(column) => column.add_to(addresses, &rows)?,
                    Column::Unsigned(column) => column.add_to(addresses, &rows)?,
                    Column::Bytes(column) => column.add_to(addresses, &rows)?,
                }
            }
            draws.add_noise(addresses, counts)?;
        }
        Ok(())
    }

    /// Fails if there are more counts from `start` on than ids.
    pub(crate) fn refuse_beyond(&self, start: usize, counts: usize) -> PyResult<()> {
        if start.saturating_add(counts) > self.size {
            return Err(PyValueError::new_err("there are more counts than ids"));
        }
        Ok(())
    }
}

fn check(items: usize, size: usize) -> PyResult<()> {
    if items != size {
        return Err(PyValueError::new_err("there must be one id for each count"));
    }
    Ok(())
}

impl<T: Element + Count + Into<i128>> Integers<T> {
    fn get(
        ids: &Bound<'_, PyAny>,
        nulls: Option<&Bound<'_, PyAny>>,
        size: usize,
    ) -> PyResult<Self> {
        let ids = buffer(ids, false)?;
        check(ids.item_count(), size)?;
        let nulls = nulls.map(|nulls| buffer(nulls, false)).transpose()?;
        nulls
            .as_ref()
            .map_or(Ok(()), |nulls| check(nulls.item_count(), size))?;
        Ok(Self { ids, nulls })
    }

    fn add_to(&self, addresses: &mut Addresses<'_>, rows: &Range<usize>) -> Result<(), Error> {
        // Copied, since other threads may change the items of a buffer.
        let mut ids = [T::default(); CHUNK];
        let ids = &mut ids[..rows.len()];
        read(&self.ids, rows.start, ids);
        let Some(nulls) = &self.nulls else {
            return addresses.add_integers(ids);
        };
        let mut marks = [0; CHUNK];
        let marks = &mut marks[..rows.len()];
        read(nulls, rows.start, marks);
        let ids = ids.iter().copied().zip(&*marks);
        addresses.add_nullable_integers(ids.map(|(id, &null)| (null == 0).then_some(id)))
    }
}

impl Bytes {
    fn add_to(&self, addresses: &mut Addresses<'_>, rows: &Range<usize>) -> Result<(), Error> {
        let ids = rows.clone().map(|row| {
            let id = &self.data[self.places[row]..self.places[row + 1]];
            let null = self.nulls.as_ref().is_some_and(|nulls| nulls[row] != 0);
            (!null).then_some(id)
        });
        addresses.add_bytes(ids)
    }
}

#[pymethods]
impl Ids {
    /// Creates columns for `size` counts.
    #[new]
    fn new(size: usize) -> Self {
        let columns = Vec::new();
        Self { size, columns }
    }

    fn __len__(&self) -> usize {
        self.size
    }

    /// Adds a column of int64 or uint64, which is read when noise is added. Nonzero bytes in
    /// `nulls` mark null ids.
    fn add_integers(
        &mut self,
        ids: &Bound<'_, PyAny>,
        nulls: Option<&Bound<'_, PyAny>>,
        signed: bool,
    ) -> PyResult<()> {
        let column = if signed {
            Column::Signed(Integers::get(ids, nulls, self.size)?)
        } else {
            Column::Unsigned(Integers::get(ids, nulls, self.size)?)
        };
        self.columns.push(column);
        Ok(())
    }

    /// Adds a column of bytes. Each id is the part of `data` from its offset to the next, both
    /// minus the first offset.
    fn add_bytes(
        &mut self,
        offsets: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        nulls: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (offsets, data) = (items::<i64>(offsets)?, items::<u8>(data)?);
        let nulls = nulls.map(items::<u8>).transpose()?;
        check(offsets.len().wrapping_sub(1), self.size)?;
        nulls
            .as_ref()
            .map_or(Ok(()), |nulls| check(nulls.len(), self.size))?;
        let place = |offset: &i64| usize::try_from(offset.checked_sub(offsets[0])?).ok();
        let places = offsets.iter().map(place).collect::<Option<Vec<_>>>();
        match places {
            Some(places) if places.is_sorted() && places.last() <= Some(&data.len()) => {
                let column = Bytes {
                    places,
                    data,
                    nulls,
                };
                self.columns.push(Column::Bytes(column));
                Ok(())
            }
            _ => Err(PyValueError::new_err(
                "the offsets must not decrease or reach beyond the data",
            )),
        }
    }
}

/// A copy of a contiguous buffer.
fn items<T: Element>(array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    PyBuffer::<T>::get(array)?.to_vec(array.py())
}
