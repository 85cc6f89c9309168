//! The compiled kernel over **all** tapes at small limb widths. The number of tapes for each
//! outcome must equal the integer in the plan's exact distribution, and the exact privacy loss must
//! be at most the nominal one.
#![allow(clippy::unwrap_used)]

use geomdp_core::distribution::{Distribution, within};
use geomdp_core::plan::tiers::{self, Tier};
use geomdp_core::plan::{Plan, Widths};
use geomdp_core::{Backend, Kernel, LANES, Rate};
use num_bigint::BigUint;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// Draws run at a time.
const BATCH: u64 = 1 << 10;

/// The bits of a tape that the kernel reads, as (word, lowest bit, number of bits).
fn fields(plan: &Plan) -> Vec<(usize, u32, u32)> {
    let (w, k) = (plan.limb_bits(), plan.floor_value_bits());
    let own: usize = plan.digits().iter().map(|digit| digit.limbs()).sum();
    let mut fields = vec![(0, 0, 1)];
    fields.extend((0..=own).map(|word| (word, 64 - w, w)));
    // The floor's value: the low bits of the word after digit 0's.
    fields.push((1 + plan.digits()[0].limbs(), 0, k));
    assert!(k + w <= 64, "the fields of one word must not overlap");
    // The keep number of a step between tiers.
    let keep = plan.keeps().map_or(0, |(_, limbs)| limbs);
    fields.extend((plan.words() - keep..plan.words()).map(|word| (word, 64 - w, w)));
    fields
}

/// How often each count gives each output on each back end, over all tapes.
fn enumerate(plan: &Plan, bits: u32) -> Vec<Vec<Vec<u64>>> {
    let fields = fields(plan);
    let outputs = usize::try_from(plan.range()).unwrap() + 1;
    let on = |backend| Kernel::on(backend, plan.clone());
    let kernels: Vec<_> = Backend::available().map(on).collect();
    let mut counts = vec![vec![vec![0; outputs]; outputs]; kernels.len()];
    let batch = BATCH.min(1 << bits);
    let draws = usize::try_from(batch).unwrap();
    let mut words = vec![0; draws.div_ceil(LANES) * plan.words() * LANES];
    let mut noisy = vec![0; draws];
    for start in (0..1u64 << bits).step_by(draws) {
        words.fill(0);
        for (i, mut number) in (start..start + batch).enumerate() {
            for &(word, low, bits) in &fields {
                words[(i / LANES * plan.words() + word) * LANES + i % LANES] |=
                    (number & ((1 << bits) - 1)) << low;
                number >>= bits;
            }
        }
        for (kernel, counts) in kernels.iter().zip(&mut counts) {
            for (x, row) in counts.iter_mut().enumerate() {
                noisy.fill(x as u64);
                kernel.add_noise(0, &words, &mut noisy);
                for &y in &noisy {
                    row[usize::try_from(y).unwrap()] += 1;
                }
            }
        }
    }
    counts
}

/// Binary logarithm of the largest number of draws for which a setting is tried; `make exhaustive`
/// raises it.
fn max_draw_bits() -> u32 {
    std::env::var("GEOMDP_DRAW_BITS").map_or(23, |bits| bits.parse().unwrap())
}

/// A plan at reduced widths.
#[derive(Clone, Copy, Debug)]
struct Setting {
    scale: f64,
    range: u64,
    widths: Widths,
    radix_bits: &'static [u32],
}

impl Setting {
    fn rate(&self) -> Rate {
        Rate::from_scale(self.scale).unwrap()
    }

    fn plan(&self) -> Option<Plan> {
        Plan::reduced(&self.rate(), self.range, &self.widths, self.radix_bits).unwrap()
    }
}

fn settings() -> Vec<Setting> {
    let mut settings = Vec::new();
    for (limbs, limb_bits, radix_bits) in [
        (1, 6, &[][..]),
        (1, 8, &[]),
        (1, 5, &[1]),
        (1, 5, &[2]),
        (1, 5, &[3]),
        (1, 4, &[1, 1]),
        (1, 4, &[2, 2]),
        (1, 4, &[3, 3]),
        (1, 5, &[1, 1]),
        (1, 5, &[2, 1]),
        (1, 4, &[1, 1, 1]),
        (1, 3, &[1, 1, 1]),
        (1, 3, &[2, 1, 2]),
        (2, 4, &[]),
        (2, 5, &[]),
        (2, 4, &[1]),
        (2, 4, &[2]),
        (2, 4, &[3]),
        (2, 3, &[1, 1]),
        (2, 3, &[2, 2]),
        (3, 3, &[]),
        (3, 4, &[]),
        (3, 3, &[1]),
    ] {
        for slack_bits in [1, 4] {
            if limbs == 1 && slack_bits > 1 {
                continue;
            }
            let widths = Widths {
                limb_bits,
                slack_bits,
                limbs,
            };
            for scale in [0.2, 0.5, 1.0, 2.0, 7.0, 60.0] {
                for range in [1, 2, 3, 5, 8, 13, 30] {
                    settings.push(Setting {
                        scale,
                        range,
                        widths,
                        radix_bits,
                    });
                }
            }
        }
    }
    settings
}

/// Tries all tapes of a plan against its exact distribution.
fn try_tapes(setting: &impl Debug, plan: &Plan, bits: u32) -> Distribution {
    let distribution = Distribution::of(plan).unwrap();
    assert_eq!(distribution.bits(), u64::from(bits), "{setting:?}");
    for (backend, counts) in Backend::available().zip(enumerate(plan, bits)) {
        for (x, row) in counts.iter().enumerate() {
            for (y, &count) in row.iter().enumerate() {
                assert_eq!(
                    distribution.probability(y as u64, x as u64),
                    BigUint::from(count),
                    "{setting:?}, P({y} | {x}), {backend:?}"
                );
            }
        }
    }
    distribution
}

fn try_plan(setting: &Setting, plan: &Plan, bits: u32) {
    let (num, den) = try_tapes(setting, plan, bits).worst_ratio().unwrap();
    assert!(
        within(&num, &den, &setting.rate()),
        "{setting:?}: the privacy loss exceeds the nominal one"
    );
}

/// Tries all tapes of the settings with few enough draws (one for each tape and count), on all
/// processors. Returns the number of these settings, and their digits' limbs.
fn try_all(settings: &[Setting], max_draw_bits: u32) -> (usize, BTreeSet<Vec<usize>>) {
    let mut plans = Vec::new();
    for setting in settings {
        let Some(plan) = setting.plan() else {
            continue;
        };
        let bits: u32 = fields(&plan).iter().map(|field| field.2).sum();
        let draws = u128::from(setting.range + 1) << bits;
        if draws <= 1 << max_draw_bits {
            plans.push((draws, bits, setting, plan));
        }
    }
    // The longest first, so that the last one running is short.
    plans.sort_by_key(|(draws, ..)| Reverse(*draws));
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                while let Some((_, bits, setting, plan)) = plans.get(next.fetch_add(1, Relaxed)) {
                    try_plan(setting, plan, *bits);
                }
            });
        }
    });
    let limbs = |plan: &Plan| plan.digits().iter().map(|digit| digit.limbs()).collect();
    let shapes = plans.iter().map(|(.., plan)| limbs(plan)).collect();
    let bits = plans.iter().map(|(_, bits, ..)| bits).max();
    println!(
        "{} settings, all tapes of each, up to 2^{}; own words by digit: {shapes:?}",
        plans.len(),
        bits.unwrap_or(&0)
    );
    (plans.len(), shapes)
}

#[test]
fn every_tape_at_small_widths() {
    let (tried, shapes) = try_all(&settings(), max_draw_bits());
    // The grid of settings must not shrink unnoticed.
    assert!(tried >= 300, "{tried}");
    for shape in [vec![1], vec![1, 1], vec![1, 1, 1], vec![2], vec![3]] {
        assert!(shapes.contains(&shape), "{shape:?}");
    }
}

/// A plan with digits of one and of two own words needs wider limbs, and so many more tapes: 2^27
/// draws with range 1, and 2^29 with range 3, which `make nightly` tries too.
#[test]
fn every_tape_with_low_and_high_digits() {
    let widths = Widths {
        limb_bits: 6,
        slack_bits: 1,
        limbs: 2,
    };
    let settings = [1, 3].map(|range| Setting {
        scale: 0.9,
        range,
        widths,
        radix_bits: &[1],
    });
    let (_, shapes) = try_all(&settings, max_draw_bits() + 5);
    assert_eq!(shapes, BTreeSet::from([vec![1, 2]]));
}

/// More tapes than `make test` has time for: 2^30 or 2^32 of each.
#[test]
#[ignore = "make exhaustive"]
fn every_tape_of_many() {
    let widths = [
        (1, 6, &[1, 1, 1][..]),
        (2, 6, &[1]),
        (2, 4, &[1, 1]),
        (3, 4, &[1]),
    ];
    let settings = widths.map(|(limbs, limb_bits, radix_bits)| Setting {
        scale: 7.0,
        range: 1,
        widths: Widths {
            limb_bits,
            slack_bits: 1,
            limbs,
        },
        radix_bits,
    });
    let (tried, _) = try_all(&settings, 33);
    assert_eq!(tried, settings.len());
}

/// Tiers at reduced widths.
#[derive(Clone, Copy, Debug)]
struct Chain {
    /// Thirds, those of the finest tier first.
    rates: &'static [u32],
    range: u64,
    widths: Widths,
    radix_bits: &'static [u32],
}

impl Chain {
    /// The tiers, if there are any with such widths.
    fn tiers(&self) -> Option<Vec<Tier>> {
        let rate = |thirds: &u32| Rate::from_ratio((*thirds).into(), 3u32.into()).unwrap();
        let rates: Vec<_> = self.rates.iter().map(rate).collect();
        let tiers = tiers::reduced(&rates, self.range, &self.widths, self.radix_bits);
        tiers.ok().flatten()
    }
}

fn chains(widths: &[(usize, u32, &'static [u32])], slack_bits: u32) -> Vec<Chain> {
    let mut chains = Vec::new();
    for &(limbs, limb_bits, radix_bits) in widths {
        for rates in [
            &[6, 3][..],
            &[9, 2],
            &[4, 3],
            &[12, 1],
            &[15, 6, 3],
            &[8, 5, 3],
            &[20, 12, 7, 3],
        ] {
            for range in [1, 2, 3, 5, 8] {
                let widths = Widths {
                    limb_bits,
                    slack_bits,
                    limbs,
                };
                chains.push(Chain {
                    rates,
                    range,
                    widths,
                    radix_bits,
                });
            }
        }
    }
    chains
}

/// A tier's law: `law[x][y]` over two to this power.
type Law = (Vec<Vec<BigUint>>, u64);

fn law(plan: &Plan) -> Law {
    let distribution = Distribution::of(plan).unwrap();
    let outputs = 0..=plan.range();
    let of = |x| {
        outputs
            .clone()
            .map(|y| distribution.probability(y, x))
            .collect()
    };
    let law = outputs.clone().map(of).collect();
    (law, distribution.bits())
}

/// Whether neighbours' probabilities are within the rate, for all of these outcomes.
fn private(one: &[BigUint], other: &[BigUint], rate: &Rate) -> bool {
    let both = |(p, q)| within(p, q, rate) && within(q, p, rate);
    one.iter().zip(other).all(both)
}

/// The first tier, from the coarsest, whose loss together with all coarser ones exceeds its rate, if
/// there is one: in exact integers, over the probabilities of all their outputs.
fn broken(tiers: &[Tier]) -> Option<usize> {
    let laws: Vec<_> = tiers.iter().map(|tier| law(&tier.plan)).collect();
    let outputs = laws[0].0.len();
    let (mut tier, mut found) = (laws[0].0.clone(), None);
    for (j, Tier { rate, .. }) in tiers.iter().enumerate() {
        if j > 0 {
            let step = &laws[j].0;
            let output = |row: &Vec<BigUint>, y| (0..outputs).map(|u| &row[u] * &step[u][y]).sum();
            let row = |row| (0..outputs).map(|y| output(row, y)).collect();
            tier = tier.iter().map(row).collect();
        }
        // With all coarser tiers, for each count.
        let with_coarser = |row: &Vec<BigUint>| {
            let mut joint: Vec<_> = row.iter().cloned().enumerate().collect();
            for (step, _) in &laws[j + 1..] {
                let next = |(u, p): (usize, BigUint)| {
                    let steps = step[u].iter().enumerate();
                    steps.map(move |(y, q)| (y, &p * q))
                };
                joint = joint.into_iter().flat_map(next).collect();
            }
            joint.into_iter().map(|(_, p)| p).collect::<Vec<_>>()
        };
        let joint: Vec<_> = tier.iter().map(with_coarser).collect();
        if !joint
            .windows(2)
            .all(|pair| private(&pair[0], &pair[1], rate))
        {
            found = Some(j);
        }
    }
    found
}

/// Every step does, on all tapes and back ends, what its distribution says; and every prefix of the
/// tiers, from the coarsest to any, has the loss that the finest of it promises.
#[test]
fn every_tape_of_every_tier() {
    let widths = [
        (1, 4, &[][..]),
        (1, 5, &[]),
        (1, 4, &[1]),
        (2, 3, &[]),
        (2, 4, &[]),
    ];
    let (mut tried, mut ends) = (0, 0);
    for slack_bits in [2, 3] {
        for chain in chains(&widths, slack_bits) {
            let Some(tiers) = chain.tiers() else { continue };
            let bits = |plan: &Plan| fields(plan).iter().map(|field| field.2).sum::<u32>();
            let draws = |tier: &Tier| u128::from(chain.range + 1) << bits(&tier.plan);
            if tiers.iter().map(draws).max() > Some(1 << (max_draw_bits() - 1)) {
                continue;
            }
            for tier in &tiers {
                try_tapes(&chain, &tier.plan, bits(&tier.plan));
            }
            assert_eq!(broken(&tiers), None, "{chain:?}");
            tried += 1;
            ends += usize::from(chain.range > 1);
        }
    }
    println!("{tried} sets of tiers, all tapes of each");
    assert!(tried >= 20 && ends >= 10, "{tried}, {ends}");
}

/// More laws than there is time to try tapes for, with low digits too: every prefix is private.
#[test]
fn every_prefix_of_tiers_is_private() {
    let widths = [
        (1, 6, &[][..]),
        (1, 8, &[]),
        (1, 6, &[1]),
        (1, 7, &[1, 1]),
        (2, 5, &[]),
        (2, 6, &[1]),
        (2, 7, &[1]),
        (2, 8, &[2]),
        (3, 4, &[]),
    ];
    let (mut tried, mut low, mut steps) = (0, 0, BTreeSet::new());
    for slack_bits in [1, 5] {
        for chain in chains(&widths, slack_bits) {
            // The joint law of four tiers has a power of the outputs.
            if chain.range > 5 {
                continue;
            }
            let Some(tiers) = chain.tiers() else { continue };
            assert_eq!(broken(&tiers), None, "{chain:?}");
            tried += 1;
            steps.insert((tiers.len(), tiers[1].plan.keeps().unwrap().1));
            let digits = |tier: &Tier| tier.plan.digits().first().map(|digit| digit.limbs());
            let last = |tier: &Tier| tier.plan.digits().last().map(|digit| digit.limbs());
            low += usize::from(tiers.iter().any(|tier| digits(tier) < last(tier)));
        }
    }
    println!("{tried} sets of tiers, {low} with low digits; tiers and keep limbs: {steps:?}");
    assert!(tried >= 300 && low >= 20, "{tried}, {low}");
    for shape in [(2, 1), (2, 2), (3, 1), (4, 1)] {
        assert!(steps.contains(&shape), "{shape:?}");
    }
}

/// [`Distribution::worst_ratio`] examines some pairs only; this test examines all of them.
#[test]
fn worst_ratio_is_over_all_outputs_and_neighbours() {
    for setting in settings() {
        let (Some(plan), range) = (setting.plan(), setting.range) else {
            continue;
        };
        let distribution = Distribution::of(&plan).unwrap();
        let (num, den) = distribution.worst_ratio().unwrap();
        let mut attained = false;
        for x in 0..range {
            for y in 0..=range {
                let (p, q) = (
                    distribution.probability(y, x),
                    distribution.probability(y, x + 1),
                );
                assert!(&p * &den <= &q * &num && &q * &den <= &p * &num);
                attained |= &p * &den == &q * &num || &q * &den == &p * &num;
            }
        }
        assert!(attained);
    }
}

/// The probabilities sum to one.
#[test]
fn probabilities_sum_to_one() {
    for (rate, range) in [(1.0, 7u64), (0.01, 300), (3.0, 1), (1e-6, 1000)] {
        let plan = Plan::two_sided(&Rate::from_epsilon(rate, 1).unwrap(), range).unwrap();
        let distribution = Distribution::of(&plan).unwrap();
        for x in [0, 1, range / 2, range] {
            let sum: BigUint = (0..=range).map(|y| distribution.probability(y, x)).sum();
            assert_eq!(sum, BigUint::from(1u32) << distribution.bits());
        }
    }
}
