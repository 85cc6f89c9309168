//! Times the pieces of a release.

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use geomdp_core::keyed::{AddressedDraws, IdKind, ReleaseKey};
use geomdp_core::plan::Plan;
use geomdp_core::tape::{Tape, Words};
use geomdp_core::{Backend, Draws, Error, Kernel, Mechanism, Rate};
use std::hint::black_box;

type Done = Result<(), Error>;

const SCALES: [f64; 5] = [0.1, 1.0, 10.0, 1000.0, 1e6];
const MILLION: (&str, u64) = ("range 10^6", 1_000_000);
const UNBOUNDED: (&str, u64) = ("unbounded", u64::MAX);
/// Words of tape at a time: as many as a release takes.
const WORDS: usize = 2048;
/// Counts at a time: with their tape they fit the second-level cache.
const COUNTS: usize = 4096;

/// Times the work, after one run that must succeed.
fn time(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: BenchmarkId,
    mut work: impl FnMut() -> Done,
) -> Done {
    work()?;
    group.bench_function(name, |bencher| bencher.iter(&mut work));
    Ok(())
}

fn tape(criterion: &mut Criterion) -> Done {
    let mut tape = Tape::from_os()?;
    let mut words = vec![0; WORDS];
    let mut group = criterion.benchmark_group("tape");
    group.throughput(Throughput::Bytes(8 * WORDS as u64));
    time(&mut group, BenchmarkId::from_parameter("fill"), || {
        tape.fill(black_box(&mut words))
    })
}

fn kernel(criterion: &mut Criterion) -> Done {
    for backend in Backend::available() {
        let mut group = criterion.benchmark_group(format!("kernel {backend:?}"));
        group.throughput(Throughput::Elements(COUNTS as u64));
        for (bounds, range) in [UNBOUNDED, MILLION] {
            for scale in SCALES {
                let plan = Plan::two_sided(&Rate::from_scale(scale)?, range)?;
                let mut words = vec![0; COUNTS * plan.words()];
                let kernel = Kernel::on(backend, plan);
                Tape::from_os()?.fill(&mut words)?;
                let mut counts = vec![0i64; COUNTS];
                time(&mut group, BenchmarkId::new(bounds, scale), || {
                    kernel.add_noise(i64::MIN, black_box(&words), black_box(&mut counts));
                    Ok(())
                })?;
            }
        }
    }
    Ok(())
}

/// Tape and kernel together.
fn draws(criterion: &mut Criterion) -> Done {
    let mut tape = Tape::from_os()?;
    let mut counts = vec![0i64; COUNTS];
    let mut group = criterion.benchmark_group("draw");
    group.throughput(Throughput::Elements(COUNTS as u64));
    for (bounds, range) in [UNBOUNDED, MILLION] {
        for scale in SCALES {
            let kernel = Kernel::new(Plan::two_sided(&Rate::from_scale(scale)?, range)?);
            let mut draws = Draws::new(&kernel, i64::MIN, &mut tape);
            time(&mut group, BenchmarkId::new(bounds, scale), || {
                draws.add_noise(black_box(&mut counts))
            })?;
        }
    }
    Ok(())
}

/// Addresses of integer ids, tapes and kernel together; without ids, what [`draws`] times.
fn keyed(criterion: &mut Criterion) -> Done {
    let key = ReleaseKey::from_os()?;
    let mut tape = Tape::from_os()?;
    let mut counts = vec![0i64; COUNTS];
    let ids: Vec<i64> = (0..).take(COUNTS).collect();
    let mut group = criterion.benchmark_group("keyed, columns of ids");
    group.throughput(Throughput::Elements(COUNTS as u64));
    for scale in SCALES {
        let mechanism = Mechanism::new(Some(Rate::from_scale(scale)?), None)?;
        let (kernel, lower) = mechanism.kernel_for::<i64>()?;
        let mut draws = Draws::new(kernel, lower, &mut tape);
        time(&mut group, BenchmarkId::new("0", scale), || {
            draws.add_noise(black_box(&mut counts))
        })?;
        let tape_key = key.tape_key::<i64>(&mechanism, b"");
        let mut draws = AddressedDraws::new(kernel, lower, &tape_key);
        for columns in [1, 2] {
            let keys = key.id_keys(&vec![IdKind::Integers; columns]);
            let mut addresses = keys.addresses(COUNTS);
            time(
                &mut group,
                BenchmarkId::new(columns.to_string(), scale),
                || {
                    addresses.restart(COUNTS);
                    for _ in 0..columns {
                        addresses.add_integers(black_box(&ids))?;
                    }
                    draws.add_noise(&addresses, black_box(&mut counts))
                },
            )?;
        }
    }
    Ok(())
}

fn plan(criterion: &mut Criterion) -> Done {
    let mut group = criterion.benchmark_group("plan");
    for scale in [1.0, 1e6] {
        let rate = Rate::from_scale(scale)?;
        for (bounds, range) in [("range 1000", 1000), MILLION, UNBOUNDED] {
            time(&mut group, BenchmarkId::new(bounds, scale), || {
                black_box(Plan::two_sided(black_box(&rate), range)?);
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// The release of a single count, including the system call for its key and the wiping of all
/// traces.
fn release(criterion: &mut Criterion) -> Done {
    let mut group = criterion.benchmark_group("release of one count");
    for scale in [1.0, 1e6] {
        let mechanism = Mechanism::new(Some(Rate::from_scale(scale)?), None)?;
        time(&mut group, BenchmarkId::new("unbounded", scale), || {
            mechanism.release(black_box(&mut [0i64]))
        })?;
    }
    Ok(())
}

fn all(criterion: &mut Criterion) {
    let pieces: [fn(&mut Criterion) -> Done; 6] = [tape, kernel, draws, keyed, plan, release];
    for piece in pieces {
        piece(criterion).unwrap();
    }
}

criterion_group!(core, all);
criterion_main!(core);
