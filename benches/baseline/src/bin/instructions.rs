//! Pieces of work for valgrind to count the instructions of: `make instructions` runs this. For each
//! piece it prints its name, the unit, and how many units were done.

use geomdp_core::kernel::Backend;
use geomdp_core::keyed::{AddressedDraws, IdKind, ReleaseKey};
use geomdp_core::plan::Plan;
use geomdp_core::tape::{Tape, Words};
use geomdp_core::{Error, Mechanism, Rate, draw};
use std::hint::black_box;

const SCALES: [f64; 5] = [0.1, 1.0, 10.0, 1000.0, 1e6];
const MILLION: (&str, u64) = ("range 10^6", 1_000_000);
const UNBOUNDED: (&str, u64) = ("unbounded", u64::MAX);
/// Draws in a call: enough for what a call costs once to be lost.
const DRAWS: usize = 4096;
/// Words of tape in a call; as many as a release takes at once.
const WORDS: usize = 2048;

/// What valgrind counts: each call of it is a figure.
#[inline(never)]
fn counted(work: &mut dyn FnMut() -> Result<(), Error>) -> Result<(), Error> {
    // Not a jump to the work, which would end this function.
    black_box(work())
}

fn figure(
    name: &str,
    unit: &str,
    units: usize,
    mut work: impl FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    // What is done once for a process is not counted.
    work()?;
    println!("{name}\t{unit}\t{units}");
    counted(&mut work)
}

fn kernels() -> Result<(), Error> {
    for backend in Backend::available() {
        for (bounds, range) in [UNBOUNDED, MILLION] {
            for scale in SCALES {
                let plan = Plan::two_sided(&Rate::from_scale(scale)?, range)?;
                // Any words will do: the instructions are the same for all.
                let words = vec![0; DRAWS * plan.words()];
                let mut counts = vec![0i64; DRAWS];
                let name = format!("kernel {backend:?}, scale {scale}, {bounds}");
                figure(&name, "draw", DRAWS, || {
                    backend.add_noise(&plan, i64::MIN, black_box(&words), black_box(&mut counts));
                    Ok(())
                })?;
            }
        }
    }
    Ok(())
}

fn tapes() -> Result<(), Error> {
    let mut tape = Tape::from_os()?;
    let mut words = vec![0; WORDS];
    figure("tape", "word", WORDS, || tape.fill(black_box(&mut words)))
}

/// Tape and kernel together, in the parts that a release takes.
fn draws() -> Result<(), Error> {
    let mut tape = Tape::from_os()?;
    let mut counts = vec![0i64; DRAWS];
    for scale in SCALES {
        let plan = Plan::two_sided(&Rate::from_scale(scale)?, u64::MAX)?;
        let name = format!("tape and kernel, scale {scale}, unbounded");
        figure(&name, "draw", DRAWS, || {
            draw(&plan, i64::MIN, &mut tape, black_box(&mut counts))
        })?;
    }
    Ok(())
}

/// What a release by key and ids does besides.
fn keyed() -> Result<(), Error> {
    let key = ReleaseKey::from_os()?;
    let ids: Vec<i64> = (0..).take(DRAWS).collect();
    let keys = key.id_keys(&[IdKind::Integers; 2]);
    let mut addresses = keys.addresses(DRAWS);
    figure("address, two integers", "draw", DRAWS, || {
        addresses.restart(DRAWS);
        addresses.add_integers(black_box(&ids))?;
        addresses.add_integers(black_box(&ids))
    })?;
    let keys = key.id_keys(&[IdKind::Integers]);
    let mut addresses = keys.addresses(DRAWS);
    figure("address, one integer", "draw", DRAWS, || {
        addresses.restart(DRAWS);
        addresses.add_integers(black_box(&ids))
    })?;
    let mechanism = Mechanism::new(Some(Rate::from_scale(1.0)?), None)?;
    let (plan, lower) = mechanism.plan_for::<i64>()?;
    let tape_key = key.tape_key::<i64>(&mechanism, b"");
    let mut counts = vec![0i64; DRAWS];
    figure(
        "tape at addresses and kernel, scale 1",
        "draw",
        DRAWS,
        || {
            AddressedDraws::new(plan, lower, &tape_key)
                .add_noise(&addresses, black_box(&mut counts))
        },
    )
}

fn plans() -> Result<(), Error> {
    for scale in [1.0, 1e6] {
        let rate = Rate::from_scale(scale)?;
        for (bounds, range) in [("range 1000", 1000), MILLION, UNBOUNDED] {
            let name = format!("plan, scale {scale}, {bounds}");
            figure(&name, "plan", 1, || {
                black_box(Plan::two_sided(black_box(&rate), range)?);
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// The release of a single count, its tape and the wiping of all traces included.
fn releases() -> Result<(), Error> {
    for scale in [1.0, 1e6] {
        let mechanism = Mechanism::new(Some(Rate::from_scale(scale)?), None)?;
        let name = format!("release of one count, scale {scale}, unbounded");
        figure(&name, "release", 1, || {
            mechanism.release(black_box(&mut [0i64]))
        })?;
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    kernels()?;
    tapes()?;
    draws()?;
    keyed()?;
    plans()?;
    releases()
}
