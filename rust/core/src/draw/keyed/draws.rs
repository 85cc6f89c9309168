//! Draws from tapes at given addresses.

use super::address::Addresses;
use super::block::{Group, PIECE, Pair};
use crate::Error;
use crate::draw::kernel::{Backend, Count, LANES};
use crate::draw::simd::{Work, with_widest};
use crate::plan::Plan;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes256Enc, Block};
use core::fmt;
use zeroize::Zeroizing;

/// Draws from tapes at given addresses.
pub struct AddressedDraws<'a, T> {
    plan: &'a Plan,
    lower: T,
    /// For the first block of each tape, the second, and so on.
    ciphers: Vec<Aes256Enc>,
    blocks: Zeroizing<Vec<Group>>,
    words: Zeroizing<Vec<[u64; LANES]>>,
}

impl<'a, T: Count> AddressedDraws<'a, T> {
    /// The draws by this plan, from tapes of a key that [`ReleaseKey::tape_key`] gave.
    #[must_use]
    pub fn new(plan: &'a Plan, lower: T, tape_key: &[u8; 32]) -> Self {
        let keys = Aes256Enc::new(tape_key.into());
        let half = |number: u128| {
            let mut block = Block::from(number.to_le_bytes());
            keys.encrypt_block(&mut block);
            block
        };
        let ciphers = (0..plan.words().div_ceil(2) as u128).map(|index| {
            let key = half(2 * index).concat(half(2 * index + 1));
            Aes256Enc::new(&Zeroizing::new(key))
        });
        Self {
            plan,
            lower,
            ciphers: ciphers.collect(),
            blocks: Zeroizing::default(),
            words: Zeroizing::default(),
        }
    }

    /// Adds noise to the counts that have these addresses.
    ///
    /// # Errors
    /// [`Error::Parameter`] if there are not as many counts as addresses, or these lack ids; the
    /// counts are untouched then.
    pub fn add_noise(&mut self, addresses: &Addresses<'_>, counts: &mut [T]) -> Result<(), Error> {
        let addresses = addresses.for_counts(counts.len())?.chunks(PIECE);
        for (addresses, part) in addresses.zip(counts.chunks_mut(PIECE)) {
            self.fill(addresses, part);
            Backend::best().add_noise(self.plan, self.lower, self.words.as_flattened(), part);
        }
        Ok(())
    }

    /// Writes the words of these counts.
    fn fill(&mut self, addresses: &[Pair], counts: &[T]) {
        let (groups, words) = (counts.len().div_ceil(LANES), self.plan.words());
        if self.blocks.len() < 2 * groups {
            // Fresh ones, since growing ones would leave a copy behind.
            self.blocks = Zeroizing::new(vec![[[0; 2]; LANES]; 2 * groups]);
            self.words = Zeroizing::new(vec![[0; LANES]; words * groups]);
        }
        let (inputs, blocks) = self.blocks[..2 * groups].split_at_mut(groups);
        let inputs = inputs.as_flattened_mut();
        with_widest(Inputs {
            inputs,
            addresses,
            counts,
        });
        for (index, cipher) in self.ciphers.iter().enumerate() {
            let outputs = bytemuck::cast_slice_mut(blocks.as_flattened_mut());
            let done = cipher.encrypt_blocks_b2b(
                Block::cast_slice_from_core(bytemuck::cast_slice(inputs)),
                Block::cast_slice_from_core_mut(outputs),
            );
            assert!(done.is_ok(), "there are as many outputs as inputs");
            with_widest(Interleave {
                blocks,
                index,
                tape: &mut self.words,
                words,
            });
        }
    }
}

impl<T> fmt::Debug for AddressedDraws<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressedDraws { .. }")
    }
}

/// Writes the blocks that encryption makes the tape of, one for each count.
struct Inputs<'a, T> {
    inputs: &'a mut [Pair],
    addresses: &'a [Pair],
    counts: &'a [T],
}

impl<T: Count> Work for Inputs<'_, T> {
    #[inline(always)]
    fn run(self) {
        let counts = self.addresses.iter().zip(self.counts);
        for (block, (address, count)) in self.inputs.iter_mut().zip(counts) {
            *block = [address[0].to_le(), (address[1] ^ count.to_key()).to_le()];
        }
    }
}

/// Writes two words of each tape where the kernel looks for them.
struct Interleave<'a> {
    blocks: &'a [Group],
    index: usize,
    tape: &'a mut [[u64; LANES]],
    words: usize,
}

impl Work for Interleave<'_> {
    #[inline(always)]
    fn run(self) {
        let mut start = 0;
        for blocks in self.blocks {
            // By indices: chunks would divide, and only a failed index may call out of this code.
            let words = &mut self.tape[start..start + self.words];
            start += self.words;
            // In the last block there may be but one.
            let words = words.iter_mut().skip(2 * self.index).take(2);
            for (half, words) in words.enumerate() {
                *words = blocks.map(|block| u64::from_le(block[half]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "range end index 4 out of range")]
    fn a_tape_that_is_too_short_is_not_read_again() {
        let take = Interleave {
            blocks: &[[[1; 2]; LANES]; 2],
            index: 0,
            tape: &mut [[0; LANES]; 3],
            words: 2,
        };
        take.run();
    }
}
