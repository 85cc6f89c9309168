//! Checks constant time on the machine code: `make ct` runs this program under valgrind.
//!
//! Tape and counts are marked secret ("undefined" in valgrind's terms), so that valgrind reports
//! every jump and every address that depends on them. MemorySanitizer does the same for the code
//! that valgrind cannot run. Given a canary's name as its argument, the program instead does
//! something forbidden, which must be reported. Given `trace` and a letter, it draws from that
//! letter's tape, so that the traces of all instructions and addresses can be compared.

#![cfg_attr(feature = "checkmsan", no_main)]

#[path = "common/marks.rs"]
mod marks;

use geomdp_core::bernoulli::Bernoulli;
use geomdp_core::fold::Folded;
use geomdp_core::groups::Noise;
use geomdp_core::keyed::{AddressedDraws, IdKind, ReleaseKey};
use geomdp_core::linear::Linear;
use geomdp_core::plan::{Plan, tiers};
use geomdp_core::tape::{Tape, Words};
use geomdp_core::tiers::Tiers;
use geomdp_core::top::Pick;
use geomdp_core::{Backend, Count, Draws, Error, Kernel, LANES, Mechanism, Rate};
use std::hint::black_box;

/// Marks values secret; fails if no checker is running.
fn hide<T>(values: &[T]) {
    marks::secret(values);
    assert_eq!(
        marks::is_secret(values),
        Some(true),
        "no checker is running: use `make ct`"
    );
}

/// Marks values public. They must have been secret up to here, or the check was void.
fn reveal<T>(values: &[T]) {
    assert_eq!(
        marks::is_secret(values),
        Some(true),
        "the result is not secret"
    );
    marks::public(values);
}

fn plans() -> Result<Vec<Plan>, Error> {
    let mut plans = vec![Plan::geometric(0.1, 1000)?];
    for scale in [0.1, 1.0, 1e3, 1e9, 1e18] {
        for range in [1, 50, 1_000_000, u64::MAX] {
            plans.push(Plan::two_sided(&Rate::from_scale(scale)?, range)?);
            // Steps between tiers, with keep numbers of one to three words.
            #[allow(clippy::float_arithmetic)]
            let fine = [scale * 0.5, scale * 1e-9].map(Rate::from_scale);
            for fine in fine {
                let steps = tiers::plans(&[fine?, Rate::from_scale(scale)?], range);
                plans.extend(steps.into_iter().flatten().skip(1).map(|tier| tier.plan));
            }
        }
    }
    let keeps = |plan: &Plan| plan.keeps().map_or(0, |(_, words)| words);
    assert_eq!(plans.iter().map(keeps).max(), Some(3));
    Ok(plans)
}

fn kernel<T: Count>(kernel: &Kernel) {
    let plan = kernel.plan();
    if T::exact(plan.range().into()).is_none() {
        return;
    }
    let mut words = vec![0x0123_4567_89ab_cdef; 2 * LANES * plan.words()];
    let Some(lower) = T::exact(0) else { return };
    let mut counts = vec![lower; LANES + 3];
    words.rotate_left(1);
    hide(&words);
    hide(&counts);
    kernel.add_noise(lower, &words, &mut counts);
    reveal(&counts);
}

/// Source of these words again and again.
struct Again<'a>(&'a [u64]);

impl Words for Again<'_> {
    fn fill(&mut self, words: &mut [u64]) -> Result<(), Error> {
        words.copy_from_slice(&self.0[..words.len()]);
        Ok(())
    }
}

fn largest<T: Count>(kernel: &Kernel) -> Result<(), Error> {
    let (Some(least), Some(most)) = (T::exact(0), T::exact(9)) else {
        return Ok(());
    };
    let words = vec![0x0123_4567_89ab_cdef; 2048.max(2 * LANES * kernel.plan().words())];
    let (counts, named) = (vec![least; LANES + 3], [2, 17]);
    hide(&words);
    hide(&counts);
    hide(&named);
    let mut pick = Pick::new(kernel, (least, most), Again(&words), &named);
    pick.compare(&counts)?;
    reveal(&[pick.best()]);
    Ok(())
}

/// MemorySanitizer is for the code that valgrind cannot run; it does not support inline assembly.
fn backends() -> Vec<Backend> {
    if cfg!(feature = "checkmsan") {
        let best = Backend::best();
        #[cfg(target_arch = "x86_64")]
        assert!(matches!(best, Backend::Avx512(_)), "nothing to check");
        return vec![best];
    }
    Backend::available().collect()
}

fn everything() -> Result<(), Error> {
    for backend in backends() {
        for plan in plans()? {
            let prepared = Kernel::on(backend, plan);
            kernel::<i8>(&prepared);
            kernel::<u8>(&prepared);
            kernel::<i16>(&prepared);
            kernel::<u16>(&prepared);
            kernel::<i32>(&prepared);
            kernel::<u32>(&prepared);
            kernel::<i64>(&prepared);
            kernel::<u64>(&prepared);
        }
        println!("checked: kernel, {backend:?}");
        let rate = Rate::from_scale(7.0)?;
        let prepared = Kernel::on(backend, Plan::two_sided(&rate, u64::MAX)?);
        largest::<i8>(&prepared)?;
        largest::<u8>(&prepared)?;
        largest::<i16>(&prepared)?;
        largest::<u16>(&prepared)?;
        largest::<i32>(&prepared)?;
        largest::<u32>(&prepared)?;
        largest::<i64>(&prepared)?;
        largest::<u64>(&prepared)?;
        println!("checked: largest sums, {backend:?}");
    }
    // Starts from a secret key, as a release does.
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
    if cfg!(feature = "checkmsan") {
        return Ok(());
    }

    // Values between tiers are secret from the readers of the coarser ones.
    let rates = [1.0, 3.0, 9.0].map(Rate::from_scale);
    let rates = rates.into_iter().collect::<Result<Vec<_>, _>>()?;
    let chain = Tiers::new(&rates, (-10, 90))?;
    let (kernels, lower) = chain.kernels_for()?;
    for len in [1, 5, 1000] {
        let mut counts = vec![4i64; len];
        hide(&counts);
        for kernel in kernels {
            Draws::new(kernel, lower, &mut tape).add_noise(&mut counts)?;
        }
        reveal(&counts);
    }
    println!("checked: tiers");

    // Three names, which are public together.
    for len in [4, 5, 1000] {
        let counts = vec![4i64; len];
        hide(&counts);
        let mut named = Vec::with_capacity(3);
        for _ in 0..3 {
            let mut pick = mechanism.pick(&mut tape, &named)?;
            pick.compare(&counts)?;
            named.push(pick.best().place());
        }
        reveal(&named);
    }
    println!("checked: largest counts");

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

    // The counts are also part of their tapes' addresses; the ids are public.
    let secret = [7; 32];
    hide(&secret);
    let key = ReleaseKey::from_secret(&secret);
    let several = [IdKind::Integers, IdKind::Integers, IdKind::Bytes];
    let cases = [1, 5, 1000].map(|len| [(len, &several[..]), (len, &several[..1])]);
    for &(len, kinds) in cases.as_flattened() {
        let mut counts = vec![4i64; len];
        hide(&counts);
        let integers: Vec<i64> = (-2..).take(len).collect();
        let bytes = [None, Some(&b"id"[..])];
        let keys = key.id_keys(kinds);
        let mut addresses = keys.addresses(len);
        addresses.add_integers(&integers)?;
        if kinds.len() > 1 {
            addresses.add_nullable_integers(integers.iter().copied().map(Some))?;
            addresses.add_bytes((0..len).map(|id| bytes[id % 2]))?;
        }
        let (kernel, lower) = mechanism.kernel_for()?;
        let tape_key = key.tape_key::<i64>(&mechanism, b"name");
        AddressedDraws::new(kernel, lower, &tape_key).add_noise(&addresses, &mut counts)?;
        reveal(&counts);
    }
    println!("checked: release by key and ids");

    // Whether any number has more blocks than are drawn for each is public.
    let groups = Noise::new(0.1, 300, 0.47, 3)?;
    for len in [1, 5, 1000] {
        let (mut counts, thresholds) = (vec![4i64; len], vec![7i64; len]);
        hide(&counts);
        hide(&thresholds);
        let [mut sums, mut going] = [vec![0; len], vec![0; len]];
        groups.first_blocks(&key, 0, &mut sums, &mut going)?;
        groups.compare(&key, 0, &sums, &mut counts, &thresholds)?;
        reveal(&going);
        reveal(&counts);
    }
    println!("checked: groups");

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
    marks::public(&words);
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

/// Operations that are forbidden on a secret.
fn canary(name: &[u8]) -> Result<(), Error> {
    let secret = vec![black_box(3usize)];
    hide(&secret);
    // Read the secret from memory: a copy in a register would not be marked.
    let secret = black_box(&secret)[0];
    match name {
        b"branch" => {
            if secret == 3 {
                println!("a branch was taken");
            }
        }
        b"index" => {
            let table = black_box([1u64; 8]);
            reveal(&[table[secret & 7]]);
        }
        b"early-exit" => {
            let (linear, words) = linear()?;
            hide(&words);
            reveal(&[linear.draw_variable_time(7, &words)]);
        }
        _ => println!("no such canary"),
    }
    Ok(())
}

/// Draws with a tape and counts that depend on the letter.
#[inline(never)]
fn trace(letter: u8) -> Result<(), Error> {
    let mut tape = Tape::from_key(&[letter; 32]);
    let mut counts = vec![0; 2 * LANES + 3];
    for plan in plans()? {
        let mut words = vec![0; 3 * LANES * plan.words()];
        tape.fill(&mut words)?;
        tape.fill(&mut counts)?;
        for backend in Backend::available() {
            Kernel::on(backend, plan.clone()).add_noise(0, &words, &mut counts);
        }
    }
    let mut counts: Vec<i64> = counts
        .iter()
        .map(|&count: &u64| count.cast_signed())
        .collect();
    let mechanism = Mechanism::new(Some(Rate::from_scale(3.0)?), Some((-10, 90)))?;
    mechanism.release_with(&mut tape, &mut counts)?;
    let mut pick = mechanism.pick(&mut tape, &[2, 17])?;
    pick.compare(&counts)?;
    black_box(pick.best().place());
    let folded = Folded::new(Some(Rate::from_scale(30.0)?), (-20, 181))?;
    folded.draws(&mut tape)?.add_noise(&mut counts)?;
    // More than three blocks are drawn with a probability of 2^-137.
    let (groups, key) = (
        Noise::new(0.1, 300, 0.47, 3)?,
        ReleaseKey::from_secret(&[letter; 32]),
    );
    let thresholds: Vec<_> = counts.iter().rev().copied().collect();
    groups.reach(&key, 0, &mut counts, &thresholds)?;
    let bit = Bernoulli::new(0.1)?;
    let mut words = vec![0; bit.words()];
    tape.fill(&mut words)?;
    black_box(bit.draw(&words));
    let (linear, mut words) = linear()?;
    tape.fill(&mut words)?;
    black_box(linear.draw_constant_time(u64::from(letter & 7), &words));
    black_box(counts);
    Ok(())
}

/// Draws in a time that depends on the tape: these traces must differ.
#[inline(never)]
fn uneven_trace(letter: u8) -> Result<(), Error> {
    let (linear, mut words) = linear()?;
    Tape::from_key(&[letter; 32]).fill(&mut words)?;
    black_box(linear.draw_variable_time(7, &words));
    Ok(())
}

/// Prints where the relevant part of the trace begins: the instructions before `main` differ from
/// run to run.
fn from_here(traced: fn(u8) -> Result<(), Error>, letter: u8) -> Result<(), Error> {
    println!("{traced:p}");
    traced(letter)
}

fn run(name: Option<&[u8]>) -> Result<(), Error> {
    match name {
        None => everything(),
        Some([b't', b'r', b'a', b'c', b'e', letter]) => from_here(trace, *letter),
        Some([b'u', b'n', b'e', b'v', b'e', b'n', letter]) => from_here(uneven_trace, *letter),
        Some(name) => canary(name),
    }
}

#[cfg(not(feature = "checkmsan"))]
fn main() -> Result<(), Error> {
    let name = std::env::args().nth(1);
    run(name.as_deref().map(str::as_bytes))
}

/// The standard library's code that leads to `main` and handles arguments is not compiled with
/// MemorySanitizer, which would report it.
#[cfg(feature = "checkmsan")]
#[unsafe(no_mangle)]
extern "C" fn main(count: i32, arguments: *const *const u8) -> i32 {
    let mut name = Vec::new();
    if count > 1 {
        // SAFETY: the caller passes `count` strings, and each ends with a zero.
        unsafe {
            let mut at = *arguments.add(1);
            while *at != 0 {
                name.push(*at);
                at = at.add(1);
            }
        }
    }
    i32::from(run((count > 1).then_some(name.as_slice())).is_err())
}
