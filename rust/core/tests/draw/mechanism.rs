//! The mechanism around the kernel: accepted parameters, messages for bad ones, the plan of each
//! integer type.
#![allow(clippy::unwrap_used)]

use geomdp_core::fold::Folded;
use geomdp_core::plan::Plan;
use geomdp_core::tape::Tape;
use geomdp_core::{Backend, Count, Draws, Error, Kernel, LANES, Mechanism, Rate};
use num_bigint::BigUint;

fn rate(scale: f64) -> Rate {
    Rate::from_scale(scale).unwrap()
}

fn mechanism(bounds: Option<(i128, i128)>) -> Mechanism {
    Mechanism::new(Some(rate(3.0)), bounds).unwrap()
}

/// Bounds are accepted if and only if one integer type can hold both.
#[test]
fn bounds_must_fit_one_integer_type() {
    let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
    let greatest = i128::from(u64::MAX);
    for bounds in [
        (least, most),
        (least, -1),
        (least, least),
        (0, greatest),
        (greatest, greatest),
        (most, most),
        (-1, most),
        (0, 0),
        (7, 7),
    ] {
        assert!(Mechanism::new(None, Some(bounds)).is_ok(), "{bounds:?}");
    }
    for bounds in [
        (least - 1, 0),
        (least - 1, most),
        (-1, most + 1),
        (-1, greatest),
        (least, greatest),
        (0, greatest + 1),
        (greatest + 1, greatest + 1),
        (least - 1, least - 1),
    ] {
        let refused = Mechanism::new(None, Some(bounds));
        assert!(matches!(refused, Err(Error::Overflow { .. })), "{bounds:?}");
    }
    for bounds in [(1, 0), (most + 1, least - 1)] {
        let refused = Mechanism::new(None, Some(bounds));
        assert!(
            matches!(refused, Err(Error::Parameter { .. })),
            "{bounds:?}"
        );
    }
}

fn check_plan<T: Count + PartialEq + std::fmt::Debug>(mechanism: &Mechanism) {
    let (kernel, lower) = mechanism.kernel_for::<T>().unwrap();
    assert_eq!(i128::from(kernel.plan().range()), T::MAX - T::MIN);
    assert_eq!(Some(lower), T::exact(T::MIN));
}

/// One mechanism without bounds serves all signed types, each with a plan for its own width.
#[test]
fn every_signed_type_has_a_plan_of_its_width() {
    for rate in [Some(rate(3.0)), None] {
        let unbounded = Mechanism::new(rate, None).unwrap();
        for _ in 0..2 {
            check_plan::<i64>(&unbounded);
            check_plan::<i32>(&unbounded);
            check_plan::<i8>(&unbounded);
            check_plan::<i16>(&unbounded);
        }
    }
}

fn check_unsigned<T: Count + PartialEq + std::fmt::Debug>(name: &str) {
    for rate in [Some(rate(3.0)), None] {
        let unbounded = Mechanism::new(rate.clone(), None).unwrap();
        let expected = format!(
            "bounds = None with counts of type {name} is not accepted: give bounds such as (0, {}), \
             which bias small counts upward, or cast the counts to a signed type",
            T::MAX
        );
        assert_eq!(
            unbounded.kernel_for::<T>().unwrap_err().to_string(),
            expected
        );
        let mut counts = [T::exact(5).unwrap(); 40];
        let mut tape = Tape::from_key(&[1; 32]);
        for refused in [
            unbounded.release(&mut counts),
            unbounded.release_with(&mut tape, &mut counts),
        ] {
            assert_eq!(refused.unwrap_err().to_string(), expected);
        }
        assert_eq!(counts, [T::exact(5).unwrap(); 40]);
        let bounded = Mechanism::new(rate, Some((T::MIN, T::MAX))).unwrap();
        check_plan::<T>(&bounded);
    }
}

/// Outputs would be cut off at 0 although nobody asked for bounds.
#[test]
fn unsigned_types_need_bounds() {
    check_unsigned::<u8>("uint8");
    check_unsigned::<u16>("uint16");
    check_unsigned::<u32>("uint32");
    check_unsigned::<u64>("uint64");
}

#[test]
fn a_mechanism_shows_its_parameters() {
    let bounded = mechanism(Some((-4, 100)));
    assert_eq!(bounded.rate(), Some(&rate(3.0)));
    assert_eq!(bounded.bounds(), Some((-4, 100)));
    assert_eq!(bounded.map(&BigUint::from(6u32)).to_bits(), 2f64.to_bits());
    let silent = Mechanism::new(None, None).unwrap();
    assert_eq!((silent.rate(), silent.bounds()), (None, None));
    assert!(silent.map(&BigUint::from(1u32)).is_infinite());
}

/// A thousand draws at this scale are all zero with probability below 2^-2000.
#[test]
fn a_release_adds_fresh_noise() {
    let (mut first, mut second) = ([50i16; 1000], [50i16; 1000]);
    mechanism(None).release(&mut first).unwrap();
    mechanism(None).release(&mut second).unwrap();
    assert!(first != [50; 1000] && second != [50; 1000] && first != second);
}

#[test]
fn debug_shows_no_secret() {
    let kernel = Kernel::new(Plan::noiseless(9));
    let mut tape = Tape::from_key(&[7; 32]);
    let draws = Draws::new(&kernel, 0u8, &mut tape);
    assert_eq!(format!("{draws:?}"), "Draws { .. }");
    let folded = Folded::new(None, (0, 9)).unwrap();
    let draws = folded.draws::<u8, _>(&mut tape).unwrap();
    assert_eq!(format!("{draws:?}"), "FoldedDraws { .. }");
}

/// Every error names the parameter, its value and the accepted values.
#[test]
fn messages_name_parameter_value_and_accepted_values() {
    let message = |error: Result<Mechanism, Error>| error.unwrap_err().to_string();
    assert_eq!(
        message(Mechanism::new(None, Some((5, 4)))),
        "bounds = (5, 4) is not accepted: give lower <= upper"
    );
    assert_eq!(
        message(Mechanism::new(None, Some((-1, i128::MAX)))),
        format!(
            "bounds = (-1, {}) is not accepted: \
             give two values of one integer type of at most 64 bits",
            i128::MAX
        )
    );
    assert_eq!(
        mechanism(Some((0, 256)))
            .kernel_for::<u8>()
            .unwrap_err()
            .to_string(),
        "bounds = (0, 256) is not accepted: give values from 0 to 255, the limits of these counts"
    );
    let faint = Rate::from_scale(2f64.powi(300)).unwrap();
    let refused = message(Mechanism::new(Some(faint), Some((0, 1000))));
    assert!(
        refused.starts_with(
            "scale = about 2**300 is too large to be certified for outputs in a range of 1000: \
             give a scale of at most 2**"
        ),
        "{refused}"
    );
    let none = BigUint::ZERO;
    let one = || BigUint::from(1u32);
    for (num, den) in [
        (none.clone(), one()),
        (one(), none.clone()),
        (none.clone(), none),
    ] {
        let refused = Rate::from_ratio(num, den).unwrap_err().to_string();
        assert!(refused.starts_with("rate = "), "{refused}");
    }
    assert_eq!(
        Error::Entropy("none".into()).to_string(),
        "no random bytes available: none"
    );
}

/// The plan's range may reach the limit of the type, and no further.
#[test]
fn the_kernel_panics_on_a_range_beyond_the_type() {
    let fits = |range: u64, lower: i8| {
        let kernel = Kernel::on(Backend::Portable, Plan::noiseless(range));
        std::panic::catch_unwind(|| {
            kernel.add_noise(lower, &[], &mut [0i8; LANES]);
        })
        .is_ok()
    };
    assert!(fits(255, -128) && fits(0, 127) && fits(100, 27));
    assert!(!fits(256, -128) && !fits(1, 127) && !fits(101, 27));
}

/// All back ends that this processor can run, the portable one first and the fastest last.
#[test]
fn available_back_ends_match_the_processor() {
    let mut expected = vec!["Portable"];
    #[cfg(target_arch = "aarch64")]
    expected.push("Neon");
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx2") {
            expected.push("Avx2");
        }
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            expected.push("Avx512");
        }
    }
    let names = |backend| format!("{backend:?}");
    assert_eq!(
        Backend::available().map(names).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(Some(Backend::best()), Backend::available().last());
}
