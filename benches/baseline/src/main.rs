//! Prints the cost of a draw by digits, as in the mechanism, and bit by bit, as in the source
//! notes.
#![allow(clippy::float_arithmetic)]

use geomdp_core::linear::Linear;
use geomdp_core::plan::Plan;
use geomdp_core::tape::{Tape, Words};
use geomdp_core::{Draws, Error, Kernel, Rate};
use std::hint::black_box;
use std::time::Instant;

const REPETITIONS: u32 = 15;

/// The median time of a call divided by the number of counts, in nanoseconds.
fn median(counts: u32, mut call: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut times = Vec::new();
    for _ in 0..REPETITIONS {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2] * 1e9 / f64::from(counts))
}

fn linear(linear: &Linear, enforce_constant_time: bool, counts: u32) -> Result<f64, Error> {
    let mut tape = Tape::from_os()?;
    let mut words = vec![0; linear.words()?];
    median(counts, || {
        for _ in 0..counts {
            tape.fill(&mut words)?;
            black_box(linear.draw(5, &words, enforce_constant_time));
        }
        Ok(())
    })
}

fn main() -> Result<(), Error> {
    println!("nanoseconds per count, in Rust (median of {REPETITIONS})\n");
    println!("| scale | range | by digits | linear, constant time | linear, variable time |");
    println!("|---|---|---|---|---|");
    for scale in [1.0, 10.0, 1000.0] {
        for range in [10, 1000, 100_000] {
            let rate = Rate::from_scale(scale)?;
            let kernel = Kernel::new(Plan::two_sided(&rate, range)?);
            let mut noisy = vec![5u64; 100_000];
            let digits = median(100_000, || {
                Draws::new(&kernel, 0, Tape::from_os()?).add_noise(&mut noisy)
            })?;
            let slow = Linear::new(&rate, range)?;
            let counts = u32::try_from(1_000_000 / range).unwrap_or(1).min(1000);
            let constant = linear(&slow, true, counts)?;
            let variable = linear(&slow, false, counts)?;
            println!("| {scale} | {range} | {digits:.1} | {constant:.0} | {variable:.0} |");
        }
    }
    Ok(())
}
