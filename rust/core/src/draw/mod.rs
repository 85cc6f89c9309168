//! The draw: from a plan, a tape and counts to noisy counts.

pub mod bernoulli;
pub mod ct;
pub mod fold;
pub mod kernel;
pub mod keyed;
mod simd;
pub mod tape;

use crate::Error;
use crate::plan::Plan;
use kernel::{Backend, Count, LANES};
use tape::{Tape, Words};
use zeroize::Zeroizing;

/// Tape is drawn into a buffer of this many words, small enough for the first cache.
const BUFFER: usize = 2048;

/// Tape to kernel: noise for `counts`, in `lower..=lower + plan.range()`.
///
/// # Errors
/// What the source reports; counts may then be noised in part.
pub fn draw<T: Count>(
    plan: &Plan,
    lower: T,
    source: &mut impl Words,
    counts: &mut [T],
) -> Result<(), Error> {
    Draws::new(plan, lower, source).add_noise(counts)
}

/// [`draw`], for counts that come in parts.
pub struct Draws<'a, T, W> {
    plan: &'a Plan,
    lower: T,
    source: W,
    /// Tape on its way to the kernel.
    buffer: Zeroizing<Vec<u64>>,
}

impl<'a, T: Count, W: Words> Draws<'a, T, W> {
    /// Draws by this plan, from this source.
    pub fn new(plan: &'a Plan, lower: T, source: W) -> Self {
        Self {
            plan,
            lower,
            source,
            buffer: Zeroizing::default(),
        }
    }

    /// Adds noise to the next part of the counts. Every part but the last should be a multiple of
    /// [`LANES`] long, for the noise to be that of the whole.
    ///
    /// # Errors
    /// What the source reports; counts may then be noised in part.
    pub fn add_noise(&mut self, counts: &mut [T]) -> Result<(), Error> {
        let backend = Backend::best();
        let stride = self.plan.words() * LANES;
        let blocks = (BUFFER / stride.max(1)).max(1);
        let need = blocks.min(counts.len().div_ceil(LANES)) * stride;
        if self.buffer.len() < need {
            // A fresh buffer, since a growing one would leave a copy behind.
            self.buffer = Zeroizing::new(vec![0; need]);
        }
        for part in counts.chunks_mut(blocks * LANES) {
            let words = &mut self.buffer[..part.len().div_ceil(LANES) * stride];
            self.source.fill(words)?;
            backend.add_noise(self.plan, self.lower, words, part);
        }
        Ok(())
    }
}

impl<'a, T: Count> Draws<'a, T, Tape> {
    /// The draws for the counts from this index on, a multiple of [`LANES`], of all that have their
    /// noise from the tape of this key: however the counts are split, each one's noise is the same.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the index is within a block; [`Error::Overflow`] if it is beyond the tape.
    pub fn at(plan: &'a Plan, lower: T, key: &[u8; 32], index: usize) -> Result<Self, Error> {
        if !index.is_multiple_of(LANES) {
            let accepted = format!("a multiple of {LANES}");
            return Err(Error::parameter("index", index, accepted));
        }
        let word = (index as u64).checked_mul(plan.words() as u64);
        let mut tape = Tape::from_key(key);
        tape.seek(word.ok_or_else(|| Error::overflow("index", index, "one on the tape"))?)?;
        Ok(Self::new(plan, lower, tape))
    }
}

impl<T, W> core::fmt::Debug for Draws<'_, T, W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Draws { .. }")
    }
}
