//! Release keys, and the addresses that they give to ids.

use crate::to_py;
use geomdp_core::keyed;
use geomdp_core::tape::without_trace;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, PoisonError};

/// The secret of a release, until it is wiped.
#[pyclass(frozen, module = "geomdp._core")]
pub(crate) struct ReleaseKey {
    // In a place of its own, so that no copy stays where it is moved from.
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
                "the release key is wiped: make another release, with a key of its own",
            )),
        }
    }
}

#[pymethods]
impl ReleaseKey {
    /// With these bytes, or fresh ones of the operating system.
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

/// Where the tape of each count begins.
#[pyclass(module = "geomdp._core")]
pub(crate) struct Addresses {
    inner: keyed::Addresses,
}

impl Addresses {
    pub(crate) fn get(&self) -> &keyed::Addresses {
        &self.inner
    }
}

#[pymethods]
impl Addresses {
    #[new]
    fn new(size: usize) -> Self {
        let inner = keyed::Addresses::new(size);
        Self { inner }
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Adds a column of int64 or uint64; bytes that are not 0 mark its nulls.
    fn add_integers(
        &mut self,
        key: &ReleaseKey,
        ids: &Bound<'_, PyAny>,
        nulls: Option<&Bound<'_, PyAny>>,
        signed: bool,
    ) -> PyResult<()> {
        if signed {
            self.add(key, &items::<i64>(ids)?, nulls)
        } else {
            self.add(key, &items::<u64>(ids)?, nulls)
        }
    }

    /// Adds a column of bytes: each id is `data` from its offset to the next one.
    fn add_bytes(
        &mut self,
        key: &ReleaseKey,
        offsets: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        nulls: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (offsets, data) = (items::<i64>(offsets)?, items::<u8>(data)?);
        let nulls = nulls.map(items::<u8>).transpose()?;
        let ids = offsets.windows(2).map(|pair| {
            let range = usize::try_from(pair[0]).ok()?..usize::try_from(pair[1]).ok()?;
            data.get(range)
        });
        if !ids.clone().all(|id| id.is_some()) {
            return Err(PyValueError::new_err("offsets reach beyond the data"));
        }
        let ids = ids
            .enumerate()
            .map(|(place, id)| id.filter(|_| !is_null(&nulls, place)));
        key.with(|key| without_trace(|| self.inner.add_bytes(key, ids)).map_err(to_py))
    }
}

impl Addresses {
    fn add<T: Element + Into<i128>>(
        &mut self,
        key: &ReleaseKey,
        ids: &[T],
        nulls: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let nulls = nulls.map(items::<u8>).transpose()?;
        let ids = ids.iter().enumerate();
        let ids = ids.map(|(place, &id)| (!is_null(&nulls, place)).then_some(id.into()));
        key.with(|key| without_trace(|| self.inner.add_integers(key, ids)).map_err(to_py))
    }
}

fn is_null(nulls: &Option<Vec<u8>>, place: usize) -> bool {
    nulls
        .as_ref()
        .is_some_and(|nulls| nulls.get(place) != Some(&0))
}

/// A copy of a contiguous buffer.
fn items<T: Element>(array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    PyBuffer::<T>::get(array)?.to_vec(array.py())
}
