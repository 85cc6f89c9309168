//! The layout of a plan's digits: their number, radices and cost.

use super::digit::Search;

/// Largest radix of the top digit, which need not be a power of two.
const MAX_TOP_RADIX: usize = 32;

/// The radices of the digits.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Binary logarithms of the radices of the digits below the top one.
    pub(super) radix_bits: Vec<u32>,
    pub(super) top_radix: usize,
}

impl Layout {
    /// The layout with `bits` bits split as evenly as possible among `lower` digits, and the
    /// smallest top digit with `(top_radix - 1) * weight >= reach`. `None` if that digit is too
    /// large.
    pub(super) fn fit(bits: u32, lower: u32, reach: u64) -> Option<Self> {
        if bits >= 64 {
            return None;
        }
        let top_radix = usize::try_from(reach.div_ceil(1 << bits))
            .ok()?
            .checked_add(1)?;
        (top_radix <= MAX_TOP_RADIX).then(|| Self {
            radix_bits: (0..lower).map(|j| (bits + lower - 1 - j) / lower).collect(),
            top_radix,
        })
    }

    /// The layout of least cost.
    pub(super) fn cheapest(reach: u64, limbs: usize) -> Self {
        // More bits would leave nothing for the top digit.
        let most = u64::BITS - reach.leading_zeros();
        let layouts = (1..=4).flat_map(|radix_bits| {
            (0..=most).filter_map(move |bits| Self::fit(bits, bits.div_ceil(radix_bits), reach))
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
            own * WORD + (own + 1) * Search::cost(thresholds)
        };
        let lower = self.radix_bits.iter().zip(self.shifts()).enumerate();
        let costs = lower.map(|(j, (bits, shift))| {
            let last = (1usize << bits) - 1;
            // Digits with a rare last value usually become high digits.
            let rare = (last as u128) << shift > u128::from(reach / 3);
            digit(j, last, if rare { limbs } else { 1 })
        });
        costs.sum::<usize>() + digit(self.radix_bits.len(), self.top_radix - 1, limbs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(radix_bits: u32, lower: usize, top_radix: usize) -> Layout {
        Layout {
            radix_bits: vec![radix_bits; lower],
            top_radix,
        }
    }

    /// 15 for each own word; for each limb, one per threshold outside the tree and two per level of
    /// the tree.
    #[test]
    fn the_cost_of_a_layout() {
        // Five digits in radix 4, with a rare last value at weight 4^4, and radix 9 on top.
        // Thresholds: 5, 3, 3, 3 of two limbs in 3, 2, 2, 2 levels; 3 and 8 of three limbs, in 2
        // levels, and in 3 levels with one threshold outside the tree.
        let limbs = 2 * (6 + 3 * 4) + 3 * (4 + 7);
        assert_eq!(layout(2, 5, 9).cost(2000, 2), 8 * 15 + limbs);
        // 3 * 4^4 is at most a third of 2304.
        let limbs = 2 * (6 + 4 * 4) + 3 * 7;
        assert_eq!(layout(2, 5, 9).cost(2304, 2), 7 * 15 + limbs);
        // One word for each digit.
        let limbs = 2 * (6 + 4 * 4 + 7);
        assert_eq!(layout(2, 5, 9).cost(2000, 1), 6 * 15 + limbs);
        // The top digit alone, of three words: three thresholds of four limbs.
        assert_eq!(layout(1, 0, 2).cost(1, 3), 3 * 15 + 4 * 4);
    }

    #[test]
    fn a_layout_covers_its_reach() {
        let fit = |radix_bits, lower, reach| {
            Layout::fit(radix_bits * lower, lower, reach).map(|layout| layout.top_radix)
        };
        assert_eq!(fit(1, 0, 0), Some(1));
        assert_eq!(fit(2, 3, 64), Some(2));
        assert_eq!(fit(2, 3, 65), Some(3));
        assert_eq!(fit(1, 0, MAX_TOP_RADIX as u64 - 1), Some(MAX_TOP_RADIX));
        assert_eq!(fit(1, 0, MAX_TOP_RADIX as u64), None);
        assert_eq!(fit(4, 15, u64::MAX), Some(17));
        assert_eq!(fit(4, 16, 1), None);
        assert_eq!(fit(1, 63, u64::MAX), Some(3));
        let uneven = Layout::fit(14, 4, 100_000).unwrap();
        assert_eq!(uneven.radix_bits, [4, 4, 3, 3]);
        assert_eq!(uneven.shifts(), [0, 4, 8, 11, 14]);
        assert_eq!(uneven.top_radix, 8);
    }
}
