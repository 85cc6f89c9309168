//! Draws from tapes at given addresses.

use super::address::Addresses;
use super::block::{CHUNK, Group, Pair};
use crate::Error;
use crate::draw::kernel::{Count, Kernel, LANES};
use crate::draw::simd::{Work, with_widest};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes256Enc, Block};
use core::fmt;
use zeroize::Zeroizing;

/// Draws from tapes at given addresses.
pub struct AddressedDraws<'a, T> {
    kernel: &'a Kernel,
    lower: T,
    /// One cipher per block of a tape, in order.
    ciphers: Vec<Aes256Enc>,
    blocks: Zeroizing<Vec<Group>>,
    words: Zeroizing<Vec<[u64; LANES]>>,
}

impl<'a, T: Count> AddressedDraws<'a, T> {
    /// The draws with this kernel's plan, from tapes with a key from [`super::ReleaseKey::tape_key`].
    #[must_use]
    pub fn new(kernel: &'a Kernel, lower: T, tape_key: &[u8; 32]) -> Self {
        let keys = Aes256Enc::new(tape_key.into());
        let half = |number: u128| {
            let mut block = Block::from(number.to_le_bytes());
            keys.encrypt_block(&mut block);
            block
        };
        let ciphers = (0..kernel.plan().words().div_ceil(2) as u128).map(|index| {
            let key = half(2 * index).concat(half(2 * index + 1));
            Aes256Enc::new(&Zeroizing::new(key))
        });
        Self {
            kernel,
            lower,
            ciphers: ciphers.collect(),
            blocks: Zeroizing::default(),
            words: Zeroizing::default(),
        }
    }

    /// Adds noise to the counts with these addresses.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the number of counts differs from the number of addresses, or if the
    /// addresses lack ids. On error the counts are unchanged.
    pub fn add_noise(&mut self, addresses: &Addresses<'_>, counts: &mut [T]) -> Result<(), Error> {
        let addresses = addresses.for_counts(counts.len())?.chunks(CHUNK);
        for (addresses, part) in addresses.zip(counts.chunks_mut(CHUNK)) {
            self.fill(addresses, part);
            let words = self.words.as_flattened();
            self.kernel.add_noise(self.lower, words, part);
        }
        Ok(())
    }

    /// Writes the tape words of these counts.
    fn fill(&mut self, addresses: &[Pair], counts: &[T]) {
        let (groups, words) = (counts.len().div_ceil(LANES), self.kernel.plan().words());
        if self.blocks.len() < 2 * groups {
            // Allocate new ones: growing the old ones would leave copies behind.
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

/// Writes one input block per count; encryption turns it into the count's tape.
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

/// Writes two words of each tape to their places in the kernel's layout.
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
            // Indexed, since `chunks` would divide, and the only call out of this code may be a
            // failed index.
            let words = &mut self.tape[start..start + self.words];
            start += self.words;
            // The last block may supply only one word.
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
    fn a_short_tape_panics() {
        let take = Interleave {
            blocks: &[[[1; 2]; LANES]; 2],
            index: 0,
            tape: &mut [[0; LANES]; 3],
            words: 2,
        };
        take.run();
    }
}
