//! The thresholds of a digit in tables that fit vector registers.

use crate::plan::digit::{self, Threshold};
use crate::plan::layout::search_cost;
use core::{array, iter};

/// Entries of a lookup table.
pub(super) const TABLE: usize = 16;
/// Cells of a guide: the upper five bits of a word.
pub(super) const CELLS: usize = 1 << CELL_BITS;
pub(super) const CELL_BITS: u32 = 5;
/// The largest number of steps after a guide.
const MAX_STEPS: u32 = 5;

/// A digit as the kernel reads it.
#[derive(Clone, Debug)]
pub(super) struct Digit {
    pub(super) shift: u32,
    pub(super) limbs: usize,
    /// The length of `thresholds`. A field, so that the z3 proof of the draw holds for any.
    pub(super) count: usize,
    /// The thresholds, in ascending order.
    pub(super) thresholds: Vec<Threshold>,
    pub(super) guide: Guide,
}

/// The same thresholds arranged so that the upper 31 bits of the first own word, the key, lead to
/// one of them, with which the number is compared in full. Paths count guided thresholds from the
/// last one down: path `p` leads to the threshold that has `p` above it.
#[derive(Clone, Debug)]
pub(super) struct Guide {
    /// The thresholds without the guide, compared one by one.
    pub(super) single: Vec<Threshold>,
    /// For each cell, how many guided thresholds lie in the cells above it.
    pub(super) cells: [u8; CELLS],
    /// For each step, the smallest first, the key below which a number's path goes down by the step,
    /// `2^i` thresholds for the one at place `i`: that of the lowest of these. Each step halves the
    /// number of thresholds left in a cell.
    pub(super) steps: Vec<Tables>,
    /// For each limb, the last one first, the halves of the threshold at the end of each path; empty
    /// if no threshold is guided. Beyond the first threshold are zeros, which every number reaches.
    pub(super) ends: Vec<Ends>,
    /// Whether paths need both tables in a row.
    pub(super) wide: bool,
}

/// Two tables in a row, by path.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Tables(pub(super) [[u32; TABLE]; 2]);

/// The halves of one limb of the thresholds.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    pub(super) low: Tables,
    pub(super) high: Tables,
}

impl Digit {
    pub(super) fn new(digit: &digit::Digit, limb_bits: u32) -> Self {
        let (limbs, thresholds) = (digit.limbs, &digit.thresholds);
        Self {
            shift: digit.shift,
            limbs,
            count: thresholds.len(),
            guide: Guide::new(thresholds, limbs + 1, limb_bits),
            thresholds: thresholds.clone(),
        }
    }
}

/// Thresholds with their keys, in ascending order.
type Keyed = Vec<(u32, Threshold)>;

/// Splits thresholds into those compared one by one and those that so many steps tell apart: with
/// different keys, and up to `2^steps` in a cell.
fn split(thresholds: &[Threshold], limb_bits: u32, steps: u32) -> (Vec<Threshold>, Keyed) {
    let room = match limb_bits {
        // A cell has bits beyond the limb.
        0..CELL_BITS => 0,
        // The path beyond the first threshold has an entry as well.
        _ => 2 * TABLE - 1,
    };
    let (mut single, mut guided) = (Vec::new(), Vec::new());
    let (mut least, mut left) = (0, [1 << steps; CELLS]);
    for threshold in thresholds {
        let key = (threshold[0] << (64 - limb_bits) >> 33) as u32;
        let left = &mut left[cell(key)];
        if key >= least && *left > 0 && guided.len() < room {
            guided.push((key, *threshold));
            (least, *left) = (key + 1, *left - 1);
        } else {
            single.push(*threshold);
        }
    }
    (single, guided)
}

fn cell(key: u32) -> usize {
    (key >> (31 - CELL_BITS)) as usize
}

impl Guide {
    /// The guide of least cost.
    fn new(thresholds: &[Threshold], limbs: usize, limb_bits: u32) -> Self {
        let none = (0, (thresholds.to_vec(), Vec::new()));
        let splits = (0..=MAX_STEPS).map(|steps| (steps, split(thresholds, limb_bits, steps)));
        let all = iter::once(none).chain(splits);
        let least = all.min_by_key(|(steps, (single, guided))| {
            search_cost(single.len(), guided.len(), *steps as usize, limbs)
        });
        let (steps, (single, mut guided)) = least.unwrap_or_default();
        let above = |i: usize| guided.iter().map(move |(key, _)| u8::from(cell(*key) > i));
        let cells = array::from_fn(|i| above(i).sum());
        let (none, wide) = (guided.is_empty(), guided.len() >= TABLE);
        guided.reverse();
        guided.resize(3 * TABLE, (0, Threshold::default()));
        let step = |level: u32| Tables::new(|path| guided[path + (1 << level) - 1].0);
        let half = |limb: usize, left: u32| {
            Tables::new(|path| (guided[path].1[limb] << left >> 32) as u32)
        };
        let ends = |limb| Ends {
            low: half(limb, 32),
            high: half(limb, 0),
        };
        let order = iter::once(limbs - 1).chain(0..limbs - 1);
        Self {
            single,
            cells,
            steps: (0..steps).map(step).collect(),
            ends: order.filter(|_| !none).map(ends).collect(),
            wide,
        }
    }
}

impl Tables {
    fn new(entry: impl Fn(usize) -> u32) -> Self {
        Self([0, TABLE].map(|first| array::from_fn(|i| entry(first + i))))
    }
}
