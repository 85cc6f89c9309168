//! Folded noise against reflection in wide arithmetic and the model of the draw.

use crate::Seen;
use crate::model::{Model, Replay, blocks, words};
use crate::source::Source;
use geomdp_core::Count;
use geomdp_core::fold::Folded;
use geomdp_core::plan::Plan;
use geomdp_core::{Error, Rate};
use num_bigint::BigInt;
use std::fmt::Debug;

/// Runs one input.
pub fn run(data: &[u8], seen: &mut Seen) {
    let mut source = Source::new(data);
    match source.below(8) {
        0 => check::<i8>(&mut source, seen),
        1 => check::<i16>(&mut source, seen),
        2 => check::<i32>(&mut source, seen),
        3 => check::<i64>(&mut source, seen),
        4 => check::<u8>(&mut source, seen),
        5 => check::<u16>(&mut source, seen),
        6 => check::<u32>(&mut source, seen),
        _ => check::<u64>(&mut source, seen),
    }
}

/// Reflects a number at the bounds until it is inside; all arguments are doubled.
fn fold(twice: &BigInt, lower: &BigInt, upper: &BigInt) -> BigInt {
    let width = upper - lower;
    if width == BigInt::ZERO {
        return lower.clone();
    }
    // Reflection repeats after twice the width.
    let period = &width * 2;
    let place = ((twice - lower) % &period + &period) % &period;
    lower + if place > width { period - place } else { place }
}

/// Checks doubled bounds and a rate; returns the expected error, if any.
fn validate(rate: Option<&Rate>, lower: &BigInt, upper: &BigInt) -> Result<(), &'static str> {
    // The least integer not below the lower bound, and the greatest not above the upper one.
    let least: BigInt = (lower + 1u32) >> 1u32;
    let greatest: BigInt = upper >> 1u32;
    if lower > upper || least > greatest {
        return Err("bounds");
    }
    if (upper - lower) > BigInt::from(u64::MAX) {
        return Err("bounds too far apart");
    }
    match rate {
        Some(rate) if rate.num() << 56u32 < *rate.den() => Err("scale"),
        _ => Ok(()),
    }
}

fn check<T: Count + TryFrom<i128> + PartialEq + Debug>(source: &mut Source<'_>, seen: &mut Seen) {
    let rate = if source.below(8) == 0 {
        None
    } else {
        source.rate()
    };
    let twice = match source.below(4) {
        0 => source.pair(),
        _ => {
            let one = 2 * (T::MIN + i128::from(source.sized()) % (T::MAX - T::MIN + 1));
            let width = i128::from(source.sized()).min(2 * T::MAX - one);
            (one - i128::from(source.flag()), one + width)
        }
    };
    let (lower, upper) = (BigInt::from(twice.0), BigInt::from(twice.1));
    let folded = match (
        Folded::new(rate.clone(), twice),
        validate(rate.as_ref(), &lower, &upper),
    ) {
        (Ok(folded), Ok(())) => folded,
        (Err(Error::Parameter { name, .. }), Err(why)) if name == why => return seen.add(why),
        (Err(Error::Overflow { name: "bounds", .. }), Err(why @ "bounds too far apart")) => {
            return seen.add(why);
        }
        other => panic!("{twice:?}: {other:?}"),
    };
    let (least, greatest) = ((&lower + 1u32) >> 1u32, &upper >> 1u32);

    let unbounded = match &rate {
        Some(rate) => Plan::two_sided(rate, u64::MAX).expect("scales up to 2^56 are certified"),
        None => Plan::noiseless(u64::MAX),
    };
    let model = Model::new(&unbounded);
    // Occasionally more counts than are folded at a time.
    let n = if source.below(16) == 0 { 600 } else { 0 } + source.below(50) as usize;
    let draws: Vec<Vec<u64>> = (0..n).map(|_| words(&model, source)).collect();
    let tape = blocks(&unbounded, &draws);
    let mut replay = Replay(&tape);
    let Ok(mut noise) = folded.draws::<T, _>(&mut replay) else {
        assert!(least < T::MIN.into() || greatest > T::MAX.into());
        return seen.add("bounds beyond the type");
    };
    assert!(least >= T::MIN.into() && greatest <= T::MAX.into());
    seen.add(std::any::type_name::<T>());
    if lower.bit(0) {
        seen.add("a half-integer lower bound");
    }
    if upper.bit(0) {
        seen.add("a half-integer upper bound");
    }
    let mut counts: Vec<T> = (0..n)
        .map(|_| {
            let count = T::MIN + i128::from(source.word()) % (T::MAX - T::MIN + 1);
            let count = match source.below(3) {
                0 => (twice.0 >> 1) + i128::from(source.below(8)) - 4,
                1 => (twice.1 >> 1) + i128::from(source.below(8)) - 4,
                _ => count,
            };
            T::try_from(count.clamp(T::MIN, T::MAX))
                .ok()
                .expect("it fits the type")
        })
        .collect();
    let expected: Vec<BigInt> = draws
        .iter()
        .zip(&counts)
        .map(|(words, &count)| {
            let count: i128 = count.into();
            let start = fold(&BigInt::from(2 * count), &lower, &upper) >> 1u32;
            // The outputs are centred on the zero of int64, get noise, and are shifted back.
            let middle: BigInt = &least + ((&greatest - &least) >> 1u32);
            let start = i128::try_from(start - &middle).expect("below 2^63");
            let offset = u64::try_from(start - i128::from(i64::MIN)).expect("64 bits");
            let noisy = model.noisy(words, offset, |case| seen.add(case));
            let noisy = i128::from(noisy) + i128::from(i64::MIN);
            fold(&((middle + noisy) * 2), &lower, &upper) >> 1u32
        })
        .collect();
    noise
        .add_noise(&mut counts)
        .expect("there are enough words");
    let got: Vec<BigInt> = counts.into_iter().map(|y| BigInt::from(y.into())).collect();
    assert_eq!(got, expected, "{twice:?} {rate:?}");
    if expected.contains(&least) {
        seen.add("an output at the bound");
    }
}
