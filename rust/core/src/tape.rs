//! Secret words: 32 bytes of entropy, expanded by AES-256 in counter mode, wiped after use.

use crate::Error;
use crate::ct;
use aes::Aes256Enc;
use aes::cipher::KeyIvInit;
use core::fmt;
use ctr::Ctr64LE;
use ctr::cipher::{StreamCipher, StreamCipherSeek};
use rand_core::TryCryptoRng;
use zeroize::{Zeroizing, zeroize_stack};

/// Bytes of stack that are wiped: several times what a release uses, and room for the registers that
/// a signal in the midst of it stores there.
const STACK: usize = 1 << 14;

/// Does work on secrets, then wipes the stack that it has used, and the vector registers: the
/// compiler leaves copies of round keys and words in both.
pub fn without_trace<R>(work: impl FnOnce() -> R) -> R {
    /// Wipes after a panic, too.
    struct Wipe;

    impl Drop for Wipe {
        fn drop(&mut self) {
            // In this order: a signal meanwhile stores registers below of what is wiped.
            ct::clear_registers();
            zeroize_stack::<STACK>();
        }
    }

    let _wipe = Wipe;
    apart(work)
}

/// Keeps the work in a frame of its own, below that of the caller.
#[inline(never)]
fn apart<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// A fresh key from the operating system, for tapes of several threads: see [`crate::Draws::at`].
///
/// On Linux the key comes from the C library's `getrandom`. A program that is built without
/// `--cfg=getrandom_backend="linux_getrandom"` falls back to the file `/dev/urandom` where that call is
/// missing or forbidden. `getrandom` is a system call, or, with glibc 2.41 and Linux 6.11 or later, the
/// kernel's generator in user space; `SECURITY.md` in the repository says what a snapshot can repeat.
///
/// # Errors
/// [`Error::Entropy`] if the operating system gives no random bytes.
pub fn key_from_os() -> Result<Zeroizing<[u8; 32]>, Error> {
    key_from(&mut getrandom::SysRng)
}

fn key_from<R: TryCryptoRng + ?Sized>(rng: &mut R) -> Result<Zeroizing<[u8; 32]>, Error> {
    let mut key = Zeroizing::new([0; 32]);
    rng.try_fill_bytes(key.as_mut_slice())
        .map_err(|error| Error::Entropy(error.to_string()))?;
    Ok(key)
}

/// A source of uniform, independent 64-bit words, each used for one draw and never again.
pub trait Words {
    /// Fills `words` with the next words of the source.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the source has none; `words` is then of no use.
    fn fill(&mut self, words: &mut [u64]) -> Result<(), Error>;
}

impl<W: Words + ?Sized> Words for &mut W {
    fn fill(&mut self, words: &mut [u64]) -> Result<(), Error> {
        (**self).fill(words)
    }
}

/// A keyed stream of words. Made for one call and wiped with it: between calls there is no state of
/// it to duplicate in a fork, to share between threads or to save in a snapshot.
pub struct Tape {
    stream: Ctr64LE<Aes256Enc>,
}

impl Tape {
    /// A tape keyed by the operating system.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the operating system gives no random bytes.
    pub fn from_os() -> Result<Self, Error> {
        Ok(Self::from_key(&*key_from_os()?))
    }

    /// A tape keyed by 32 bytes of the caller's generator.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the generator fails.
    pub fn from_rng<R: TryCryptoRng + ?Sized>(rng: &mut R) -> Result<Self, Error> {
        Ok(Self::from_key(&*key_from(rng)?))
    }

    /// The tape of a key. Whoever has the key can take the noise off again, so that from a known
    /// one, as for tests, is **not private**. No word of a tape may serve for two draws.
    #[must_use]
    pub fn from_key(key: &[u8; 32]) -> Self {
        Self {
            stream: Ctr64LE::new(key.into(), &[0; 16].into()),
        }
    }

    /// Goes to the word at this position.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the position is beyond `2^61` words.
    pub fn seek(&mut self, word: u64) -> Result<(), Error> {
        word.checked_mul(8)
            .and_then(|byte| self.stream.try_seek(byte).ok())
            .ok_or_else(|| Error::overflow("word", word, "a position below 2**61"))
    }
}

impl Words for Tape {
    fn fill(&mut self, words: &mut [u64]) -> Result<(), Error> {
        self.stream
            .try_write_keystream(bytemuck::cast_slice_mut(words))
            .map_err(|_| Error::Entropy("the tape is at its end".into()))?;
        // The same tape on every processor; nothing to do on little-endian ones.
        for word in words {
            *word = u64::from_le(*word);
        }
        Ok(())
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tape { .. }")
    }
}

/// The words of the caller's own generator, used as they come.
pub struct RngWords<R>(pub R);

impl<R: TryCryptoRng> Words for RngWords<R> {
    fn fill(&mut self, words: &mut [u64]) -> Result<(), Error> {
        self.0
            .try_fill_bytes(bytemuck::cast_slice_mut(words))
            .map_err(|error| Error::Entropy(error.to_string()))
    }
}

impl<R> fmt::Debug for RngWords<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RngWords { .. }")
    }
}
