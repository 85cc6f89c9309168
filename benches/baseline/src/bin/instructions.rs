//! Pieces of work whose instructions valgrind counts, run by `make instructions`. For each piece
//! the program prints its name, its unit, and the number of units done.

use geomdp_core::keyed::{AddressedDraws, IdKind, ReleaseKey};
use geomdp_core::plan::Plan;
use geomdp_core::tape::{Tape, Words};
use geomdp_core::{Backend, Draws, Error, Kernel, Mechanism, Rate};
use std::hint::black_box;

const SCALES: [f64; 5] = [0.1, 1.0, 10.0, 1000.0, 1e6];
const MILLION: (&str, u64) = ("range 10^6", 1_000_000);
const UNBOUNDED: (&str, u64) = ("unbounded", u64::MAX);
/// Draws in a call: enough to make the call's fixed cost negligible.
const DRAWS: usize = 4096;
/// Words of tape in a call: as many as a release takes at once.
const WORDS: usize = 2048;

/// Cuts the count of instructions at each call. On AArch64 valgrind does not see functions return,
/// so a piece cannot be a function.
#[inline(never)]
fn cut() {
    black_box(());
}

fn figure(
    name: &str,
    unit: &str,
    units: usize,
    mut work: impl FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    // The first run is not counted: it includes work done once per process.
    work()?;
    println!("{name}\t{unit}\t{units}");
    cut();
    let result = work();
    cut();
    result
}

fn kernels() -> Result<(), Error> {
    for backend in Backend::available() {
        for (bounds, range) in [UNBOUNDED, MILLION] {
            for scale in SCALES {
                let plan = Plan::two_sided(&Rate::from_scale(scale)?, range)?;
                // Any words will do: the instructions do not depend on them.
                let words = vec![0; DRAWS * plan.words()];
                let kernel = Kernel::on(backend, plan);
                let mut counts = vec![0i64; DRAWS];
                let name = format!("kernel {backend:?}, scale {scale}, {bounds}");
                figure(&name, "draw", DRAWS, || {
                    kernel.add_noise(i64::MIN, black_box(&words), black_box(&mut counts));
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

/// Tape and kernel together, in parts of the size that a release uses.
fn draws() -> Result<(), Error> {
    let mut tape = Tape::from_os()?;
    let mut counts = vec![0i64; DRAWS];
    for scale in SCALES {
        let kernel = Kernel::new(Plan::two_sided(&Rate::from_scale(scale)?, u64::MAX)?);
        let name = format!("tape and kernel, scale {scale}, unbounded");
        figure(&name, "draw", DRAWS, || {
            Draws::new(&kernel, i64::MIN, &mut tape).add_noise(black_box(&mut counts))
        })?;
    }
    Ok(())
}

/// The additional work of a keyed release.
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
    let (kernel, lower) = mechanism.kernel_for::<i64>()?;
    let tape_key = key.tape_key::<i64>(&mechanism, b"");
    let mut counts = vec![0i64; DRAWS];
    figure(
        "tape at addresses and kernel, scale 1",
        "draw",
        DRAWS,
        || {
            AddressedDraws::new(kernel, lower, &tape_key)
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
                black_box(Kernel::new(Plan::two_sided(black_box(&rate), range)?));
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// The release of a single count, including its tape and the wiping of all traces.
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
