//! Counter mode: a stream of words, the ciphertexts of 0, 1, 2, ... as little-endian numbers. With
//! AVX-512 the words also come row by row, as [`Stream`], beside the draws.

#[cfg(target_arch = "x86_64")]
use super::aes_blocks::{Blocks, Job, Keys, Way, encrypt};
use super::cipher::Cipher;
#[cfg(target_arch = "x86_64")]
use super::lanes::{LANES, Row};
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::__m128i;
use zeroize::Zeroizing;

/// Vectors that are encrypted side by side. With a key they fit the registers, and they are as many
/// as hide the latency of a round.
#[cfg(target_arch = "x86_64")]
const SIDE_BY_SIDE: usize = 12;
/// The same of 512 bits: a power of two, as are the lengths of most tapes.
#[cfg(target_arch = "x86_64")]
const WIDE_SIDE_BY_SIDE: usize = 8;
/// The most words of a piece.
const MOST_WORDS: usize = 64;
#[cfg(target_arch = "x86_64")]
const _: () = assert!(MOST_WORDS == 8 * WIDE_SIDE_BY_SIDE);

/// Fills `words` from this one on: up to the next block, whole pieces, and a part of the last one.
pub(super) fn fill(cipher: &Cipher, word: &mut u64, mut words: &mut [u64]) {
    let size = match cipher {
        Cipher::Crate(_) => MOST_WORDS,
        #[cfg(target_arch = "x86_64")]
        Cipher::Own(keys) => match keys.way() {
            Way::One(_) => 2 * SIDE_BY_SIDE,
            Way::Two(_) => 4 * SIDE_BY_SIDE,
            Way::Four(_) => MOST_WORDS,
        },
    };
    while !words.is_empty() {
        let (skipped, whole) = ((*word % 2) as usize, words.len() / size * size);
        let taken = if skipped == 0 && whole > 0 {
            encrypt_pieces(cipher, *word / 2, &mut words[..whole]);
            whole
        } else {
            let mut piece = Zeroizing::new([0; MOST_WORDS]);
            encrypt_pieces(cipher, *word / 2, &mut piece[..size]);
            let piece = &piece[skipped..size];
            // An odd word alone, so that whole pieces follow.
            let taken = words.len().min(if skipped == 0 { size } else { 1 });
            words[..taken].copy_from_slice(&piece[..taken]);
            taken
        };
        words = &mut words[taken..];
        *word += taken as u64;
    }
}

/// Writes the words of whole pieces, from a block on.
fn encrypt_pieces(cipher: &Cipher, block: u64, words: &mut [u64]) {
    match cipher {
        Cipher::Crate(_) => {
            let blocks = words.as_chunks_mut().0;
            for (pair, number) in blocks.iter_mut().zip(block..) {
                *pair = [number, 0];
            }
            cipher.encrypt(blocks);
        }
        #[cfg(target_arch = "x86_64")]
        Cipher::Own(keys) => keys.run(Pieces { block, words }),
    }
}

/// The key and the next word of a tape that own code encrypts, for draws that do it themselves.
#[cfg(target_arch = "x86_64")]
pub struct Counter<'a> {
    keys: &'a Keys,
    word: &'a mut u64,
}

#[cfg(target_arch = "x86_64")]
impl<'a> Counter<'a> {
    /// None if the next word is not the first of a block.
    pub(super) fn new(keys: &'a Keys, word: &'a mut u64) -> Option<Self> {
        word.is_multiple_of(2).then_some(Self { keys, word })
    }

    pub(super) fn way(&self) -> Way {
        self.keys.way()
    }

    /// A stream of so many words, which the tape gives no more.
    #[inline(always)]
    pub(super) fn take<B: Blocks>(self, words: usize) -> Stream<'a, B> {
        let numbers = B::numbers(*self.word / 2);
        *self.word += words as u64;
        let rounds = self.keys.rounds();
        Stream { rounds, numbers }
    }
}

/// Pieces of words, from a block on.
#[cfg(target_arch = "x86_64")]
struct Pieces<'a> {
    block: u64,
    words: &'a mut [u64],
}

#[cfg(target_arch = "x86_64")]
impl Job for Pieces<'_> {
    #[inline(always)]
    fn run<B: Blocks>(self, rounds: &[__m128i]) {
        match B::COUNT {
            4 => encrypt_by::<B, WIDE_SIDE_BY_SIDE>(rounds, self.block, self.words),
            _ => encrypt_by::<B, SIDE_BY_SIDE>(rounds, self.block, self.words),
        }
    }
}

/// Encrypts pieces of so many vectors from a block on.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn encrypt_by<B: Blocks, const VECTORS: usize>(rounds: &[__m128i], block: u64, words: &mut [u64]) {
    let mut numbers = B::numbers(block);
    for piece in words.chunks_exact_mut(2 * B::COUNT * VECTORS) {
        numbers = encrypt_piece::<B, VECTORS>(rounds, numbers, piece);
    }
}

/// Encrypts vectors of blocks side by side, from these numbers on, and returns the numbers after
/// them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn encrypt_piece<B: Blocks, const VECTORS: usize>(
    rounds: &[__m128i],
    mut numbers: B,
    words: &mut [u64],
) -> B {
    let mut vectors = [numbers; VECTORS];
    for vector in &mut vectors {
        *vector = numbers;
        numbers = numbers.next();
    }
    let vectors = encrypt(rounds, vectors);
    for (words, vector) in words.chunks_exact_mut(2 * B::COUNT).zip(vectors) {
        vector.store(words);
    }
    numbers
}

/// The words of a counter, a row at a time.
#[cfg(target_arch = "x86_64")]
pub(super) struct Stream<'a, B> {
    rounds: &'a [__m128i; 15],
    /// Those of the next blocks.
    numbers: B,
}

#[cfg(target_arch = "x86_64")]
impl<B: Blocks> Stream<'_, B> {
    #[inline(always)]
    pub(super) fn encrypt(&mut self, row: &mut Row) {
        let (rounds, numbers) = (&self.rounds[..], self.numbers);
        self.numbers = match B::COUNT {
            4 => encrypt_piece::<B, { LANES / 8 }>(rounds, numbers, row),
            2 => encrypt_piece::<B, { LANES / 4 }>(rounds, numbers, row),
            _ => encrypt_piece::<B, { LANES / 2 }>(rounds, numbers, row),
        };
    }
}
