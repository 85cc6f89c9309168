//! The rate `epsilon / sensitivity = 1 / scale` as an exact rational.

use crate::Error;
use crate::params::dyadic;
use num_bigint::BigUint;
use num_integer::Integer;

/// A positive, finite, exact rate: the privacy loss per unit of distance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    num: BigUint,
    den: BigUint,
}

impl Rate {
    /// The rate `num / den`.
    ///
    /// # Errors
    /// [`Error::Parameter`] if either is zero.
    pub fn from_ratio(num: BigUint, den: BigUint) -> Result<Self, Error> {
        if num.bits() == 0 || den.bits() == 0 {
            return Err(Error::parameter(
                "rate",
                format!("{num}/{den}"),
                "a positive, finite rational",
            ));
        }
        let gcd = num.gcd(&den);
        Ok(Self {
            num: num / &gcd,
            den: den / gcd,
        })
    }

    /// The rate `epsilon / sensitivity`, with epsilon converted exactly.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 < epsilon < inf` and `sensitivity >= 1`.
    pub fn from_epsilon(epsilon: f64, sensitivity: u64) -> Result<Self, Error> {
        let (num, den) = ratio(epsilon)
            .filter(|(num, _)| num.bits() > 0)
            .ok_or_else(|| Error::parameter("epsilon", epsilon, "a positive, finite number"))?;
        if sensitivity == 0 {
            return Err(Error::parameter(
                "sensitivity",
                0,
                "an integer of at least 1",
            ));
        }
        Self::from_ratio(num, den * sensitivity)
    }

    /// The rate `1 / scale`, with scale converted exactly.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `0 < scale < inf`.
    pub fn from_scale(scale: f64) -> Result<Self, Error> {
        let (num, den) = ratio(scale)
            .filter(|(num, _)| num.bits() > 0)
            .ok_or_else(|| Error::parameter("scale", scale, "a positive, finite number"))?;
        Self::from_ratio(den, num)
    }

    /// Numerator, in lowest terms.
    #[must_use]
    pub fn num(&self) -> &BigUint {
        &self.num
    }

    /// Denominator, in lowest terms.
    #[must_use]
    pub fn den(&self) -> &BigUint {
        &self.den
    }

    pub(crate) fn less_than(&self, other: &Self) -> bool {
        &self.num * &other.den < &other.num * &self.den
    }

    /// This rate less an exact number, `num / den`.
    ///
    /// # Errors
    /// [`Error::Parameter`] if nothing is left.
    pub(crate) fn less(&self, num: &BigUint, den: &BigUint) -> Result<Self, Error> {
        let (own, other) = (&self.num * den, num * &self.den);
        let left = if own > other {
            own - other
        } else {
            BigUint::ZERO
        };
        Self::from_ratio(left, &self.den * den)
    }

    /// How many zeros follow the binary point, up to one; 0 for rates above 1.
    pub(crate) fn magnitude(&self) -> u64 {
        self.den.bits().saturating_sub(self.num.bits())
    }

    /// This rate times `1 - 2^-bits`.
    pub(crate) fn slacken(&self, bits: u32) -> Result<Self, Error> {
        let den = &self.den << bits;
        Self::from_ratio((&self.num << bits) - &self.num, den)
    }
}

/// A finite non-negative float as numerator and denominator.
pub(crate) fn ratio(x: f64) -> Option<(BigUint, BigUint)> {
    let (mantissa, exponent) = dyadic::decompose(x)?;
    let shift = exponent.unsigned_abs();
    let (mantissa, one) = (BigUint::from(mantissa), BigUint::from(1u32));
    Some(if exponent < 0 {
        (mantissa, one << shift)
    } else {
        (mantissa << shift, one)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_converted_exactly() {
        let rate = Rate::from_epsilon(0.1, 3).unwrap();
        assert_eq!(rate.num(), &BigUint::from(3602879701896397u64));
        assert_eq!(rate.den(), &(BigUint::from(3u32) << 55));
        let inverse = Rate::from_scale(0.1).unwrap();
        assert_eq!(inverse.den(), &BigUint::from(3602879701896397u64));
        assert_eq!(
            Rate::from_scale(5e-324).unwrap().den(),
            &BigUint::from(1u32)
        );
    }

    #[test]
    fn errors_name_the_parameter() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(
                Rate::from_epsilon(bad, 1)
                    .unwrap_err()
                    .to_string()
                    .starts_with("epsilon")
            );
            assert!(
                Rate::from_scale(bad)
                    .unwrap_err()
                    .to_string()
                    .starts_with("scale")
            );
        }
        assert!(
            Rate::from_epsilon(1.0, 0)
                .unwrap_err()
                .to_string()
                .starts_with("sensitivity")
        );
    }

    #[test]
    fn ratios_are_reduced_and_must_be_positive() {
        let from = |num: u32, den: u32| Rate::from_ratio(num.into(), den.into());
        let rate = from(12, 18).unwrap();
        assert_eq!((rate.num(), rate.den()), (&2u32.into(), &3u32.into()));
        for (num, den) in [(0, 1), (1, 0), (0, 0)] {
            assert!(from(num, den).unwrap_err().to_string().starts_with("rate"));
        }
    }

    #[test]
    fn slacken_is_relative_to_the_rate() {
        let third = Rate::from_ratio(1u32.into(), 3u32.into()).unwrap();
        let slack = third.slacken(4).unwrap();
        // 1/3 * 15/16
        assert_eq!((slack.num(), slack.den()), (&5u32.into(), &16u32.into()));
    }

    #[test]
    fn less_than_a_rate_is_exact_and_positive() {
        let half = Rate::from_ratio(1u32.into(), 2u32.into()).unwrap();
        let left = half.less(&1u32.into(), &3u32.into()).unwrap();
        assert_eq!((left.num(), left.den()), (&1u32.into(), &6u32.into()));
        assert_eq!(half.less(&BigUint::ZERO, &7u32.into()).unwrap(), half);
        assert!(left.less_than(&half) && !half.less_than(&half) && !half.less_than(&left));
        assert!(half.less(&1u32.into(), &2u32.into()).is_err());
        assert!(half.less(&2u32.into(), &3u32.into()).is_err());
        assert_eq!((half.magnitude(), left.magnitude()), (1, 2));
    }

    #[test]
    fn ratio_of_integers_and_fractions() {
        for (x, num, den) in [
            (0.0, 0u32, 1u32),
            (1.0, 1, 1),
            (6.0, 6, 1),
            (0.375, 3, 8),
            (2.5, 5, 2),
        ] {
            assert_eq!(ratio(x), Some((num.into(), den.into())));
        }
        assert_eq!(ratio(f64::NAN), None);
    }
}
