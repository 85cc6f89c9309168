//! The bit sampler and the linear reference against big integers.

use crate::Seen;
use crate::exact::{exp_neg, fraction, is_rounded_down, power_of_two};
use crate::model::Replay;
use crate::source::Source;
use geomdp_core::Error;
use geomdp_core::bernoulli::Bernoulli;
use geomdp_core::linear::Linear;
use num_bigint::BigUint;

/// Runs one input.
pub fn run(data: &[u8], seen: &mut Seen) {
    let mut source = Source::new(data);
    if source.flag() {
        bernoulli(&mut source, seen);
    } else {
        linear(&mut source, seen);
    }
}

/// Words, most significant first, as a number.
fn number(words: &[u64]) -> BigUint {
    words
        .iter()
        .fold(BigUint::ZERO, |sum, &word| (sum << 64u32) + word)
}

/// Whether the uniform number with these words is below a probability.
fn coin(prob: f64, words: &[u64]) -> bool {
    let (num, den) = fraction(prob).expect("a probability");
    number(words) * den < num << (64 * words.len())
}

/// Words for a coin, often near its threshold.
fn words(source: &mut Source<'_>, prob: f64, n: usize) -> Vec<u64> {
    let mut words: Vec<u64> = (0..n).map(|_| source.word()).collect();
    if source.below(4) > 0 {
        let (num, den) = fraction(prob).expect("a probability");
        let threshold = (num << (64 * n)) / den;
        let near = threshold + source.below(3);
        let near = if near.bits() > 0 { near - 1u32 } else { near };
        for (i, word) in words.iter_mut().rev().enumerate() {
            *word = (&near >> (64 * i)).iter_u64_digits().next().unwrap_or(0);
        }
    }
    words
}

fn bernoulli(source: &mut Source<'_>, seen: &mut Seen) {
    let mut prob = source.float();
    if source.below(4) > 0 && prob > 1.0 {
        prob = 1.0 / prob;
    }
    let bit = match Bernoulli::new(prob) {
        Ok(bit) => bit,
        Err(Error::Parameter { name: "prob", .. }) => {
            assert!(!(0.0..=1.0).contains(&prob), "{prob}");
            return seen.add("not a probability");
        }
        Err(error) => panic!("{error:?}"),
    };
    assert!((0.0..=1.0).contains(&prob), "{prob}");
    // Enough words for the bits of the denominator.
    let (num, den) = fraction(prob).expect("a probability");
    let places = den.bits()
        - 1
        - num
            .trailing_zeros()
            .unwrap_or(den.bits() - 1)
            .min(den.bits() - 1);
    let n = bit.words();
    assert_eq!(n as u64, places.div_ceil(64).max(1), "{prob}");
    seen.add(format!(
        "words of a bit: {}",
        if n < 3 {
            n.to_string()
        } else {
            "3 to 17".into()
        }
    ));

    let draws = source.below(40) as usize;
    let words: Vec<u64> = (0..draws).flat_map(|_| words(source, prob, n)).collect();
    let expected: Vec<u8> = words
        .chunks(n)
        .map(|words| coin(prob, words).into())
        .collect();
    for (words, &expected) in words.chunks(n).zip(&expected) {
        assert_eq!(bit.draw(words), u64::from(expected), "{prob} {words:x?}");
        seen.add(if expected == 1 { "heads" } else { "tails" });
    }
    let mut bits = vec![7; draws];
    bit.fill(&mut Replay(&words), &mut bits)
        .expect("there are enough words");
    assert_eq!(bits, expected);
}

fn linear(source: &mut Source<'_>, seen: &mut Seen) {
    let Some(rate) = source.rate() else {
        return;
    };
    let range = if source.below(8) == 0 {
        source.sized()
    } else {
        source.below(60)
    };
    let linear = match Linear::new(&rate, range) {
        Ok(linear) => linear,
        Err(Error::Parameter { name: "range", .. }) => {
            assert_eq!(range, 0);
            return seen.add("an empty range");
        }
        Err(Error::Parameter { name: "rate", .. }) => {
            assert!(rate.num() << 50u32 < *rate.den());
            return seen.add("a rate that is too small");
        }
        Err(error) => panic!("{error:?}"),
    };
    assert!(range > 0 && rate.num() << 50u32 >= *rate.den());
    // Both probabilities are rounded down: 1 - a, and stop / (2 - stop).
    let one = power_of_two(400);
    let stop = &one - exp_neg(rate.num(), rate.den(), 400);
    // At a rate so large that a vanishes, `stop` stays below 1.
    let stop = stop.min(&one - 1u32);
    assert!(is_rounded_down(linear.stop_prob(), &stop, &one), "{rate:?}");
    let (num, den) = fraction(linear.stop_prob()).expect("a probability");
    let zero = (&num, &((den << 1u32) - &num));
    assert!(
        is_rounded_down(linear.zero_prob(), zero.0, zero.1),
        "{rate:?}"
    );

    let coins = [linear.zero_prob(), linear.stop_prob()];
    let [zero_words, stop_words] = coins.map(|p| Bernoulli::new(p).expect("a probability").words());
    let Ok(needed) = linear.words() else {
        return seen.add("more words than memory has");
    };
    assert_eq!(
        needed as u128,
        zero_words as u128 + 1 + u128::from(range) * stop_words as u128
    );
    if range > 100 {
        return seen.add("a long range");
    }
    let mut tape = words(source, coins[0], zero_words);
    tape.push(source.word());
    let trials: Vec<Vec<u64>> = (0..range)
        .map(|_| match source.below(3) {
            0 => words(source, coins[1], stop_words),
            // Never stop, so that long draws occur.
            _ => vec![u64::MAX; stop_words],
        })
        .collect();
    let first = trials.iter().position(|words| coin(coins[1], words));
    // Algorithm 2 of the notes; no success at all gives the range.
    let steps = first.map_or(range, |failures| failures as u64 + 1);
    seen.add(if first.is_some() {
        "a success"
    } else {
        "no success"
    });
    let offset = source.below(range + 1);
    let expected = if coin(coins[0], &tape[..zero_words]) {
        seen.add("no noise");
        offset
    } else if tape[zero_words] & 1 == 1 {
        offset.saturating_sub(steps)
    } else {
        range.min(offset + steps)
    };
    tape.extend(trials.concat());
    for constant_time in [false, true] {
        assert_eq!(
            linear.draw(offset, &tape, constant_time),
            expected,
            "{rate:?}"
        );
    }
}
