//! The tables of a kernel, which all back ends read, are those of its plan's thresholds: for every
//! number, on a grid of plans.
#![allow(clippy::unwrap_used)]

use geomdp_core::plan::Plan;
use geomdp_core::{Kernel, Rate};

#[test]
fn tables_are_those_of_the_thresholds() {
    let spans = [
        1,
        2,
        3,
        10,
        100,
        255,
        1000,
        65_535,
        1_000_000,
        1 << 32,
        u64::MAX >> 1,
        u64::MAX,
    ];
    let mut seen = [0; 3];
    for (exponent, range) in (-70..=10).flat_map(|e| spans.map(|range| (e, range))) {
        let rate = Rate::from_epsilon(0.7 * 2f64.powi(exponent), 1).unwrap();
        if let Ok(plan) = Plan::two_sided(&rate, range) {
            for digit in plan.digits() {
                seen[digit.limbs() - 1] += 1;
            }
            Kernel::new(plan).check_tables();
        }
    }
    assert!(seen.iter().all(|&digits| digits > 100), "{seen:?}");
    for prob in [0.0, 5e-324, 1e-9, 0.01, 0.5, 0.999, 1.0] {
        for trials in [1, 2, 1000, u64::MAX] {
            Kernel::new(Plan::geometric(prob, trials).unwrap()).check_tables();
        }
    }
    Kernel::new(Plan::noiseless(1000)).check_tables();
}
