//! A digit of the noise: its thresholds, and the search for a number's place among them.

use num_bigint::BigUint;

/// Entries of a lookup table that fits a vector register.
pub(crate) const TABLE: usize = 8;
/// The largest number of levels of a search: the table of the last level holds [`TABLE`]
/// thresholds.
const MAX_LEVELS: u32 = TABLE.ilog2() + 1;

/// One digit of the noise and the thresholds that cut the unit interval into its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Digit {
    /// The digit's weight is `2^shift`.
    pub(crate) shift: u32,
    /// The digit's own words of tape. Thresholds have one limb more, which is compared with the
    /// shared word.
    pub(crate) limbs: usize,
    /// Number of thresholds. Stored so that the kernel need not divide.
    pub(crate) count: usize,
    /// Limbs of the thresholds, in ascending order, each threshold's most significant limb first.
    pub(crate) thresholds: Vec<u64>,
    pub(crate) search: Search,
}

/// The same thresholds arranged for a binary search: the first few are compared one by one, the
/// others form a balanced tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Search {
    /// How many thresholds at the start are outside the tree.
    pub(crate) single: usize,
    /// The limbs of the root's threshold; empty if there is no tree.
    pub(crate) root: Vec<u64>,
    /// For each level below the root, one table per limb. The search goes down to lower thresholds
    /// (1) if the number is below a node's threshold, else up (0). Read the path as a binary number
    /// `i`, first step highest: the node is at entry `(TABLE - i) % TABLE`.
    pub(crate) tables: Vec<[u64; TABLE]>,
}

impl Digit {
    /// Creates the digit with these thresholds, given as limbs in ascending order, each threshold's
    /// most significant limb first.
    pub(crate) fn new(shift: u32, limbs: usize, thresholds: Vec<u64>) -> Self {
        let count = thresholds.len() / (limbs + 1);
        Self {
            shift,
            limbs,
            count,
            search: Search::new(&thresholds, limbs + 1),
            thresholds,
        }
    }

    /// The digit's weight.
    #[must_use]
    pub fn weight(&self) -> u64 {
        1 << self.shift
    }

    /// The digit's own words of tape.
    #[must_use]
    pub fn limbs(&self) -> usize {
        self.limbs
    }

    /// The thresholds as integers of `limb_bits * (limbs + 1)` bits, in ascending order.
    #[must_use]
    pub fn thresholds(&self, limb_bits: u32) -> Vec<BigUint> {
        self.thresholds
            .chunks_exact(self.limbs + 1)
            .map(|limbs| {
                limbs
                    .iter()
                    .fold(BigUint::ZERO, |sum, limb| (sum << limb_bits) + limb)
            })
            .collect()
    }
}

impl Search {
    /// Returns the levels of a tree for `count` thresholds, and how many thresholds stay outside
    /// it: at most one, or all that the largest tree cannot hold.
    fn shape(count: usize) -> (u32, usize) {
        let levels = (count + 1).ilog2().min(MAX_LEVELS);
        match count + 1 - (1 << levels) {
            single if single > 1 && levels < MAX_LEVELS => (levels + 1, 0),
            single => (levels, single),
        }
    }

    /// The cost of a search among `count` thresholds, in comparisons; a step in the tree costs two.
    pub(crate) fn cost(count: usize) -> usize {
        let (levels, single) = Self::shape(count);
        2 * levels as usize + single
    }

    fn new(thresholds: &[u64], limbs: usize) -> Self {
        let count = thresholds.len() / limbs;
        let (levels, single) = Self::shape(count);
        let mut tables = Vec::new();
        for level in 1..levels {
            // Distance between this level's nodes, counted down from the last threshold.
            let spacing = 1 << (levels - level);
            for limb in 0..limbs {
                let mut table = [0; TABLE];
                for node in 0..1 << level {
                    let place = count.checked_sub(node * spacing + spacing / 2);
                    // Unused entries are zero, which every number reaches.
                    let entry = place.map_or(0, |place| thresholds[place * limbs + limb]);
                    table[(TABLE - node) % TABLE] = entry;
                }
                tables.push(table);
            }
        }
        let root = match levels {
            0 => Vec::new(),
            _ => thresholds[(count - (1 << (levels - 1))) * limbs..][..limbs].to_vec(),
        };
        Self {
            single,
            root,
            tables,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repeats the kernel's search for every number of thresholds and every place among them.
    #[test]
    fn a_search_finds_every_place() {
        for count in 1..=40_u64 {
            let thresholds = (1..=count).flat_map(|x| [x, 10 * x]).collect();
            let digit = Digit::new(0, 1, thresholds);
            assert_eq!(digit.count as u64, count);
            let Search {
                single,
                root,
                tables,
            } = &digit.search;
            for number in 0..=count {
                let own = (number, 10 * number);
                let below = |threshold: (u64, u64)| usize::from(own < threshold);
                let mut less = below((root[0], root[1]));
                for table in tables.chunks_exact(2) {
                    let entry = (TABLE - less) % TABLE;
                    less = 2 * less + below((table[0][entry], table[1][entry]));
                }
                less += (1..=*single as u64)
                    .map(|x| below((x, 10 * x)))
                    .sum::<usize>();
                assert_eq!(count - less as u64, number, "{count} thresholds");
            }
        }
    }

    #[test]
    fn a_tree_is_full_or_nearly_full() {
        let shapes = [1, 2, 3, 4, 5, 7, 8, 9, 14, 15, 16, 17, 33].map(Search::shape);
        let expected = [
            (1, 0),
            (1, 1),
            (2, 0),
            (2, 1),
            (3, 0),
            (3, 0),
            (3, 1),
            (4, 0),
            (4, 0),
            (4, 0),
            (4, 1),
            (4, 2),
            (4, 18),
        ];
        assert_eq!(shapes, expected);
    }
}
