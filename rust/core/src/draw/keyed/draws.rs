//! Draws from tapes at given addresses.

use super::address::Addresses;
use crate::Error;
use crate::draw::block::{CHUNK, Group, Pair};
use crate::draw::cipher::Cipher;
use crate::draw::kernel::{Count, Kernel};
use crate::draw::lanes::{LANES, Row};
use crate::draw::simd::{Work, with_widest};
use core::fmt;
use zeroize::Zeroizing;

/// Draws from tapes at given addresses.
pub struct AddressedDraws<'a, T> {
    kernel: &'a Kernel,
    lower: T,
    /// One cipher per block of a tape, in order.
    ciphers: Vec<Cipher>,
    inputs: Zeroizing<Vec<Group>>,
    words: Zeroizing<Vec<Row>>,
}

impl<'a, T: Count> AddressedDraws<'a, T> {
    /// The draws with this kernel's plan, from tapes with a key from [`super::ReleaseKey::tape_key`].
    #[must_use]
    pub fn new(kernel: &'a Kernel, lower: T, tape_key: &[u8; 32]) -> Self {
        let keys = Cipher::new(tape_key);
        let ciphers = (0..kernel.plan().words().div_ceil(2) as u64).map(|index| {
            let mut key = Zeroizing::new([[2 * index, 0], [2 * index + 1, 0]]);
            keys.encrypt(&mut *key);
            key.as_flattened_mut()
                .iter_mut()
                .for_each(|word| *word = word.to_le());
            Cipher::new(bytemuck::cast_ref(&*key))
        });
        Self {
            kernel,
            lower,
            ciphers: ciphers.collect(),
            inputs: Zeroizing::default(),
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
        if self.inputs.len() < groups {
            // Allocate new ones: growing the old ones would leave copies behind.
            self.inputs = Zeroizing::new(vec![[[0; LANES]; 2]; groups]);
            self.words = Zeroizing::new(vec![[0; LANES]; words * groups]);
        }
        let inputs = &mut self.inputs[..groups];
        with_widest(Inputs {
            inputs,
            addresses,
            counts,
        });
        let tapes = &mut self.words[..words * groups];
        for (cipher, at) in self.ciphers.iter().zip((0..).step_by(2)) {
            cipher.encrypt_to(&self.inputs[..groups], tapes, words, at);
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
    inputs: &'a mut [Group],
    addresses: &'a [Pair],
    counts: &'a [T],
}

impl<T: Count> Work for Inputs<'_, T> {
    #[inline(always)]
    fn run(self) {
        let counts = self.counts.chunks(LANES).zip(self.addresses.chunks(LANES));
        for ([first, second], (counts, addresses)) in self.inputs.iter_mut().zip(counts) {
            let words = first.iter_mut().zip(second);
            for (words, (address, count)) in words.zip(addresses.iter().zip(counts)) {
                (*words.0, *words.1) = (address[0], address[1] ^ count.to_key());
            }
        }
    }
}
