//! The vector operations of a draw, and the portable back end, whose vectors are single words.

use crate::draw::ct;

/// Words of several draws side by side. No operation's time depends on its operands.
pub(super) trait Vector: Copy {
    /// One bit for each word.
    type Mask: Copy;
    /// Words in a vector; divides [`crate::LANES`].
    const WIDTH: usize;

    fn splat(word: u64) -> Self;
    /// Loads the first `WIDTH` of `words`.
    fn load(words: &[u64]) -> Self;
    /// Stores to the first `WIDTH` of `words`.
    fn store(self, words: &mut [u64]);

    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn shl(self, bits: u32) -> Self;
    fn shr(self, bits: u32) -> Self;
    fn xor(self, other: Self) -> Self;

    /// Where `self < other`, for unsigned words.
    fn below(self, other: Self) -> Self::Mask;
    /// Where `self < other`, for words whose signed difference fits 64 bits.
    fn less(self, other: Self) -> Self::Mask;
    /// `self` minus one where the mask is set.
    fn decrease(self, mask: Self::Mask) -> Self;
    /// `yes` where the mask is set, else `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// The minimum of unsigned words.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self::select(self.below(other), self, other)
    }

    /// The maximum of unsigned words.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self::select(self.below(other), other, self)
    }
}

impl Vector for u64 {
    type Mask = u64;
    const WIDTH: usize = 1;

    #[inline(always)]
    fn splat(word: u64) -> Self {
        word
    }

    #[inline(always)]
    fn load(words: &[u64]) -> Self {
        words[0]
    }

    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        words[0] = self;
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self & other
    }

    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        self << bits
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        self >> bits
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn below(self, other: Self) -> u64 {
        ct::mask(ct::borrow(self, other, 0))
    }

    #[inline(always)]
    fn less(self, other: Self) -> u64 {
        ct::mask(ct::less_limb(self, other))
    }

    #[inline(always)]
    fn decrease(self, mask: u64) -> Self {
        self.wrapping_add(mask)
    }

    #[inline(always)]
    fn select(mask: u64, yes: Self, no: Self) -> Self {
        ct::select(mask, yes, no)
    }
}
