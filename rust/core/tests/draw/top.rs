//! The places of the largest noisy counts, against a model of the noise in big integers; and the
//! parameters that are refused.
#![allow(clippy::unwrap_used)]

use crate::model::Model;
use geomdp_core::tape::{Tape, Words};
use geomdp_core::{Count, LANES, Mechanism, Rate};

const KEY: [u8; 32] = [3; 32];

fn mechanism(scale: f64, bounds: Option<(i128, i128)>) -> Mechanism {
    Mechanism::new(Some(Rate::from_scale(scale).unwrap()), bounds).unwrap()
}

/// The noise of the first `n` counts, by the specification of an unbounded release of `i64`.
fn noise(scale: f64, n: usize) -> Vec<i128> {
    let unbounded = mechanism(scale, None);
    let plan = unbounded.kernel_for::<i64>().unwrap().0.plan();
    let model = Model::new(plan);
    let mut words = vec![0; n.div_ceil(LANES) * LANES * plan.words()];
    Tape::from_key(&KEY).fill(&mut words).unwrap();
    let noise = |i: usize| {
        let block = &words[i / LANES * LANES * plan.words()..];
        let own: Vec<u64> = (0..plan.words())
            .map(|j| block[j * LANES + i % LANES])
            .collect();
        let z = i128::from(model.noisy(&own, 1 << 63, |_| ())) - (1 << 63);
        // One-sided: the sign of the kernel's noise is independent of this.
        z.max(-1 - z)
    };
    (0..n).map(noise).collect()
}

/// The first place of the largest sum among those that are not named.
fn place<T: Count>(counts: &[T], window: (i128, i128), noise: &[i128], named: &[u64]) -> u64 {
    let sums = counts.iter().zip(noise).zip(0..);
    let sums = sums
        .map(|((&count, noise), place)| (count.into().clamp(window.0, window.1) + noise, place));
    let left = sums.filter(|(_, place)| !named.contains(place));
    left.reduce(|best, next| if next.0 > best.0 { next } else { best })
        .unwrap()
        .1
}

fn check<T: Count>(scale: f64, bounds: Option<(i128, i128)>, window: (i128, i128), counts: &[T]) {
    let mechanism = mechanism(scale, bounds);
    let noise = noise(scale, counts.len());
    for length in 1..=counts.len() {
        let (counts, mut named) = (&counts[..length], Vec::new());
        for _ in 0..length.min(3) {
            let mut whole = mechanism.pick(Tape::from_key(&KEY), &named).unwrap();
            whole.compare(counts).unwrap();
            let found = whole.best().place();
            assert_eq!(found, place(counts, window, &noise, &named), "{length}");
            // In parts that begin at multiples of a block, as threads take them.
            let at = length / 2 / LANES * LANES;
            let mut parts = Vec::new();
            for (at, part) in [(0, &counts[..at]), (at, &counts[at..])] {
                let mut pick = mechanism.pick_at(&KEY, at, &named).unwrap();
                pick.compare(part).unwrap();
                parts.push(pick.best());
            }
            let mut best = parts.pop().unwrap();
            best.merge(&parts[0]);
            assert_eq!(best.place(), found);
            named.push(found);
        }
    }
}

/// Counts are clamped to the bounds and to 62 bits; sums are not.
#[test]
fn places_are_those_of_the_model() {
    let small: Vec<i64> = (0..70).map(|i| i * i % 23 - 5).collect();
    let whole = (-(1 << 61), (1 << 61) - 1);
    for scale in [0.3, 2.0, 20.0, 2f64.powi(53)] {
        check(scale, None, whole, &small);
        check(scale, Some((0, 1)), (0, 1), &small);
    }
    let narrow: [i8; 40] = std::array::from_fn(|i| 3 * i8::try_from(i).unwrap());
    check(3.0, None, (-128, 127), &narrow);
    // Unlike in a release, unsigned counts need no bounds.
    check(3.0, None, (0, 255), &narrow.map(i8::cast_unsigned));
    check(
        3.0,
        Some((2, 7)),
        (2, 7),
        &narrow.map(|x| u16::from(x.unsigned_abs())),
    );
    let extremes = [
        i64::MIN,
        i64::MAX,
        0,
        1 << 61,
        -(1 << 61),
        i64::MAX - 9,
        i64::MIN + 9,
        7,
    ];
    check(3.0, None, whole, &extremes);
    let low = i128::from(i64::MIN);
    check(
        3.0,
        Some((low, -(1 << 62))),
        (-(1 << 62) - (1 << 62) + 1, -(1 << 62)),
        &extremes,
    );
    let unsigned = extremes.map(i64::cast_unsigned);
    let limits = (0, i128::from(u64::MAX));
    check(3.0, Some(limits), (0, (1 << 62) - 1), &unsigned);
}

/// Without noise, the largest counts themselves; a scale of a thousandth adds none either.
#[test]
fn the_largest_counts_in_order() {
    let counts: Vec<u32> = (0..3000).map(|i| i * 7919 % 3001).collect();
    let mut expected: Vec<_> = (0..).zip(&counts).collect();
    expected.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let expected: Vec<u64> = expected.into_iter().map(|(place, _)| place).collect();
    for rate in [None, Some(Rate::from_scale(1e-3).unwrap())] {
        let mechanism = Mechanism::new(rate, None).unwrap();
        let bounded = Mechanism::new(None, Some((0, 5000))).unwrap();
        let signed: Vec<i64> = counts.iter().map(|&count| count.into()).collect();
        assert_eq!(mechanism.top(&signed, 9).unwrap(), expected[..9]);
        assert_eq!(bounded.top(&counts, 9).unwrap(), expected[..9]);
    }
    // Ties go to the first; all places in the end.
    let silent = Mechanism::new(None, None).unwrap();
    assert_eq!(
        silent.top(&[5i8; 33], 33).unwrap(),
        (0..33).collect::<Vec<_>>()
    );
}

/// A thousand equal counts: the chance of two equal places is far below one half.
#[test]
fn every_call_draws_anew() {
    let top = || mechanism(1e6, None).top(&[0i32; 1000], 20).unwrap();
    assert_ne!(top(), top());
}

#[test]
fn bad_parameters_are_refused() {
    let message =
        |mechanism: Mechanism, counts: &[i8], k| mechanism.top(counts, k).unwrap_err().to_string();
    for (length, k) in [(3, 0), (3, 4), (0, 1)] {
        assert_eq!(
            message(mechanism(1.0, None), &[0; 3][..length], k),
            format!(
                "k = {k} is not accepted: give an integer from 1 to {length}, the number of counts"
            )
        );
    }
    assert_eq!(
        message(mechanism(1.0, Some((0, 200))), &[0], 1),
        "bounds = (0, 200) is not accepted: give values from -128 to 127, the limits of these counts"
    );
    let wide = mechanism(2f64.powi(53).next_up(), None);
    assert_eq!(
        message(wide, &[0], 1),
        "scale = 9007199254740994/1 is not accepted: give a scale of at most 2^53 for the largest counts"
    );
}

#[test]
fn debug_shows_no_secret() {
    let silent = Mechanism::new(None, None).unwrap();
    let pick = silent.pick::<i8, _>(Tape::from_key(&KEY), &[]).unwrap();
    assert_eq!(format!("{pick:?}"), "Pick { .. }");
    assert_eq!(format!("{:?}", pick.best()), "Best { .. }");
}
