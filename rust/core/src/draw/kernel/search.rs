//! Counts how many of a digit's thresholds a uniform number has reached. Every comparison is made,
//! whatever the results.

use super::tables::{Digit, Ends, TABLE};
use super::vector::Vector;
use crate::plan::digit::Threshold;
use core::marker::PhantomData;

/// A way to find a number's place among a digit's thresholds.
pub(super) trait Search<V> {
    /// How many of the digit's thresholds the uniform number `(own, tie)` has reached. `own` is the
    /// upper bits of the digit's own words, and `first` is the first of these words.
    fn reached<const LIMBS: usize>(digit: &Digit, first: V, own: &[V; LIMBS], tie: V) -> V;
}

/// Compares the number with each threshold.
pub(super) struct OneByOne;

impl<V: Vector> Search<V> for OneByOne {
    #[inline(always)]
    fn reached<const LIMBS: usize>(digit: &Digit, _first: V, own: &[V; LIMBS], tie: V) -> V {
        one_by_one(&digit.thresholds, digit.count as u64, own, tie)
    }
}

/// Vectors with a lookup in a table that fits a register.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(super) trait LookUp: Vector {
    /// The table's entry for each word; only a word's low three bits count.
    fn look_up(self, table: &[u64; TABLE]) -> Self;
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
    /// The table's entry for each half-word; those are below [`TABLE`].
    fn look_up(self, table: &[u32; TABLE]) -> Self;
    /// The entry of both tables in a row for each half-word.
    fn look_up_either(self, tables: &[[u32; TABLE]; 2]) -> Self;
    /// `2 * self`, plus one where `key < node`; both are below `2^31`.
    fn step(self, key: Self, node: Self) -> Self;
}

/// `count` minus the number of these thresholds that `(own, tie)` is below.
#[inline(always)]
fn one_by_one<const LIMBS: usize, V: Vector>(
    thresholds: &[Threshold],
    count: u64,
    own: &[V; LIMBS],
    tie: V,
) -> V {
    let mut reached = V::splat(count);
    for threshold in thresholds {
        let mut limbs = [V::splat(0); LIMBS];
        for (limb, word) in limbs.iter_mut().zip(threshold) {
            *limb = V::splat(*word);
        }
        let below = is_below(own, tie, &limbs, V::splat(threshold[LIMBS]));
        reached = reached.decrease(below);
    }
    reached
}

/// A binary search of the digit's tree.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(super) struct ByTree;

impl<V: LookUp> Search<V> for ByTree {
    #[inline(always)]
    fn reached<const LIMBS: usize>(digit: &Digit, _first: V, own: &[V; LIMBS], tie: V) -> V {
        let tree = &digit.tree;
        let mut less = one_by_one(&tree.root, 0, own, tie);
        for tables in tree.tables.chunks_exact(LIMBS + 1) {
            let mut limbs = [V::splat(0); LIMBS];
            for (limb, table) in limbs.iter_mut().zip(tables) {
                *limb = less.look_up(table);
            }
            let below = is_below(own, tie, &limbs, less.look_up(&tables[LIMBS]));
            less = less.add(less).decrease(below);
        }
        let single = &digit.thresholds[..tree.single];
        less.add(one_by_one(single, digit.count as u64, own, tie))
    }
}

/// A search by keys, and a comparison with the threshold that is left.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code)
)]
pub(super) struct ByKey<H>(PhantomData<H>);

impl<V: Vector, H: Halves<Words = V>> Search<V> for ByKey<H> {
    #[inline(always)]
    fn reached<const LIMBS: usize>(digit: &Digit, first: V, own: &[V; LIMBS], tie: V) -> V {
        let keys = &digit.keys;
        let reached = one_by_one(&keys.single, digit.count as u64, own, tie);
        let Some((root, levels)) = keys.levels.split_first() else {
            return reached;
        };
        let (key, zero) = (H::upper(first.shr(1)), H::splat(0));
        let mut path = zero.step(key, H::splat(root[0]));
        for level in levels {
            path = path.step(key, path.look_up(level));
        }
        let mut limbs = [tie; LIMBS];
        for (limb, table) in limbs.iter_mut().zip(&keys.ends) {
            *limb = end(path, table);
        }
        let below = is_below(own, tie, &limbs, end(path, &keys.ends[LIMBS]));
        reached.sub(H::join(path, zero)).decrease(below)
    }
}

/// Looks up a limb of the threshold at the end of each path.
#[inline(always)]
fn end<H: Halves>(path: H, limb: &Ends) -> H::Words {
    H::join(
        path.look_up_either(&limb.low),
        path.look_up_either(&limb.high),
    )
}

/// Whether the number `(own, tie)` is below the threshold of these limbs.
#[inline(always)]
fn is_below<const LIMBS: usize, V: Vector>(
    own: &[V; LIMBS],
    tie: V,
    limbs: &[V; LIMBS],
    last: V,
) -> V::Mask {
    // From the last limb up, the borrow of one limb is subtracted from the next; limbs of 63 bits
    // leave room for it.
    let mut below = tie.less(last);
    for (own, limb) in own.iter().zip(limbs).rev() {
        below = own.decrease(below).less(*limb);
    }
    below
}
