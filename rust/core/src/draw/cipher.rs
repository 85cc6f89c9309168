//! AES-256 of given blocks, by the fastest code for this processor: the numbers of a tape, ids, and
//! the tapes at their addresses.

use super::block::{CHUNK, Group, Pair};
use super::lanes::{LANES, Row};
#[cfg(target_arch = "x86_64")]
use crate::draw::aes_blocks::{Blocks, Job, Keys, Way, encrypt};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes256Enc, Block};
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::__m128i;
use zeroize::Zeroizing;

/// AES-256 with a key.
pub(super) enum Cipher {
    /// That of the crate `aes`, where this processor lacks AES or AVX2.
    Crate(Aes256Enc),
    #[cfg(target_arch = "x86_64")]
    Own(Keys),
}

impl Cipher {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(way) = Way::detect() {
            return Self::Own(Keys::new(way, key));
        }
        Self::by_crate(key)
    }

    pub(super) fn by_crate(key: &[u8; 32]) -> Self {
        Self::Crate(Aes256Enc::new(key.into()))
    }

    /// Encrypts blocks in place.
    pub(super) fn encrypt(&self, blocks: &mut [Pair]) {
        match self {
            Self::Crate(cipher) => {
                // Give every processor the same result; a no-op on little-endian ones.
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
            #[cfg(target_arch = "x86_64")]
            Self::Own(keys) => keys.run(InPlace(blocks.as_flattened_mut())),
        }
    }

    /// Encrypts each group of blocks, at most [`CHUNK`] blocks in all, to the rows of its tape from
    /// this one on: to two of them, or to the last one. A tape has so many rows.
    pub(super) fn encrypt_to(&self, groups: &[Group], tapes: &mut [Row], rows: usize, at: usize) {
        assert_eq!(
            tapes.len(),
            groups.len() * rows,
            "there is a tape for each group"
        );
        match self {
            Self::Crate(_) => {
                let mut blocks = Zeroizing::new([[0; 2]; CHUNK]);
                let blocks = &mut blocks[..LANES * groups.len()];
                for (blocks, group) in blocks.chunks_exact_mut(LANES).zip(groups) {
                    for (lane, block) in blocks.iter_mut().enumerate() {
                        *block = group.map(|row| row[lane]);
                    }
                }
                self.encrypt(blocks);
                for (blocks, tape) in blocks.chunks_exact(LANES).zip(tapes.chunks_exact_mut(rows)) {
                    for (half, row) in tape[at..].iter_mut().take(2).enumerate() {
                        for (word, block) in row.iter_mut().zip(blocks) {
                            *word = block[half];
                        }
                    }
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Own(keys) => keys.run(ToRows {
                groups,
                tapes,
                rows,
                at,
            }),
        }
    }
}

/// Blocks to encrypt in place.
#[cfg(target_arch = "x86_64")]
struct InPlace<'a>(&'a mut [u64]);

#[cfg(target_arch = "x86_64")]
impl Job for InPlace<'_> {
    #[inline(always)]
    fn run<B: Blocks>(self, rounds: &[__m128i]) {
        let rest = match B::COUNT {
            4 => replace::<B, 4>(rounds, self.0),
            _ => replace::<B, 8>(rounds, self.0),
        };
        // The rest one by one.
        replace::<__m128i, 1>(rounds, rest);
    }
}

/// Encrypts whole pieces of so many vectors, and returns the rest.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn replace<'a, B: Blocks, const VECTORS: usize>(
    rounds: &[__m128i],
    words: &'a mut [u64],
) -> &'a mut [u64] {
    let width = 2 * B::COUNT;
    let mut pieces = words.chunks_exact_mut(VECTORS * width);
    for piece in &mut pieces {
        let mut vectors = [B::all(rounds[0]); VECTORS];
        for (words, vector) in piece.chunks_exact(width).zip(&mut vectors) {
            *vector = B::load(words);
        }
        for (words, vector) in piece.chunks_exact_mut(width).zip(encrypt(rounds, vectors)) {
            vector.store(words);
        }
    }
    pieces.into_remainder()
}

/// Groups of blocks to encrypt to rows of their tapes.
#[cfg(target_arch = "x86_64")]
struct ToRows<'a> {
    groups: &'a [Group],
    tapes: &'a mut [Row],
    rows: usize,
    at: usize,
}

#[cfg(target_arch = "x86_64")]
impl Job for ToRows<'_> {
    #[inline(always)]
    fn run<B: Blocks>(self, rounds: &[__m128i]) {
        let mut start = 0;
        for group in self.groups {
            // Indexed, since `chunks` would divide.
            let rows = &mut self.tapes[start + self.at..start + self.rows];
            start += self.rows;
            match B::COUNT {
                4 => encrypt_group::<B, 4>(rounds, group, rows),
                _ => encrypt_group::<B, 8>(rounds, group, rows),
            }
        }
    }
}

/// Encrypts the blocks of a group to up to two rows, so many vectors side by side.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn encrypt_group<B: Blocks, const VECTORS: usize>(
    rounds: &[__m128i],
    [low, high]: &Group,
    rows: &mut [Row],
) {
    let width = 2 * B::COUNT;
    for start in (0..LANES).step_by(VECTORS / 2 * width) {
        let places = (start..).step_by(width);
        let mut vectors = [B::all(rounds[0]); VECTORS];
        let (pairs, _) = vectors.as_chunks_mut();
        for (pair, at) in pairs.iter_mut().zip(places.clone()) {
            *pair = B::load(&low[at..]).unpack(B::load(&high[at..]));
        }
        vectors = encrypt(rounds, vectors);
        let (pairs, _) = vectors.as_chunks();
        for ([one, other], at) in pairs.iter().zip(places) {
            for (row, words) in rows.iter_mut().zip(one.unpack(*other)) {
                words.store(&mut row[at..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The own code gives the blocks of the crate, for all numbers of blocks up to several pieces,
    /// and the tapes, for all numbers of groups and of rows up to five.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn blocks_are_those_of_the_crate() {
        let key = *crate::draw::tape::key_from_os().unwrap();
        let other = Cipher::by_crate(&key);
        for way in Way::all() {
            let own = Cipher::Own(Keys::new(way, &key));
            for len in 0..=80 {
                let blocks: Vec<Pair> = (0..len).map(|at| [at, at << 40]).collect();
                let [mine, theirs] = [&own, &other].map(|cipher| {
                    let mut blocks = blocks.clone();
                    cipher.encrypt(&mut blocks);
                    blocks
                });
                assert_eq!(mine, theirs, "{len} blocks");
            }
            for (groups, rows) in (0..=CHUNK / LANES).flat_map(|n| (1..=5).map(move |r| (n, r))) {
                let words = core::array::from_fn::<u64, LANES, _>(|lane| lane as u64);
                let inputs: Vec<Group> = (0..groups as u64)
                    .map(|group| [words.map(|word| word ^ group << 9), words])
                    .collect();
                let [mine, theirs] = [&own, &other].map(|cipher| {
                    let mut tapes = vec![[7; LANES]; groups * rows];
                    for at in (0..rows).step_by(2) {
                        cipher.encrypt_to(&inputs, &mut tapes, rows, at);
                    }
                    tapes
                });
                assert_eq!(mine, theirs, "{groups} groups, {rows} rows");
                // One block of the first tape, computed alone.
                if let (Some(input), Some(row)) = (inputs.first(), mine.first()) {
                    let mut block = [input.map(|words| words[5])];
                    other.encrypt(&mut block);
                    assert_eq!(row[5], block[0][0]);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "there is a tape for each group")]
    fn a_short_tape_panics() {
        Cipher::new(&[1; 32]).encrypt_to(&[[[1; LANES]; 2]; 2], &mut [[0; LANES]; 3], 2, 0);
    }
}
