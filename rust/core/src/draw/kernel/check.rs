//! Whether the tables of a kernel are those of its plan's thresholds.

use super::Kernel;
use super::search::{ByGuide, Halves, OneByOne, Search};
use super::tables::{CELL_BITS, CELLS, Digit, Lead, TABLE, Tables};
use crate::plan::LIMB_BITS;
use crate::plan::digit::{self, Threshold};

impl Kernel {
    /// Checks that the kernel's tables and masks are those of its plan's thresholds, for every
    /// number that a digit can have. The plan must be of full width.
    ///
    /// # Panics
    /// If they are not, which is a bug of this crate.
    pub fn check_tables(&self) {
        let plan = &self.plan;
        assert_eq!(plan.limb_bits, LIMB_BITS, "limbs of full width");
        assert_eq!(self.digits.len(), plan.digits.len());
        for (tables, digit) in self.digits.iter().zip(&plan.digits) {
            tables.check(digit);
        }
        // Digit 0's value is taken modulo its radix if there is a digit above, of that weight.
        let modulus = match &plan.digits[..] {
            [_, next, ..] if plan.is_two_sided() => next.weight().wrapping_sub(1),
            [] => 0,
            _ => u64::MAX,
        };
        assert_eq!(plan.low_mask, modulus, "the mask of digit 0");
        assert!(
            plan.sign_mask == 1 || plan.sign_mask == 0 && plan.certificate().is_none(),
            "the mask of the sign"
        );
    }
}

impl Digit {
    /// Compares both searches, as the kernel calls them, with the number of thresholds reached.
    ///
    /// A search only compares the number with numbers in the tables, in whole or by its upper bits,
    /// or looks up its cell, or, where its first limbs are full of ones, compares the others. So its
    /// result changes at most at these points: a cell's least number, the least number with a key
    /// of the tables, the least number with so many full limbs, and a threshold of the tables. The
    /// true result changes at the thresholds alone. Sorted, all these points and 0 cut the numbers
    /// into intervals on which both results are constant, so that it suffices to try each of them,
    /// as the least number of its interval. This holds whatever is in the tables, in any order, but
    /// for the full limb.
    pub(super) fn check(&self, digit: &digit::Digit) {
        let (guide, thresholds) = (&self.guide, &digit.thresholds);
        assert_eq!((self.shift, self.limbs), (digit.shift, digit.limbs));
        let upper = |key: u32| [u64::from(key) << 32, 0, 0, 0];
        let cells = guide.lead.starts().map(upper);
        let steps = guide.steps.iter().map(|Tables(keys)| keys.as_flattened());
        let keys = steps.flatten().map(|key| upper(*key));
        let ends = (0..2 * TABLE).map(|path| {
            let mut number = Threshold::default();
            if let Some((last, own)) = guide.ends.split_first() {
                for (limb, ends) in number.iter_mut().zip(own.iter().chain([last])) {
                    let half = |Tables(half): &Tables| half.as_flattened()[path];
                    *limb = u32::join(half(&ends.low), half(&ends.high));
                }
            }
            number
        });
        let full = (1 << LIMB_BITS) - 1;
        let nested = guide.nested.iter().flat_map(|nested| {
            assert_eq!(nested.full, full, "a full limb");
            (1..)
                .zip(nested.levels.iter().flatten())
                .flat_map(move |(ones, level)| {
                    let thresholds = level
                        .thresholds
                        .iter()
                        .copied()
                        .chain([Threshold::default()]);
                    thresholds.map(move |mut number| {
                        number[..ones].fill(full);
                        number
                    })
                })
        });
        let whole = [thresholds, &self.thresholds, &guide.single]
            .into_iter()
            .flatten();
        let points = cells.chain(keys).chain(ends).chain(nested);
        for number in points.chain(whole.copied()) {
            // Comparisons take no greater limbs.
            assert!(number.iter().all(|limb| limb >> LIMB_BITS == 0));
            let reached = thresholds.iter().filter(|&each| *each <= number).count() as u64;
            assert_eq!(self.find::<OneByOne>(&number), reached, "one by one");
            assert_eq!(self.find::<ByGuide<u32>>(&number), reached, "by the guide");
        }
    }

    /// What a search finds for this number.
    fn find<S: Search<u64>>(&self, number: &Threshold) -> u64 {
        fn by<const LIMBS: usize, S: Search<u64>>(digit: &Digit, number: &Threshold) -> u64 {
            let mut own = [0; LIMBS];
            own.copy_from_slice(&number[..LIMBS]);
            S::reached(digit, number[0] << 1, &own, number[LIMBS])
        }
        match self.limbs {
            1 => by::<1, S>(self, number),
            2 => by::<2, S>(self, number),
            _ => by::<3, S>(self, number),
        }
    }
}

impl Lead {
    /// The least key of each cell.
    fn starts(self) -> impl Iterator<Item = u32> {
        (0..=31).map(move |cell| match self {
            Self::Upper => cell << (31 - CELL_BITS),
            Self::Shifted(shift) => cell << shift,
            Self::Ones => (1 << 31) - (1 << (31 - cell)),
        })
    }
}

/// A half-word of one draw: an entry of a table where it does not exist is a panic.
impl Halves for u32 {
    type Words = u64;

    fn splat(half: u32) -> Self {
        half
    }

    fn upper(word: u64) -> Self {
        (word >> 32) as u32
    }

    fn join(low: Self, high: Self) -> u64 {
        u64::from(high) << 32 | u64::from(low)
    }

    fn shr(self, bits: u32) -> Self {
        self >> bits
    }

    fn min(self, other: Self) -> Self {
        Ord::min(self, other)
    }

    fn leading_ones(self) -> Self {
        (self & !1).leading_ones()
    }

    fn cell(self, cells: &[u8; CELLS]) -> Self {
        cells[self as usize].into()
    }

    fn look_up(self, table: &[u32; TABLE]) -> Self {
        table[self as usize]
    }

    fn look_up_either(self, tables: &[[u32; TABLE]; 2]) -> Self {
        tables.as_flattened()[self as usize]
    }

    fn step(self, key: Self, node: Self, weight: u32) -> Self {
        assert!(key >> 31 == 0 && node >> 31 == 0, "keys of 31 bits");
        self + if key < node { weight } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables::{Guide, MAX_STEPS};
    use super::*;

    /// Every number of thresholds, with up to three of the same key, spread over all cells or
    /// crowded into the last or the first ones, by each lead with any number of steps.
    #[test]
    fn guides_to_any_thresholds_lead_to_their_places() {
        for (count, same, crowd) in (1..=40).flat_map(|count| {
            [(1, 0), (2, 0), (3, 0), (1, 1), (1, 5), (1, 20)]
                .map(|(same, crowd)| (count, same, crowd))
        }) {
            let gap = |x: u64| ((count + 1 - x.div_ceil(same)) << 25) >> crowd;
            let last = |x| (1 << 31) - 1 - gap(x);
            let first = |x| gap(1) - gap(x);
            for thresholds in [
                (1..=count)
                    .map(|x| [(last(x) << 32) + x, 10 * x, 0, 0])
                    .collect(),
                (1..=count)
                    .map(|x| [(first(x) << 32) + x, 10 * x, 0, 0])
                    .collect::<Vec<_>>(),
            ] {
                check_each_way(&thresholds, 1);
            }
        }
    }

    /// Thresholds that start with no, one, two or three full limbs, so many of each.
    #[test]
    fn thresholds_that_start_with_full_limbs_are_found() {
        const FULL: u64 = (1 << LIMB_BITS) - 1;
        for counts in 0..1_u64 << 8 {
            let count = |full: usize| counts >> (2 * full) & 3;
            for limbs in 1..=3 {
                let mut thresholds = Vec::new();
                for full in 0..=limbs {
                    for x in 0..count(full) {
                        let mut threshold = Threshold::default();
                        threshold[..full].fill(FULL);
                        threshold[full] = FULL - 9 + x;
                        threshold[full + 1..=limbs].fill(x * 7);
                        thresholds.push(threshold);
                    }
                }
                check_each_way(&thresholds, limbs);
            }
        }
    }

    fn check_each_way(thresholds: &[Threshold], limbs: usize) {
        let digit = digit::Digit {
            shift: 0,
            limbs,
            thresholds: thresholds.to_vec(),
        };
        let mut tables = Digit::new(&digit, LIMB_BITS);
        tables.check(&digit);
        let shifted = (0..31 - CELL_BITS).map(Lead::Shifted);
        for lead in shifted.chain([Lead::Upper, Lead::Ones]) {
            for steps in 0..=MAX_STEPS {
                let way = Some((lead, steps));
                tables.guide = Guide::by(way, thresholds, limbs + 1, LIMB_BITS);
                tables.check(&digit);
            }
        }
    }
}
