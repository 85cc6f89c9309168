//! Counts how many of a digit's thresholds a uniform number has reached. Every comparison is made,
//! whatever the results.

use super::tables::{CELL_BITS, CELLS, Digit, Ends, Guide, Lead, Nested, TABLE, Tables};
use super::vector::Vector;
use crate::plan::digit::Threshold;
use core::marker::PhantomData;

/// A way to find a number's place among a digit's thresholds.
pub(super) trait Search<V> {
    /// How many of the digit's thresholds the uniform number `(own, tie)` has reached. `own` is the
    /// upper bits of the digit's own words, and `first` is the first of these words.
    fn reached<const LIMBS: usize>(digit: &Digit, first: V, own: &[V; LIMBS], tie: V) -> V;
}

/// Vectors of numbers whose places among thresholds are found in one of these ways.
pub(super) trait Searched: Vector {
    type Search: Search<Self>;
}

impl Searched for u64 {
    type Search = OneByOne;
}

/// Compares the number with each threshold.
pub(super) struct OneByOne;

impl<V: Vector> Search<V> for OneByOne {
    #[inline(always)]
    fn reached<const LIMBS: usize>(digit: &Digit, _first: V, own: &[V; LIMBS], tie: V) -> V {
        let all = V::splat(digit.count as u64);
        one_by_one::<0, LIMBS, V>(&digit.thresholds, all, own, tie)
    }
}

/// Half-words of several draws side by side.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code)
)]
pub(super) trait Halves: Copy {
    /// The words that these are the halves of.
    type Words: Vector;

    fn splat(half: u32) -> Self;
    /// The upper half of each word.
    fn upper(words: Self::Words) -> Self;
    /// The words with these halves.
    fn join(low: Self, high: Self) -> Self::Words;
    fn shr(self, bits: u32) -> Self;
    /// The minimum of unsigned half-words.
    fn min(self, other: Self) -> Self;
    /// How many of the upper 31 bits, from the highest down, are ones before the first zero.
    fn leading_ones(self) -> Self;
    /// The entry for each half-word; those are below [`CELLS`].
    fn cell(self, cells: &[u8; CELLS]) -> Self;
    /// The table's entry for each half-word; those are below [`TABLE`].
    fn look_up(self, table: &[u32; TABLE]) -> Self;
    /// The entry of both tables in a row for each half-word.
    fn look_up_either(self, tables: &[[u32; TABLE]; 2]) -> Self;
    /// `self`, plus `weight` where `key < node`; both are below `2^31`.
    fn step(self, key: Self, node: Self, weight: u32) -> Self;
}

/// `reached` minus the number of these thresholds that `(own, tie)` is below. The first limbs, so
/// many, are taken for equal.
#[inline(always)]
fn one_by_one<const EQUAL: usize, const LIMBS: usize, V: Vector>(
    thresholds: &[Threshold],
    mut reached: V,
    own: &[V; LIMBS],
    tie: V,
) -> V {
    for threshold in thresholds {
        let mut limbs = [V::splat(0); LIMBS];
        for (limb, word) in limbs.iter_mut().zip(threshold) {
            *limb = V::splat(*word);
        }
        let last = V::splat(threshold[LIMBS]);
        let below = is_below(&own[EQUAL..], tie, &limbs[EQUAL..], last);
        reached = reached.decrease(below);
    }
    reached
}

/// `count` minus the number of a guide's nested thresholds that `(own, tie)` is below.
#[inline(always)]
fn nested<const LIMBS: usize, V: Vector>(guide: &Guide, count: u64, own: &[V; LIMBS], tie: V) -> V {
    let all = V::splat(count);
    let Some(nested) = &guide.nested else {
        return all;
    };
    // Written out, so that places in `own` are constants.
    let inner = match LIMBS {
        1 => all,
        2 => level::<2, LIMBS, V>(nested, count, all, own, tie),
        _ => {
            let inner = level::<3, LIMBS, V>(nested, count, all, own, tie);
            level::<2, LIMBS, V>(nested, count, inner, own, tie)
        }
    };
    level::<1, LIMBS, V>(nested, count, inner, own, tie)
}

/// The same for thresholds that start with so many full limbs or more, where the number's limbs
/// before the last of these are full. `inner` is the result for those with more of them, where that
/// one is full as well.
#[inline(always)]
fn level<const FULL: usize, const LIMBS: usize, V: Vector>(
    nested: &Nested,
    count: u64,
    inner: V,
    own: &[V; LIMBS],
    tie: V,
) -> V {
    let Some(level) = &nested.levels[FULL - 1] else {
        return inner;
    };
    let reached = one_by_one::<FULL, LIMBS, V>(&level.thresholds, inner, own, tie);
    // A number with a smaller limb is below all of them.
    let smaller = own[FULL - 1].less(V::splat(nested.full));
    V::select(smaller, V::splat(count - level.all), reached)
}

/// A guide leads to one threshold, and the number is compared with it in full.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code)
)]
pub(super) struct ByGuide<H>(PhantomData<H>);

impl<V: Vector, H: Halves<Words = V>> Search<V> for ByGuide<H> {
    #[inline(always)]
    fn reached<const LIMBS: usize>(digit: &Digit, first: V, own: &[V; LIMBS], tie: V) -> V {
        let guide = &digit.guide;
        let reached = nested(guide, digit.count as u64, own, tie);
        let reached = one_by_one::<0, LIMBS, V>(&guide.single, reached, own, tie);
        let Some((last, ends)) = guide.ends.split_first() else {
            return reached;
        };
        let key = H::upper(first).shr(1);
        let cell = match guide.lead {
            Lead::Upper => key.shr(31 - CELL_BITS),
            Lead::Shifted(shift) => key.shr(shift).min(H::splat((1 << CELL_BITS) - 1)),
            Lead::Ones => H::upper(first).leading_ones(),
        };
        let mut path = cell.cell(&guide.cells);
        for (level, keys) in guide.steps.iter().enumerate().rev() {
            path = path.step(key, entry(path, keys, guide.wide), 1 << level);
        }
        let mut limbs = [tie; LIMBS];
        for (limb, table) in limbs.iter_mut().zip(ends) {
            *limb = end(path, table, guide.wide);
        }
        let below = is_below(&own[..], tie, &limbs[..], end(path, last, guide.wide));
        reached.sub(H::join(path, H::splat(0))).decrease(below)
    }
}

/// Looks up a limb of the threshold at the end of each path.
#[inline(always)]
fn end<H: Halves>(path: H, limb: &Ends, wide: bool) -> H::Words {
    H::join(entry(path, &limb.low, wide), entry(path, &limb.high, wide))
}

/// The entry of the tables in a row for each path, or of the first one.
#[inline(always)]
fn entry<H: Halves>(path: H, tables: &Tables, wide: bool) -> H {
    if wide {
        path.look_up_either(&tables.0)
    } else {
        path.look_up(&tables.0[0])
    }
}

/// Whether the number `(own, tie)` is below the threshold of these limbs.
#[inline(always)]
fn is_below<V: Vector>(own: &[V], tie: V, limbs: &[V], last: V) -> V::Mask {
    // From the last limb up, the borrow of one limb is subtracted from the next; limbs of 63 bits
    // leave room for it.
    let mut below = tie.less(last);
    for (own, limb) in own.iter().zip(limbs).rev() {
        below = own.decrease(below).less(*limb);
    }
    below
}
