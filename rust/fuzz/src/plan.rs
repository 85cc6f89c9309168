//! Rates, plans and mechanisms from any parameters: no panic, no error except the documented ones,
//! the shape of every plan, and the exact loss of small ones. The verifier and the checker that is
//! proved in Coq check certificates.

use crate::Seen;
use crate::exact::{fraction, is_rounded_up, power, power_of_two, within};
use crate::source::Source;
use geomdp_core::Count;
use geomdp_core::distribution::Distribution;
use geomdp_core::plan::{Digit, LIMB_BITS, Plan};
use geomdp_core::{Error, Mechanism, Rate, privacy};
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;

/// Exact distributions are computed up to this range and this number of thresholds; beyond, they
/// take seconds.
const EXACT_RANGE: u64 = 40;
const EXACT_THRESHOLDS: usize = 60;

/// Runs one input.
pub fn run(data: &[u8], seen: &mut Seen) {
    let mut source = Source::new(data);
    match source.below(8) {
        0 => rates(&mut source, seen),
        1 => geometric(&mut source, seen),
        2 => mechanism(&mut source, seen),
        3..6 => reduced(&mut source, seen),
        _ => two_sided(&mut source, seen),
    }
}

fn name(error: Error) -> &'static str {
    match error {
        Error::Parameter { name, .. } => name,
        other => panic!("{other:?}"),
    }
}

fn rates(source: &mut Source<'_>, seen: &mut Seen) {
    let (x, sensitivity) = (source.float(), source.sized() & source.sized());
    let exact = fraction(x).filter(|(num, _)| num.bits() > 0);
    let same = |rate: &Rate, num: &BigUint, den: &BigUint| {
        assert_eq!(rate.num() * den, rate.den() * num);
        assert_eq!(rate.num().gcd(rate.den()), BigUint::from(1u32));
    };
    match (Rate::from_epsilon(x, sensitivity), &exact) {
        (Ok(rate), Some((num, den))) if sensitivity > 0 => {
            same(&rate, num, &(den * sensitivity));
            seen.add("an epsilon");
            map(source, &rate);
        }
        (Err(error), None) => assert_eq!(name(error), "epsilon"),
        (Err(error), Some(_)) if sensitivity == 0 => assert_eq!(name(error), "sensitivity"),
        other => panic!("{x:e}, {sensitivity}: {other:?}"),
    }
    match (Rate::from_scale(x), &exact) {
        (Ok(rate), Some((num, den))) => {
            same(&rate, den, num);
            seen.add("a scale");
            map(source, &rate);
        }
        (Err(error), None) => assert_eq!(name(error), "scale"),
        other => panic!("{x:e}: {other:?}"),
    }
    let (num, den) = (
        source.big() * source.below(5),
        source.big() * source.below(5),
    );
    let valid = num.bits() > 0 && den.bits() > 0;
    match Rate::from_ratio(num.clone(), den.clone()) {
        Ok(rate) if valid => same(&rate, &num, &den),
        Err(error) if !valid => {
            assert_eq!(name(error), "rate");
            seen.add("no rate");
        }
        other => panic!("{num}/{den}: {other:?}"),
    }
}

/// The privacy map is `d_in` times the rate, rounded up, and therefore non-decreasing.
fn map(source: &mut Source<'_>, rate: &Rate) {
    let near = source.big() >> source.below(1600);
    for d_in in [BigUint::ZERO, near.clone(), near + 1u32] {
        let loss = privacy::map(Some(rate), &d_in);
        assert!(
            is_rounded_up(loss, &(&d_in * rate.num()), rate.den()),
            "{rate:?}, {d_in}: {loss:e}"
        );
    }
}

/// Checks an `Uncertifiable` error: the refused scale is above the one that the error says is
/// accepted.
fn check_uncertifiable(error: &Error, rate: &Rate, range: u64) {
    let Error::Uncertifiable {
        range: named,
        max_scale_log2,
        ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(*named, range);
    assert!(
        rate.num() << *max_scale_log2 < *rate.den(),
        "{rate:?}, {range}"
    );
}

fn two_sided(source: &mut Source<'_>, seen: &mut Seen) {
    let (Some(rate), range) = (source.rate(), source.sized()) else {
        return;
    };
    match Plan::two_sided(&rate, range) {
        Ok(plan) => {
            check(&plan, &rate, range, seen);
        }
        Err(error) => {
            check_uncertifiable(&error, &rate, range);
            seen.add("uncertifiable");
        }
    }
}

fn reduced(source: &mut Source<'_>, seen: &mut Seen) {
    let (Some(rate), range) = (source.rate(), source.sized().max(1)) else {
        return;
    };
    let range = if source.below(3) > 0 {
        range.min(1 + source.below(EXACT_RANGE))
    } else {
        range
    };
    if let Some((widths, plan)) = source.reduced(&rate, range) {
        assert_eq!(plan.limb_bits(), widths.limb_bits);
        check(&plan, &rate, range, seen);
        seen.add("reduced widths");
    }
}

fn mechanism(source: &mut Source<'_>, seen: &mut Seen) {
    let rate = source.rate();
    let bounds = source.flag().then(|| source.pair());
    let wanted = match bounds {
        Some((lower, upper)) if lower > upper => Err("reversed"),
        Some((lower, upper)) => {
            let holds = |min: i128, max: i128| min <= lower && upper <= max;
            if holds(i64::MIN.into(), i64::MAX.into()) || holds(0, u64::MAX.into()) {
                Ok(())
            } else {
                Err("beyond all types")
            }
        }
        None => Ok(()),
    };
    let mechanism = match (Mechanism::new(rate.clone(), bounds), wanted) {
        (Ok(mechanism), Ok(())) => mechanism,
        (Err(error @ Error::Uncertifiable { .. }), Ok(())) => {
            let ((lower, upper), rate) = (bounds.expect("some"), rate.expect("some"));
            return check_uncertifiable(
                &error,
                &rate,
                u64::try_from(upper - lower).expect("64 bits"),
            );
        }
        (Err(Error::Parameter { name: "bounds", .. }), Err(why @ "reversed"))
        | (Err(Error::Overflow { name: "bounds", .. }), Err(why @ "beyond all types")) => {
            return seen.add(format!("bounds: {why}"));
        }
        other => panic!("{bounds:?}: {other:?}"),
    };
    fn plan_for<T: Count>(mechanism: &Mechanism, seen: &mut Seen) {
        let (lower, upper) = mechanism.bounds().unwrap_or((T::MIN, T::MAX));
        match mechanism.kernel_for::<T>() {
            Ok((kernel, least)) => {
                let plan = kernel.plan();
                assert!(mechanism.bounds().is_some() || T::MIN < 0);
                assert_eq!(Into::<i128>::into(least), lower);
                assert!(T::MIN <= lower && upper <= T::MAX);
                assert_eq!(i128::from(plan.range()), upper - lower);
                assert_eq!(
                    plan.certificate().map(|numbers| &numbers.nominal),
                    mechanism.rate().filter(|_| lower < upper)
                );
                seen.add("a plan of a mechanism");
            }
            Err(Error::Overflow { name: "bounds", .. }) => {
                assert!(lower < T::MIN || T::MAX < upper);
                seen.add("bounds: beyond the type");
            }
            Err(Error::Parameter { name: "bounds", .. }) => {
                assert!(mechanism.bounds().is_none() && T::MIN == 0);
                seen.add("bounds: none for an unsigned type");
            }
            Err(error) => {
                let range = u64::try_from(T::MAX - T::MIN).expect("64 bits");
                check_uncertifiable(
                    &error,
                    mechanism.rate().expect("scale 0 is accepted"),
                    range,
                );
            }
        }
    }
    plan_for::<i8>(&mechanism, seen);
    plan_for::<i16>(&mechanism, seen);
    plan_for::<i32>(&mechanism, seen);
    plan_for::<i64>(&mechanism, seen);
    plan_for::<u8>(&mechanism, seen);
    plan_for::<u16>(&mechanism, seen);
    plan_for::<u32>(&mechanism, seen);
    plan_for::<u64>(&mechanism, seen);
}

/// A number in units of `2^-bits`.
struct Fixed {
    bits: u64,
    one: BigUint,
}

impl Fixed {
    fn new(bits: u64) -> Self {
        Self {
            bits,
            one: power_of_two(bits),
        }
    }

    fn mul(&self, x: &BigUint, y: &BigUint) -> BigUint {
        (x * y) >> self.bits
    }

    fn div(&self, x: &BigUint, y: &BigUint) -> BigUint {
        (x << self.bits) / y
    }

    /// `1 - x`; `x` can exceed 1 only by rounding.
    fn rest(&self, x: &BigUint) -> BigUint {
        &self.one - x.min(&self.one)
    }

    /// Whether a threshold of `places` bits is this number, rounded to nearest from within 2^-8 of
    /// a unit; or the largest number of these bits, if rounding would give 1.
    fn rounds_to(&self, x: &BigUint, threshold: &BigUint, places: u64) -> bool {
        let unit = power_of_two(self.bits - places);
        let error = (BigInt::from(threshold * &unit) - BigInt::from(x.clone()))
            .magnitude()
            .clone();
        let half = (&unit >> 1u32) + (&unit >> 8u32) + (&unit >> 20u32);
        let largest = threshold + 1u32 == power_of_two(places);
        error <= if largest { unit + half } else { half }
    }
}

/// The ideal distribution of digits, for a ratio `a` in units of `2^-fixed.bits`: lemma 1, by its
/// closed forms.
struct Digits<'a> {
    fixed: &'a Fixed,
    /// For each digit, its weight, and the powers `a^(k B)` for `k` up to its number of values.
    powers: Vec<(u64, Vec<BigUint>)>,
}

impl<'a> Digits<'a> {
    fn new(fixed: &'a Fixed, a: BigUint, plan: &Plan) -> Self {
        let powers = plan
            .digits()
            .iter()
            .enumerate()
            .map(|(j, digit)| {
                let values = values(plan, j);
                let step = power(&a, digit.weight(), fixed.bits);
                let mut powers = vec![fixed.one.clone()];
                for k in 1..=values {
                    powers.push(fixed.mul(&powers[k - 1], &step));
                }
                (digit.weight(), powers)
            })
            .collect();
        Self { fixed, powers }
    }

    /// `P(D_j < k)`.
    fn below(&self, j: usize, k: usize) -> BigUint {
        let powers = &self.powers[j].1;
        let part = self.fixed.rest(&powers[k]);
        if j + 1 == self.powers.len() {
            return part;
        }
        self.fixed
            .div(&part, &self.fixed.rest(&powers[powers.len() - 1]))
    }
}

/// How many values a digit has. Digit 0 has the floor's slot as well, and zero if noise has two signs.
fn values(plan: &Plan, j: usize) -> usize {
    let more = if j > 0 {
        0
    } else {
        1 + usize::from(plan.is_two_sided())
    };
    plan.digits()[j].thresholds(LIMB_BITS).len() + 1 - more
}

/// Checks the widths, weights and order of a plan's digits.
fn check_shape(plan: &Plan, seen: &mut Seen) {
    let (digits, w) = (plan.digits(), plan.limb_bits());
    let (first, top) = (&digits[0], digits.len() - 1);
    let limbs: Vec<usize> = digits.iter().map(Digit::limbs).collect();
    let high = limbs[top];
    assert!((1..=3).contains(&high));
    assert!(limbs.iter().all(|&n| n <= high), "{limbs:?}");
    assert_eq!(
        plan.words(),
        1 + limbs.iter().sum::<usize>().max(limbs[0] + 1)
    );
    assert_eq!(first.weight(), 1);
    for (j, digit) in digits.iter().enumerate() {
        let thresholds = digit.thresholds(w);
        assert!(thresholds.is_sorted());
        let places = u64::from(w) * (digit.limbs() as u64 + 1);
        assert!(thresholds.last().is_none_or(|t| t.bits() <= places));
        if j < top {
            let next = u128::from(digit.weight()) * values(plan, j) as u128;
            assert_eq!(u128::from(digits[j + 1].weight()), next);
        }
    }
    let low = limbs.iter().min().copied().unwrap_or(high);
    seen.add(match (low, high) {
        (low, high) if low < high => format!("digits of {low} and of {high} words"),
        (_, high) => format!("digits of {high} words"),
    });
    seen.add(format!(
        "{} digits",
        if top > 3 {
            "5 or more".into()
        } else {
            (top + 1).to_string()
        }
    ));
}

fn check(plan: &Plan, rate: &Rate, range: u64, seen: &mut Seen) {
    assert_eq!(plan.range(), range);
    assert!(plan.is_two_sided());
    if range == 0 {
        assert!(plan.digits().is_empty() && plan.certificate().is_none() && plan.words() == 0);
        return;
    }
    check_shape(plan, seen);
    let w = u64::from(plan.limb_bits());
    let (k, limbs) = (
        plan.floor_value_bits(),
        plan.digits().iter().map(Digit::limbs),
    );
    assert!(range >> (k - 1) == 1);
    let places = w * (limbs.max().unwrap_or(0) as u64 + 1);

    // The top digit's last value saturates, or has negligible mass: a^reach <= 2^-(K+2).
    let top = &plan.digits()[plan.digits().len() - 1];
    let reach = u128::from(top.weight()) * (values(plan, plan.digits().len() - 1) as u128 - 1);
    // ln 2 < 693147180560 / 10^12
    let far = rate.num() * reach * 10u64.pow(12) >= rate.den() * (693_147_180_560 * (places + 2));
    assert!(reach >= u128::from(range) || far, "{plan:?}");
    if far {
        seen.add("a top digit cut off by mass");
    }

    check_distribution(plan, rate, seen);
}

/// The exact distribution of a small plan sums to one, and is private at the nominal rate.
fn check_distribution(plan: &Plan, rate: &Rate, seen: &mut Seen) {
    let r = plan.range();
    let thresholds = |digit: &Digit| digit.thresholds(plan.limb_bits()).len();
    if r > EXACT_RANGE || plan.digits().iter().map(thresholds).sum::<usize>() > EXACT_THRESHOLDS {
        return;
    }
    let distribution = Distribution::of(plan).expect("the range is small");
    let one = power_of_two(distribution.bits());
    let rows: Vec<Vec<BigUint>> = (0..=r)
        .map(|x| (0..=r).map(|y| distribution.probability(y, x)).collect())
        .collect();
    let mut worst = (BigUint::from(1u32), BigUint::from(1u32));
    for pair in rows.windows(2) {
        for (p, q) in pair[0].iter().zip(&pair[1]) {
            let (p, q) = (p.max(q), p.min(q));
            if p * &worst.1 > q * &worst.0 {
                worst = (p.clone(), q.clone());
            }
        }
    }
    assert!(rows.iter().all(|row| row.iter().sum::<BigUint>() == one));
    let (num, den) = distribution.worst_ratio().expect("there are neighbours");
    assert_eq!(&num * &worst.1, &den * &worst.0, "{plan:?}");
    assert!(within(&num, &den, rate.num(), rate.den()), "{plan:?}");
    seen.add("an exact distribution");
}

fn geometric(source: &mut Source<'_>, seen: &mut Seen) {
    let (mut prob, trials) = (
        source.float(),
        source.sized().saturating_sub(source.below(2)),
    );
    if source.below(4) > 0 && prob > 1.0 {
        prob = 1.0 / prob;
    }
    let plan = match Plan::geometric(prob, trials) {
        Ok(plan) => plan,
        Err(error) => {
            let name = name(error);
            assert_eq!(name == "prob", !(0.0..=1.0).contains(&prob));
            assert_eq!(name == "trials", (0.0..=1.0).contains(&prob) && trials == 0);
            return;
        }
    };
    assert!((0.0..=1.0).contains(&prob) && trials > 0);
    check_shape(&plan, seen);
    seen.add("one-sided");
    assert!(!plan.is_two_sided() && plan.certificate().is_none());
    assert_eq!(plan.range(), if prob == 1.0 { 1 } else { trials });
    let (num, den) = fraction(prob).expect("a probability");
    let fixed = Fixed::new(1400);
    // 1 - 2^-1074 is exact in these bits.
    let a = ((&den - &num) << fixed.bits) / &den;
    let ideal = Digits::new(&fixed, a, &plan);
    for (j, digit) in plan.digits().iter().enumerate() {
        let thresholds = digit.thresholds(63);
        let own = usize::from(j == 0);
        assert!(thresholds[..own].iter().all(|t| t.bits() == 0));
        for (i, threshold) in thresholds[own..].iter().enumerate() {
            // Without a success, all values are equally likely.
            let cut = if num.bits() > 0 {
                ideal.below(j, i + 1)
            } else if j + 1 == plan.digits().len() {
                BigUint::ZERO
            } else {
                (&fixed.one * (i as u64 + 1)) / values(&plan, j) as u64
            };
            assert!(fixed.rounds_to(&cut, threshold, 126), "{prob:e} {i} {j}");
        }
    }
    let top = plan.digits().len() - 1;
    let top_digit = &plan.digits()[top];
    let reach = u128::from(top_digit.weight()) * (values(&plan, top) as u128 - 1);
    // (1 - p)^reach <= 2^-128 where it does not saturate, since ln(1 - p) < -p.
    let far = num * reach * 10u64.pow(12) >= den * (693_147_180_560 * 128u64);
    assert!(
        reach >= u128::from(plan.range()) || far,
        "{prob:e} {trials}"
    );
}
