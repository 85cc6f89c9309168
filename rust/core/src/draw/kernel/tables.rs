//! The thresholds of a digit in tables that fit vector registers.

use crate::plan::digit::{self, Threshold};
use core::array;

/// Entries of a lookup table that fits a vector register.
pub(super) const TABLE: usize = 8;
/// The largest number of levels of a search: the table of the last level holds [`TABLE`]
/// thresholds.
const MAX_LEVELS: u32 = TABLE.ilog2() + 1;
/// The largest number of paths through a search by keys.
const PATHS: usize = 2 * TABLE;
/// The fewest thresholds for which a search by keys costs less than a comparison with each.
const MIN_KEYS: usize = 6;

/// A digit as the kernel reads it.
#[derive(Clone, Debug)]
pub(super) struct Digit {
    pub(super) shift: u32,
    pub(super) limbs: usize,
    /// The length of `thresholds`. A field, so that the z3 proof of the draw holds for any.
    pub(super) count: usize,
    /// The thresholds, in ascending order.
    pub(super) thresholds: Vec<Threshold>,
    pub(super) tree: Tree,
    pub(super) keys: Keys,
}

/// The same thresholds arranged for a binary search: the first few are compared one by one, the
/// others form a balanced tree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// How many thresholds at the start are outside the tree.
    pub(super) single: usize,
    /// The root's threshold; empty if there is no tree.
    pub(super) root: Vec<Threshold>,
    /// For each level below the root, one table per limb. The search goes down to lower thresholds
    /// (1) if the number is below a node's threshold, else up (0). Read the path as a binary number
    /// `i`, first step highest: the node is at entry `(TABLE - i) % TABLE`.
    pub(super) tables: Vec<[u64; TABLE]>,
}

/// The same thresholds arranged for a search by keys: the upper 31 bits of the first own word. No
/// two thresholds in the tree share a key, so the search leaves one, with which the number is
/// compared in full. Thresholds outside the tree are compared one by one.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// The thresholds outside the tree.
    pub(super) single: Vec<Threshold>,
    /// For each level, the keys of its nodes; empty if there is no tree. The search goes down to
    /// lower thresholds (1) if the number's key is below a node's, else up (0). Read the path as a
    /// binary number, first step highest: it is the node's entry.
    pub(super) levels: Vec<[u32; TABLE]>,
    /// For each limb, the halves of the threshold at the end of each path.
    pub(super) ends: Vec<Ends>,
}

/// The halves of one limb of the thresholds at the ends of the paths, as two tables in a row.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    pub(super) low: [[u32; TABLE]; 2],
    pub(super) high: [[u32; TABLE]; 2],
}

impl Digit {
    pub(super) fn new(digit: &digit::Digit, limb_bits: u32) -> Self {
        let (limbs, thresholds) = (digit.limbs, &digit.thresholds);
        Self {
            shift: digit.shift,
            limbs,
            count: thresholds.len(),
            tree: Tree::new(thresholds, limbs + 1),
            keys: Keys::new(thresholds, limbs + 1, limb_bits),
            thresholds: thresholds.clone(),
        }
    }
}

impl Tree {
    /// Returns the levels of a tree for `count` thresholds, and how many thresholds stay outside
    /// it: at most one, or all that the largest tree cannot hold.
    fn shape(count: usize) -> (u32, usize) {
        let levels = (count + 1).ilog2().min(MAX_LEVELS);
        match count + 1 - (1 << levels) {
            single if single > 1 && levels < MAX_LEVELS => (levels + 1, 0),
            single => (levels, single),
        }
    }

    fn new(thresholds: &[Threshold], limbs: usize) -> Self {
        let count = thresholds.len();
        let (levels, single) = Self::shape(count);
        let mut tables = Vec::new();
        for level in 1..levels {
            // Distance between this level's nodes, counted down from the last threshold.
            let spacing = 1 << (levels - level);
            // Unused entries are zero, which every number reaches.
            let mut nodes = [Threshold::default(); TABLE];
            for node in 0..1 << level {
                if let Some(place) = count.checked_sub(node * spacing + spacing / 2) {
                    nodes[(TABLE - node) % TABLE] = thresholds[place];
                }
            }
            tables.extend((0..limbs).map(|limb| nodes.map(|threshold| threshold[limb])));
        }
        let root = match levels {
            0 => Vec::new(),
            _ => vec![thresholds[count - (1 << (levels - 1))]],
        };
        Self {
            single,
            root,
            tables,
        }
    }
}

impl Keys {
    fn new(thresholds: &[Threshold], limbs: usize, limb_bits: u32) -> Self {
        let (mut single, mut tree) = (Vec::new(), Vec::with_capacity(PATHS));
        let mut least = 0;
        for threshold in thresholds {
            let key = (threshold[0] << (64 - limb_bits) >> 33) as u32;
            if key >= least && tree.len() < PATHS - 1 {
                tree.push((key, *threshold));
                least = key + 1;
            } else {
                single.push(*threshold);
            }
        }
        if tree.len() < MIN_KEYS {
            single = thresholds.to_vec();
            tree.clear();
        }
        // Paths count thresholds down from the last one. Those beyond the first lead to zeros, which
        // every number reaches.
        tree.reverse();
        tree.resize(PATHS, (0, Threshold::default()));
        let height = (thresholds.len() - single.len() + 1)
            .next_power_of_two()
            .ilog2();
        let levels = (0..height).map(|level| {
            let spacing = 1 << (height - level);
            let nodes = tree.iter().skip(spacing / 2 - 1).step_by(spacing);
            let mut table = [0; TABLE];
            for (entry, (key, _)) in table.iter_mut().zip(nodes).take(1 << level) {
                *entry = *key;
            }
            table
        });
        let half = |limb: usize, left: u32| {
            let entry = |path: usize| (tree[path].1[limb] << left >> 32) as u32;
            [0, TABLE].map(|first| array::from_fn(|i| entry(first + i)))
        };
        let ends = |limb| Ends {
            low: half(limb, 32),
            high: half(limb, 0),
        };
        Self {
            single,
            levels: levels.collect(),
            ends: (0..limbs).map(ends).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::comparisons;

    /// Repeats the kernel's searches for every number of thresholds and every place among them,
    /// with up to three thresholds of the same key.
    #[test]
    fn a_search_finds_every_place() {
        for (count, same) in (1..=40).flat_map(|count| [(count, 1), (count, 2), (count, 3)]) {
            // The key is the upper half of the first limb.
            let first = |x: u64| (x.div_ceil(same) << 32) + x;
            let thresholds = (1..=count).map(|x| [first(x), 10 * x, 0, 0]);
            let digit = digit::Digit {
                shift: 0,
                limbs: 1,
                thresholds: thresholds.collect(),
            };
            let digit = Digit::new(&digit, 63);
            assert_eq!(digit.count as u64, count);
            for number in 0..=2 * count + 1 {
                // Each threshold, and just below it, with the same key.
                let next = number.div_ceil(2);
                let own = (first(next), 10 * next - number % 2);
                let below = |threshold: (u64, u64)| usize::from(own < threshold);
                let one_by_one = |thresholds: &[Threshold]| {
                    let below = thresholds.iter().map(|x| below((x[0], x[1])));
                    below.sum::<usize>()
                };

                let tree = &digit.tree;
                let mut less = one_by_one(&tree.root);
                for table in tree.tables.chunks_exact(2) {
                    let entry = (TABLE - less) % TABLE;
                    less = 2 * less + below((table[0][entry], table[1][entry]));
                }
                less += one_by_one(&digit.thresholds[..tree.single]);
                assert_eq!(count - less as u64, number / 2, "{count} thresholds");

                let keys = &digit.keys;
                let key = (own.0 >> 32) as u32;
                let path = keys
                    .levels
                    .iter()
                    .fold(0, |path, level| 2 * path + usize::from(key < level[path]));
                let end = |limb: usize| {
                    let Ends { low, high } = &keys.ends[limb];
                    let [low, high] = [low, high].map(|half| u64::from(half.as_flattened()[path]));
                    (high << 32) + low
                };
                let mut less = one_by_one(&keys.single);
                if !keys.levels.is_empty() {
                    less += path + below((end(0), end(1)));
                }
                assert_eq!(
                    count - less as u64,
                    number / 2,
                    "{count} thresholds by keys"
                );
            }
        }
    }

    #[test]
    fn a_search_costs_what_a_plan_assumes() {
        for count in 0..40 {
            let (levels, single) = Tree::shape(count);
            assert_eq!(comparisons(count), 2 * levels as usize + single);
        }
    }

    #[test]
    fn a_tree_is_full_or_nearly_full() {
        let shapes = [1, 2, 3, 4, 5, 7, 8, 9, 14, 15, 16, 17, 33].map(Tree::shape);
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
