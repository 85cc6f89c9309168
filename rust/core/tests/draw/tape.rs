//! The tape: a known stream for a known key, fresh streams from the system, and reported failures.
#![allow(clippy::unwrap_used)]

use geomdp_core::tape::{RngWords, Tape, Words};
use geomdp_core::{Error, Mechanism, Rate};
use rand_core::{TryCryptoRng, TryRng};

/// AES-256 of the little-endian counters 0 and 1 with the key 00 01 ... 1f, from OpenSSL.
#[test]
fn known_stream() {
    let key = core::array::from_fn(|i| u8::try_from(i).unwrap());
    let mut words = [0; 4];
    Tape::from_key(&key).fill(&mut words).unwrap();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "f29000b62a499fd0a9f39a6add2e7780c7b519846a11411cd6ac07cb03f801a8"
    );
}

#[test]
fn seeking_skips_words() {
    let key = [7; 32];
    let mut all = [0; 100];
    Tape::from_key(&key).fill(&mut all).unwrap();
    for start in [0, 1, 2, 17, 63, 64, 99] {
        let mut tape = Tape::from_key(&key);
        tape.seek(start as u64).unwrap();
        let mut part = vec![0; 100 - start];
        tape.fill(&mut part).unwrap();
        assert_eq!(part, all[start..]);
    }
    assert!(matches!(
        Tape::from_key(&key).seek(1 << 61),
        Err(Error::Overflow { .. })
    ));
}

#[test]
fn tapes_from_the_system_differ() {
    let mut firsts: Vec<u64> = (0..1000)
        .map(|_| {
            let mut word = [0];
            Tape::from_os().unwrap().fill(&mut word).unwrap();
            word[0]
        })
        .collect();
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts.len(), 1000);
}

/// Succeeds for `good` calls with zeros, then fails.
struct Failing {
    good: usize,
}

impl TryRng for Failing {
    type Error = core::fmt::Error;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Err(core::fmt::Error)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Err(core::fmt::Error)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        self.good = self.good.checked_sub(1).ok_or(core::fmt::Error)?;
        bytes.fill(0);
        Ok(())
    }
}

impl TryCryptoRng for Failing {}

#[test]
fn a_failing_generator_is_reported() {
    let failed = Tape::from_rng(&mut Failing { good: 0 });
    assert!(matches!(failed, Err(Error::Entropy(_))));
    assert!(Tape::from_rng(&mut Failing { good: 1 }).is_ok());

    let mechanism = Mechanism::new(Some(Rate::from_scale(2.0).unwrap()), None).unwrap();
    let mut counts = [5i32; 3];
    let mut words = RngWords(Failing { good: 0 });
    assert!(mechanism.release_with(&mut words, &mut counts).is_err());
    assert_eq!(counts, [5; 3]);
}

/// Zero words fall in the floor's slot, and the floor's value is then the lower bound.
#[test]
fn any_generator_can_be_the_source() {
    let mechanism = Mechanism::new(Some(Rate::from_scale(2.0).unwrap()), Some((-4, 100))).unwrap();
    let mut counts = [50i64; 3];
    mechanism
        .release_with(&mut RngWords(Failing { good: 1 }), &mut counts)
        .unwrap();
    assert_eq!(counts, [-4; 3]);
}

#[test]
fn debug_shows_no_secret() {
    assert_eq!(format!("{:?}", Tape::from_key(&[7; 32])), "Tape { .. }");
    assert_eq!(format!("{:?}", RngWords([7, 7])), "RngWords { .. }");
}
