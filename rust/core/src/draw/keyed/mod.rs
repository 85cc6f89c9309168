//! Noise determined by a key and a count's ids, for engines that may run a task twice.
//!
//! A count that gets noise twice is released twice. So where an engine repeats tasks, a release has
//! a [`ReleaseKey`]: the tape of each count is read at an address derived from this key, the
//! count's ids, and the count itself. The same task gives the same noise, wherever and whenever it
//! runs. Another release has another key, and so its own noise. `docs/keyed.md` in the
//! repository explains why this is private, and why the count is part of its address.

mod address;
mod cmac;
mod draws;

use crate::draw::block::two_blocks;
use crate::draw::cipher::Cipher;
use crate::draw::kernel::Count;
use crate::draw::tape::key_from_os;
use crate::{Error, Mechanism};
use address::IdKey;
pub use address::{Addresses, IdKeys, IdKind};
use cmac::Cmac;
use core::fmt;
pub use draws::AddressedDraws;
use zeroize::Zeroizing;

/// The secret of one release. The keys of its ids and tapes are derived from it.
pub struct ReleaseKey(Zeroizing<[u8; 32]>);

impl ReleaseKey {
    /// A fresh key from the operating system.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the operating system gives no random bytes.
    pub fn from_os() -> Result<Self, Error> {
        Ok(Self(key_from_os()?))
    }

    /// The key with these bytes, which come from [`Self::secret`] in another process.
    #[must_use]
    pub fn from_secret(secret: &[u8; 32]) -> Self {
        Self(Zeroizing::new(*secret))
    }

    /// The key's bytes. Anyone who has them can remove the noise from the release.
    #[must_use]
    pub fn secret(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key of the tapes for counts of type `T` in the column with this name, with this
    /// mechanism's noise. Any other combination has another key: two outputs that shared noise
    /// would reveal their difference.
    #[must_use]
    pub fn tape_key<T: Count>(&self, mechanism: &Mechanism, name: &[u8]) -> Zeroizing<[u8; 32]> {
        let (num, den) = mechanism.rate().map_or_else(Default::default, |rate| {
            (rate.num().to_bytes_le(), rate.den().to_bytes_le())
        });
        let (lower, upper) = mechanism.bounds().unwrap_or((T::MIN, T::MAX));
        let limits = [T::MIN, T::MAX, lower, upper].map(i128::to_le_bytes);
        self.derive(b"geomdp tape", &[&num, &den, limits.as_flattened(), name])
    }

    /// The keys of columns of ids, in the order of the columns.
    #[must_use]
    pub fn id_keys(&self, kinds: &[IdKind]) -> IdKeys {
        let columns = kinds.iter().zip(0u32..);
        let keys = columns.map(|(kind, column)| {
            let key = |kind| self.derive(b"geomdp ids", &[kind, &column.to_be_bytes()]);
            match kind {
                // A sole integer id identifies a count without encryption.
                IdKind::Integers if kinds.len() == 1 => {
                    IdKey::SoleIntegers(Zeroizing::new(two_blocks(&key(b"alone"))))
                }
                IdKind::Integers => IdKey::Integers(Cipher::new(&key(b"integers"))),
                IdKind::Bytes => {
                    let [null, _] = two_blocks(&key(b"null"));
                    IdKey::Bytes(Cmac::new(&key(b"bytes")), Zeroizing::new(null))
                }
            }
        });
        IdKeys(keys.collect())
    }

    /// Derives a key for a purpose, by the key derivation in counter mode of NIST SP 800-108 with
    /// CMAC.
    pub(crate) fn derive(&self, purpose: &[u8], context: &[&[u8]]) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        let cmac = Cmac::new(&self.0);
        for (half, index) in key.chunks_exact_mut(16).zip(1..) {
            let mut message = [&[index], purpose, &[0]].concat();
            for part in context {
                // The lengths keep different contexts distinct.
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
