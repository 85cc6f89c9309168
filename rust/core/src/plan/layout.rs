//! The layout of a plan's digits: their number, radices and cost.

/// Largest radix of the top digit, which need not be a power of two.
const MAX_TOP_RADIX: usize = 32;
/// Most bits of a digit below the top one.
const MAX_RADIX_BITS: u32 = 4;

/// About how many comparisons of a limb it takes to search `thresholds`: two for each level of a tree
/// of up to 15, one for each threshold outside it.
pub(crate) fn comparisons(thresholds: usize) -> usize {
    static TREE: [usize; 16] = [0, 2, 3, 4, 5, 6, 6, 6, 7, 8, 8, 8, 8, 8, 8, 8];
    TREE[thresholds.min(15)] + thresholds.saturating_sub(15)
}

/// The radices of the digits.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Binary logarithms of the radices of the digits below the top one.
    pub(super) radix_bits: Vec<u32>,
    pub(super) top_radix: usize,
}

impl Layout {
    /// The layout with these digits and the smallest top digit with `(top_radix - 1) * weight >=
    /// reach`. `None` if that digit is too large.
    pub(super) fn fit(radix_bits: Vec<u32>, reach: u64) -> Option<Self> {
        let weight = 1u64.checked_shl(radix_bits.iter().sum())?;
        let top_radix = usize::try_from(reach.div_ceil(weight))
            .ok()?
            .checked_add(1)?;
        (top_radix <= MAX_TOP_RADIX).then_some(Self {
            radix_bits,
            top_radix,
        })
    }

    /// The layout of least cost, with bits split as evenly as possible among the digits below the
    /// top one.
    pub(super) fn cheapest(reach: u64, limbs: usize) -> Self {
        // More bits would leave nothing for the top digit; fewer would be too much for it.
        let most = u64::BITS - 1 - reach.leading_zeros();
        let layouts = (most.saturating_sub(4)..=most).flat_map(|bits| {
            (1..=MAX_RADIX_BITS).filter_map(move |radix_bits| {
                let lower = bits.div_ceil(radix_bits);
                let even = (0..lower).map(|j| (bits + lower - 1 - j) / lower);
                Self::fit(even.collect(), reach)
            })
        });
        let Some(layout) = layouts.min_by_key(|layout| layout.cost(reach, limbs)) else {
            unreachable!("with 63 bits below it, a top digit of radix 3 reaches 2^64")
        };
        layout
    }

    /// Binary logarithms of the digits' weights, including the top digit's.
    pub(super) fn shifts(&self) -> Vec<u32> {
        let mut shifts = vec![0];
        for bits in &self.radix_bits {
            shifts.push(shifts[shifts.len() - 1] + bits);
        }
        shifts
    }

    /// The approximate cost of a draw in limb comparisons of the AVX-512 back end. A word of
    /// keystream costs fourteen AES rounds, each about one comparison, and its transfer to the
    /// kernel.
    fn cost(&self, reach: u64, limbs: usize) -> usize {
        const WORD: usize = 15;
        let digit = |j: usize, thresholds: usize, own: usize| {
            // Digit 0 has two more outcomes.
            let thresholds = thresholds + if j == 0 { 2 } else { 0 };
            own * WORD + (own + 1) * comparisons(thresholds)
        };
        let mut cost = digit(self.radix_bits.len(), self.top_radix - 1, limbs);
        let mut shift = 0;
        for (j, bits) in self.radix_bits.iter().enumerate() {
            let last = (1usize << bits) - 1;
            // Digits with a rare last value usually need more words.
            let rare = (last as u128) << shift > u128::from(reach / 3);
            cost += digit(j, last, if rare { limbs } else { 1 });
            shift += bits;
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 15 for each own word; for each limb, one per threshold outside the tree and two per level of
    /// the tree.
    #[test]
    fn the_cost_of_a_layout() {
        let cost = |radix_bits: &[u32], top_radix, reach, limbs| {
            let radix_bits = radix_bits.to_vec();
            Layout {
                radix_bits,
                top_radix,
            }
            .cost(reach, limbs)
        };
        // Five digits in radix 4, with a rare last value at weight 4^4, and radix 9 on top.
        // Thresholds: 5, 3, 3, 3 of two limbs in 3, 2, 2, 2 levels; 3 and 8 of three limbs, in 2
        // levels, and in 3 levels with one threshold outside the tree.
        let bits = [2; 5];
        let limbs = 2 * (6 + 3 * 4) + 3 * (4 + 7);
        assert_eq!(cost(&bits, 9, 2000, 2), 8 * 15 + limbs);
        // 3 * 4^4 is at most a third of 2304.
        let limbs = 2 * (6 + 4 * 4) + 3 * 7;
        assert_eq!(cost(&bits, 9, 2304, 2), 7 * 15 + limbs);
        // One word for each digit.
        let limbs = 2 * (6 + 4 * 4 + 7);
        assert_eq!(cost(&bits, 9, 2000, 1), 6 * 15 + limbs);
        // The top digit alone, of three words: three thresholds of four limbs.
        assert_eq!(cost(&[], 2, 1, 3), 3 * 15 + 4 * 4);
    }

    #[test]
    fn a_layout_covers_its_reach() {
        let fit = |radix_bits: &[u32], reach| {
            Layout::fit(radix_bits.to_vec(), reach).map(|layout| layout.top_radix)
        };
        assert_eq!(fit(&[], 1), Some(2));
        assert_eq!(fit(&[2; 3], 64), Some(2));
        assert_eq!(fit(&[2; 3], 65), Some(3));
        assert_eq!(fit(&[], MAX_TOP_RADIX as u64 - 1), Some(MAX_TOP_RADIX));
        assert_eq!(fit(&[], MAX_TOP_RADIX as u64), None);
        assert_eq!(fit(&[4; 15], u64::MAX), Some(17));
        assert_eq!(fit(&[4; 16], 1), None);
        assert_eq!(fit(&[1; 63], u64::MAX), Some(3));
        let uneven = Layout::fit(vec![4, 4, 3, 3], 100_000).unwrap();
        assert_eq!(uneven.shifts(), [0, 4, 8, 11, 14]);
        assert_eq!(uneven.top_radix, 8);
    }

    /// Every reach has a layout.
    #[test]
    fn the_cheapest_layout_exists() {
        for reach in (0..64).flat_map(|bits| [(1 << bits), (1 << bits) + 1, u64::MAX >> bits]) {
            let layout = Layout::cheapest(reach, 2);
            let weight = 1u128 << layout.radix_bits.iter().sum::<u32>();
            assert!((layout.top_radix as u128 - 1) * weight >= reach.into());
            assert!((layout.radix_bits.iter()).all(|bits| (1..=MAX_RADIX_BITS).contains(bits)));
        }
    }
}
