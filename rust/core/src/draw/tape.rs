//! Secret words: 32 bytes of entropy, expanded by AES-256 in counter mode and wiped after use.

use crate::Error;
#[cfg(target_arch = "x86_64")]
use crate::draw::aes_blocks::Way;
#[cfg(target_arch = "x86_64")]
use crate::draw::counter_mode::Counter;
use crate::draw::{cipher::Cipher, counter_mode};
use core::fmt;
use rand_core::TryCryptoRng;
use zeroize::Zeroizing;

/// A fresh key from the operating system, for the tapes of several threads: see
/// [`crate::Draws::at`].
///
/// On Linux the key comes from the C library's `getrandom`. A program built without
/// `--cfg=getrandom_backend="linux_getrandom"` falls back to the file `/dev/urandom` if that call
/// is missing or forbidden. `getrandom` is a system call or, with glibc 2.41 and Linux 6.11 or
/// later, the kernel's generator in user space. `SECURITY.md` in the repository describes the
/// effect of a snapshot.
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

/// A source of uniform, independent 64-bit words. Each word is used for one draw and never again.
pub trait Words {
    /// Fills `words` with the source's next words.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the source has none; `words` must not be used then.
    fn fill(&mut self, words: &mut [u64]) -> Result<(), Error>;

    /// The counter of a tape whose next word is the first of a block, for draws that encrypt its
    /// words themselves.
    #[doc(hidden)]
    #[cfg(target_arch = "x86_64")]
    fn counter(&mut self) -> Option<Counter<'_>> {
        None
    }
}

impl<W: Words + ?Sized> Words for &mut W {
    fn fill(&mut self, words: &mut [u64]) -> Result<(), Error> {
        (**self).fill(words)
    }

    #[cfg(target_arch = "x86_64")]
    fn counter(&mut self) -> Option<Counter<'_>> {
        (**self).counter()
    }
}

/// A keyed stream of words, created for one call and wiped afterwards. No state survives between
/// calls that a fork could duplicate, threads could share or a snapshot could save.
pub struct Tape {
    cipher: Cipher,
    /// The next word.
    word: u64,
}

/// How this processor computes a tape: "vaes-512", "vaes-256", "aes" or, without instructions for
/// AES, "portable".
#[must_use]
pub fn instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        match Way::detect() {
            Some(Way::Four(_)) => return "vaes-512",
            Some(Way::Two(_)) => return "vaes-256",
            Some(Way::One(_)) => return "aes",
            None => {}
        }
        if is_x86_feature_detected!("aes") {
            return "aes";
        }
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("aes") {
        return "aes";
    }
    "portable"
}

impl Tape {
    /// A tape keyed by the operating system.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the operating system gives no random bytes.
    pub fn from_os() -> Result<Self, Error> {
        Ok(Self::from_key(&*key_from_os()?))
    }

    /// A tape keyed by 32 bytes from the caller's generator.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the generator fails.
    pub fn from_rng<R: TryCryptoRng + ?Sized>(rng: &mut R) -> Result<Self, Error> {
        Ok(Self::from_key(&*key_from(rng)?))
    }

    /// The tape of a key. Anyone with the key can remove the noise, so a release from a known key,
    /// as in tests, is **not private**. No word of a tape may be used for two draws.
    #[must_use]
    pub fn from_key(key: &[u8; 32]) -> Self {
        let cipher = Cipher::new(key);
        Self { cipher, word: 0 }
    }

    /// The tape of a key from the words of this draw on, where each draw has so many.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the index is beyond the tape.
    pub fn at(key: &[u8; 32], index: usize, words: usize) -> Result<Self, Error> {
        let word = (index as u64).checked_mul(words as u64);
        let mut tape = Self::from_key(key);
        tape.seek(word.ok_or_else(|| Error::overflow("index", index, "an index on the tape"))?)?;
        Ok(tape)
    }

    /// Moves to the word at this position.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the position is beyond `2^61` words.
    pub fn seek(&mut self, word: u64) -> Result<(), Error> {
        if word >= 1 << 61 {
            return Err(Error::overflow("word", word, "a position below 2**61"));
        }
        self.word = word;
        Ok(())
    }
}

impl Words for Tape {
    fn fill(&mut self, words: &mut [u64]) -> Result<(), Error> {
        counter_mode::fill(&self.cipher, &mut self.word, words);
        Ok(())
    }

    #[cfg(target_arch = "x86_64")]
    fn counter(&mut self) -> Option<Counter<'_>> {
        match &self.cipher {
            Cipher::Own(keys) => Counter::new(keys, &mut self.word),
            Cipher::Crate(_) => None,
        }
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tape { .. }")
    }
}

/// The words of the caller's own generator, used as they are.
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

#[cfg(target_arch = "x86_64")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draws;
    use crate::draw::aes_blocks::Keys;
    use crate::draw::kernel::{Backend, Kernel};
    use crate::draw::lanes::LANES;
    use crate::params::rate::Rate;
    use crate::plan::{Plan, tiers};
    use aes::Aes256Enc;
    use aes::cipher::KeyIvInit;
    use ctr::Ctr64LE;
    use ctr::cipher::{StreamCipher, StreamCipherSeek};

    /// The tapes of a key by all code that this processor runs, that of the crate `aes` first.
    fn tapes(key: &[u8; 32]) -> impl Iterator<Item = Tape> {
        let own = Way::all().map(|way| Cipher::Own(Keys::new(way, key)));
        [Cipher::by_crate(key)]
            .into_iter()
            .chain(own)
            .map(|cipher| Tape { cipher, word: 0 })
    }

    /// All tapes give the words of the crate `ctr`, for random keys, from any word on, in parts of
    /// many lengths. `tests/draw/tape.rs` has the known answers.
    #[test]
    fn words_are_those_of_the_crate() {
        for number in 0..24 {
            let key = *key_from_os().unwrap();
            let start = match number {
                0..12 => number,
                _ => (u64::from_le_bytes(*key.first_chunk().unwrap()) >> 4) | (number % 2),
            };
            for mut tape in tapes(&key) {
                let mut other = Ctr64LE::<Aes256Enc>::new(&key.into(), &[0; 16].into());
                tape.seek(start).unwrap();
                other.try_seek(8 * start).unwrap();
                for length in [
                    0, 1, 2, 3, 23, 24, 25, 47, 48, 49, 63, 64, 65, 96, 63, 1, 100, 2048, 7,
                ] {
                    let (mut mine, mut theirs) = (vec![0; length], vec![0; length]);
                    tape.fill(&mut mine).unwrap();
                    other
                        .try_write_keystream(bytemuck::cast_slice_mut(&mut theirs))
                        .unwrap();
                    assert_eq!(mine, theirs, "from word {start}, {length} words");
                }
            }
        }
    }

    /// Plans of 0, 3, 4, 7 and 10 words for a draw, and a step between tiers. The second has a word
    /// beyond those of its digit.
    fn plans() -> Vec<Plan> {
        let rate = |scale| Rate::from_scale(scale).unwrap();
        let ranges = [(1e5, 1), (1e5, 1 << 20), (1e5, u64::MAX), (1e38, 1000)];
        let plans = ranges.map(|(scale, range)| Plan::two_sided(&rate(scale), range).unwrap());
        let tiers = tiers::plans(&[rate(1.0), rate(1e5)], u64::MAX).unwrap();
        let step = tiers[1].plan.clone();
        [&[Plan::noiseless(1000)], &plans[..], &[step]].concat()
    }

    /// Draws whose words are encrypted beside them are those from the crate's words, for all lengths
    /// and places to split at, and the tape goes on with the word after them.
    #[test]
    fn draws_are_those_from_the_words_of_the_crate() {
        let (key, most) = ([9; 32], 4 * LANES + 3);
        let kernels = plans().into_iter().flat_map(|plan| {
            Backend::available().map(move |backend| (backend, Kernel::on(backend, plan.clone())))
        });
        for ((backend, kernel), way) in
            kernels.flat_map(|kernel| Way::all().map(move |way| (kernel.clone(), way)))
        {
            let plan = kernel.plan();
            let counts: Vec<u64> = (0..most as u64)
                .map(|i| (i * 7).min(plan.range()))
                .collect();
            let has_code = matches!((backend, way), (Backend::Avx512(_), Way::Four(_)));
            let rows = &mut vec![[0; LANES]; 2 * plan.words()];
            let (keys, mut word) = (Keys::new(way, &key), 0);
            let tape = Counter::new(&keys, &mut word).unwrap();
            let done = kernel.add_noise_from(0, tape, rows, &mut counts.clone());
            assert_eq!(done, has_code && plan.keeps().is_none());
            // An odd word is inside a block of AES.
            for start in 0..3 {
                for len in 0..=most {
                    for cut in (0..=len).step_by(LANES) {
                        let own = Cipher::Own(Keys::new(way, &key));
                        let [own, other] = [own, Cipher::by_crate(&key)].map(|cipher| {
                            let mut tape = Tape { cipher, word: 0 };
                            tape.seek(start).unwrap();
                            let (mut noisy, mut next) = (counts[..len].to_vec(), [0]);
                            let (head, tail) = noisy.split_at_mut(cut);
                            let mut draws = Draws::new(&kernel, 0, &mut tape);
                            draws.add_noise(head).unwrap();
                            draws.add_noise(tail).unwrap();
                            tape.fill(&mut next).unwrap();
                            (noisy, next)
                        });
                        assert_eq!(own, other, "{backend:?}, {len} counts from word {start}");
                    }
                }
            }
        }
    }
}
