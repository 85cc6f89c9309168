//! Every back end, for every integer type, against the model; and the draw around the kernel.

use crate::Seen;
use crate::model::{Model, Replay, blocks, words};
use crate::source::Source;
use geomdp_core::plan::Plan;
use geomdp_core::{Backend, Count, Draws, Kernel, LANES};
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

/// A plan for a range of at most `most`.
fn plan(source: &mut Source<'_>, most: u64) -> Option<Plan> {
    let range = source.sized().min(most);
    match source.below(8) {
        0 => Some(Plan::noiseless(range)),
        1 => {
            let prob = source.float().abs();
            let prob = if prob > 1.0 { 1.0 / prob } else { prob };
            Plan::geometric(prob, range).ok()
        }
        2 | 3 => {
            let rate = source.rate()?;
            source.reduced(&rate, range.max(1)).map(|(_, plan)| plan)
        }
        _ => Plan::two_sided(&source.rate()?, range).ok(),
    }
}

/// Records the features of a plan.
fn note<T>(plan: &Plan, seen: &mut Seen) {
    let limbs: Vec<usize> = plan.digits().iter().map(|digit| digit.limbs()).collect();
    seen.add(std::any::type_name::<T>());
    match limbs.len() {
        0..4 => seen.add(format!("own words by digit: {limbs:?}")),
        n => seen.add(format!(
            "{} digits",
            if n < 8 { "4 to 7" } else { "8 or more" }
        )),
    }
    if limbs.iter().min() < limbs.last() {
        seen.add("low digits and high ones");
    }
    if !plan.is_two_sided() {
        seen.add("one-sided");
    }
    if plan.limb_bits() < 63 {
        seen.add("reduced widths");
    }
}

fn check<T: Count + TryFrom<i128> + PartialEq + Debug>(source: &mut Source<'_>, seen: &mut Seen) {
    let typed = |x: i128| T::try_from(x).ok().expect("a value of the type");
    let room = |least: i128| u64::try_from(T::MAX - least).expect("at most 64 bits");
    let Some(plan) = plan(source, room(T::MIN)) else {
        return;
    };
    note::<T>(&plan, seen);
    let range = i128::from(plan.range());
    let least = match source.below(4) {
        0 => T::MIN,
        1 => T::MAX - range,
        _ => T::MIN + i128::from(source.word()) % (T::MAX - range - T::MIN + 1),
    };
    let n = source.below(50) as usize;
    let model = Model::new(&plan);
    let draws: Vec<Vec<u64>> = (0..n).map(|_| words(&model, source)).collect();
    let counts: Vec<T> = (0..n)
        .map(|_| {
            let count = match source.below(4) {
                0 => source.pick(&[T::MIN, T::MAX, least, least + range]),
                1 => least + i128::from(source.word()) % (range + 1),
                2 => source.pick(&[least, least + range]) + i128::from(source.below(8)) - 4,
                _ => T::MIN + i128::from(source.word()) % (T::MAX - T::MIN + 1),
            };
            typed(count.clamp(T::MIN, T::MAX))
        })
        .collect();
    let expected: Vec<T> = draws
        .iter()
        .zip(&counts)
        .map(|(words, &count)| {
            let offset = count.into().clamp(least, least + range) - least;
            let offset = u64::try_from(offset).expect("at most 64 bits");
            let noisy = model.noisy(words, offset, |case| seen.add(case));
            typed(least + i128::from(noisy))
        })
        .collect();

    let tape = blocks(&plan, &draws);
    let lower = typed(least);
    for backend in Backend::available() {
        seen.add(format!("{backend:?}"));
        // Surrounded by other counts, which must not change.
        let before = source.below(LANES as u64 + 1) as usize;
        let mut array = vec![typed(T::MAX); before];
        array.extend(&counts);
        array.resize(array.len() + LANES, typed(T::MIN));
        let mut outside = array.clone();
        Kernel::on(backend, plan.clone()).add_noise(lower, &tape, &mut array[before..before + n]);
        assert_eq!(array[before..before + n], expected, "{backend:?} {plan:?}");
        outside[before..before + n].copy_from_slice(&expected);
        assert_eq!(array, outside, "{backend:?}");
    }

    // Through `Draws`, as a whole and in two parts.
    let kernel = Kernel::new(plan.clone());
    let mut whole = counts.clone();
    let mut replay = Replay(&tape);
    let mut draws = Draws::new(&kernel, lower, &mut replay);
    draws.add_noise(&mut whole).expect("there are enough words");
    assert_eq!(whole, expected);
    assert!(replay.0.is_empty(), "{} words too few", replay.0.len());
    let mut parts = counts;
    let cut = (source.below(4) as usize * LANES).min(n);
    let mut replay = Replay(&tape);
    let mut draws = Draws::new(&kernel, lower, &mut replay);
    let (head, tail) = parts.split_at_mut(cut);
    draws.add_noise(head).expect("there are enough words");
    draws.add_noise(tail).expect("there are enough words");
    assert_eq!(parts, expected);
}
