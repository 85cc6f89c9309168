//! The words of draws, block after block, and what is done beside each block's draws.

use super::Kernel;
use crate::draw::lanes::Row;

pub(super) trait Rows {
    type Beside: Beside;

    /// The rows of the next block, and what is done beside its draws.
    fn next_block(&mut self) -> (&[Row], &mut Self::Beside);
}

/// Work for units of the processor that a draw leaves free.
pub(super) trait Beside {
    /// Encrypts so many rows of a tape, or all that are left. A draw calls this where it reads as
    /// many words.
    fn encrypt(&mut self, rows: usize);
}

/// No work.
impl Beside for () {
    #[inline(always)]
    fn encrypt(&mut self, _rows: usize) {}
}

/// Rows that are in memory already.
pub(super) struct Read<'a> {
    rows: &'a [Row],
    in_block: usize,
    beside: (),
}

impl<'a> Read<'a> {
    #[inline(always)]
    pub(super) fn new(kernel: &Kernel, words: &'a [u64]) -> Self {
        Self {
            rows: words.as_chunks().0,
            in_block: kernel.plan.words,
            beside: (),
        }
    }
}

impl Rows for Read<'_> {
    type Beside = ();

    #[inline(always)]
    fn next_block(&mut self) -> (&[Row], &mut ()) {
        let block = &self.rows[..self.in_block];
        self.rows = &self.rows[self.in_block..];
        (block, &mut self.beside)
    }
}
