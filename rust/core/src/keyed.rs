//! Noise chosen by a key and a count's ids, for engines that may run a task twice.
//!
//! A count that is drawn for twice is released twice. So where an engine repeats tasks, a release has
//! a [`ReleaseKey`]; the tape of each count is read at an address that follows from this key, the ids of
//! the count, and the count itself. The same task gives the same noise, wherever and whenever it runs;
//! another release, having another key, gives noise of its own. `docs/distributed.md` in the repository
//! says why this is private, and why the count is a part of its address.

use crate::cmac::Cmac;
use crate::kernel::{Backend, Count, LANES, Work, with_widest};
use crate::plan::Plan;
use crate::tape::key_from_os;
use crate::{Error, Mechanism};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes256Enc, Block};
use core::fmt;
use zeroize::{Zeroizing, optimization_barrier};

/// Counts that are drawn for at a time, and ids that are encrypted: few enough for the first cache, and so
/// many that AES has as many blocks as it takes at once.
const PIECE: usize = 8 * LANES;
/// Stands for a null among integers, being none of 64 bits.
const NULL: Pair = [u64::MAX, u64::MAX >> 1];

/// The secret of one release, from which the keys of its ids and its tapes are derived.
pub struct ReleaseKey(Zeroizing<[u8; 32]>);

impl ReleaseKey {
    /// A fresh key from the operating system.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the operating system gives no random bytes.
    pub fn from_os() -> Result<Self, Error> {
        Ok(Self(key_from_os()?))
    }

    /// The key with these bytes, which came from [`Self::secret`] in another process.
    #[must_use]
    pub fn from_secret(secret: &[u8; 32]) -> Self {
        Self(Zeroizing::new(*secret))
    }

    /// The bytes. Whoever has them can take the noise of the release off again.
    #[must_use]
    pub fn secret(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key of the tapes for counts of type `T` in the column of this name, with the noise of this
    /// mechanism. Others have other tapes: noise that two outputs share would tell their difference.
    #[must_use]
    pub fn tape_key<T: Count>(&self, mechanism: &Mechanism, name: &[u8]) -> Zeroizing<[u8; 32]> {
        let (num, den) = mechanism.rate().map_or_else(Default::default, |rate| {
            (rate.num().to_bytes_le(), rate.den().to_bytes_le())
        });
        let (lower, upper) = mechanism.bounds().unwrap_or((T::MIN, T::MAX));
        let limits = [T::MIN, T::MAX, lower, upper].map(i128::to_le_bytes);
        self.derive(b"geomdp tape", &[&num, &den, limits.as_flattened(), name])
    }

    /// The keys of columns of ids: the first for the first column, and so on.
    #[must_use]
    pub fn id_keys(&self, kinds: &[IdKind]) -> IdKeys {
        let columns = kinds.iter().zip(0u32..);
        let keys = columns.map(|(kind, column)| {
            let key = |kind| self.derive(b"geomdp ids", &[kind, &column.to_be_bytes()]);
            match kind {
                // The only ones tell counts apart as they are.
                IdKind::Integers if kinds.len() == 1 => {
                    IdKey::Alone(Zeroizing::new(halves(&key(b"alone"))))
                }
                IdKind::Integers => IdKey::Integers(Aes256Enc::new((&*key(b"integers")).into())),
                IdKind::Bytes => {
                    let [null, _] = halves(&key(b"null"));
                    IdKey::Bytes(Cmac::new(&key(b"bytes")), Zeroizing::new(null))
                }
            }
        });
        IdKeys(keys.collect())
    }

    /// A key for a purpose: the key derivation in counter mode of NIST SP 800-108, with CMAC.
    fn derive(&self, purpose: &[u8], context: &[&[u8]]) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        let cmac = Cmac::new(&self.0);
        for (half, index) in key.chunks_exact_mut(16).zip(1..) {
            let mut message = [&[index], purpose, &[0]].concat();
            for part in context {
                // With their lengths, no two contexts are alike.
                message.extend((part.len() as u64).to_be_bytes());
                message.extend(*part);
            }
            message.extend(256u32.to_be_bytes());
            half.copy_from_slice(&cmac.of(&message));
        }
        key
    }
}

impl fmt::Debug for ReleaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReleaseKey { .. }")
    }
}

/// A block of AES, as two words of which the first comes first in memory, and least significant byte first.
type Pair = [u64; 2];
/// A block for each lane.
type Group = [Pair; LANES];

/// What the ids of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    /// Integers of up to 64 bits, or null.
    Integers,
    /// Strings of bytes, or null.
    Bytes,
}

/// The keys of the columns of ids, each of its own.
pub struct IdKeys(Vec<IdKey>);

enum IdKey {
    /// For the only column: what is added to negative integers, and what stands for nulls.
    Alone(Zeroizing<[Pair; 2]>),
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
        if let Some(IdKey::Alone(masks)) = self.next_key(ids.len())? {
            let sums = self.begin();
            with_widest(Alone { masks, ids, sums });
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
            Some(IdKey::Alone(masks)) => {
                for sum in self.begin() {
                    *sum = next(&mut ids).map_or(masks[1], |id| alone(masks, id));
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
    fn of(&self, counts: usize) -> Result<&[Pair], Error> {
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
        let addresses = addresses.of(counts.len())?.chunks(PIECE);
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
        with_widest(Begin {
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
            with_widest(TakeApart {
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

/// Writes the numbers of integers that are the only ids, none of them null.
struct Alone<'a, T> {
    masks: &'a [Pair; 2],
    ids: &'a [T],
    sums: &'a mut [Pair],
}

impl<T: Count + Into<i128>> Work for Alone<'_, T> {
    #[inline(always)]
    fn run(self) {
        for (sum, &id) in self.sums.iter_mut().zip(self.ids) {
            *sum = alone(self.masks, id);
        }
    }
}

/// Writes the blocks that encryption makes the tape of, one for each count.
struct Begin<'a, T> {
    inputs: &'a mut [Pair],
    addresses: &'a [Pair],
    counts: &'a [T],
}

impl<T: Count> Work for Begin<'_, T> {
    #[inline(always)]
    fn run(self) {
        let counts = self.addresses.iter().zip(self.counts);
        for (block, (address, count)) in self.inputs.iter_mut().zip(counts) {
            *block = [address[0].to_le(), (address[1] ^ count.to_key()).to_le()];
        }
    }
}

/// Writes two words of each tape where the kernel looks for them.
struct TakeApart<'a> {
    blocks: &'a [Group],
    index: usize,
    tape: &'a mut [[u64; LANES]],
    words: usize,
}

impl Work for TakeApart<'_> {
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

/// The next id of an iterator that has not reached the length that it gives.
fn next<T>(ids: &mut impl Iterator<Item = T>) -> T {
    let Some(id) = ids.next() else {
        unreachable!("an iterator of ids ends before its length")
    };
    id
}

/// The number of an integer that is the only id: half a block, and what is secret for a sign, for which that has no
/// room.
#[inline(always)]
fn alone([negative, _]: &[Pair; 2], id: impl Into<i128>) -> Pair {
    let [low, high] = integer(id);
    [low ^ high & negative[0], high & negative[1]]
}

/// The blocks of these bytes.
fn halves(bytes: &[u8; 32]) -> [Pair; 2] {
    bytemuck::cast::<_, [[u8; 16]; 2]>(*bytes).map(pair)
}

/// The block of an integer.
fn integer(id: impl Into<i128>) -> Pair {
    pair(id.into().to_le_bytes())
}

/// The block of these bytes.
fn pair(bytes: [u8; 16]) -> Pair {
    bytemuck::cast::<_, Pair>(bytes).map(u64::from_le)
}

fn encrypt(cipher: &Aes256Enc, blocks: &mut [Pair]) {
    // The same on every processor; nothing to do on little-endian ones.
    let turn = |blocks: &mut [Pair]| {
        blocks
            .as_flattened_mut()
            .iter_mut()
            .for_each(|word| *word = word.to_le())
    };
    turn(blocks);
    cipher.encrypt_blocks(Block::cast_slice_from_core_mut(bytemuck::cast_slice_mut(
        blocks,
    )));
    turn(blocks);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "range end index 4 out of range")]
    fn a_tape_that_is_too_short_is_not_read_again() {
        let take = TakeApart {
            blocks: &[[[1; 2]; LANES]; 2],
            index: 0,
            tape: &mut [[0; LANES]; 3],
            words: 2,
        };
        take.run();
    }
}
