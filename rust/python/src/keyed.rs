//! Release keys, and columns of ids.

use crate::arrays::Items;
use crate::to_py;
use geomdp_core::keyed::{self, AddressedDraws, Addresses, IdKeys, IdKind};
use geomdp_core::wipe::without_trace;
use geomdp_core::{Count, Error};
use pyo3::buffer::Element;
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
    ids: Items<T>,
    nulls: Option<Items<u8>>,
}

struct Bytes {
    /// Where in the data each id starts, and where the last one ends.
    offsets: Items<i64>,
    data: Items<u8>,
    nulls: Option<Items<u8>>,
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
            self.locate(addresses, &(start..start + counts.len()))?;
            draws.add_noise(addresses, counts)?;
        }
        Ok(())
    }

    /// Finds the addresses of these rows, at most [`CHUNK`] of them.
    fn locate(&self, addresses: &mut Addresses<'_>, rows: &Range<usize>) -> Result<(), Error> {
        addresses.restart(rows.len());
        for column in &self.columns {
            match column {
                Column::Signed(column) => column.add_to(addresses, rows)?,
                Column::Unsigned(column) => column.add_to(addresses, rows)?,
                Column::Bytes(column) => column.add_to(addresses, rows)?,
            }
        }
        Ok(())
    }

    /// Returns whether two rows have equal parts of their addresses.
    fn any_equal<P: Ord>(&self, keys: &IdKeys, part: fn([u64; 2]) -> P) -> Result<bool, Error> {
        let mut addresses = keys.addresses(CHUNK);
        let mut parts = Vec::with_capacity(self.size);
        for start in (0..self.size).step_by(CHUNK) {
            let rows = start..self.size.min(start + CHUNK);
            self.locate(&mut addresses, &rows)?;
            parts.extend(addresses.for_counts(rows.len())?.iter().copied().map(part));
        }
        parts.sort_unstable();
        Ok(parts.windows(2).any(|pair| pair[0] == pair[1]))
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

/// Returns one item for each count.
fn column<T: Element>(items: &Bound<'_, PyAny>, size: usize) -> PyResult<Items<T>> {
    let items = Items::of(items)?;
    check(items.len(), size)?;
    Ok(items)
}

/// Copies the bytes that mark null ids; without nulls all are 0.
fn marks(nulls: Option<&Items<u8>>, rows: &Range<usize>) -> [u8; CHUNK] {
    let mut marks = [0; CHUNK];
    if let Some(nulls) = nulls {
        nulls.read(rows.start, &mut marks[..rows.len()]);
    }
    marks
}

impl<T: Element + Count> Integers<T> {
    fn get(
        ids: &Bound<'_, PyAny>,
        nulls: Option<&Bound<'_, PyAny>>,
        size: usize,
    ) -> PyResult<Self> {
        let ids = column(ids, size)?;
        let nulls = nulls.map(|nulls| column(nulls, size)).transpose()?;
        Ok(Self { ids, nulls })
    }

    fn add_to(&self, addresses: &mut Addresses<'_>, rows: &Range<usize>) -> Result<(), Error> {
        // Copied, since other threads may change the items of a buffer.
        let mut ids = [T::default(); CHUNK];
        let ids = &mut ids[..rows.len()];
        self.ids.read(rows.start, ids);
        if self.nulls.is_none() {
            return addresses.add_integers(ids);
        }
        let ids = ids.iter().zip(marks(self.nulls.as_ref(), rows));
        addresses.add_nullable_integers(ids.map(|(&id, null)| (null == 0).then_some(id)))
    }
}

impl Bytes {
    // The checked offsets are within the data.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn add_to(&self, addresses: &mut Addresses<'_>, rows: &Range<usize>) -> Result<(), Error> {
        // Copied and then checked, since other threads may change the items of a buffer.
        let mut offsets = [0; CHUNK + 1];
        let offsets = &mut offsets[..=rows.len()];
        self.offsets.read(rows.start, offsets);
        let (first, end) = (offsets[0], offsets[rows.len()]);
        if !offsets.is_sorted() || first < 0 || end as usize > self.data.len() {
            return Err(Error::Parameter {
                name: "offsets",
                value: "(...)".into(),
                accepted: "some that neither decrease nor reach beyond the data".into(),
            });
        }
        let mut data = vec![0; (end - first) as usize];
        self.data.read(first as usize, &mut data);
        let ids = offsets.windows(2).zip(marks(self.nulls.as_ref(), rows));
        addresses.add_bytes(ids.map(|(ends, null)| {
            let [start, end] = [ends[0], ends[1]].map(|at| (at - first) as usize);
            (null == 0).then_some(&data[start..end])
        }))
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

    /// Returns whether two counts have the same ids: whether their addresses are equal.
    fn repeat(&self, py: Python<'_>) -> PyResult<bool> {
        // Not the key of the release: the time to sort would tell of its addresses.
        let key = keyed::ReleaseKey::from_os().map_err(to_py)?;
        let keys = key.id_keys(&self.kinds());
        // Half an address is enough, unless two halves are equal.
        let half = |[half, _]: [u64; 2]| half;
        py.detach(|| Ok(self.any_equal(&keys, half)? && self.any_equal(&keys, |both| both)?))
            .map_err(to_py)
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

    /// Adds a column of bytes, which is read when noise is added. Each id is the part of `data`
    /// from its offset to the next.
    fn add_bytes(
        &mut self,
        offsets: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        nulls: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (offsets, data) = (Items::<i64>::of(offsets)?, Items::of(data)?);
        check(offsets.len().wrapping_sub(1), self.size)?;
        let nulls = nulls.map(|nulls| column(nulls, self.size)).transpose()?;
        let column = Bytes {
            offsets,
            data,
            nulls,
        };
        self.columns.push(Column::Bytes(column));
        Ok(())
    }
}
