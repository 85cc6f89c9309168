//! The mechanism: exact public parameters, a plan for each range, and the release of counts.

use crate::Error;
use crate::draw::draw;
use crate::draw::kernel::Count;
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
    /// One plan for the bounds or, without bounds, one for each width of signed integers.
    plans: [OnceLock<Result<Plan, Error>>; 4],
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
            plans: Default::default(),
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
            mechanism.plan(lower, upper)?;
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
    pub fn limits_for<T: Count>(&self) -> Result<(i128, i128), Error> {
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
        limits::<T>(lower, upper)?;
        Ok((lower, upper))
    }

    /// Returns the plan for counts of type `T`, and the lower bound that offsets start from.
    ///
    /// # Errors
    /// Those of [`Self::limits_for`]; [`Error::Uncertifiable`] if the rate is too small for the
    /// range.
    pub fn plan_for<T: Count>(&self) -> Result<(&Plan, T), Error> {
        let (lower, upper) = self.limits_for::<T>()?;
        Ok((self.plan(lower, upper)?, limits(lower, upper)?))
    }

    fn plan(&self, lower: i128, upper: i128) -> Result<&Plan, Error> {
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
        self.plans[slot]
            .get_or_init(|| match &self.rate {
                Some(rate) => Plan::two_sided(rate, range),
                None => Ok(Plan::noiseless(range)),
            })
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Adds noise to the counts in place, with entropy from the operating system.
    ///
    /// # Errors
    /// Those of [`Self::plan_for`], and [`Error::Entropy`]. On error the counts are unchanged.
    pub fn release<T: Count>(&self, counts: &mut [T]) -> Result<(), Error> {
        // Reject bad parameters before asking the operating system for entropy.
        let (plan, lower) = self.plan_for::<T>()?;
        without_trace(|| draw(plan, lower, &mut Tape::from_os()?, counts))
    }

    /// Like [`Self::release`], with words from a given source.
    ///
    /// # Errors
    /// Those of [`Self::plan_for`], and any error of the source. Some counts may have noise by
    /// then. A [`Tape`] fails only past `2^61` words.
    pub fn release_with<T: Count>(
        &self,
        source: &mut impl Words,
        counts: &mut [T],
    ) -> Result<(), Error> {
        let (plan, lower) = self.plan_for::<T>()?;
        draw(plan, lower, source, counts)
    }
}

/// Returns the lower bound as a value of type `T`.
///
/// # Errors
/// [`Error::Overflow`] if type `T` cannot hold both bounds.
pub(crate) fn limits<T: Count>(lower: i128, upper: i128) -> Result<T, Error> {
    match (T::exact(lower), T::exact(upper)) {
        (Some(least), Some(_)) => Ok(least),
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
