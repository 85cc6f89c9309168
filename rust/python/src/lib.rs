//! The Python binding: converts arguments, releases the interpreter and calls `geomdp-core`. The
//! noise itself is made there.

// rustdoc does not get this setting.
#[cfg(all(
    target_os = "linux",
    not(doc),
    not(any(getrandom_backend = "linux_getrandom", getrandom_backend = "linux_raw"))
))]
compile_error!(
    "one of your settings, such as RUSTFLAGS, overrides .cargo/config.toml: \
     add --cfg=getrandom_backend=\"linux_getrandom\" to it"
);

mod arrays;
mod certificate;
mod keyed;
mod rows;

use arrays::{Items, Memory};
use geomdp_core::bernoulli::Bernoulli;
use geomdp_core::keyed::AddressedDraws;
use geomdp_core::plan::Plan;
use geomdp_core::plan::hazards::Mean;
use geomdp_core::tape::{Tape, key_from_os};
use geomdp_core::wipe::without_trace;
use geomdp_core::{Backend, Count, Draws, Error, Kernel, Rate, features, groups, with_count_types};
use num_bigint::BigUint;
use pyo3::IntoPyObjectExt;
use pyo3::buffer::{Element, ElementType};
use pyo3::exceptions::{PyOSError, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use zeroize::Zeroizing;

fn to_py(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Overflow { .. } => PyOverflowError::new_err(message),
        Error::Entropy(_) => PyOSError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

/// Runs the body with `$t` as the type of these items.
macro_rules! with_dtype {
    ($item:expr, $t:ident => $body:expr) => {
        with_count_types!(with_dtype! $item, $t => $body;)
    };
    ($item:expr, $t:ident => $body:expr; $($type:ty, $wide:ty, $flip:expr;)*) => {{
        let item: ElementType = $item;
        $(if item == item_of::<$type>() {
            type $t = $type;
            $body
        } else)* {
            Err(PyValueError::new_err("give an integer dtype of 8 to 64 bits"))
        }
    }};
}

fn item_of<T: Count>() -> ElementType {
    let bytes = size_of::<T>();
    if T::MIN < 0 {
        ElementType::SignedInteger { bytes }
    } else {
        ElementType::UnsignedInteger { bytes }
    }
}

/// The items of a numpy dtype, given by kind and size in bytes: `i8` is int64.
fn named(dtype: &str) -> ElementType {
    let bytes = || dtype[1..].parse().unwrap_or(0);
    match dtype.as_bytes().first() {
        Some(b'i') => ElementType::SignedInteger { bytes: bytes() },
        Some(b'u') => ElementType::UnsignedInteger { bytes: bytes() },
        _ => ElementType::Unknown,
    }
}

fn exact(rate: Option<(BigUint, BigUint)>) -> PyResult<Option<Rate>> {
    rate.map(|(num, den)| Rate::from_ratio(num, den))
        .transpose()
        .map_err(to_py)
}

/// Adds noise to a single count, a Python int.
fn scalar<'py, T: Count + for<'a> FromPyObject<'a, 'py> + IntoPyObject<'py>>(
    count: &Bound<'py, PyAny>,
    release: impl FnOnce(&mut [T]) -> Result<(), Error>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut noisy = [count.extract::<T>().map_err(Into::into)?];
    release(&mut noisy).map_err(to_py)?;
    noisy[0].into_bound_py_any(count.py())
}

/// A copy of the items of an array.
fn own<T: Element + Copy + Default + zeroize::DefaultIsZeroes>(
    array: &Bound<'_, PyAny>,
) -> PyResult<Zeroizing<Vec<T>>> {
    let items = Items::of(array)?;
    let mut own = Zeroizing::new(vec![T::default(); items.len()]);
    items.read(0, &mut own);
    Ok(own)
}

/// Public parameters and their plans.
#[pyclass(frozen, module = "geomdp._core")]
struct Mechanism {
    inner: geomdp_core::Mechanism,
}

#[pymethods]
impl Mechanism {
    #[new]
    fn new(rate: Option<(BigUint, BigUint)>, bounds: Option<(i128, i128)>) -> PyResult<Self> {
        let inner = geomdp_core::Mechanism::new(exact(rate)?, bounds).map_err(to_py)?;
        Ok(Self { inner })
    }

    fn release_scalar<'py>(
        &self,
        count: &Bound<'py, PyAny>,
        dtype: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        with_dtype!(named(dtype), T => scalar::<T>(count, |noisy| self.inner.release(noisy)))
    }

    /// Adds noise to the counts of one contiguous buffer and writes the results to another.
    /// `progress` is called now and then with the number of counts done since, and `threads = 0`
    /// picks the number automatically.
    fn release_into(
        &self,
        py: Python<'_>,
        counts: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
        threads: usize,
    ) -> PyResult<()> {
        let (counts, out) = (Memory::of(counts)?, Memory::of(out)?);
        with_dtype!(counts.item(), T => {
            let (counts, out) = (counts.items()?, out.items()?);
            let (kernel, lower) = self.inner.kernel_for::<T>().map_err(to_py)?;
            without_trace(|| {
                let key = key_from_os().map_err(to_py)?;
                let from = |index| {
                    let mut draws = Draws::at(kernel, lower, &key, index)?;
                    Ok(move |part: &mut [T]| draws.add_noise(part))
                };
                arrays::add_noise(py, from, &counts, &out, progress, threads)
            })
        })
    }

    /// [`Mechanism::release_into`] with the tapes that a key gives to ids, from row `start` on.
    #[allow(clippy::too_many_arguments)]
    fn release_keyed(
        &self,
        py: Python<'_>,
        key: &keyed::ReleaseKey,
        name: &str,
        ids: &keyed::Ids,
        start: usize,
        counts: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
        threads: usize,
    ) -> PyResult<()> {
        let (counts, out) = (Memory::of(counts)?, Memory::of(out)?);
        with_dtype!(counts.item(), T => {
            let (counts, out) = (counts.items()?, out.items()?);
            // The counts may have any shape.
            ids.refuse_beyond(start, counts.len())?;
            let (kernel, lower) = self.inner.kernel_for::<T>().map_err(to_py)?;
            without_trace(|| {
                let (tape_key, id_keys) = key.with(|key| {
                    let tape_key = key.tape_key::<T>(&self.inner, name.as_bytes());
                    Ok((tape_key, key.id_keys(&ids.kinds())))
                })?;
                let from = |index| {
                    let mut draws = AddressedDraws::new(kernel, lower, &tape_key);
                    let mut addresses = id_keys.addresses(keyed::CHUNK);
                    let mut next = start + index;
                    Ok(move |part: &mut [T]| {
                        let first = next;
                        next = first + part.len();
                        ids.add_noise(&mut draws, &mut addresses, first, part)
                    })
                };
                arrays::add_noise(py, from, &counts, &out, progress, threads)
            })
        })
    }

    /// Draws the places of the `k` largest noisy counts of a contiguous buffer.
    fn top(
        &self,
        py: Python<'_>,
        counts: &Bound<'_, PyAny>,
        k: usize,
        progress: Option<&Bound<'_, PyAny>>,
        threads: usize,
    ) -> PyResult<Vec<u64>> {
        let counts = Memory::of(counts)?;
        with_dtype!(counts.item(), T => {
            let counts = counts.items::<T>()?;
            let read = |start, chunk: &mut [T]| counts.read(start, chunk);
            without_trace(|| arrays::top(py, &self.inner, counts.len(), k, progress, threads, read))
        })
    }

    /// [`Mechanism::top`] of `size` counts, of which all but those at `places`, in order, are 0.
    fn top_among(
        &self,
        py: Python<'_>,
        places: &Bound<'_, PyAny>,
        counts: &Bound<'_, PyAny>,
        size: usize,
        k: usize,
        threads: usize,
    ) -> PyResult<Vec<u64>> {
        let (places, counts) = (own::<u64>(places)?, own::<i64>(counts)?);
        let read = |start: usize, chunk: &mut [i64]| {
            chunk.fill(0);
            let at = |index: usize| places.partition_point(|&place| place < index as u64);
            let inside = at(start)..at(start + chunk.len());
            for (place, count) in places[inside.clone()].iter().zip(&counts[inside]) {
                // A place below `start + chunk.len()`, as just found.
                #[allow(clippy::cast_possible_truncation)]
                let place = *place as usize;
                chunk[place - start] = *count;
            }
        };
        without_trace(|| arrays::top(py, &self.inner, size, k, None, threads, read))
    }

    /// The least and the greatest output.
    fn limits(&self, dtype: &str) -> PyResult<(i128, i128)> {
        with_dtype!(named(dtype), T => {
            let (lower, upper) = self.inner.limits_for::<T>().map_err(to_py)?;
            Ok((lower.into(), upper.into()))
        })
    }

    fn certificate<'py>(
        &self,
        py: Python<'py>,
        dtype: &str,
        tight: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        with_dtype!(named(dtype), T => {
            let (kernel, _) = self.inner.kernel_for::<T>().map_err(to_py)?;
            certificate::of(py, self.inner.rate(), kernel, tight)
        })
    }
}

/// A mechanism with outputs folded into the bounds. `twice` is the bounds times two.
#[pyclass(frozen, module = "geomdp._core")]
struct Folded {
    inner: geomdp_core::fold::Folded,
}

#[pymethods]
impl Folded {
    #[new]
    fn new(rate: Option<(BigUint, BigUint)>, twice: (i128, i128)) -> PyResult<Self> {
        let inner = geomdp_core::fold::Folded::new(exact(rate)?, twice).map_err(to_py)?;
        Ok(Self { inner })
    }

    fn release_scalar<'py>(
        &self,
        count: &Bound<'py, PyAny>,
        dtype: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        with_dtype!(named(dtype), T => scalar::<T>(count, |noisy| self.inner.release(noisy)))
    }

    /// Adds noise to the counts of one contiguous buffer and writes the results to another.
    /// `progress` is called now and then with the number of counts done since, and `threads = 0`
    /// picks the number automatically.
    fn release_into(
        &self,
        py: Python<'_>,
        counts: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
        threads: usize,
    ) -> PyResult<()> {
        let (counts, out) = (Memory::of(counts)?, Memory::of(out)?);
        with_dtype!(counts.item(), T => {
            let (counts, out) = (counts.items()?, out.items()?);
            without_trace(|| {
                let key = key_from_os().map_err(to_py)?;
                let from = |index| {
                    let mut draws = self.inner.draws_at(&key, index)?;
                    Ok(move |part: &mut [T]| draws.add_noise(part))
                };
                arrays::add_noise(py, from, &counts, &out, progress, threads)
            })
        })
    }
}

/// The plans of several tiers, the finest first.
#[pyclass(frozen, module = "geomdp._core")]
struct Tiers {
    inner: geomdp_core::tiers::Tiers,
}

#[pymethods]
impl Tiers {
    #[new]
    fn new(rates: Vec<(BigUint, BigUint)>, bounds: (i128, i128)) -> PyResult<Self> {
        let rates = rates
            .into_iter()
            .map(|(num, den)| Rate::from_ratio(num, den));
        let rates = rates.collect::<Result<Vec<_>, _>>().map_err(to_py)?;
        let inner = geomdp_core::tiers::Tiers::new(&rates, bounds).map_err(to_py)?;
        Ok(Self { inner })
    }

    /// Writes the noisy counts of each tier to a buffer of its own. All are contiguous.
    fn release_into(
        &self,
        py: Python<'_>,
        counts: &Bound<'_, PyAny>,
        outs: Vec<Bound<'_, PyAny>>,
        threads: usize,
    ) -> PyResult<()> {
        tiers_with(py, self, counts, &outs, threads, |_| {
            key_from_os().map_err(to_py)
        })
    }

    fn certificates<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let tiers = self.inner.tiers().iter().zip(self.inner.kernels());
        tiers
            .map(|(tier, kernel)| certificate::of_tier(py, tier, kernel))
            .collect()
    }
}

/// [`Tiers::release_into`] with the key of each tier.
fn tiers_with(
    py: Python<'_>,
    tiers: &Tiers,
    counts: &Bound<'_, PyAny>,
    outs: &[Bound<'_, PyAny>],
    threads: usize,
    key: impl Fn(usize) -> PyResult<Zeroizing<[u8; 32]>>,
) -> PyResult<()> {
    let counts = Memory::of(counts)?;
    with_dtype!(counts.item(), T => {
        let counts = counts.items::<T>()?;
        let outs = outs.iter().map(|out| Memory::of(out)?.items::<T>());
        let outs = outs.collect::<PyResult<Vec<_>>>()?;
        let (kernels, lower) = tiers.inner.kernels_for::<T>().map_err(to_py)?;
        if outs.len() != kernels.len() {
            return Err(PyValueError::new_err("give a buffer for each tier"));
        }
        without_trace(|| {
            // Each tier has a tape of its own.
            let keys = (0..kernels.len()).map(key).collect::<PyResult<Vec<_>>>()?;
            let from = |index| {
                let draws = kernels.iter().zip(&keys).map(|(kernel, key)| {
                    let mut draws = Draws::at(kernel, lower, key, index)?;
                    Ok(move |part: &mut [T]| draws.add_noise(part))
                });
                draws.collect::<Result<Vec<_>, _>>()
            };
            arrays::add_noises(py, from, &counts, &outs, None, threads)
        })
    })
}

/// [`Tiers::release_into`] with known keys, one for each tier: for tests, and not private.
#[pyfunction]
fn tiers_not_private(
    py: Python<'_>,
    tiers: &Tiers,
    keys: Vec<[u8; 32]>,
    counts: &Bound<'_, PyAny>,
    outs: Vec<Bound<'_, PyAny>>,
    threads: usize,
) -> PyResult<()> {
    if keys.len() != outs.len() {
        return Err(PyValueError::new_err("give a key for each tier"));
    }
    tiers_with(py, tiers, counts, &outs, threads, |tier| {
        Ok(Zeroizing::new(keys[tier]))
    })
}

/// [`Mechanism::release_into`] with a known key: for tests, and not private.
#[pyfunction]
fn release_not_private(
    py: Python<'_>,
    mechanism: &Mechanism,
    key: [u8; 32],
    counts: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    threads: usize,
) -> PyResult<()> {
    let (counts, out) = (Memory::of(counts)?, Memory::of(out)?);
    with_dtype!(counts.item(), T => {
        let (counts, out) = (counts.items()?, out.items()?);
        let (kernel, lower) = mechanism.inner.kernel_for::<T>().map_err(to_py)?;
        let from = |index| {
            let mut draws = Draws::at(kernel, lower, &key, index)?;
            Ok(move |part: &mut [T]| draws.add_noise(part))
        };
        arrays::add_noise(py, from, &counts, &out, None, threads)
    })
}

/// The noise of groups of a domain that nobody can list.
#[pyclass(frozen, module = "geomdp._core")]
struct Groups {
    inner: groups::Noise,
}

#[pymethods]
impl Groups {
    #[new]
    fn new(stop: f64, block: u64, fall: f64, blocks: u32) -> PyResult<Self> {
        let inner = groups::Noise::new(stop, block, fall, blocks).map_err(to_py)?;
        Ok(Self { inner })
    }

    /// Writes the noisy counts that reach their thresholds to a buffer, and 0 for all others: see
    /// [`groups::Noise::reach`].
    fn reach(
        &self,
        py: Python<'_>,
        key: &keyed::ReleaseKey,
        counts: &Bound<'_, PyAny>,
        thresholds: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        threads: usize,
    ) -> PyResult<()> {
        let arrays = [Items::of(counts)?, Items::of(thresholds)?, Items::of(out)?];
        let draw = |key: &_| arrays::reach(py, &self.inner, key, &arrays, threads);
        without_trace(|| key.with(draw))
    }

    /// The values of the points of the class with this index, as int64, and so many words for the place of each, as
    /// uint64. All are in the order of this machine's bytes.
    #[allow(clippy::too_many_arguments)]
    fn points<'py>(
        &self,
        py: Python<'py>,
        key: &keyed::ReleaseKey,
        index: u32,
        threshold: i64,
        parts: u64,
        mean: (BigUint, u64),
        words: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        without_trace(|| {
            key.with(|key| {
                let draw = || {
                    let mean = Mean::new(mean.0, mean.1)?;
                    let mut points = groups::Points::new(index, threshold, parts, mean)?;
                    points.draw(&self.inner, key, words)
                };
                let (values, places) = draw().map_err(to_py)?;
                let bytes = |items: &[[u8; 8]]| PyBytes::new(py, items.as_flattened());
                let values: Vec<_> = values.iter().map(|value| value.to_ne_bytes()).collect();
                let places: Vec<_> = places.iter().map(|word| word.to_ne_bytes()).collect();
                Ok((bytes(&values), bytes(&places)))
            })
        })
    }

    /// The digits of a block, with the words of each draw.
    fn digits(&self) -> Vec<(u64, usize, Vec<BigUint>)> {
        certificate::digits(self.inner.plan())
    }
}

/// Fills a buffer of int64 with the numbers of trials up to the first success.
#[pyfunction]
fn sample_geometric(
    py: Python<'_>,
    prob: f64,
    trials: u64,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let out = Items::of(out)?;
    let kernel = Kernel::new(Plan::geometric(prob, trials).map_err(to_py)?);
    without_trace(|| {
        let key = key_from_os().map_err(to_py)?;
        let from = |index| {
            let mut draws = Draws::at(&kernel, 0, &key, index)?;
            Ok(move |part: &mut [i64]| draws.add_noise(part))
        };
        arrays::add_noise(py, from, &out, &out, None, arrays::AUTOMATIC)
    })
}

/// Fills a buffer of uint8 with bits, 0 or 1.
#[pyfunction]
fn sample_bernoulli(py: Python<'_>, prob: f64, out: &Bound<'_, PyAny>) -> PyResult<()> {
    let out = Items::of(out)?;
    let bit = Bernoulli::new(prob).map_err(to_py)?;
    without_trace(|| {
        let key = key_from_os().map_err(to_py)?;
        let from = |index| {
            let (bit, mut tape) = (&bit, Tape::at(&key, index, bit.words())?);
            Ok(move |bits: &mut [u8]| bit.fill(&mut tape, bits))
        };
        arrays::add_noise(py, from, &out, &out, None, arrays::AUTOMATIC)
    })
}

/// The name of the kernel back end that this processor uses, what computes the tape, and the
/// features that decide.
#[pyfunction]
fn kernel() -> (String, &'static str, Vec<(&'static str, bool)>) {
    let name = format!("{:?}", Backend::best()).to_lowercase();
    (name, geomdp_core::tape::instructions(), features())
}

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::keyed::{Ids, ReleaseKey};
    #[pymodule_export]
    use super::rows::{Rows, columns};
    #[pymodule_export]
    use super::{
        Folded, Groups, Mechanism, Tiers, kernel, release_not_private, sample_bernoulli,
        sample_geometric, tiers_not_private,
    };
}
