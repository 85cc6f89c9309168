//! The noise of groups and the points on a domain, against wide integers.

use crate::Seen;
use crate::exact::{fraction, power_of_two};
use crate::source::Source;
use geomdp_core::groups::{Noise, Points};
use geomdp_core::keyed::ReleaseKey;
use geomdp_core::plan::hazards::Mean;
use geomdp_core::{Error, LANES};
use num_bigint::BigUint;

/// Runs one input.
pub fn run(data: &[u8], seen: &mut Seen) {
    let mut source = Source::new(data);
    let mut secret = [0; 32];
    for word in secret.chunks_exact_mut(8) {
        word.copy_from_slice(&source.word().to_le_bytes());
    }
    let key = ReleaseKey::from_secret(&secret);
    let Some(noise) = noise(&mut source, seen) else {
        return;
    };
    if source.below(3) == 0 {
        reach(&mut source, seen, &noise, &key);
    } else {
        points(&mut source, seen, &noise[0], &key);
    }
}

fn name(error: &Error) -> &'static str {
    match error {
        Error::Parameter { name, .. } => name,
        other => panic!("{other:?}"),
    }
}

/// The same noise twice: blocks that are drawn whatever they hold do not change it.
fn noise(source: &mut Source<'_>, seen: &mut Seen) -> Option<[Noise; 2]> {
    let mut prob = || {
        let prob = source.float();
        if prob > 1.0 { 1.0 / prob } else { prob }
    };
    let (stop, fall) = (prob(), prob());
    let block = match source.below(8) {
        0 => source.sized(),
        _ => 1 + source.below(200),
    };
    let blocks = source.below(5) as u32;
    let valid = |prob: f64| prob > 0.0 && prob < 1.0;
    let wanted = [
        ("stop", valid(stop)),
        ("fall", valid(fall)),
        ("block", (1..=1 << 40).contains(&block)),
        ("blocks", blocks > 0),
    ];
    let refused = wanted.iter().find(|(_, valid)| !valid);
    match (Noise::new(stop, block, fall, blocks), refused) {
        (Err(error), Some((wanted, _))) => {
            assert_eq!(name(&error), *wanted);
            seen.add(format!("refused: {wanted}"));
            None
        }
        (Ok(noise), None) => {
            // Numbers of more blocks than this take seconds.
            let (num, den) = fraction(stop).expect("a probability");
            if num * block * 64u32 < den {
                seen.add("blocks that are nearly always full");
                return None;
            }
            let other = Noise::new(stop, block, fall, 1 + source.below(9) as u32);
            Some([noise, other.expect("the same parameters")])
        }
        other => panic!("{stop:e} {block} {fall:e} {blocks}: {other:?}"),
    }
}

fn count(source: &mut Source<'_>) -> i64 {
    let count = source.sized() as i64;
    match source.below(4) {
        0 => count,
        1 => source.pick(&[0, 1, -1, i64::MIN, i64::MAX, i64::MAX - 1]),
        _ => count >> 40,
    }
}

fn reach(source: &mut Source<'_>, seen: &mut Seen, noise: &[Noise; 2], key: &ReleaseKey) {
    let n = source.below(50) as usize;
    let counts: Vec<i64> = (0..n).map(|_| count(source)).collect();
    let thresholds: Vec<i64> = (counts.iter())
        .map(|&count| count.saturating_add(source.below(9) as i64 - 4).max(1))
        .collect();
    let mut sums = vec![0; n];
    let mut going = vec![0; n];
    noise[0]
        .first_blocks(key, 0, &mut sums, &mut going)
        .expect("an index");
    let mut found = counts.clone();
    noise[0]
        .reach(key, 0, &mut found, &thresholds)
        .expect("an index");
    for (i, &noisy) in found.iter().enumerate() {
        let (wide, least) = (i128::from(counts[i]), i128::from(thresholds[i]));
        if noisy == 0 {
            seen.add("hidden");
            continue;
        }
        assert!(
            counts[i] > 0 && i128::from(noisy) >= least,
            "{counts:?} {thresholds:?}"
        );
        seen.add("shown");
        if going[i] == 0 {
            let sum = i128::from(sums[i]);
            let ends = [(wide + sum).min(i64::MAX.into()), wide - 1 - sum];
            assert!(ends.contains(&noisy.into()), "{wide} {sum} {noisy}");
        } else {
            seen.add("more blocks than are always drawn");
        }
    }
    let mut parts = counts;
    let cut = Some(source.below(4) as usize * LANES)
        .filter(|cut| *cut <= n)
        .unwrap_or(0);
    let (head, tail) = parts.split_at_mut(cut);
    noise[1]
        .reach(key, 0, head, &thresholds[..cut])
        .expect("an index");
    noise[1]
        .reach(key, cut, tail, &thresholds[cut..])
        .expect("an index");
    assert_eq!(parts, found);
}

fn points(source: &mut Source<'_>, seen: &mut Seen, noise: &Noise, key: &ReleaseKey) {
    let bits = source.below(1500);
    let num = match source.below(4) {
        0 => source.big() >> source.below(1600),
        1 => power_of_two(bits),
        _ => source.big() % power_of_two(bits) + 1u32,
    };
    let valid = num.bits() > 0 && num <= power_of_two(bits);
    let mean = match Mean::new(num.clone(), bits) {
        Ok(mean) if valid => mean,
        Err(error) if !valid => {
            assert_eq!(name(&error), "mean");
            return seen.add("refused: mean");
        }
        other => panic!("{num} / 2^{bits}: {other:?}"),
    };
    let threshold = count(source);
    let parts = source.below(40);
    let mut points = match Points::new(3, threshold, parts, mean) {
        Ok(points) if threshold > 0 => points,
        Err(error) if threshold < 1 => {
            assert_eq!(name(&error), "threshold");
            return seen.add("refused: threshold");
        }
        other => panic!("{threshold}: {other:?}"),
    };
    let words = source.below(20) as usize;
    let (values, places) = points.draw(noise, key, words).expect("few points");
    assert_eq!(places.len(), words * values.len());
    assert!(values.iter().all(|&value| value >= threshold));
    seen.add(if values.is_empty() {
        "no point"
    } else {
        "points"
    });
    // A mean of at most 1 in each part: more points than this have a probability below 2^-90.
    assert!(values.len() < 40 + 8 * parts as usize);
    let small = (&num << 100u32) < power_of_two(bits) && parts > 0;
    assert!(
        !small || values.is_empty(),
        "{num} / 2^{bits}: {}",
        values.len()
    );
    let _: BigUint = num;
}
