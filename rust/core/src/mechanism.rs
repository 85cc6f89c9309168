//! The mechanism: exact public parameters, a plan for each range, and the release of counts.

use crate::Error;
use crate::draw::Draws;
use crate::draw::kernel::{Count, Kernel};
use crate::draw::tape::{Tape, Words};
use crate::draw::wipe::without_trace;
use crate::params::privacy;
use crate::params::rate::Rate;
use crate::plan::Plan;
use num_bigint::BigUint;
use std::sync::OnceLock;

/// The geometric mechanism, for counts of any integer type.
///
/// Holds public parameters only and may be shared between threads and processes.
#[derive(Debug)]
pub struct Mechanism {
    /// `None`: scale 0, no noise.
    rate: Option<Rate>,
    bounds: Option<(i128, i128)>,
    /// One for each width of signed integers without bounds. With bounds, the first is for these.
    kernels: [OnceLock<Result<Kernel, Error>>; 4],
}

impl Mechanism {
    /// The mechanism with this rate (`None` for scale 0: no noise). Outputs are censored to
    /// `bounds` or, without bounds, to the limits of the signed integer type of each call.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the bounds are reversed; [`Error::Overflow`] if no integer type
    /// holds both; [`Error::Uncertifiable`] if the rate is too small for their range.
    pub fn new(rate: Option<Rate>, bounds: Option<(i128, i128)>) -> Result<Self, Error> {
        let mechanism = Self {
            rate,
            bounds,
            kernels: Default::default(),
        };
        if let Some((lower, upper)) = bounds {
            let value = || format!("({lower}, {upper})");
            if lower > upper {
                return Err(Error::parameter("bounds", value(), "lower <= upper"));
            }
            let signed = lower >= i64::MIN.into() && upper <= i64::MAX.into();
            let unsigned = lower >= 0 && upper <= u64::MAX.into();
            if !signed && !unsigned {
                return Err(Error::overflow(
                    "bounds",
                    value(),
                    "two values of one integer type of at most 64 bits",
                ));
            }
            mechanism.kernel(lower, upper)?;
        }
        Ok(mechanism)
    }

    /// The exact rate; `None` for scale 0.
    #[must_use]
    pub fn rate(&self) -> Option<&Rate> {
        self.rate.as_ref()
    }

    /// The bounds, if any were given.
    #[must_use]
    pub fn bounds(&self) -> Option<(i128, i128)> {
        self.bounds
    }

    /// The privacy loss at distance `d_in`: see [`privacy::map`].
    #[must_use]
    pub fn map(&self, d_in: &BigUint) -> f64 {
        privacy::map(self.rate.as_ref(), d_in)
    }

    /// The least and the greatest output for counts of type `T`.
    ///
    /// # Errors
    /// [`Error::Parameter`] if `T` is unsigned and there are no bounds; [`Error::Overflow`] if a
    /// bound is not of type `T`.
    pub fn limits_for<T: Count>(&self) -> Result<(T, T), Error> {
        if self.bounds.is_none() && T::MIN == 0 {
            // Clamping at 0 would bias small counts, and the bias adds up.
            return Err(Error::parameter(
                "bounds",
                format!("None with counts of type uint{}", 8 * size_of::<T>()),
                format!(
                    "bounds such as (0, {}), which bias small counts upward, or cast the counts to a signed type",
                    T::MAX
                ),
            ));
        }
        let (lower, upper) = self.bounds.unwrap_or((T::MIN, T::MAX));
        limits(lower, upper)
    }

    /// Returns the kernel with the plan for counts of type `T`, and the lower bound that offsets
    /// start from.
    ///
    /// # Errors
    /// Those of [`Self::limits_for`]; [`Error::Uncertifiable`] if the rate is too small for the
    /// range.
    pub fn kernel_for<T: Count>(&self) -> Result<(&Kernel, T), Error> {
        let (lower, upper) = self.limits_for::<T>()?;
        Ok((self.kernel(lower.into(), upper.into())?, lower))
    }

    /// The kernel with the plan for counts of type `i64` and no bounds.
    pub(crate) fn widest_kernel(&self) -> Result<&Kernel, Error> {
        self.kernel_in(3, u64::MAX)
    }

    fn kernel(&self, lower: i128, upper: i128) -> Result<&Kernel, Error> {
        let Ok(range) = u64::try_from(upper - lower) else {
            unreachable!("limits of one integer type are at most 64 bits apart")
        };
        let slot = match (self.bounds, range) {
            (Some(_), _) => 0,
            (None, 0xff) => 0,
            (None, 0xffff) => 1,
            (None, 0xffff_ffff) => 2,
            (None, _) => 3,
        };
        self.kernel_in(slot, range)
    }

    fn kernel_in(&self, slot: usize, range: u64) -> Result<&Kernel, Error> {
        self.kernels[slot]
            .get_or_init(|| {
                let plan = match &self.rate {
                    Some(rate) => Plan::two_sided(rate, range)?,
                    None => Plan::noiseless(range),
                };
                Ok(Kernel::new(plan))
            })
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Adds noise to the counts in place, with entropy from the operating system.
    ///
    /// # Errors
    /// Those of [`Self::kernel_for`], and [`Error::Entropy`]. On error the counts are unchanged.
    pub fn release<T: Count>(&self, counts: &mut [T]) -> Result<(), Error> {
        // Reject bad parameters before asking the operating system for entropy.
        let (kernel, lower) = self.kernel_for()?;
        without_trace(|| Draws::new(kernel, lower, Tape::from_os()?).add_noise(counts))
    }

    /// Like [`Self::release`], with words from a given source.
    ///
    /// # Errors
    /// Those of [`Self::kernel_for`], and any error of the source. Some counts may have noise by
    /// then. A [`Tape`] fails only past `2^61` words.
    pub fn release_with<T: Count>(
        &self,
        source: &mut impl Words,
        counts: &mut [T],
    ) -> Result<(), Error> {
        let (kernel, lower) = self.kernel_for()?;
        Draws::new(kernel, lower, source).add_noise(counts)
    }
}

/// Returns the bounds as values of type `T`.
///
/// # Errors
/// [`Error::Overflow`] if type `T` cannot hold both bounds.
pub(crate) fn limits<T: Count>(lower: i128, upper: i128) -> Result<(T, T), Error> {
    match (T::exact(lower), T::exact(upper)) {
        (Some(least), Some(greatest)) => Ok((least, greatest)),
        _ => Err(Error::overflow(
            "bounds",
            format!("({lower}, {upper})"),
            format!(
                "values from {} to {}, the limits of these counts",
                T::MIN,
                T::MAX
            ),
        )),
    }
}
