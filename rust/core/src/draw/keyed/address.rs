//! Addresses: where each count's tape is read, determined by the count's ids.

use super::cmac::Cmac;
use crate::Error;
use crate::draw::block::{CHUNK, Pair, integer, pair};
use crate::draw::cipher::Cipher;
use crate::draw::kernel::Count;
use crate::draw::simd::{Work, with_widest};
use core::fmt;
use zeroize::{Zeroizing, optimization_barrier};

/// The block of a null among integers; no integer of 64 bits has this block.
const NULL: Pair = [u64::MAX, u64::MAX >> 1];

/// The mask that leaves integers as they are.
const PLAIN: Pair = [0, u64::MAX];

/// The type of a column's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    /// Integers of up to 64 bits, or null.
    Integers,
    /// Byte strings, or null.
    Bytes,
}

/// The keys of the columns of ids, one per column.
pub struct IdKeys(pub(super) Vec<IdKey>);

pub(super) enum IdKey {
    /// For an only column: the mask of negative integers, and the block of nulls.
    SoleIntegers(Zeroizing<[Pair; 2]>),
    Integers(Cipher),
    /// The key, and the block of a null.
    Bytes(Cmac, Zeroizing<Pair>),
}

impl IdKeys {
    /// Creates the addresses of `len` counts. Their ids are then added column by column.
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

/// Where each count's tape is read: one number per count, the sum of one number per id.
pub struct Addresses<'a> {
    keys: &'a [IdKey],
    /// Number of columns added so far.
    columns: usize,
    len: usize,
    /// Sums over the columns added so far, if any; at least one entry per count.
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

    /// Starts again for `len` other counts, reusing the memory if it suffices.
    pub fn restart(&mut self, len: usize) {
        if self.sums.len() < len {
            // The old sums are wiped when dropped.
            *self = Self::new(self.keys, len);
        }
        (self.columns, self.len) = (0, len);
    }

    /// Adds a column of integer ids of up to 64 bits.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the number of ids differs from the number of counts, or the column's
    /// key is for other ids.
    pub fn add_integers(&mut self, ids: &[impl Count]) -> Result<(), Error> {
        match self.next_key(ids.len())? {
            Some(IdKey::SoleIntegers(masks)) => {
                let (negative, blocks) = (&masks[0], self.begin());
                with_widest(Integers {
                    negative,
                    ids,
                    blocks,
                });
            }
            Some(IdKey::Integers(cipher)) => {
                let mut rest = ids;
                self.add(cipher, |blocks| {
                    let (ids, after) = rest.split_at(blocks.len());
                    rest = after;
                    let negative = &PLAIN;
                    with_widest(Integers {
                        negative,
                        ids,
                        blocks,
                    });
                });
            }
            _ => return Err(not_integers()),
        }
        Ok(())
    }

    /// Adds a column of integer ids, or nulls. Without nulls it is equivalent to
    /// [`Self::add_integers`].
    ///
    /// # Errors
    /// As in [`Self::add_integers`].
    ///
    /// # Panics
    /// If the iterator is shorter than the length it reports.
    pub fn add_nullable_integers(
        &mut self,
        mut ids: impl ExactSizeIterator<Item = Option<impl Count>>,
    ) -> Result<(), Error> {
        match self.next_key(ids.len())? {
            Some(IdKey::SoleIntegers(masks)) => {
                let [negative, null] = &**masks;
                for sum in self.begin() {
                    *sum = next(&mut ids).map_or(*null, |id| masked(negative, id));
                }
            }
            Some(IdKey::Integers(cipher)) => self.add(cipher, |blocks| {
                for block in blocks {
                    *block = next(&mut ids).map_or(NULL, integer);
                }
            }),
            _ => return Err(not_integers()),
        }
        Ok(())
    }

    /// Adds a column of ids that are byte strings, or nulls.
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
            return Err(Error::parameter("ids", "bytes", "the keys' types"));
        };
        self.add(cmac.cipher(), |blocks| {
            for block in blocks {
                let id = next(&mut ids);
                *block = id.map_or(**null, |id| pair(cmac.before_last(id).to_be_bytes()));
            }
        });
        Ok(())
    }

    /// Returns the next column's key, if there is one.
    fn next_key(&mut self, len: usize) -> Result<Option<&'a IdKey>, Error> {
        if len != self.len {
            let accepted = format!("one for each of {} counts", self.len);
            return Err(Error::parameter("ids", len, accepted));
        }
        Ok(self.keys.get(self.columns))
    }

    /// Counts the next column and returns the sums to add it to.
    fn begin(&mut self) -> &mut [Pair] {
        self.columns += 1;
        &mut self.sums[..self.len]
    }

    /// Encrypts one block per count, piece by piece as `write` supplies them, and adds the results.
    fn add(&mut self, cipher: &Cipher, mut write: impl FnMut(&mut [Pair])) {
        let first = self.columns == 0;
        let mut blocks = Zeroizing::new([[0; 2]; CHUNK]);
        for sums in self.begin().chunks_mut(CHUNK) {
            let blocks = &mut blocks[..sums.len()];
            write(blocks);
            cipher.encrypt(blocks);
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

    /// The address of each count, as two words. Different ids have equal addresses with negligible
    /// probability only.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the number of counts differs, or a column is missing.
    pub fn for_counts(&self, counts: usize) -> Result<&[[u64; 2]], Error> {
        if self.columns < self.keys.len() {
            let accepted = "one column for each key";
            return Err(Error::parameter("ids", "too few", accepted));
        }
        if self.columns == 0 {
            return Err(Error::parameter("ids", "()", "at least one column"));
        }
        if counts != self.len {
            let accepted = format!("one for each of {} ids", self.len);
            return Err(Error::parameter("counts", counts, accepted));
        }
        Ok(&self.sums[..self.len])
    }
}

impl Drop for Addresses<'_> {
    fn drop(&mut self) {
        // Many times faster than wiping word by word.
        self.sums.fill([0; 2]);
        optimization_barrier(&*self.sums);
    }
}

impl fmt::Debug for Addresses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Addresses { .. }")
    }
}

/// Writes the blocks of integer ids without nulls.
struct Integers<'a, T> {
    negative: &'a Pair,
    ids: &'a [T],
    blocks: &'a mut [Pair],
}

impl<T: Count> Work for Integers<'_, T> {
    #[inline(always)]
    fn run(self) {
        for (block, &id) in self.blocks.iter_mut().zip(self.ids) {
            *block = masked(self.negative, id);
        }
    }
}

fn not_integers() -> Error {
    Error::parameter("ids", "integers", "the keys' types")
}

/// Returns the next id of an iterator that has not reached its length.
fn next<T>(ids: &mut impl Iterator<Item = T>) -> T {
    let Some(id) = ids.next() else {
        unreachable!("an iterator of ids is shorter than its length")
    };
    id
}

/// The block of an integer. A sole id has a mask of key material for negative ones, as there is no
/// room for their sign; [`PLAIN`] changes nothing.
#[inline(always)]
fn masked(negative: &Pair, id: impl Into<i128>) -> Pair {
    let [low, high] = integer(id);
    [low ^ high & negative[0], high & negative[1]]
}
