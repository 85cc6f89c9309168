//! The kernel: a pure function of plan, tape and counts. In a release, a secret count meets the words
//! of its tape here alone. Elsewhere, [`crate::keyed`] makes the count a part of its tape's secret
//! address, and [`crate::linear`], a reference that no release uses, draws by itself.
//!
//! Draws are made in blocks of [`LANES`]. Word `j` of the draw in lane `i` of block `b` is
//! `words[(b * plan.words() + j) * LANES + i]`, so what a count receives depends on its place alone,
//! not on how the work was split.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod compare;
mod vector;

use crate::digit::Digit;
use crate::plan::Plan;
use vector::Vector;

/// Draws in a block.
pub const LANES: usize = 16;

pub(crate) mod sealed {
    /// The eight integer types, each with a map to `u64` that keeps the order.
    pub trait Count: Copy + Default + Send + Sync {
        fn to_key(self) -> u64;
        fn from_key(key: u64) -> Self;
    }
}

/// An integer type that counts can have: `i8` to `i64` and `u8` to `u64`.
pub trait Count: sealed::Count {
    /// The least value.
    const MIN: i128;
    /// The greatest value.
    const MAX: i128;

    /// The bound as a value of this type, which it must be.
    fn exact(bound: i128) -> Option<Self>;
}

macro_rules! count {
    ($($t:ty, $wide:ty, $flip:expr;)*) => {$(
        impl sealed::Count for $t {
            #[inline(always)]
            #[allow(clippy::cast_sign_loss, clippy::cast_lossless)]
            fn to_key(self) -> u64 {
                (self as $wide as u64) ^ $flip
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
            fn from_key(key: u64) -> Self {
                (key ^ $flip) as $t
            }
        }

        impl Count for $t {
            const MIN: i128 = <$t>::MIN as i128;
            const MAX: i128 = <$t>::MAX as i128;

            fn exact(bound: i128) -> Option<Self> {
                bound.try_into().ok()
            }
        }
    )*};
}

/// Turns the order of `i64` into that of `u64`.
const SIGN: u64 = 1 << 63;

count! {
    i8, i64, SIGN;
    i16, i64, SIGN;
    i32, i64, SIGN;
    i64, i64, SIGN;
    u8, u64, 0;
    u16, u64, 0;
    u32, u64, 0;
    u64, u64, 0;
}

/// A way to run the kernel. All give the same noise for the same tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// One word at a time, on any processor.
    Portable,
    /// Eight words at a time, on x86-64 processors with AVX2.
    Avx2,
    /// Sixteen words at a time, on x86-64 processors with AVX-512.
    Avx512,
}

impl Backend {
    /// Those that this processor runs, the fastest last.
    #[must_use]
    pub fn available() -> &'static [Self] {
        #[cfg(target_arch = "x86_64")]
        if avx2::available() {
            if avx512::available() {
                return &[Self::Portable, Self::Avx2, Self::Avx512];
            }
            return &[Self::Portable, Self::Avx2];
        }
        &[Self::Portable]
    }

    /// The fastest one that this processor runs.
    #[must_use]
    pub fn best() -> Self {
        Self::available().last().copied().unwrap_or(Self::Portable)
    }

    /// Adds noise to `counts` in place; outputs lie in `lower..=lower + plan.range()`. `words` holds
    /// the tape of all blocks, the last of which may be short of counts but not of words.
    ///
    /// # Panics
    /// If this processor does not run the back end, if `words` are too few, or if the range reaches
    /// beyond the type of the counts.
    pub fn add_noise<T: Count>(self, plan: &Plan, lower: T, words: &[u64], counts: &mut [T]) {
        let lower = lower.to_key();
        let greatest = T::exact(T::MAX).map_or(0, sealed::Count::to_key);
        assert!(
            plan.range <= greatest.wrapping_sub(lower),
            "the range exceeds the type"
        );
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::add_noise(plan, lower, words, counts),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::add_noise(plan, lower, words, counts),
            _ => portable(plan, lower, words, counts),
        }
    }
}

/// Work that the compiler may do in vectors, inlined into what switches their instructions on.
pub(crate) trait Work {
    fn run(self);
}

/// Does it with the widest vectors that this processor has.
#[inline(always)]
pub(crate) fn with_widest(work: impl Work) {
    match Backend::best() {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => avx2::run(work),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => avx512::run(work),
        _ => work.run(),
    }
}

/// The portable back end. A function of its own, so that its machine code can be told from the rest.
#[inline(never)]
fn portable<T: Count>(plan: &Plan, lower: u64, words: &[u64], counts: &mut [T]) {
    add_noise_by::<u64, T>(plan, lower, words, counts);
}

/// [`Backend::add_noise`] with a given kind of vector. From here down everything is inlined into the
/// function that switches the back end's processor features on.
#[inline(always)]
fn add_noise_by<V: Vector, T: Count>(plan: &Plan, lower: u64, words: &[u64], counts: &mut [T]) {
    let stride = plan.words * LANES;
    let mut words = words;
    let mut whole = counts.chunks_exact_mut(LANES);
    for block in &mut whole {
        noise_block::<V, T>(plan, lower, &words[..stride], block);
        words = &words[stride..];
    }
    let rest = whole.into_remainder();
    if !rest.is_empty() {
        // A last, short block draws for all lanes as well, and throws the idle ones away.
        let mut block = [T::default(); LANES];
        block[..rest.len()].copy_from_slice(rest);
        noise_block::<V, T>(plan, lower, &words[..stride], &mut block);
        rest.copy_from_slice(&block[..rest.len()]);
    }
}

/// A block of [`LANES`] counts, by way of their keys.
#[inline(always)]
fn noise_block<V: Vector, T: Count>(plan: &Plan, lower: u64, words: &[u64], block: &mut [T]) {
    let mut keys = [0; LANES];
    for (key, count) in keys.iter_mut().zip(&*block) {
        *key = count.to_key();
    }
    for lane in (0..LANES).step_by(V::WIDTH) {
        let keys = &mut keys[lane..];
        let base = V::splat(lower);
        // Keys below the lower bound are brought up to it by the larger of the two.
        let offset = V::load(keys).max(base).sub(base).min(V::splat(plan.range));
        draw(plan, &words[lane.min(words.len())..], offset)
            .add(base)
            .store(keys);
    }
    for (count, key) in block.iter_mut().zip(keys) {
        *count = T::from_key(key);
    }
}

/// The draw: from offsets `0..=range` above the lower bound to noisy ones. The words are those of the
/// block, from this vector's lanes on.
#[inline(always)]
fn draw<V: Vector>(plan: &Plan, words: &[u64], offset: V) -> V {
    let Some((first, rest)) = plan.digits.split_first() else {
        return offset;
    };
    let (zero, one, range) = (V::splat(0), V::splat(1), V::splat(plan.range));
    let shift = 64 - plan.limb_bits;
    let shared = V::load(words);
    let tie = shared.shr(shift);

    // Digit 0 has two more outcomes below its values: the floor's slot, then the zero.
    let reached = outcome(first, words, 1, shift, tie);
    let in_floor = reached.less(one);
    let mut top = reached.sub(V::splat(2));
    let is_zero = top.less(zero);
    let mut noise = top;
    let mut last = first.count - 2;

    let mut at = 1 + first.limbs;
    for digit in rest {
        top = outcome(digit, words, at, shift, tie);
        noise = noise.add(top.shl(digit.shift));
        last = digit.count;
        at += digit.limbs;
    }

    // The top digit's last value stands for all that is above: more than any range.
    let cap = V::splat(plan.range.saturating_sub(1));
    let noise = V::select(top.less(V::splat(last as u64)), noise.min(cap), cap);
    let magnitude = V::select(is_zero, zero, noise.add(one));

    let falls = zero.less(shared.and(V::splat(plan.sign_mask)));
    let fall = offset.sub(magnitude.min(offset));
    let rise = offset.add(magnitude.min(range.sub(offset)));
    let noisy = V::select(falls, fall, rise);

    // The word of digit 1 is free in the floor's slot, and serves for its value.
    let value_mask = u64::MAX
        .checked_shr(64 - plan.floor_value_bits)
        .unwrap_or(0);
    let free = V::load(&words[(1 + first.limbs) * LANES..]);
    let value = free.and(V::splat(value_mask)).min(range);
    V::select(in_floor, value, noisy)
}

/// How many of the digit's thresholds the uniform number `(own words, tie)` has reached.
#[inline(always)]
fn outcome<V: Vector>(digit: &Digit, words: &[u64], at: usize, shift: u32, tie: V) -> V {
    match digit.limbs {
        1 => outcome_of::<1, V>(digit, words, at, shift, tie),
        2 => outcome_of::<2, V>(digit, words, at, shift, tie),
        _ => outcome_of::<3, V>(digit, words, at, shift, tie),
    }
}

#[inline(always)]
fn outcome_of<const LIMBS: usize, V: Vector>(
    digit: &Digit,
    words: &[u64],
    at: usize,
    shift: u32,
    tie: V,
) -> V {
    let mut own = [tie; LIMBS];
    for (limb, own) in own.iter_mut().enumerate() {
        *own = V::load(&words[(at + limb) * LANES..]).shr(shift);
    }
    V::reached(digit, &own, tie)
}
