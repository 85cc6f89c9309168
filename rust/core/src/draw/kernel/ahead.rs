//! The words of a tape that are encrypted while draws are made: beside the draws of a block, those of
//! the next one. A row takes some tens of instructions of AES in a long chain, and the search of a
//! digit other units of the processor, so that a processor that looks ahead runs both at once.

use super::rows::{Beside, Rows};
use crate::draw::aes_blocks::Blocks;
use crate::draw::counter_mode::{Counter, Stream};
use crate::draw::lanes::{LANES, Row};
use core::mem;

/// The rows of a block, and those of the next one.
pub(super) struct Ahead<'a, B> {
    block: &'a mut [Row],
    next: Next<'a, B>,
    /// Blocks that no draw was made of yet.
    left: usize,
}

/// The rows of the next block, some of them encrypted.
pub(super) struct Next<'a, B> {
    tape: Stream<'a, B>,
    block: &'a mut [Row],
    /// The first row that is not encrypted.
    row: usize,
}

impl<'a, B: Blocks> Ahead<'a, B> {
    /// The next words of a tape, for so many counts. `rooms` have as many rows as a block.
    #[inline(always)]
    pub(super) fn new(tape: Counter<'a>, rooms: [&'a mut [Row]; 2], counts: usize) -> Self {
        let ([block, next], left) = (rooms, counts.div_ceil(LANES));
        let next = Next {
            tape: tape.take(left * block.len() * LANES),
            block: next,
            row: 0,
        };
        Self { block, next, left }
    }
}

impl<'a, B: Blocks> Rows for Ahead<'a, B> {
    type Beside = Next<'a, B>;

    #[inline(always)]
    fn next_block(&mut self) -> (&[Row], &mut Next<'a, B>) {
        // The first block; and after draws of one digit, the word beyond its own.
        self.next.encrypt(self.block.len());
        mem::swap(&mut self.block, &mut self.next.block);
        self.left -= 1;
        self.next.row = if self.left > 0 { 0 } else { self.block.len() };
        (self.block, &mut self.next)
    }
}

impl<B: Blocks> Beside for Next<'_, B> {
    #[inline(always)]
    fn encrypt(&mut self, rows: usize) {
        for _ in 0..rows {
            if let Some(row) = self.block.get_mut(self.row) {
                self.tape.encrypt(row);
                self.row += 1;
            }
        }
    }
}
