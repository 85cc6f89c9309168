//! Checks the conditions of theorem 2 of `docs/proofs.md` on a plan's numbers, in integers. They
//! prove the distribution private at the nominal rate. `tests/verifier` checks the same, and every
//! threshold, without this library.
#![allow(clippy::unwrap_used)]

use geomdp_core::Rate;
use geomdp_core::distribution::within;
use geomdp_core::plan::{LIMB_BITS, Plan};
use num_bigint::BigUint;
use num_integer::Integer;

fn power(exponent: u64) -> BigUint {
    BigUint::from(1u32) << exponent
}

/// The least probability of one of the digit's values, and the bits that it is over. For digit 0, of
/// those that fall, as drawn beside the floor; half of it counts.
fn least(plan: &Plan, j: usize) -> (BigUint, u64) {
    let digit = &plan.digits()[j];
    let bits = u64::from(LIMB_BITS) * (digit.limbs() as u64 + 1);
    let mut cuts = digit.thresholds(LIMB_BITS);
    if j > 0 {
        cuts.insert(0, BigUint::ZERO);
        cuts.push(power(bits));
    }
    let masses = cuts.windows(2).map(|pair| &pair[1] - &pair[0]);
    (masses.min().unwrap(), bits + u64::from(j == 0))
}

/// Checks all conditions. Returns the number of low digits, which the slack in the rate covers.
fn check(plan: &Plan, rate: &Rate) -> usize {
    let proof = plan.proof().unwrap();
    let digits = plan.digits();
    let own = digits.last().unwrap().limbs();
    let low: Vec<_> = (0..digits.len())
        .filter(|&j| digits[j].limbs() < own)
        .collect();
    assert!(digits.iter().all(|digit| digit.limbs() <= own));
    assert_eq!(&proof.nominal, rate);

    // Lemma 3: eta, with h high digits of d.
    let (d, h) = (digits.len() as u64, (digits.len() - low.len()) as u64);
    assert_eq!(proof.eta.value, BigUint::from(h * d * (d + 5) / 2 + 1));
    assert_eq!(proof.eta.bits, u64::from(LIMB_BITS) * (own as u64 + 1));

    // Lemma 3: delta. The plan has a spare bit, for the mass that the floor takes from digit 0.
    let q = low.iter().map(|&j| {
        let (mass, bits) = least(plan, j);
        let skipped = u64::from(LIMB_BITS) * (digits[j].limbs() as u64 - 1);
        power(bits).div_ceil(&(mass << skipped))
    });
    let (mut delta, mut sum) = (BigUint::ZERO, BigUint::ZERO);
    for q in q {
        delta += &q * 2u32 + &q * &sum;
        sum += q;
    }
    assert_eq!(proof.delta.bits, 126);
    // Rounding of the thresholds can lower an inverse by one.
    assert!(&proof.delta.value + low.len() * (2u32 + sum.clone()) >= delta);
    assert!(proof.delta.value <= delta * 3u32);
    assert!(sum <= power(61));
    assert!(proof.delta.value <= power(126 - 50));

    // Theorem 2: 3 delta <= rate - sampled.
    let slack = if own == 1 { 0 } else { 1u32 };
    let short = |num: &BigUint| (num << 54u32) - num * slack;
    let sampled = Rate::from_ratio(short(rate.num()), rate.den() << 54u32).unwrap();
    assert_eq!(proof.sampled, sampled);
    let difference = rate.num() * sampled.den() - sampled.num() * rate.den();
    assert!(&proof.delta.value * 3u32 * rate.den() * sampled.den() <= difference << 126u32);

    // Theorem 2: eta <= g 2^-k tanh(rate / 2), for the least g with as many bits as digit 0.
    let k = u64::from(plan.floor_value_bits());
    assert!(u128::from(plan.range()) < 1 << k && u128::from(plan.range()) >= 1 << (k - 1));
    assert_eq!(
        proof.floor.bits,
        u64::from(LIMB_BITS) * (digits[0].limbs() as u64 + 1)
    );
    assert_eq!(digits[0].thresholds(LIMB_BITS)[0], proof.floor.value);
    let need = &proof.eta.value << (proof.floor.bits + k + proof.tanh.bits);
    let unit = &proof.tanh.value << proof.eta.bits;
    assert!(need <= &proof.floor.value * &unit);
    assert!(need > (&proof.floor.value - 1u32) * &unit);
    // t <= tanh(rate / 2) if and only if (1 + t) / (1 - t) <= exp(rate); no t is much larger.
    let one = power(proof.tanh.bits);
    let below = |t: &BigUint| t < &one && within(&(&one + t), &(&one - t), rate);
    assert!(below(&proof.tanh.value));
    let more = (&proof.tanh.value >> 50u32) + 1u32;
    assert!(!below(&(&proof.tanh.value + more)));

    // Theorem 3, and the floor's share of the mean error.
    assert!(&proof.floor.value << 52u32 <= power(proof.floor.bits));
    assert!(&proof.floor.value << (k + 20) <= power(proof.floor.bits));
    assert!(proof.total_variation() <= 2f64.powi(-50));
    low.len()
}

#[test]
fn every_plan_is_private_at_the_nominal_rate() {
    let (mut plans, mut low) = (0, 0);
    for log_scale in (-6..100).step_by(2) {
        for range in [1, 2, 3, 10, 255, 1000, 1_000_000, u32::MAX.into(), u64::MAX] {
            let rate = Rate::from_scale(2f64.powi(log_scale) * 1.3).unwrap();
            let Ok(plan) = Plan::two_sided(&rate, range) else {
                assert!(log_scale > 82, "{log_scale} {range}");
                continue;
            };
            low += check(&plan, &rate);
            plans += 1;
        }
    }
    println!("{plans} plans, with {low} low digits");
    assert!(plans > 450 && low > 50, "{plans} {low}");
}
