//! Constant time, checked on the machine code: run under valgrind by `make ct`.
//!
//! Tape and counts are marked secret ("undefined", in valgrind's terms), so that valgrind reports
//! every jump and every address that depends on them. With a canary's name as its argument the
//! program does something forbidden instead, which must be reported.

use geomdp_core::bernoulli::Bernoulli;
use geomdp_core::fold::Folded;
use geomdp_core::kernel::{Backend, LANES};
use geomdp_core::linear::Linear;
use geomdp_core::plan::Plan;
use geomdp_core::tape::{Tape, Words};
use geomdp_core::{Count, Error, Mechanism, Rate, ct};
use std::hint::black_box;

/// Marks values secret; refuses to go on when nothing is checking.
fn hide<T>(values: &[T]) {
    ct::secret(values);
    assert_eq!(
        ct::is_secret(values),
        Some(true),
        "nothing checks: run this by `make ct`"
    );
}

/// The result must have been secret up to here, or the check was void.
fn reveal<T>(values: &[T]) {
    assert_eq!(
        ct::is_secret(values),
        Some(true),
        "the result is not secret"
    );
    ct::public(values);
}

fn plans() -> Result<Vec<Plan>, Error> {
    let mut plans = vec![Plan::geometric(0.1, 1000)?];
    for scale in [0.1, 1.0, 1e3, 1e9, 1e18] {
        for range in [1, 50, 1_000_000, u64::MAX] {
            plans.push(Plan::two_sided(&Rate::from_scale(scale)?, range)?);
        }
    }
    Ok(plans)
}

fn kernel<T: Count>(backend: Backend, plan: &Plan) {
    if T::exact(plan.range().into()).is_none() {
        return;
    }
    let mut words = vec![0x0123_4567_89ab_cdef; 2 * LANES * plan.words()];
    let Some(lower) = T::exact(0) else { return };
    let mut counts = vec![lower; LANES + 3];
    words.rotate_left(1);
    hide(&words);
    hide(&counts);
    backend.add_noise(plan, lower, &words, &mut counts);
    reveal(&counts);
}

fn everything() -> Result<(), Error> {
    for &backend in Backend::available() {
        for plan in plans()? {
            kernel::<i8>(backend, &plan);
            kernel::<u8>(backend, &plan);
            kernel::<i16>(backend, &plan);
            kernel::<u16>(backend, &plan);
            kernel::<i32>(backend, &plan);
            kernel::<u32>(backend, &plan);
            kernel::<i64>(backend, &plan);
            kernel::<u64>(backend, &plan);
        }
        println!("checked: kernel, {backend:?}");
    }

    // From a secret key on, as in a release.
    let mechanism = Mechanism::new(Some(Rate::from_scale(3.0)?), Some((-10, 90)))?;
    let key = [7; 32];
    hide(&key);
    let mut tape = Tape::from_key(&key);
    for len in [1, 5, 1000] {
        let mut counts = vec![4i64; len];
        hide(&counts);
        mechanism.release_with(&mut tape, &mut counts)?;
        reveal(&counts);
    }
    println!("checked: release");

    for twice in [(-20, 181), (0, 0), (-5, i128::from(i64::MAX))] {
        let folded = Folded::new(Some(Rate::from_scale(30.0)?), twice)?;
        for len in [1, 5, 1000] {
            let mut counts = vec![4i64; len];
            hide(&counts);
            folded.draws(&mut tape)?.add_noise(&mut counts)?;
            reveal(&counts);
        }
    }
    println!("checked: folded release");

    for prob in [0.1, 0.5, 1e-30] {
        let bit = Bernoulli::new(prob)?;
        let words = vec![5; bit.words()];
        hide(&words);
        reveal(&[bit.draw(&words)]);
    }
    println!("checked: bernoulli");

    let (linear, mut words) = linear()?;
    let offset = [7];
    hide(&offset);
    hide(&words);
    reveal(&[linear.draw_constant_time(offset[0], &words)]);
    ct::public(&words);
    words.clear();
    println!("checked: linear, with enforce_constant_time");
    Ok(())
}

fn linear() -> Result<(Linear, Vec<u64>), Error> {
    let linear = Linear::new(&Rate::from_scale(3.0)?, 20)?;
    let mut words = vec![0; linear.words()?];
    Tape::from_key(&[1; 32]).fill(&mut words)?;
    Ok((linear, words))
}

/// Things that must not be done with a secret.
fn canary(name: &str) -> Result<(), Error> {
    let secret = vec![black_box(3usize)];
    hide(&secret);
    // Read it from memory: a copy in a register would not be marked.
    let secret = black_box(&secret)[0];
    match name {
        "branch" => {
            if secret == 3 {
                println!("a branch was taken");
            }
        }
        "index" => {
            let table = black_box([1u64; 8]);
            reveal(&[table[secret & 7]]);
        }
        "early-exit" => {
            let (linear, words) = linear()?;
            hide(&words);
            reveal(&[linear.draw_variable_time(7, &words)]);
        }
        other => println!("no canary {other}"),
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    match std::env::args().nth(1) {
        Some(name) => canary(&name),
        None => everything(),
    }
}
