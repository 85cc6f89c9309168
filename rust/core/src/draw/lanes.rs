//! The rows in which all draws are made.

/// Draws in a block.
pub const LANES: usize = 16;

/// One word of each draw of a block.
pub(super) type Row = [u64; LANES];
