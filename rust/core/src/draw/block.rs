//! AES blocks as pairs of words.

use super::lanes::{LANES, Row};

/// How many counts or ids are encrypted at a time: few enough for the first-level cache, and enough
/// to fill the AES implementation's parallel blocks.
pub(super) const CHUNK: usize = 8 * LANES;

/// An AES block as two words: the first word comes first in memory, least significant byte first.
pub(super) type Pair = [u64; 2];
/// One block per lane: their first words, and their second ones.
pub(super) type Group = [Row; 2];

/// Reads two blocks from bytes.
pub(super) fn two_blocks(bytes: &[u8; 32]) -> [Pair; 2] {
    bytemuck::cast::<_, [[u8; 16]; 2]>(*bytes).map(pair)
}

/// The block of an integer.
pub(super) fn integer(id: impl Into<i128>) -> Pair {
    pair(id.into().to_le_bytes())
}

/// Reads a block from bytes.
pub(super) fn pair(bytes: [u8; 16]) -> Pair {
    bytemuck::cast::<_, Pair>(bytes).map(u64::from_le)
}
