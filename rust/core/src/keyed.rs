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
use core::{fmt, slice};
use zeroize::{Zeroizing, optimization_barrier};

/// Counts that are drawn for at a time, and ids that are encrypted: few enough for the first cache, and so
/// many that AES has as many blocks as it takes at once.
const PIECE: usize = 8 * LANES;
/// The part of an address, in its first half, that counts the blocks of one draw.
const INDEX: u64 = 0xff;
/// Stands for a null among integers, being none of 64 bits.
const NULL: i128 = i128::MAX;

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
                IdKind::Integers => IdKey::Integers(Aes256Enc::new((&*key(b"integers")).into())),
                IdKind::Bytes => IdKey::Bytes(Cmac::new(&key(b"bytes"))),
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
    Integers(Aes256Enc),
    Bytes(Cmac),
}

impl IdKeys {
    /// The addresses of so many counts, whose ids are still to be added, column by column.
    #[must_use]
    pub fn addresses(&self, len: usize) -> Addresses<'_> {
        Addresses {
            keys: self.0.iter(),
            len,
            sums: Vec::new(),
        }
    }
}

impl fmt::Debug for IdKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdKeys { .. }")
    }
}

/// Where the tape of each count begins: one secret number per count, the sum of one per id.
pub struct Addresses<'a> {
    /// Those of the columns that are still to come.
    keys: slice::Iter<'a, IdKey>,
    len: usize,
    /// None before the first column.
    sums: Vec<Pair>,
}

impl<'a> Addresses<'a> {
    /// Adds a column of ids that are integers of up to 64 bits.
    ///
    /// # Errors
    /// [`Error::Parameter`] if there are not as many as counts, or the keys are for others.
    pub fn add_integers(&mut self, ids: &[impl Copy + Into<i128>]) -> Result<(), Error> {
        let mut parts = ids.chunks(PIECE);
        self.add_integer_blocks(ids.len(), |blocks| {
            let ids = parts.next().unwrap_or_default();
            for (block, &id) in blocks.iter_mut().zip(ids) {
                *block = integer(id.into());
            }
        })
    }

    /// Adds a column of ids that are such integers, or null; one without nulls is as in
    /// [`Self::add_integers`].
    ///
    /// # Errors
    /// As there.
    pub fn add_nullable_integers(
        &mut self,
        mut ids: impl ExactSizeIterator<Item = Option<i128>>,
    ) -> Result<(), Error> {
        self.add_integer_blocks(ids.len(), |blocks| {
            for (block, id) in blocks.iter_mut().zip(&mut ids) {
                *block = integer(id.unwrap_or(NULL));
            }
        })
    }

    fn add_integer_blocks(
        &mut self,
        len: usize,
        write: impl FnMut(&mut [Pair]),
    ) -> Result<(), Error> {
        let Some(IdKey::Integers(cipher)) = self.next_key(len)? else {
            return Err(Error::parameter("ids", "integers", "as the keys are for"));
        };
        self.add(cipher, write);
        Ok(())
    }

    /// Adds a column of ids that are strings of bytes.
    ///
    /// # Errors
    /// As in [`Self::add_integers`].
    pub fn add_bytes<'b>(
        &mut self,
        mut ids: impl ExactSizeIterator<Item = Option<&'b [u8]>>,
    ) -> Result<(), Error> {
        let Some(IdKey::Bytes(cmac)) = self.next_key(ids.len())? else {
            return Err(Error::parameter("ids", "bytes", "as the keys are for"));
        };
        let mut message = Vec::new();
        self.add(cmac.cipher(), |blocks| {
            for (block, id) in blocks.iter_mut().zip(&mut ids) {
                message.clear();
                // Nothing at all is the null; an empty string has a byte before it.
                if let Some(id) = id {
                    message.push(1);
                    message.extend(id);
                }
                *block = pair(cmac.before_last(&message).to_be_bytes());
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
        Ok(self.keys.as_slice().first())
    }

    /// Encrypts a block for each count, piece by piece as they are written, and adds them. That was the
    /// column.
    fn add(&mut self, cipher: &Aes256Enc, mut write: impl FnMut(&mut [Pair])) {
        self.keys.next();
        if self.sums.is_empty() {
            // All at once, since growing would leave a copy behind.
            self.sums.reserve_exact(self.len);
        }
        let mut blocks = Zeroizing::new([[0; 2]; PIECE]);
        for start in (0..self.len).step_by(PIECE) {
            let blocks = &mut blocks[..PIECE.min(self.len - start)];
            write(blocks);
            encrypt(cipher, blocks);
            match self.sums.get_mut(start..start + blocks.len()) {
                // In the first column.
                None => self.sums.extend(&*blocks),
                Some(sums) => {
                    let words = sums.as_flattened_mut().iter_mut();
                    for (word, other) in words.zip(blocks.as_flattened()) {
                        *word ^= other;
                    }
                }
            }
        }
    }

    /// One for each count, if there are these and all columns have been added.
    fn of(&self, counts: usize) -> Result<&[Pair], Error> {
        if !self.keys.as_slice().is_empty() {
            let accepted = "as many columns as there are keys";
            return Err(Error::parameter("ids", "too few", accepted));
        }
        if self.sums.len() != self.len {
            return Err(Error::parameter("ids", "()", "one column at least"));
        }
        if counts != self.len {
            let accepted = format!("as many as ids, {}", self.len);
            return Err(Error::parameter("counts", counts, accepted));
        }
        Ok(&self.sums)
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
    cipher: Aes256Enc,
    blocks: Zeroizing<Vec<Group>>,
    words: Zeroizing<Vec<[u64; LANES]>>,
}

impl<'a, T: Count> AddressedDraws<'a, T> {
    /// The draws by this plan, from tapes of a key that [`ReleaseKey::tape_key`] gave.
    #[must_use]
    pub fn new(plan: &'a Plan, lower: T, tape_key: &[u8; 32]) -> Self {
        Self {
            plan,
            lower,
            cipher: Aes256Enc::new(tape_key.into()),
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
        let pairs = self.plan.words().div_ceil(2);
        // Less than half of that: each of at most 64 digits has at most 3 words, and one is shared.
        assert!(pairs as u64 <= INDEX, "no plan has so many words");
        for (addresses, part) in addresses.zip(counts.chunks_mut(PIECE)) {
            self.fill(pairs, addresses, part);
            Backend::best().add_noise(self.plan, self.lower, self.words.as_flattened(), part);
        }
        Ok(())
    }

    /// Writes the words of these counts.
    fn fill(&mut self, pairs: usize, addresses: &[Pair], counts: &[T]) {
        let (groups, words) = (counts.len().div_ceil(LANES), self.plan.words());
        if self.blocks.len() < pairs * groups {
            // Fresh ones, since growing ones would leave a copy behind.
            self.blocks = Zeroizing::new(vec![[[0; 2]; LANES]; pairs * groups]);
            self.words = Zeroizing::new(vec![[0; LANES]; words * groups]);
        }
        let blocks = &mut self.blocks[..pairs * groups];
        with_widest(Begin {
            blocks,
            groups,
            addresses,
            counts,
        });
        encrypt(&self.cipher, blocks.as_flattened_mut());
        with_widest(TakeApart {
            blocks,
            groups,
            tape: &mut self.words,
            words,
        });
    }
}

impl<T> fmt::Debug for AddressedDraws<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressedDraws { .. }")
    }
}

/// Writes blocks that encryption makes the tape of: the first of each count, then the second of each, and so
/// on.
struct Begin<'a, T> {
    blocks: &'a mut [Group],
    groups: usize,
    addresses: &'a [Pair],
    counts: &'a [T],
}

impl<T: Count> Work for Begin<'_, T> {
    #[inline(always)]
    fn run(mut self) {
        let mut index = 0;
        while let Some(blocks) = self.blocks.split_off_mut(..self.groups) {
            let counts = self.addresses.iter().zip(self.counts);
            for (block, (address, count)) in blocks.as_flattened_mut().iter_mut().zip(counts) {
                *block = [address[0] & !INDEX | index, address[1] ^ count.to_key()];
            }
            index += 1;
        }
    }
}

/// Writes the words of these blocks, two of each, where the kernel looks for them.
struct TakeApart<'a> {
    blocks: &'a [Group],
    groups: usize,
    tape: &'a mut [[u64; LANES]],
    words: usize,
}

impl Work for TakeApart<'_> {
    #[inline(always)]
    fn run(mut self) {
        for group in 0..self.groups {
            let words = self.tape.split_off_mut(..self.words).unwrap_or_default();
            // Of the last pair there may be but one.
            for (pair, words) in words.chunks_mut(2).enumerate() {
                let blocks = &self.blocks[pair * self.groups + group];
                for (half, words) in words.iter_mut().enumerate() {
                    *words = blocks.map(|block| block[half]);
                }
            }
        }
    }
}

/// The block of an integer.
fn integer(id: i128) -> Pair {
    pair(id.to_le_bytes())
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
