//! Privacy maps in exact arithmetic, rounded up.

use crate::params::dyadic::{Round, to_f64};
use crate::params::rate::Rate;
use num_bigint::BigUint;

/// The privacy loss `d_in * rate` for inputs at distance `d_in`, rounded up to float64: 0 at
/// distance 0, infinity for scale 0 (no rate) at any other distance.
#[must_use]
pub fn map(rate: Option<&Rate>, d_in: &BigUint) -> f64 {
    if d_in.bits() == 0 {
        return 0.0;
    }
    rate.map_or(f64::INFINITY, |rate| {
        to_f64(&(d_in * rate.num()), rate.den(), Round::Up)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_smaller_than_the_exact_value() {
        let rate = Rate::from_scale(3.0).unwrap();
        assert_eq!(map(Some(&rate), &3u32.into()), 1.0);
        assert_eq!(map(Some(&rate), &1u32.into()), (1.0f64 / 3.0).next_up());
        assert_eq!(map(Some(&rate), &0u32.into()), 0.0);
        assert_eq!(map(None, &0u32.into()), 0.0);
        assert_eq!(map(None, &1u32.into()), f64::INFINITY);
        let steep = Rate::from_scale(5e-324).unwrap();
        assert_eq!(map(Some(&steep), &1u32.into()), f64::INFINITY);
    }
}
