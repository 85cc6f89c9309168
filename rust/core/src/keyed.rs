//! Noise chosen by a key and a count's ids, for engines that may run a task twice.
//!
//! A count that is drawn for twice is released twice. So where an engine repeats tasks, a release has
//! a [`ReleaseKey`]; the tape of each count is read at an address that follows from this key, the ids of
//! the count, and the count itself. The same task gives the same noise, wherever and whenever it runs;
//! another release, having another key, gives noise of its own. `docs/distributed.md` in the repository
//! says why this is private, and why the count is a part of its address.

use crate::cmac::Cmac;
use crate::kernel::{Backend, Count, LANES};
use crate::plan::Plan;
use crate::tape::key_from_os;
use crate::{Error, Mechanism};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes256Enc, Block};
use core::fmt;
use zeroize::Zeroizing;

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

/// Where the tape of each count begins: one secret number per count, the sum of one per id.
pub struct Addresses {
    addresses: Zeroizing<Vec<Pair>>,
    columns: u32,
}

impl Addresses {
    /// For so many counts, yet without ids.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self {
            addresses: Zeroizing::new(vec![[0; 2]; len]),
            columns: 0,
        }
    }

    /// Adds a column of ids that are integers of up to 64 bits.
    ///
    /// # Errors
    /// [`Error::Parameter`] if there are not as many as counts.
    pub fn add_integers(
        &mut self,
        key: &ReleaseKey,
        ids: impl ExactSizeIterator<Item = Option<i128>>,
    ) -> Result<(), Error> {
        let cipher = Aes256Enc::new((&*self.next_column(key, b"integers", ids.len())?).into());
        let mut ids = ids.map(|id| id.unwrap_or(NULL));
        let mut blocks = Zeroizing::new([[0; 2]; PIECE]);
        for addresses in self.addresses.chunks_mut(blocks.len()) {
            let blocks = &mut blocks[..addresses.len()];
            for (block, id) in blocks.iter_mut().zip(&mut ids) {
                *block = pair(id.to_le_bytes());
            }
            encrypt(&cipher, blocks);
            for (address, block) in addresses.iter_mut().zip(blocks) {
                add(address, *block);
            }
        }
        Ok(())
    }

    /// Adds a column of ids that are strings of bytes.
    ///
    /// # Errors
    /// [`Error::Parameter`] if there are not as many as counts.
    pub fn add_bytes<'a>(
        &mut self,
        key: &ReleaseKey,
        ids: impl ExactSizeIterator<Item = Option<&'a [u8]>>,
    ) -> Result<(), Error> {
        let cmac = Cmac::new(&*self.next_column(key, b"bytes", ids.len())?);
        let mut message = Vec::new();
        for (address, id) in self.addresses.iter_mut().zip(ids) {
            message.clear();
            // Nothing at all is the null; an empty string has a byte before it.
            if let Some(id) = id {
                message.push(1);
                message.extend(id);
            }
            add(address, pair(cmac.of(&message)));
        }
        Ok(())
    }

    /// How many counts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there are no counts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of the next column, of this kind and length.
    fn next_column(
        &mut self,
        key: &ReleaseKey,
        kind: &[u8],
        len: usize,
    ) -> Result<Zeroizing<[u8; 32]>, Error> {
        if len != self.len() {
            let accepted = format!("as many as counts, {}", self.len());
            return Err(Error::parameter("ids", len, accepted));
        }
        let column = self.columns.to_be_bytes();
        self.columns += 1;
        Ok(key.derive(b"geomdp ids", &[kind, &column]))
    }
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Addresses { .. }")
    }
}

/// Draws from tapes at given addresses.
pub struct AddressedDraws<'a, T> {
    plan: &'a Plan,
    lower: T,
    cipher: Aes256Enc,
    /// Those of the counts that are still to come.
    addresses: &'a [Pair],
    blocks: Zeroizing<Vec<Pair>>,
    words: Zeroizing<Vec<u64>>,
}

impl<'a, T: Count> AddressedDraws<'a, T> {
    /// The draws by this plan for the counts from this index on, from tapes of a key that
    /// [`ReleaseKey::tape_key`] gave.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the counts have no ids, or less than `index` of them are there.
    pub fn at(
        plan: &'a Plan,
        lower: T,
        tape_key: &[u8; 32],
        addresses: &'a Addresses,
        index: usize,
    ) -> Result<Self, Error> {
        if addresses.columns == 0 {
            return Err(Error::parameter("ids", "()", "one column at least"));
        }
        let Some(addresses) = addresses.addresses.get(index..) else {
            let accepted = format!("at most {}", addresses.len());
            return Err(Error::parameter("index", index, accepted));
        };
        Ok(Self {
            plan,
            lower,
            cipher: Aes256Enc::new(tape_key.into()),
            addresses,
            blocks: Zeroizing::default(),
            words: Zeroizing::default(),
        })
    }

    /// Adds noise to the next part of the counts.
    ///
    /// # Errors
    /// [`Error::Parameter`] if there are more counts than addresses; the counts are untouched then.
    pub fn add_noise(&mut self, counts: &mut [T]) -> Result<(), Error> {
        let Some((mut addresses, rest)) = self.addresses.split_at_checked(counts.len()) else {
            let accepted = format!("at most {}", self.addresses.len());
            return Err(Error::parameter("counts", counts.len(), accepted));
        };
        self.addresses = rest;
        let pairs = self.plan.words().div_ceil(2);
        // Less than half of that: each of at most 64 digits has at most 3 words, and one is shared.
        assert!(pairs as u64 <= INDEX, "no plan has so many words");
        for part in counts.chunks_mut(PIECE) {
            let (here, later) = addresses.split_at(part.len());
            addresses = later;
            self.fill(pairs, here, part);
            Backend::best().add_noise(self.plan, self.lower, &self.words, part);
        }
        Ok(())
    }

    /// Writes the words of these counts, two from each block.
    fn fill(&mut self, pairs: usize, addresses: &[Pair], counts: &[T]) {
        let (lanes, words) = (counts.len().next_multiple_of(LANES), self.plan.words());
        if self.blocks.len() < pairs * lanes {
            // Fresh ones, since growing ones would leave a copy behind.
            self.blocks = Zeroizing::new(vec![[0; 2]; pairs * lanes]);
            self.words = Zeroizing::new(vec![0; words * lanes]);
        }
        let blocks = &mut self.blocks[..pairs * lanes];
        let (first, others) = blocks.split_at_mut(lanes.min(blocks.len()));
        for ((block, address), count) in first.iter_mut().zip(addresses).zip(counts) {
            *block = [address[0] & !INDEX, address[1] ^ count.to_key()];
        }
        for (blocks, index) in others.chunks_exact_mut(lanes).zip(1..) {
            for (block, first) in blocks.iter_mut().zip(&*first) {
                *block = [first[0] | index, first[1]];
            }
        }
        encrypt(&self.cipher, blocks);
        for (index, blocks) in blocks.chunks_exact(lanes).enumerate() {
            let groups = self.words.chunks_exact_mut(words * LANES);
            for (blocks, words) in blocks.chunks_exact(LANES).zip(groups) {
                // Of the last pair there may be but one.
                let mut words = words[2 * LANES * index..].chunks_exact_mut(LANES);
                for (half, words) in [0, 1].into_iter().zip(words.by_ref()) {
                    for (word, block) in words.iter_mut().zip(blocks) {
                        *word = block[half];
                    }
                }
            }
        }
    }
}

impl<T> fmt::Debug for AddressedDraws<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressedDraws { .. }")
    }
}

/// The block of these bytes.
fn pair(bytes: [u8; 16]) -> Pair {
    bytemuck::cast::<_, Pair>(bytes).map(u64::from_le)
}

fn add(address: &mut Pair, other: Pair) {
    address[0] ^= other[0];
    address[1] ^= other[1];
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
