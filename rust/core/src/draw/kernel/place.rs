//! Counts how many of a digit's thresholds a uniform number has reached. Every comparison is made,
//! whatever the results.

use super::vector::Vector;
use crate::plan::digit::{Digit, TABLE};

/// How a vector type finds a number's place among a digit's thresholds.
pub(super) trait Place: Vector {
    /// How many of the digit's thresholds the uniform number `(own, tie)` has reached.
    #[inline(always)]
    fn reached<const LIMBS: usize>(digit: &Digit, own: &[Self; LIMBS], tie: Self) -> Self {
        one_by_one::<LIMBS, Self>(&digit.thresholds, digit.count as u64, own, tie)
    }
}

impl Place for u64 {}

/// Vectors with a lookup in a table that fits a register.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(super) trait LookUp: Vector {
    /// The table's entry for each word; only a word's low three bits count.
    fn look_up(self, table: &[u64; TABLE]) -> Self;
}

/// `count` minus the number of these thresholds that `(own, tie)` is below.
#[inline(always)]
pub(super) fn one_by_one<const LIMBS: usize, V: Vector>(
    thresholds: &[u64],
    count: u64,
    own: &[V; LIMBS],
    tie: V,
) -> V {
    let mut reached = V::splat(count);
    for threshold in thresholds.chunks_exact(LIMBS + 1) {
        let mut limbs = [V::splat(0); LIMBS];
        for (limb, word) in limbs.iter_mut().zip(threshold) {
            *limb = V::splat(*word);
        }
        let below = is_below(own, tie, &limbs, V::splat(threshold[LIMBS]));
        reached = reached.decrease(below);
    }
    reached
}

/// Finds the place by a binary search of the digit's tree.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[inline(always)]
pub(super) fn search<const LIMBS: usize, V: LookUp>(digit: &Digit, own: &[V; LIMBS], tie: V) -> V {
    let search = &digit.search;
    let mut less = one_by_one(&search.root, 0, own, tie);
    for tables in search.tables.chunks_exact(LIMBS + 1) {
        let mut limbs = [V::splat(0); LIMBS];
        for (limb, table) in limbs.iter_mut().zip(tables) {
            *limb = less.look_up(table);
        }
        let below = is_below(own, tie, &limbs, less.look_up(&tables[LIMBS]));
        less = less.add(less).decrease(below);
    }
    let single = &digit.thresholds[..search.single * (LIMBS + 1)];
    less.add(one_by_one(single, digit.count as u64, own, tie))
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
