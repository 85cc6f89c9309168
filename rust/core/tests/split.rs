//! Each count's noise is the same however the counts are split among threads.
#![allow(clippy::unwrap_used)]

use geomdp_core::fold::Folded;
use geomdp_core::tape::Tape;
use geomdp_core::{Draws, LANES, Mechanism, Rate};

const KEY: [u8; 32] = [9; 32];
const SIZE: usize = 20 * LANES + 5;

/// Places to split at, in blocks.
const SPLITS: [&[usize]; 4] = [&[], &[1], &[7, 8], &[3, 9, 19, 20]];

fn check(whole: &[i32], noise: impl Fn(usize, &mut [i32])) {
    for split in SPLITS {
        let mut counts = vec![3; SIZE];
        let mut ends: Vec<_> = split.iter().map(|block| block * LANES).collect();
        ends.push(SIZE);
        let mut start = 0;
        for end in ends {
            noise(start, &mut counts[start..end]);
            start = end;
        }
        assert_eq!(counts, whole, "{split:?}");
    }
}

#[test]
fn parts_have_the_same_noise_as_the_whole() {
    for (scale, bounds) in [
        (5.0, None),
        (1e6, None),
        (2.0, Some((-10, 10))),
        (3.0, Some((3, 3))),
    ] {
        let rate = Rate::from_scale(scale).unwrap();
        let mechanism = Mechanism::new(Some(rate), bounds).unwrap();
        let (kernel, lower) = mechanism.kernel_for::<i32>().unwrap();
        let mut whole = [3; SIZE];
        let mut draws = Draws::new(kernel, lower, Tape::from_key(&KEY));
        draws.add_noise(&mut whole).unwrap();
        check(&whole, |index, part| {
            let mut draws = Draws::at(kernel, lower, &KEY, index).unwrap();
            draws.add_noise(part).unwrap();
        });
        for index in [1, LANES - 1, LANES + 1] {
            assert!(Draws::at(kernel, lower, &KEY, index).is_err());
        }
        if kernel.plan().words() > 0 {
            assert!(Draws::at(kernel, lower, &KEY, usize::MAX / LANES * LANES).is_err());
        }
    }
}

#[test]
fn folded_parts_have_the_same_noise_as_the_whole() {
    for (scale, twice) in [(5.0, (-8, 13)), (1e6, (0, 200))] {
        let folded = Folded::new(Some(Rate::from_scale(scale).unwrap()), twice).unwrap();
        let mut whole = [3; SIZE];
        let mut draws = folded.draws(Tape::from_key(&KEY)).unwrap();
        draws.add_noise(&mut whole).unwrap();
        check(&whole, |index, part| {
            let mut draws = folded.draws_at(&KEY, index).unwrap();
            draws.add_noise(part).unwrap();
        });
        assert!(folded.draws_at::<i32>(&KEY, 1).is_err());
    }
}
