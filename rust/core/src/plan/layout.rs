//! The layout of a plan's digits: their number, radices and cost.

/// Largest radix of the top digit, which need not be a power of two.
const MAX_TOP_RADIX: usize = 32;
/// Most bits of a digit below the top one.
const MAX_RADIX_BITS: u32 = 5;
/// The cost of a word of tape: its AES rounds, and its transfer to the kernel.
const WORD: usize = 18;
/// Binary places of the noise scale.
pub(super) const SCALE_BITS: u32 = 16;

/// About what it costs to find a number's place among thresholds of so many limbs, in comparisons of
/// a limb: some thresholds compared one by one, others by a guide and steps.
pub(crate) fn search_cost(single: usize, guided: usize, steps: usize, limbs: usize) -> usize {
    single * limbs
        + match guided {
            0 => 0,
            1..16 => 3 * limbs + 2 + 2 * steps,
            // Tables of twice the size.
            _ => 3 * limbs + 5 + 3 * steps,
        }
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

    /// The layout of least cost for a noise scale of about `scale / 2^SCALE_BITS`.
    pub(super) fn cheapest(reach: u64, limbs: usize, scale: u128) -> Self {
        let cost = Cost { limbs, scale };
        // More bits would leave nothing for the top digit.
        let most = u64::BITS - 1 - reach.leading_zeros();
        // For each shift: the least cost of the digits from there up, and the bits of the first of
        // them, or 0 for the top digit.
        let mut best = vec![(usize::MAX, 0); most as usize + 1];
        for shift in (0..=most).rev() {
            let top = usize::try_from(reach.div_ceil(1 << shift)).unwrap_or(usize::MAX);
            if top < MAX_TOP_RADIX {
                // Digit 0 alone leaves no word for the floor's value.
                let value = if shift == 0 { WORD } else { 0 };
                best[shift as usize] = (value + cost.digit(shift, top, limbs), 0);
            }
            for bits in 1..=MAX_RADIX_BITS.min(most - shift) {
                let last = (1 << bits) - 1;
                let digit = cost.digit(shift, last, cost.own(shift, last));
                let total = digit.saturating_add(best[(shift + bits) as usize].0);
                if total < best[shift as usize].0 {
                    best[shift as usize] = (total, bits);
                }
            }
        }
        let (mut radix_bits, mut shift) = (Vec::new(), 0);
        while let (_, bits @ 1..) = best[shift as usize] {
            radix_bits.push(bits);
            shift += bits;
        }
        let Some(layout) = Self::fit(radix_bits, reach) else {
            unreachable!("with all bits below it, a top digit of radix 3 reaches everything")
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
}

/// The approximate cost of digits.
struct Cost {
    /// Own words of a high digit.
    limbs: usize,
    /// The noise scale in units of `2^-SCALE_BITS`.
    scale: u128,
}

impl Cost {
    /// How many multiples of a digit's weight make this many times the noise scale, in units of
    /// 1/16.
    fn multiples(&self, times: u128, shift: u32) -> u128 {
        self.scale.saturating_mul(times) >> (shift + 4 + SCALE_BITS)
    }

    /// The own words of a low digit whose last value is this one: enough for its probability,
    /// about `exp(-last * weight / scale)`, beside the slack in the rate.
    fn own(&self, shift: u32, last: usize) -> usize {
        let scale_log2 = 128 - (self.scale >> SCALE_BITS).leading_zeros();
        let covered = |own: &usize| {
            let bits = (63 * own - 2).saturating_sub(scale_log2 as usize);
            // 11/16 is about the logarithm of 2.
            last as u128 <= self.multiples(11 * bits as u128, shift)
        };
        (1..self.limbs).find(covered).unwrap_or(self.limbs)
    }

    /// The cost of a digit with so many thresholds and own words.
    fn digit(&self, shift: u32, thresholds: usize, own: usize) -> usize {
        // Digit 0 has two more outcomes.
        let all = thresholds + if shift == 0 { 2 } else { 0 };
        let limbs = own + 1;
        // Threshold `k` is about `1 - exp(-k * weight / scale)`. The guide's last cell starts at
        // `1 - 1/32`, and keys have 31 bits.
        let up_to = |times| {
            usize::try_from(self.multiples(times, shift))
                .unwrap_or(all)
                .min(thresholds)
        };
        let (spread, told_apart) = (up_to(55), up_to(330));
        let guided = (told_apart + all - thresholds).min(31);
        let in_last_cell = told_apart - spread.min(told_apart);
        let steps = in_last_cell.next_power_of_two().ilog2() as usize;
        let guide = search_cost(all - guided, guided, steps, limbs);
        own * WORD + guide.min(search_cost(all, 0, 0, limbs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let reaches = (0..64).flat_map(|bits| [(1 << bits), (1 << bits) + 1, u64::MAX >> bits]);
        for (reach, scale) in
            reaches.flat_map(|reach| [0, 1 << SCALE_BITS, u128::MAX].map(|scale| (reach, scale)))
        {
            let layout = Layout::cheapest(reach, 2, scale);
            let weight = 1u128 << layout.radix_bits.iter().sum::<u32>();
            assert!((layout.top_radix as u128 - 1) * weight >= reach.into());
            assert!((layout.radix_bits.iter()).all(|bits| (1..=MAX_RADIX_BITS).contains(bits)));
        }
    }
}
