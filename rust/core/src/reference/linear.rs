//! The algorithm of the source notes, kept as a reference: *Geometric Mechanism Notes*, algorithm
//! 2.
//!
//! The noise is zero with probability `(1 - a) / (1 + a)`, else a fair sign and a geometric draw,
//! bit by bit, censored at the range. The cost grows with the range, and the mechanism never uses
//! it. It cross-checks the kernel and is a benchmark's baseline.
//!
//! The two probabilities are float64 numbers, rounded down, which errs on the side of privacy. The
//! stopping probability `s <= 1 - a` makes each step of the tail at least `a`. The probability of
//! zero is at most `s / (2 - s)`, so zero is at most `1 / (1 - s) <= 1 / a` times as likely as one.
//! No floor is needed, since the draw is censored, not cut.

use crate::Error;
use crate::draw::bernoulli::Bernoulli;
use crate::draw::ct;
use crate::params::dyadic::{Round, to_f64};
use crate::params::enclosure::exp_neg;
use crate::params::rate::{Rate, ratio};
use num_bigint::BigUint;

/// The linear sampler for one rate and range.
#[derive(Clone, Debug)]
pub struct Linear {
    zero: Bernoulli,
    stop: Bernoulli,
    zero_prob: f64,
    stop_prob: f64,
    range: u64,
}

impl Linear {
    /// The sampler of noise at `rate` for outputs in `0..=range`.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the range is 0, or if the rate is below `2^-50`, where the rounding
    /// of a float64 could reveal more than the noise hides.
    pub fn new(rate: &Rate, range: u64) -> Result<Self, Error> {
        if range == 0 {
            return Err(Error::parameter("range", range, "an integer of at least 1"));
        }
        if &(rate.num() << 50u32) < rate.den() {
            return Err(Error::parameter(
                "rate",
                format!("{}/{}", rate.num(), rate.den()),
                "at least 2**-50",
            ));
        }
        let small = rate.den().bits().saturating_sub(rate.num().bits());
        let bits = small + 128;
        let [_, hi] = exp_neg(rate, bits);
        let one = BigUint::from(1u32) << bits;
        let stop_prob = to_f64(&(&one - hi), &one, Round::Down);
        let Some((num, den)) = ratio(stop_prob) else {
            unreachable!("a probability is a finite float64")
        };
        let zero_prob = to_f64(&num, &((den << 1u32) - &num), Round::Down);
        Ok(Self {
            zero: Bernoulli::new(zero_prob)?,
            stop: Bernoulli::new(stop_prob)?,
            zero_prob,
            stop_prob,
            range,
        })
    }

    /// The probability of no noise.
    #[must_use]
    pub fn zero_prob(&self) -> f64 {
        self.zero_prob
    }

    /// The probability that the geometric draw stops at a step.
    #[must_use]
    pub fn stop_prob(&self) -> f64 {
        self.stop_prob
    }

    /// Words of tape for one draw. The variable-time draw may leave the last ones unread.
    ///
    /// # Errors
    /// [`Error::Parameter`] if there are too many to address.
    pub fn words(&self) -> Result<usize, Error> {
        usize::try_from(self.range)
            .ok()
            .and_then(|trials| trials.checked_mul(self.stop.words()))
            .and_then(|words| words.checked_add(self.zero.words() + 1))
            .ok_or_else(|| Error::parameter("range", self.range, "a range that fits in memory"))
    }

    /// Returns a noisy offset in `0..=range` for an offset in that range; draws all `range` bits.
    ///
    /// # Panics
    /// If `words` is shorter than [`Self::words`].
    #[must_use]
    pub fn draw_constant_time(&self, offset: u64, words: &[u64]) -> u64 {
        let (head, steps) = self.split(words);
        let (mut going, mut magnitude) = (1, 1);
        for step in steps.chunks_exact(self.stop.words()) {
            going &= 1 ^ self.stop.draw(step);
            magnitude = u64::wrapping_add(magnitude, going);
        }
        // No success in `range` draws gives the range itself, as in the notes.
        let magnitude = ct::min(magnitude, self.range);
        self.finish(offset, magnitude, head)
    }

    /// The same draw, stopped at the first success. **Its time reveals the noise.**
    ///
    /// # Panics
    /// If `words` is shorter than [`Self::words`].
    #[must_use]
    pub fn draw_variable_time(&self, offset: u64, words: &[u64]) -> u64 {
        let (head, steps) = self.split(words);
        let going = |step: &&[u64]| self.stop.draw(step) == 0;
        let failures = steps
            .chunks_exact(self.stop.words())
            .take_while(going)
            .count();
        let magnitude = (failures as u64 + 1).min(self.range);
        self.finish(offset, magnitude, head)
    }

    /// The draw with the switch as the notes name it.
    ///
    /// # Panics
    /// If `words` is shorter than [`Self::words`].
    #[must_use]
    pub fn draw(&self, offset: u64, words: &[u64], enforce_constant_time: bool) -> u64 {
        if enforce_constant_time {
            self.draw_constant_time(offset, words)
        } else {
            self.draw_variable_time(offset, words)
        }
    }

    /// Splits the words into those for zero and sign, and those for the steps.
    fn split<'a>(&self, words: &'a [u64]) -> (&'a [u64], &'a [u64]) {
        // No slice holds more words than can be addressed.
        let all = self.words().unwrap_or(usize::MAX);
        words[..all].split_at(self.zero.words() + 1)
    }

    fn finish(&self, offset: u64, magnitude: u64, head: &[u64]) -> u64 {
        let is_zero = ct::mask(self.zero.draw(head));
        let magnitude = magnitude & !is_zero;
        let falls = ct::mask(head[self.zero.words()] & 1);
        // Wrapping operations, so that no overflow check depends on a secret; nothing here can
        // wrap.
        let fall = offset.wrapping_sub(ct::min(magnitude, offset));
        let rise = offset.wrapping_add(ct::min(magnitude, self.range.wrapping_sub(offset)));
        ct::select(falls, fall, rise)
    }
}
