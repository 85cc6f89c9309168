//! The kernel: a pure function of plan, tape and counts. In a release, a secret count and the words
//! of its tape meet only here. There are two other places: [`crate::keyed`] makes the count a part
//! of its tape's secret address, and [`crate::linear`], a reference that no release uses, draws on
//! its own.
//!
//! The function `draw` is the construction of `docs/proofs.md`: lemma 1 (the digits of a geometric
//! are independent), lemma 2 (which words an outcome depends on), theorem 2 (the floor makes it
//! private). `tests/exhaustive.rs` tries every tape of small plans on every back end, and
//! `tests/draw/kernel.rs` compares full words with a model. `test_primitives.py` proves for all
//! words the operations of every back end and their guides, and `draw` for any digits.
//!
//! Draws are made in blocks of [`LANES`]. Word `j` of the draw in lane `i` of block `b` is
//! `words[(b * plan.words() + j) * LANES + i]`. A count's noise therefore depends on its place
//! alone, not on how the work was split.
//!
//! Where the words come from a tape's counter mode and the processor has AVX-512 with VAES, those of
//! a block are encrypted beside the draws of the block before it (`ahead.rs`), else before all draws.

#[cfg(target_arch = "x86_64")]
mod ahead;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod check;
mod count;
mod largest;
#[cfg(target_arch = "aarch64")]
mod neon;
mod rows;
mod search;
mod tables;
mod vector;

#[cfg(target_arch = "x86_64")]
use crate::draw::aes_blocks::Way;
#[cfg(target_arch = "x86_64")]
use crate::draw::counter_mode::Counter;
use crate::draw::lanes::{LANES, Row};
#[cfg(target_arch = "aarch64")]
use crate::draw::simd::Neon;
#[cfg(target_arch = "x86_64")]
use crate::draw::simd::{Avx2, Avx512};
use crate::plan::Plan;
use crate::plan::tiers::Keep;
use core::fmt;
pub use count::Count;
pub(crate) use count::sealed;
pub use largest::Best;
pub(crate) use largest::{Rule, WIDEST};
use rows::{Beside, Read, Rows};
use search::{Search, Searched};
use tables::Digit;

/// A way to run the kernel. All back ends give the same noise for the same tape.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// One word at a time, on any processor.
    Portable,
    /// Sixteen words at a time, on x86-64 processors with AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// Sixteen words at a time, on x86-64 processors with AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// Eight words at a time, on AArch64 processors with NEON.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl Backend {
    /// The back ends that this processor can run, fastest last.
    pub fn available() -> impl Iterator<Item = Self> {
        [
            Some(Self::Portable),
            #[cfg(target_arch = "x86_64")]
            Avx2::detect().map(Self::Avx2),
            #[cfg(target_arch = "x86_64")]
            Avx512::detect().map(Self::Avx512),
            #[cfg(target_arch = "aarch64")]
            Neon::detect().map(Self::Neon),
        ]
        .into_iter()
        .flatten()
    }

    /// The fastest back end that this processor can run.
    #[must_use]
    pub fn best() -> Self {
        Self::available().fold(Self::Portable, |_, faster| faster)
    }
}

/// A plan as the kernel reads it: the thresholds are also in tables that fit vector registers.
#[derive(Clone, Debug)]
pub struct Kernel {
    plan: Plan,
    digits: Vec<Digit>,
    backend: Backend,
}

impl Kernel {
    /// Prepares a plan for the fastest back end.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self::on(Backend::best(), plan)
    }

    /// Prepares a plan for a given back end.
    #[must_use]
    pub fn on(backend: Backend, plan: Plan) -> Self {
        let digit = |digit| Digit::new(digit, plan.limb_bits);
        Self {
            digits: plan.digits.iter().map(digit).collect(),
            plan,
            backend,
        }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Adds noise to `counts` in place; outputs lie in `lower..=lower + plan.range()`. `words`
    /// holds the tape of all blocks. The last block may lack counts but not words.
    ///
    /// # Panics
    /// If `words` is too short, or if the range exceeds the type of the counts.
    pub fn add_noise<T: Count>(&self, lower: T, words: &[u64], counts: &mut [T]) {
        let lower = self.key_of(lower);
        // Separate code, so that an ordinary draw takes no longer.
        match &self.plan.keep {
            None => self.run::<T, false>(lower, words, counts),
            Some(_) => self.run::<T, true>(lower, words, counts),
        }
    }

    fn run<T: Count, const STEP: bool>(&self, lower: u64, words: &[u64], counts: &mut [T]) {
        match self.backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2(token) => avx2::add_noise::<T, STEP>(token, self, lower, words, counts),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512(token) => {
                avx512::add_noise::<T, STEP>(token, self, lower, words, counts);
            }
            #[cfg(target_arch = "aarch64")]
            Backend::Neon(token) => neon::add_noise::<T, STEP>(token, self, lower, words, counts),
            Backend::Portable => portable::<T, STEP>(self, lower, words, counts),
        }
    }

    /// Like [`Self::add_noise`], with the next words of a tape, most of which are encrypted beside the
    /// draws. `rows` has room for those of two blocks. Without such code for this back end and this
    /// tape, and for steps between tiers, this does nothing and returns false.
    ///
    /// # Panics
    /// If `rows` is too short, or if the range exceeds the type of the counts.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn add_noise_from<T: Count>(
        &self,
        lower: T,
        tape: Counter<'_>,
        rows: &mut [Row],
        counts: &mut [T],
    ) -> bool {
        let lower = self.key_of(lower);
        let (block, next) = rows[..2 * self.plan.words].split_at_mut(self.plan.words);
        let rows = [block, next];
        match (self.backend, tape.way(), &self.plan.keep) {
            (Backend::Avx512(token), Way::Four(aes), None) => {
                avx512::add_noise_from((token, aes), self, lower, tape, rows, counts);
                true
            }
            _ => false,
        }
    }

    /// The key of a lower bound.
    fn key_of<T: Count>(&self, lower: T) -> u64 {
        let lower = lower.to_key();
        assert!(
            self.plan.range <= T::GREATEST.wrapping_sub(lower),
            "the range exceeds the type"
        );
        lower
    }

    /// Compares the sums of counts and noise, from place `start` on.
    pub(crate) fn compare<T: Count>(
        &self,
        rule: &Rule<'_>,
        start: u64,
        noise: &[u64],
        counts: &[T],
        best: &mut Best,
    ) {
        match self.backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2(token) => avx2::compare(token, rule, start, noise, counts, best),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512(token) => avx512::compare(token, rule, start, noise, counts, best),
            #[cfg(target_arch = "aarch64")]
            Backend::Neon(token) => neon::compare(token, rule, start, noise, counts, best),
            Backend::Portable => largest::portable(rule, start, noise, counts, best),
        }
    }
}

/// The portable back end. A separate function, so that its machine code can be told from the rest.
#[inline(never)]
fn portable<T: Count, const STEP: bool>(
    kernel: &Kernel,
    lower: u64,
    words: &[u64],
    counts: &mut [T],
) {
    add_noise_by::<u64, T, STEP>(kernel, lower, Read::new(kernel, words), counts);
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Portable => "Portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "Avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "Avx512",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "Neon",
        })
    }
}

/// [`Kernel::add_noise`] with a given vector type. Everything from here on is inlined into the
/// function that enables the back end's processor features.
#[inline(always)]
fn add_noise_by<V: Searched, T: Count, const STEP: bool>(
    kernel: &Kernel,
    lower: u64,
    mut rows: impl Rows,
    counts: &mut [T],
) {
    let keep = kernel.plan.keep.as_ref().filter(|_| STEP);
    let mut whole = counts.chunks_exact_mut(LANES);
    for block in &mut whole {
        let (words, beside) = rows.next_block();
        noise_block::<V, T>(kernel, keep, lower, words, block, beside);
    }
    let rest = whole.into_remainder();
    if !rest.is_empty() {
        // A short last block also draws for all lanes, and discards the unused ones.
        let mut block = [T::default(); LANES];
        block[..rest.len()].copy_from_slice(rest);
        let (words, beside) = rows.next_block();
        noise_block::<V, T>(kernel, keep, lower, words, &mut block, beside);
        rest.copy_from_slice(&block[..rest.len()]);
    }
}

/// Adds noise to a block of [`LANES`] counts, through their keys.
#[inline(always)]
fn noise_block<V: Searched, T: Count>(
    kernel: &Kernel,
    keep: Option<&Keep>,
    lower: u64,
    words: &[Row],
    block: &mut [T],
    beside: &mut impl Beside,
) {
    let mut keys = [0; LANES];
    for (key, count) in keys.iter_mut().zip(&*block) {
        *key = count.to_key();
    }
    for lane in (0..LANES).step_by(V::WIDTH) {
        let keys = &mut keys[lane..];
        let (base, range) = (V::splat(lower), V::splat(kernel.plan.range));
        // The maximum raises keys below the lower bound to it.
        let offset = V::load(keys).max(base).sub(base).min(range);
        let stays = keep.map(|keep| kept(kernel, keep, words, lane, offset));
        draw(kernel, words, lane, offset, stays, beside)
            .add(base)
            .store(keys);
    }
    for (count, key) in block.iter_mut().zip(keys) {
        *count = T::from_key(key);
    }
}

/// The draw: maps offsets `0..=range` above the lower bound to noisy offsets. `lane` is the first
/// lane of this vector. A step keeps an offset where it `stays`, outside the floor's slot.
#[inline(always)]
fn draw<V: Searched>(
    kernel: &Kernel,
    words: &[Row],
    lane: usize,
    offset: V,
    stays: Option<V::Mask>,
    beside: &mut impl Beside,
) -> V {
    let Some((first, rest)) = kernel.digits.split_first() else {
        return offset;
    };
    let plan = &kernel.plan;
    let (zero, one, range) = (V::splat(0), V::splat(1), V::splat(plan.range));
    let shift = 64 - plan.limb_bits;
    let shared = V::load(&words[0][lane..]);
    let tie = shared.shr(shift);

    // Digit 0's number gives the floor's slot, then a value from 1 to the radix, then zero. Noise
    // that falls is one more than is drawn here; noise that rises has the value modulo the radix.
    beside.encrypt(1 + first.limbs);
    let reached = outcome(first, &words[1..], lane, shift, tie);
    let in_floor = reached.less(one);
    // One-sided noise has no zero.
    let not_zero = reached.less(V::splat(first.count as u64 + 1 - plan.sign_mask));
    let sign = V::select(not_zero, shared.and(V::splat(plan.sign_mask)), zero);
    let low = V::select(not_zero, reached.sub(sign), zero);
    let mut noise = low.and(V::splat(plan.low_mask));

    let mut at = 1 + first.limbs;
    let mut top = zero;
    let mut last = 1;
    for digit in rest {
        beside.encrypt(digit.limbs);
        top = outcome(digit, &words[at..], lane, shift, tie);
        noise = noise.add(top.shl(digit.shift));
        last = digit.count;
        at += digit.limbs;
    }

    // The top digit's last value stands for everything above it: at least the range. Digit 0 alone
    // keeps its last value.
    let drawn = V::select(top.less(V::splat(last as u64)), noise, range);
    let falls = zero.less(sign);
    let fits = drawn.below(V::select(falls, offset, range.sub(offset)));
    // `offset - 1 - drawn` is `offset` plus the complement of `drawn`.
    let moved = offset.add(drawn.xor(zero.sub(sign)));
    let noisy = V::select(fits, moved, V::select(falls, zero, range));
    let noisy = stays.map_or(noisy, |stays| V::select(stays, offset, noisy));

    // The floor's slot leaves digit 1's word unused, so it supplies the floor's value.
    let value_mask = u64::MAX
        .checked_shr(64 - plan.floor_value_bits)
        .unwrap_or(0);
    let free = V::load(&words[1 + first.limbs][lane..]);
    let value = free.and(V::splat(value_mask)).min(range);
    V::select(in_floor, value, noisy)
}

/// Where the keep number of a step, whose words follow those of the draw, is below the number for
/// this offset: those at an end have one of their own.
#[inline(always)]
fn kept<V: Searched>(
    kernel: &Kernel,
    keep: &Keep,
    words: &[Row],
    lane: usize,
    offset: V,
) -> V::Mask {
    let (plan, one) = (&kernel.plan, V::splat(1));
    let shift = 64 - plan.limb_bits;
    let inside = offset.sub(one).below(V::splat(plan.range).sub(one));
    // A borrow goes from limb to limb, as for thresholds.
    let mut below = one.less(one);
    for (limb, own) in keep.0.iter().zip(&words[plan.words - keep.0.len()..]).rev() {
        let number = V::select(inside, V::splat(limb[0]), V::splat(limb[1]));
        below = V::load(&own[lane..])
            .shr(shift)
            .decrease(below)
            .less(number);
    }
    below
}

/// How many of the digit's thresholds the uniform number `(own words, tie)` has reached.
#[inline(always)]
fn outcome<V: Searched>(digit: &Digit, words: &[Row], lane: usize, shift: u32, tie: V) -> V {
    match digit.limbs {
        1 => outcome_of::<1, V>(digit, words, lane, shift, tie),
        2 => outcome_of::<2, V>(digit, words, lane, shift, tie),
        _ => outcome_of::<3, V>(digit, words, lane, shift, tie),
    }
}

#[inline(always)]
fn outcome_of<const LIMBS: usize, V: Searched>(
    digit: &Digit,
    words: &[Row],
    lane: usize,
    shift: u32,
    tie: V,
) -> V {
    let mut own = [tie; LIMBS];
    for (limb, own) in own.iter_mut().enumerate() {
        *own = V::load(&words[limb][lane..]).shr(shift);
    }
    V::Search::reached(digit, V::load(&words[0][lane..]), &own, tie)
}
