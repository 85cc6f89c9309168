//! Addresses: where the tape of each count is read, by the count's ids.

use super::block::{PIECE, Pair, encrypt, integer, pair};
use super::cmac::Cmac;
use crate::Error;
use crate::draw::kernel::Count;
use crate::draw::simd::{Work, with_widest};
use aes::Aes256Enc;
use core::fmt;
use zeroize::{Zeroizing, optimization_barrier};

/// Stands for a null among integers; no integer of 64 bits has this block.
const NULL: Pair = [u64::MAX, u64::MAX >> 1];

/// What the ids of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    /// Integers of up to 64 bits, or null.
    Integers,
    /// Strings of bytes, or null.
    Bytes,
}

/// The keys of the columns of ids, each of its own.
pub struct IdKeys(pub(super) Vec<IdKey>);

pub(super) enum IdKey {
    /// For the only column: what is added to negative integers, and what stands for nulls.
    SoleIntegers(Zeroizing<[Pair; 2]>),
    Integers(Aes256Enc),
    /// And the block of a null.
    Bytes(Cmac, Zeroizing<Pair>),
}

impl IdKeys {
    /// The addresses of so many counts, whose ids are still to be added, column by column.
    #[must_use]
    pub fn addresses(&self, len: usize) -> Addresses<'_> {
        Addresses::new(&self.0, len)
    }
}

impl fmt::Debug for IdKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdKeys { .. }")
    }
}

/// Where the tape of each count is read: one number per count, the sum of one per id.
pub struct Addresses<'a> {
    keys: &'a [IdKey],
    /// How many have been added.
    columns: usize,
    len: usize,
    /// Of the columns that have been added, if any; at least as many as counts.
    sums: Vec<Pair>,
}

impl<'a> Addresses<'a> {
    fn new(keys: &'a [IdKey], len: usize) -> Self {
        Self {
            keys,
            columns: 0,
            len,
            sums: vec![[0; 2]; len],
        }
    }

    /// Begins again, for so many other counts; in the same memory, if they are not more.
    pub fn restart(&mut self, len: usize) {
        if self.sums.len() < len {
            // The old ones are wiped as they are dropped.
            *self = Self::new(self.keys, len);
        }
        (self.columns, self.len) = (0, len);
    }

    /// Adds a column of ids that are integers of up to 64 bits.
    ///
    /// # Errors
    /// [`Error::Parameter`] if there are not as many as counts, or the keys are for others.
    pub fn add_integers(&mut self, ids: &[impl Count + Into<i128>]) -> Result<(), Error> {
        if let Some(IdKey::SoleIntegers(masks)) = self.next_key(ids.len())? {
            let sums = self.begin();
            with_widest(SoleIntegers { masks, ids, sums });
            return Ok(());
        }
        self.add_nullable_integers(ids.iter().copied().map(Some))
    }

    /// Adds a column of ids that are such integers, or null; one without nulls is as in
    /// [`Self::add_integers`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// If the iterator ends before the length that it gives.
    pub fn add_nullable_integers(
        &mut self,
        mut ids: impl ExactSizeIterator<Item = Option<impl Count + Into<i128>>>,
    ) -> Result<(), Error> {
        match self.next_key(ids.len())? {
            Some(IdKey::SoleIntegers(masks)) => {
                for sum in self.begin() {
                    *sum = next(&mut ids).map_or(masks[1], |id| sole_integer(masks, id));
                }
            }
            Some(IdKey::Integers(cipher)) => self.add(cipher, |blocks| {
                for block in blocks {
                    *block = next(&mut ids).map_or(NULL, integer);
                }
            }),
            _ => return Err(Error::parameter("ids", "integers", "as the keys are for")),
        }
        Ok(())
    }

    /// Adds a column of ids that are strings of bytes.
    ///
    /// # Errors
    /// As in [`Self::add_integers`].
    ///
    /// # Panics
    /// As in [`Self::add_nullable_integers`].
    pub fn add_bytes<'b>(
        &mut self,
        mut ids: impl ExactSizeIterator<Item = Option<&'b [u8]>>,
    ) -> Result<(), Error> {
        let Some(IdKey::Bytes(cmac, null)) = self.next_key(ids.len())? else {
            return Err(Error::parameter("ids", "bytes", "as the keys are for"));
        };
        self.add(cmac.cipher(), |blocks| {
            for block in blocks {
                let id = next(&mut ids);
                *block = id.map_or(**null, |id| pair(cmac.before_last(id).to_be_bytes()));
            }
        });
        Ok(())
    }

    /// The key of the next column, if there is one.
    fn next_key(&mut self, len: usize) -> Result<Option<&'a IdKey>, Error> {
        if len != self.len {
            let accepted = format!("as many as counts, {}", self.len);
            return Err(Error::parameter("ids", len, accepted));
        }
        Ok(self.keys.get(self.columns))
    }

    /// The next column is here, for these.
    fn begin(&mut self) -> &mut [Pair] {
        self.columns += 1;
        &mut self.sums[..self.len]
    }

    /// Encrypts a block for each count, piece by piece as they are written, and adds them.
    fn add(&mut self, cipher: &Aes256Enc, mut write: impl FnMut(&mut [Pair])) {
        let first = self.columns == 0;
        let mut blocks = Zeroizing::new([[0; 2]; PIECE]);
        for sums in self.begin().chunks_mut(PIECE) {
            let blocks = &mut blocks[..sums.len()];
            write(blocks);
            encrypt(cipher, blocks);
            if first {
                sums.copy_from_slice(blocks);
                continue;
            }
            let words = sums.as_flattened_mut().iter_mut();
            for (word, other) in words.zip(blocks.as_flattened()) {
                *word ^= other;
            }
        }
    }

    /// One for each count, if there are these and all columns have been added.
    pub(super) fn for_counts(&self, counts: usize) -> Result<&[Pair], Error> {
        if self.columns < self.keys.len() {
            let accepted = "as many columns as there are keys";
            return Err(Error::parameter("ids", "too few", accepted));
        }
        if self.columns == 0 {
            return Err(Error::parameter("ids", "()", "one column at least"));
        }
        if counts != self.len {
            let accepted = format!("as many as ids, {}", self.len);
            return Err(Error::parameter("counts", counts, accepted));
        }
        Ok(&self.sums[..self.len])
    }
}

impl Drop for Addresses<'_> {
    fn drop(&mut self) {
        // Many times sooner than the words one by one.
        self.sums.fill([0; 2]);
        optimization_barrier(&*self.sums);
    }
}

impl fmt::Debug for Addresses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Addresses { .. }")
    }
}

/// Writes the numbers of integers that are the only ids, none of them null.
struct SoleIntegers<'a, T> {
    masks: &'a [Pair; 2],
    ids: &'a [T],
    sums: &'a mut [Pair],
}

impl<T: Count + Into<i128>> Work for SoleIntegers<'_, T> {
    #[inline(always)]
    fn run(self) {
        for (sum, &id) in self.sums.iter_mut().zip(self.ids) {
            *sum = sole_integer(self.masks, id);
        }
    }
}

/// The next id of an iterator that has not reached the length that it gives.
fn next<T>(ids: &mut impl Iterator<Item = T>) -> T {
    let Some(id) = ids.next() else {
        unreachable!("an iterator of ids ends before its length")
    };
    id
}

/// Encodes an integer that is the only id; negative ones are masked with key material, as a block
/// has no room for their sign.
#[inline(always)]
fn sole_integer([negative, _]: &[Pair; 2], id: impl Into<i128>) -> Pair {
    let [low, high] = integer(id);
    [low ^ high & negative[0], high & negative[1]]
}
