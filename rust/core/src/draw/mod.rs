//! The draw: from a plan, a tape and counts to noisy counts.

#[cfg(target_arch = "x86_64")]
mod aes_blocks;
pub mod bernoulli;
mod block;
mod cipher;
mod counter_mode;
pub(crate) mod ct;
pub mod fold;
pub mod groups;
pub mod kernel;
pub mod keyed;
pub mod lanes;
mod simd;
pub mod tape;
pub mod tiers;
pub mod top;
pub mod wipe;

use crate::Error;
use kernel::{Count, Kernel};
use lanes::LANES;
pub use simd::features;
use tape::{Tape, Words};
use zeroize::Zeroizing;

/// Words in the tape's buffer, which fits the first-level cache.
const CHUNK_WORDS: usize = 2048;

/// Adds noise to counts that may arrive in parts, with words from a source.
pub struct Draws<'a, T, W> {
    kernel: &'a Kernel,
    lower: T,
    source: W,
    /// Tape words for the kernel.
    buffer: Zeroizing<Vec<u64>>,
}

impl<'a, T: Count, W: Words> Draws<'a, T, W> {
    /// Draws with this kernel's plan from this source. Outputs lie in `lower..=lower +
    /// plan.range()`.
    pub fn new(kernel: &'a Kernel, lower: T, source: W) -> Self {
        Self {
            kernel,
            lower,
            source,
            buffer: Zeroizing::default(),
        }
    }

    /// Adds noise to the next part of the counts. For the noise to equal that of a single call, the
    /// length of every part except the last should be a multiple of [`LANES`].
    ///
    /// # Errors
    /// Any error of the source. Some counts may have noise by then.
    pub fn add_noise(&mut self, counts: &mut [T]) -> Result<(), Error> {
        let stride = self.kernel.plan().words() * LANES;
        let blocks = (CHUNK_WORDS / stride.max(1)).max(1);
        // Words beside draws need room for two blocks.
        let need = blocks.min(counts.len().div_ceil(LANES)).max(2) * stride;
        let buffer = room(&mut self.buffer, need);
        #[cfg(target_arch = "x86_64")]
        if let Some(tape) = self.source.counter() {
            let rows = buffer.as_chunks_mut().0;
            if self.kernel.add_noise_from(self.lower, tape, rows, counts) {
                return Ok(());
            }
        }
        for part in counts.chunks_mut(blocks * LANES) {
            let words = &mut buffer[..part.len().div_ceil(LANES) * stride];
            self.source.fill(words)?;
            self.kernel.add_noise(self.lower, words, part);
        }
        Ok(())
    }
}

/// So many words of the buffer, from the start of a cache line.
fn room(buffer: &mut Zeroizing<Vec<u64>>, words: usize) -> &mut [u64] {
    let line = 8;
    if buffer.len() < words + line {
        // Allocate a new buffer: growing the old one would leave a copy behind.
        *buffer = Zeroizing::new(vec![0; words + line]);
    }
    let start = buffer.as_ptr().align_offset(8 * line).min(line);
    &mut buffer[start..start + words]
}

impl<'a, T: Count> Draws<'a, T, Tape> {
    /// The draws from this index on, for counts with noise from the tape of this key. The index
    /// must be a multiple of [`LANES`]. Each count's noise is the same however the counts are
    /// split.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the index is not a multiple of [`LANES`]; [`Error::Overflow`] if it
    /// is beyond the tape.
    pub fn at(kernel: &'a Kernel, lower: T, key: &[u8; 32], index: usize) -> Result<Self, Error> {
        if !index.is_multiple_of(LANES) {
            let accepted = format!("a multiple of {LANES}");
            return Err(Error::parameter("index", index, accepted));
        }
        let tape = Tape::at(key, index, kernel.plan().words())?;
        Ok(Self::new(kernel, lower, tape))
    }
}

impl<T, W> core::fmt::Debug for Draws<'_, T, W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Draws { .. }")
    }
}
