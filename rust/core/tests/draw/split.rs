//! However the work is split, draw `i` reads its own words alone, each word is read once, and output
//! `i` is that of count `i`. By exhaustion: all lengths up to several blocks or chunks, and all
//! places to split at. The expected outputs come from the model, one draw at a time.
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap)]

use crate::model::{Model, blocks};
use geomdp_core::fold::Folded;
use geomdp_core::plan::{Plan, tiers};
use geomdp_core::tape::{Tape, Words};
use geomdp_core::{Backend, Draws, Error, Kernel, LANES, Mechanism, Rate};
use std::fmt::Debug;

const KEY: [u8; 32] = [9; 32];

fn rate(scale: f64) -> Rate {
    Rate::from_scale(scale).unwrap()
}

/// Plans of 0, 3, 4, 7 and 10 words for a draw, whose noise shows a wrong word, and steps between
/// tiers that seldom keep a value.
fn plans() -> Vec<Plan> {
    let two_sided =
        [(1e5, 1), (1e5, 1 << 20), (1e5, u64::MAX), (1e38, 1000)].map(|(scale, range)| {
            let plan = Plan::two_sided(&rate(scale), range).unwrap();
            assert!(plan.words() > 0);
            plan
        });
    let steps = [1 << 20, u64::MAX].map(|range| {
        let tiers = tiers::plans(&[rate(1.0), rate(1e5)], range).unwrap();
        assert!(tiers[1].plan.keeps().is_some());
        tiers[1].plan.clone()
    });
    [&two_sided[..], &[Plan::noiseless(1000)], &steps].concat()
}

/// Words of the tape of a key, in the order in which they are read.
fn words(key: &[u8; 32], number: usize) -> Vec<u64> {
    let mut words = vec![0; number];
    Tape::from_key(key).fill(&mut words).unwrap();
    words
}

/// The words of so many draws on the tape of a key.
fn tapes(plan: &Plan, key: &[u8; 32], draws: usize) -> Vec<Vec<u64>> {
    let words = words(key, draws.next_multiple_of(LANES) * plan.words());
    let word = |i: usize, j| words[(i / LANES * plan.words() + j) * LANES + i % LANES];
    let tape = |i| (0..plan.words()).map(|j| word(i, j)).collect();
    (0..draws).map(tape).collect()
}

/// Exchanges a draw's tape and count for others: no other output changes, and this one becomes that
/// of the others.
#[test]
fn a_draw_reads_its_own_words_alone() {
    for plan in plans().into_iter().filter(|plan| plan.words() > 0) {
        let (model, lanes) = (Model::new(&plan), 4 * LANES);
        let draws = [1, 2].map(|key| {
            let tapes = tapes(&plan, &[key; 32], lanes);
            let step = plan.range() / lanes as u64;
            let count = |i: usize| i as u64 * step + u64::from(key).min(plan.range());
            let noisy = |(i, tape): (usize, &Vec<u64>)| model.noisy(tape, count(i), |_| ());
            let noisy: Vec<_> = tapes.iter().enumerate().map(noisy).collect();
            (tapes, (0..lanes).map(count).collect::<Vec<_>>(), noisy)
        });
        let [
            (tapes, counts, noisy),
            (other_tapes, other_counts, other_noisy),
        ] = &draws;
        let shown = noisy.iter().zip(other_noisy).filter(|(x, y)| x != y);
        assert!(shown.count() > lanes / 4);
        for backend in Backend::available() {
            let kernel = Kernel::on(backend, plan.clone());
            for len in 0..=lanes {
                for other in 0..len.next_multiple_of(LANES) {
                    let mut tapes = tapes[..len.next_multiple_of(LANES)].to_vec();
                    let (mut counts, mut expected) = (counts.clone(), noisy.clone());
                    tapes[other].clone_from(&other_tapes[other]);
                    counts[other] = other_counts[other];
                    expected[other] = other_noisy[other];
                    kernel.add_noise(0, &blocks(&plan, &tapes), &mut counts[..len]);
                    assert_eq!(counts[..len], expected[..len], "{backend:?}, draw {other}");
                }
            }
        }
    }
}

/// A tape that ends, and knows how much of it was read.
struct Recorder<'a> {
    words: &'a [u64],
    read: usize,
}

impl Words for Recorder<'_> {
    fn fill(&mut self, words: &mut [u64]) -> Result<(), Error> {
        let end = self.read + words.len();
        words.copy_from_slice(&self.words[self.read..end]);
        self.read = end;
        Ok(())
    }
}

/// Tries all lengths and all places to split at. `add` adds noise to parts in turn from a source,
/// and `at` to a part from an index on the tape of [`KEY`].
fn exhaust<T: Copy + PartialEq + Debug>(
    words_per_draw: usize,
    counts: &[T],
    expected: &[T],
    add: impl Fn(&mut Recorder<'_>, Vec<&mut [T]>),
    at: impl Fn(usize, &mut [T]),
) {
    let words = words(&KEY, counts.len().next_multiple_of(LANES) * words_per_draw);
    let check = |counts: Vec<T>, recorder: Recorder<'_>| {
        assert_eq!(counts, expected[..counts.len()]);
        let lanes = counts.len().next_multiple_of(LANES);
        assert_eq!(recorder.read, lanes * words_per_draw);
    };
    let recorder = || Recorder {
        words: &words,
        read: 0,
    };
    for len in 0..=counts.len() {
        let (mut counts, mut recorder) = (counts[..len].to_vec(), recorder());
        add(&mut recorder, vec![&mut counts]);
        check(counts, recorder);
    }
    for cut in (0..=counts.len()).step_by(LANES) {
        let (mut parts, mut recorder) = (counts.to_vec(), recorder());
        let (head, tail) = parts.split_at_mut(cut);
        add(&mut recorder, vec![head, tail]);
        check(parts, recorder);
        let mut tail = counts[cut..].to_vec();
        at(cut, &mut tail);
        assert_eq!(tail, expected[cut..], "from {cut}");
    }
    // Parts that grow and shrink, fit the buffers or exceed them.
    let (mut whole, mut recorder) = (counts.to_vec(), recorder());
    let (mut parts, mut rest) = (Vec::new(), &mut whole[..]);
    for len in [16, 320, 0, 32, 800, 48, counts.len()] {
        let (part, others) = rest.split_at_mut(len.min(rest.len()));
        parts.push(part);
        rest = others;
    }
    add(&mut recorder, parts);
    check(whole, recorder);
}

/// More counts than two buffers of 2048 words, or chunks of 512 counts, hold.
fn size(words_per_draw: usize, chunk: usize) -> usize {
    2 * chunk.max(2048 / words_per_draw.max(1)) + LANES + 1
}

#[test]
fn each_word_is_read_once_for_its_own_count() {
    for plan in plans() {
        let (model, size) = (Model::new(&plan), size(plan.words(), 0));
        let counts: Vec<u64> = (0..size as u64)
            .map(|i| (i * 7).min(plan.range()))
            .collect();
        let tapes = tapes(&plan, &KEY, size);
        let noisy = |i: usize| model.noisy(&tapes[i], counts[i], |_| ());
        let expected: Vec<_> = (0..size).map(noisy).collect();
        let kernel = Kernel::new(plan.clone());
        exhaust(
            plan.words(),
            &counts,
            &expected,
            |source, parts| {
                let mut draws = Draws::new(&kernel, 0, source);
                parts
                    .into_iter()
                    .for_each(|part| draws.add_noise(part).unwrap());
            },
            |index, part| {
                let mut draws = Draws::at(&kernel, 0, &KEY, index).unwrap();
                draws.add_noise(part).unwrap();
            },
        );
        for index in (1..LANES).chain([LANES + 1]) {
            assert!(Draws::at(&kernel, 0u64, &KEY, index).is_err());
        }
        let beyond = Draws::at(&kernel, 0u64, &KEY, usize::MAX / LANES * LANES);
        assert_eq!(beyond.is_err(), plan.words() > 0);
    }
}

/// A folded count is folded, gets the noise of the mechanism without bounds, and is folded again.
#[test]
fn each_word_is_read_once_for_its_own_folded_count() {
    for (scale, twice) in [(5.0, (-8, 13)), (1e6, (0, 20_000))] {
        let fold = Folded::new(None, twice).unwrap();
        let fold = |count: i64| {
            let mut counts = [count];
            fold.release(&mut counts).unwrap();
            counts[0]
        };
        let mechanism = Mechanism::new(Some(rate(scale)), None).unwrap();
        let plan = mechanism.kernel_for::<i64>().unwrap().0.plan();
        let (model, size) = (Model::new(plan), size(plan.words(), 512));
        let counts: Vec<_> = (0..size as i64).map(|i| i * 7 - 1000).collect();
        let tapes = tapes(plan, &KEY, size);
        let noise = |tape| model.noisy(tape, 1 << 63, |_| ()).wrapping_sub(1 << 63) as i64;
        let expected = counts
            .iter()
            .zip(&tapes)
            .map(|(&count, tape)| fold(fold(count) + noise(tape)));
        let folded = Folded::new(Some(rate(scale)), twice).unwrap();
        exhaust(
            plan.words(),
            &counts,
            &expected.collect::<Vec<_>>(),
            |source, parts| {
                let mut draws = folded.draws(source).unwrap();
                parts
                    .into_iter()
                    .for_each(|part| draws.add_noise(part).unwrap());
            },
            |index, part| {
                folded
                    .draws_at(&KEY, index)
                    .unwrap()
                    .add_noise(part)
                    .unwrap()
            },
        );
        assert!(folded.draws_at::<i64>(&KEY, 1).is_err());
    }
}
