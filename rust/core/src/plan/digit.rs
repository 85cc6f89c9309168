//! A digit of the noise: its thresholds, and how to find a number's place among them.

use num_bigint::BigUint;

/// Entries of a table that a vector register can be looked up in.
pub(crate) const TABLE: usize = 8;
/// Most levels of a search: the last one's table holds [`TABLE`] thresholds.
const MAX_LEVELS: u32 = TABLE.ilog2() + 1;

/// One digit of the noise and the thresholds that cut the unit interval into its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Digit {
    /// The digit counts steps of `2^shift`.
    pub(crate) shift: u32,
    /// Words of tape of the digit's own; one more limb is compared with the shared word.
    pub(crate) limbs: usize,
    /// How many thresholds there are; kept, so that the kernel need not divide.
    pub(crate) count: usize,
    /// Limbs of the thresholds, ascending, each most significant limb first.
    pub(crate) thresholds: Vec<u64>,
    pub(crate) search: Search,
}

/// The same thresholds for a binary search: the first few one by one, the others as a balanced tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Search {
    /// How many of the first thresholds are not in the tree.
    pub(crate) single: usize,
    /// The limbs of the threshold at the root; none if there is no tree.
    pub(crate) root: Vec<u64>,
    /// For each level below the root, for each limb: the nodes of the level. Where a number is below a
    /// node it goes down to lower thresholds, a step that counts 1. The steps so far, as the bits of
    /// `i` with the first as the highest, lead to the entry `-i`, modulo [`TABLE`].
    pub(crate) tables: Vec<[u64; TABLE]>,
}

impl Digit {
    /// The digit with these thresholds: limbs, ascending, each most significant limb first.
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

    /// The value of one step.
    #[must_use]
    pub fn weight(&self) -> u64 {
        1 << self.shift
    }

    /// Words of tape of the digit's own.
    #[must_use]
    pub fn limbs(&self) -> usize {
        self.limbs
    }

    /// The thresholds as integers of `limb_bits * (limbs + 1)` bits, ascending.
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
    /// Levels of the tree for so many thresholds, and how many are left out of it: up to one more
    /// than a full tree has, or all that are more than fit the largest one.
    fn shape(count: usize) -> (u32, usize) {
        let levels = (count + 1).ilog2().min(MAX_LEVELS);
        match count + 1 - (1 << levels) {
            single if single > 1 && levels < MAX_LEVELS => (levels + 1, 0),
            single => (levels, single),
        }
    }

    /// Comparisons with so many thresholds; a step of the tree costs as much as two.
    pub(crate) fn cost(count: usize) -> usize {
        let (levels, single) = Self::shape(count);
        2 * levels as usize + single
    }

    fn new(thresholds: &[u64], limbs: usize) -> Self {
        let count = thresholds.len() / limbs;
        let (levels, single) = Self::shape(count);
        let mut tables = Vec::new();
        for level in 1..levels {
            // This level's nodes, counted from the last threshold down, are so far apart.
            let apart = 1 << (levels - level);
            for limb in 0..limbs {
                let mut table = [0; TABLE];
                for node in 0..1 << level {
                    let place = count.checked_sub(node * apart + apart / 2);
                    // Any number has reached the zeros that fill the tree up.
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

    /// What the kernel does with the tables, for every number of thresholds and every place among them.
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
                assert_eq!(count - less as u64, number, "of {count}");
            }
        }
    }

    #[test]
    fn a_tree_is_full_or_nearly_so() {
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
