//! Groups of a domain that nobody can list: section 21 of `docs/proofs.md`.
//!
//! Occupied cells get noise whose tail is right relative to each probability, since it is a chain of
//! geometric blocks that goes on as long as each is full. Independently of the data, a Poisson
//! number of points falls on places of the domain; an empty cell that is hit appears with the
//! threshold plus such a geometric number.
//!
//! Each part of the draw has a tape of its own, whose key is derived from that of the release.

use crate::Error;
use crate::draw::Draws;
use crate::draw::bernoulli::Bernoulli;
use crate::draw::ct;
use crate::draw::kernel::Kernel;
use crate::draw::keyed::ReleaseKey;
use crate::draw::lanes::LANES;
use crate::draw::tape::{Tape, Words};
use crate::plan::Plan;
use crate::plan::hazards::Mean;
use zeroize::Zeroizing;

/// The most trials of a block, and the most blocks that are drawn whatever they hold: sums of these
/// do not reach `2^62`.
const MOST_BLOCK: u64 = 1 << 40;
const MOST_BLOCKS: u32 = 1 << 20;
/// The greatest noisy count, which stands for all beyond it.
const GREATEST: u64 = i64::MAX as u64;

/// What a tape is for. No two parts of a release share a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Blocks of the noise of occupied cells.
    Noise,
    /// Whether this noise falls.
    Falls,
    /// How many points a class has, their values, and their places.
    Number(u32),
    Values(u32),
    Places(u32),
}

impl Part {
    /// The key of the tape of this part, and of the block with this index where it has blocks.
    fn key(self, key: &ReleaseKey, block: u32) -> Zeroizing<[u8; 32]> {
        let (name, class): (&[u8], u32) = match self {
            Self::Noise => (b"noise", 0),
            Self::Falls => (b"falls", 0),
            Self::Number(class) => (b"number", class),
            Self::Values(class) => (b"values", class),
            Self::Places(class) => (b"places", class),
        };
        let [class, block] = [class, block].map(u32::to_be_bytes);
        key.derive(b"geomdp groups", &[name, &class, &block])
    }
}

/// Two-sided geometric noise whose tail is right relative to each of its probabilities.
#[derive(Clone, Debug)]
pub struct Noise {
    kernel: Kernel,
    falls: Bernoulli,
    block: u64,
    blocks: u32,
}

impl Noise {
    /// The noise that ends with probability `stop` at each trial, in blocks of at most `block`
    /// trials, and that falls with probability `fall`. So many `blocks` are drawn for each number,
    /// whatever they hold; more only if all of these are full.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless the probabilities lie between 0 and 1, and the others are
    /// positive and at most `2^40` and `2^20`.
    pub fn new(stop: f64, block: u64, fall: f64, blocks: u32) -> Result<Self, Error> {
        for (name, prob) in [("stop", stop), ("fall", fall)] {
            if !(prob > 0.0 && prob < 1.0) {
                return Err(Error::parameter(name, prob, "a number between 0 and 1"));
            }
        }
        let sizes = [
            ("block", block, MOST_BLOCK),
            ("blocks", blocks.into(), MOST_BLOCKS.into()),
        ];
        for (name, size, most) in sizes {
            if size == 0 || size > most {
                let accepted = format!("an integer from 1 to {most}");
                return Err(Error::parameter(name, size, accepted));
            }
        }
        Ok(Self {
            // The last trial stands for all after it: a full block.
            kernel: Kernel::new(Plan::geometric(stop, block + 1)?),
            falls: Bernoulli::new(fall)?,
            block,
            blocks,
        })
    }

    /// The plan of a block. Its draw is one more than the number that the block adds.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.kernel.plan()
    }

    /// Adds the next block of the cells from an index on to the sums of those that go on.
    fn add_block(
        &self,
        key: &[u8; 32],
        index: usize,
        sums: &mut [u64],
        going: &mut [u64],
        trials: &mut [u64],
    ) -> Result<(), Error> {
        trials.fill(0);
        Draws::at(&self.kernel, 0, key, index)?.add_noise(trials)?;
        for ((sum, going), trials) in sums.iter_mut().zip(going).zip(trials) {
            let added = *sum + (*going & (*trials - 1));
            // Beyond the blocks of every number; else it cannot be.
            *sum = ct::select(ct::mask(ct::borrow(GREATEST, added, 0)), GREATEST, added);
            *going &= ct::mask(ct::borrow(self.block, *trials, 0));
        }
        Ok(())
    }

    /// The geometric numbers of the cells from an index on, and which of them go on, as masks: all
    /// blocks that are drawn whatever they hold.
    fn begin(
        &self,
        (key, part): (&ReleaseKey, Part),
        index: usize,
        sums: &mut [u64],
        going: &mut [u64],
    ) -> Result<(), Error> {
        sums.fill(0);
        going.fill(u64::MAX);
        let mut trials = Zeroizing::new(vec![0; sums.len()]);
        for block in 0..self.blocks {
            let key = part.key(key, block);
            self.add_block(&key, index, sums, going, &mut trials)?;
        }
        Ok(())
    }

    /// [`Self::begin`] to the end. Its time tells whether any number has more blocks than those.
    fn geometric(
        &self,
        tape: (&ReleaseKey, Part),
        index: usize,
        sums: &mut [u64],
    ) -> Result<(), Error> {
        let mut going = Zeroizing::new(vec![0; sums.len()]);
        self.begin(tape, index, sums, &mut going)?;
        let mut trials = Zeroizing::new(vec![0; sums.len()]);
        for block in self.blocks.. {
            if going.iter().all(|&going| going == 0) {
                break;
            }
            let key = tape.1.key(tape.0, block);
            self.add_block(&key, index, sums, &mut going, &mut trials)?;
        }
        Ok(())
    }

    /// Adds noise to the counts of the cells from an index on. Those that do not reach their
    /// thresholds, which are positive, are hidden: they become 0, as do counts that are not positive,
    /// since their cells are empty.
    ///
    /// The time does not depend on counts or thresholds, nor on the noise, unless some noise has
    /// more blocks than those that are drawn for each.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the index is not a multiple of [`LANES`]; [`Error::Overflow`] if it is
    /// beyond the tape.
    ///
    /// # Panics
    /// Unless the slices are equally long.
    pub fn reach(
        &self,
        key: &ReleaseKey,
        index: usize,
        counts: &mut [i64],
        thresholds: &[i64],
    ) -> Result<(), Error> {
        let mut sums = Zeroizing::new(vec![0; counts.len()]);
        self.geometric((key, Part::Noise), index, &mut sums)?;
        self.compare(key, index, &sums, counts, thresholds)
    }

    /// The noise of [`Self::reach`] without what follows the blocks of every cell, and which of the
    /// cells go on: for the check of constant time.
    ///
    /// # Errors
    /// Those of [`Self::reach`].
    #[doc(hidden)]
    pub fn first_blocks(
        &self,
        key: &ReleaseKey,
        index: usize,
        sums: &mut [u64],
        going: &mut [u64],
    ) -> Result<(), Error> {
        self.begin((key, Part::Noise), index, sums, going)
    }

    /// [`Self::reach`] with these geometric numbers.
    ///
    /// # Errors
    /// Those of [`Self::reach`].
    ///
    /// # Panics
    /// Unless the slices are equally long.
    #[doc(hidden)]
    pub fn compare(
        &self,
        key: &ReleaseKey,
        index: usize,
        sums: &[u64],
        counts: &mut [i64],
        thresholds: &[i64],
    ) -> Result<(), Error> {
        assert_eq!([sums.len(), thresholds.len()], [counts.len(); 2]);
        let mut tape = Tape::at(&Part::Falls.key(key, 0), index, self.falls.words())?;
        let mut falls = Zeroizing::new(vec![0u8; counts.len()]);
        self.falls.fill(&mut tape, &mut falls)?;
        let cells = counts.iter_mut().zip(thresholds);
        for ((count, threshold), (sum, falls)) in cells.zip(sums.iter().zip(&*falls)) {
            *count = noisy(*count, *threshold, *sum, u64::from(*falls));
        }
        Ok(())
    }

    /// The values of points of a class, above its threshold: geometric numbers.
    fn values(&self, key: &ReleaseKey, class: u32, sums: &mut [u64]) -> Result<(), Error> {
        for (at, part) in (0..).step_by(CHUNK).zip(sums.chunks_mut(CHUNK)) {
            self.geometric((key, Part::Values(class)), at, part)?;
        }
        Ok(())
    }
}

/// Points whose values are drawn at a time.
const CHUNK: usize = 2048;
const _: () = assert!(CHUNK.is_multiple_of(LANES));

/// The noisy count of a cell if it is occupied and reaches its threshold, else 0.
#[inline(always)]
fn noisy(count: i64, threshold: i64, sum: u64, falls: u64) -> i64 {
    let count = count.cast_unsigned();
    let risen = count.wrapping_add(sum);
    let risen = ct::select(ct::mask(ct::barrier(risen >> 63)), GREATEST, risen);
    let fallen = count.wrapping_sub(sum).wrapping_sub(1);
    let noisy = ct::select(ct::mask(falls), fallen, risen);
    // In the order of signed numbers, whose sign bit is flipped.
    let flip = |word: u64| word ^ (1 << 63);
    let below = ct::borrow(flip(noisy), flip(threshold.cast_unsigned()), 0);
    let occupied = ct::borrow(flip(0), flip(count), 0);
    (noisy & ct::mask(occupied & (below ^ 1))).cast_signed()
}

/// The value of each point, and so many words for its place.
pub type Drawn = (Zeroizing<Vec<i64>>, Zeroizing<Vec<u64>>);

/// The points that fall on the places of a class.
#[derive(Clone, Debug)]
pub struct Points {
    class: u32,
    threshold: i64,
    parts: u64,
    mean: Mean,
    /// Those that were needed so far.
    hazards: Vec<Bernoulli>,
}

impl Points {
    /// The points of the class with this index and threshold, which has so many parts, of this mean
    /// each.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless the threshold is positive.
    pub fn new(class: u32, threshold: i64, parts: u64, mean: Mean) -> Result<Self, Error> {
        if threshold < 1 {
            let accepted = "an integer of at least 1";
            return Err(Error::parameter("threshold", threshold, accepted));
        }
        Ok(Self {
            class,
            threshold,
            parts,
            mean,
            hazards: Vec::new(),
        })
    }

    /// The value of each point, and the words of its place. The time tells the number of points, which
    /// does not depend on the data.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the points are more than a tape has places for.
    pub fn draw(&mut self, noise: &Noise, key: &ReleaseKey, words: usize) -> Result<Drawn, Error> {
        let mut tape = Tape::from_key(&Part::Number(self.class).key(key, 0));
        let mut number = 0usize;
        for _ in 0..self.parts {
            number += self.part(&mut tape)?;
        }
        let mut above = Zeroizing::new(vec![0; number]);
        noise.values(key, self.class, &mut above)?;
        let value = |above: &u64| self.threshold.saturating_add_unsigned(*above);
        let values = Zeroizing::new(above.iter().map(value).collect());
        let size = number.checked_mul(words);
        let size = size.ok_or_else(|| Error::overflow("points", number, "fewer points"))?;
        let mut places = Zeroizing::new(vec![0; size]);
        Tape::from_key(&Part::Places(self.class).key(key, 0)).fill(&mut places)?;
        Ok((values, places))
    }

    /// The number of points of a part.
    fn part(&mut self, source: &mut impl Words) -> Result<usize, Error> {
        let mut k = 0;
        loop {
            if self.hazards.len() == k {
                let threshold = self.mean.threshold(k as u64);
                self.hazards.push(Bernoulli::with_threshold(threshold));
            }
            let hazard = &self.hazards[k];
            let mut words = Zeroizing::new(vec![0; hazard.words()]);
            source.fill(&mut words)?;
            if hazard.draw(&words) == 0 {
                return Ok(k);
            }
            k += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;

    const ENDS: [i64; 9] = [i64::MIN, -1, 0, 1, 2, 5, 1 << 62, i64::MAX - 1, i64::MAX];

    #[test]
    fn a_cell_is_hidden_unless_its_noisy_count_reaches_the_threshold() {
        for (count, threshold) in ENDS.iter().flat_map(|&c| ENDS.map(|t| (c, t))) {
            for sum in [0, 1, 4, 1 << 62, GREATEST - 1, GREATEST] {
                let wide = i128::from(count);
                let ends = [
                    (wide + i128::from(sum)).min(i64::MAX.into()),
                    wide - 1 - i128::from(sum),
                ];
                for (falls, expected) in [0, 1].into_iter().zip(ends) {
                    let shown = count > 0 && expected >= threshold.into();
                    let expected = if shown { expected } else { 0 };
                    let found = noisy(count, threshold, sum, falls);
                    assert_eq!(
                        i128::from(found),
                        expected,
                        "{count} {threshold} {sum} {falls}"
                    );
                }
            }
        }
    }

    /// Numbers of cells by the blocks that make them, each drawn from its own tape.
    fn by_blocks(noise: &Noise, key: &ReleaseKey, part: Part, size: usize) -> Vec<u64> {
        let mut sums = vec![0u64; size];
        let mut going = vec![true; size];
        for block in 0.. {
            if !going.contains(&true) {
                break;
            }
            let mut trials = vec![0u64; size];
            let mut draws = Draws::at(&noise.kernel, 0, &part.key(key, block), 0).unwrap();
            draws.add_noise(&mut trials).unwrap();
            for ((sum, going), trials) in sums.iter_mut().zip(&mut going).zip(trials) {
                if *going {
                    *sum += trials - 1;
                    *going = trials - 1 == noise.block;
                }
            }
        }
        sums
    }

    /// However many blocks are drawn whatever they hold, a number is the sum of its blocks up to the
    /// first that is not full; and so in parts.
    #[test]
    fn numbers_are_chains_of_blocks() {
        let key = ReleaseKey::from_secret(&[3; 32]);
        let size = 6 * LANES + 5;
        for (stop, block) in [(0.5, 1), (0.1, 3), (0.6, 2), (1e-2, 50)] {
            let noise = |blocks| Noise::new(stop, block, 0.25, blocks).unwrap();
            for part in [Part::Noise, Part::Values(0), Part::Values(7)] {
                let expected = by_blocks(&noise(1), &key, part, size);
                assert!(expected.iter().any(|&sum| sum > block), "no second block");
                for blocks in [1, 2, 3, 30] {
                    let mut sums = vec![7; size];
                    noise(blocks).geometric((&key, part), 0, &mut sums).unwrap();
                    assert_eq!(sums, expected, "{stop} {block} {blocks}");
                    let rest = &mut sums[2 * LANES..];
                    rest.fill(9);
                    noise(blocks)
                        .geometric((&key, part), 2 * LANES, rest)
                        .unwrap();
                    assert_eq!(sums, expected, "{stop} {block} {blocks}, in parts");
                }
            }
        }
    }

    /// Words at the thresholds of the bits, which alone decide, and one below them.
    struct Near(Vec<Vec<u64>>);

    impl Words for Near {
        fn fill(&mut self, words: &mut [u64]) -> Result<(), Error> {
            words.copy_from_slice(&self.0.remove(0));
            Ok(())
        }
    }

    #[test]
    fn points_are_counted_up_to_the_first_bit_that_is_zero() {
        for (num, bits) in [(1u32, 0u64), (3, 4), (1, 1100)] {
            let mean = Mean::new(num.into(), bits).unwrap();
            let mut points = Points::new(0, 1, 1, mean.clone()).unwrap();
            for number in 0..12 {
                let near = |k| {
                    let words = mean.threshold(k);
                    let value = words
                        .iter()
                        .fold(BigUint::ZERO, |sum, word| (sum << 64u32) + word);
                    let mut below: Vec<_> = (value - 1u32).iter_u64_digits().collect();
                    below.resize(words.len(), 0);
                    below.reverse();
                    if k < number { below } else { words }
                };
                let mut source = Near((0..=number).map(near).collect());
                assert_eq!(points.part(&mut source).unwrap() as u64, number);
                assert!(source.0.is_empty(), "a word is left");
            }
        }
    }

    #[test]
    fn no_two_parts_share_a_tape() {
        let key = ReleaseKey::from_secret(&[5; 32]);
        let parts = [
            Part::Noise,
            Part::Falls,
            Part::Number(0),
            Part::Number(1),
            Part::Values(0),
            Part::Values(1),
            Part::Places(0),
            Part::Places(1),
        ];
        let mut keys: Vec<_> = (parts.iter())
            .flat_map(|part| [0, 1, 256].map(|block| *part.key(&key, block)))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 3 * parts.len());
    }

    #[test]
    fn points_have_values_from_the_threshold_on_and_places_of_their_own() {
        let key = ReleaseKey::from_secret(&[4; 32]);
        let noise = Noise::new(0.3, 5, 0.4, 3).unwrap();
        let draw = |parts, words| {
            let mean = Mean::new(3u32.into(), 2).unwrap();
            let mut points = Points::new(2, i64::MAX - 1, parts, mean).unwrap();
            points.draw(&noise, &key, words).unwrap()
        };
        let (values, places) = draw(4000, 3);
        // More than a piece.
        assert!(
            (CHUNK + 1..4000).contains(&values.len()),
            "{}",
            values.len()
        );
        assert_eq!(places.len(), 3 * values.len());
        assert!(values.iter().all(|&value| value >= i64::MAX - 1));
        assert!(values.contains(&i64::MAX) && values.contains(&(i64::MAX - 1)));
        let mut above = vec![0; values.len()];
        noise
            .geometric((&key, Part::Values(2)), 0, &mut above)
            .unwrap();
        let capped = above
            .iter()
            .map(|&above| (i64::MAX - 1).saturating_add_unsigned(above));
        assert!(capped.eq(values.iter().copied()));
        // More parts have these points first.
        let (more, others) = draw(4500, 3);
        assert_eq!(more[..values.len()], values[..]);
        assert_eq!(others[..places.len()], places[..]);
        assert_eq!(draw(0, 3).0.len(), 0);
    }

    #[test]
    fn bad_numbers_are_errors() {
        for stop in [0.0, 1.0, -0.5, f64::NAN] {
            assert!(Noise::new(stop, 5, 0.4, 1).is_err());
            assert!(Noise::new(0.5, 5, stop, 1).is_err());
        }
        for block in [0, MOST_BLOCK + 1] {
            assert!(Noise::new(0.5, block, 0.4, 1).is_err());
        }
        for blocks in [0, MOST_BLOCKS + 1] {
            assert!(Noise::new(0.5, 5, 0.4, blocks).is_err());
        }
        for threshold in [i64::MIN, 0] {
            let mean = Mean::new(1u32.into(), 2).unwrap();
            assert!(Points::new(0, threshold, 1, mean).is_err());
        }
    }
}
