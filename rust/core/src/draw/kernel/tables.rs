//! The thresholds of a digit in tables that fit vector registers.

use crate::plan::MAX_LIMBS;
use crate::plan::digit::{self, Threshold};
use crate::plan::layout::search_cost;
use core::{array, iter};

/// Entries of a lookup table.
pub(super) const TABLE: usize = 16;
/// Cells of a guide.
pub(super) const CELLS: usize = 1 << CELL_BITS;
pub(super) const CELL_BITS: u32 = 5;
/// The largest number of steps after a guide.
pub(super) const MAX_STEPS: u32 = 5;

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
    /// Those of them that start with limbs full of ones, where comparing these once pays.
    pub(super) nested: Option<Nested>,
    /// How a key leads to its cell.
    pub(super) lead: Lead,
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

/// A function from keys to cells that never falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    /// The upper bits.
    Upper,
    /// The key without so many bits, or the last cell for all keys beyond it.
    Shifted(u32),
    /// The number of the key's leading ones.
    Ones,
}

/// Thresholds that start with limbs full of ones.
#[derive(Clone, Debug)]
pub(super) struct Nested {
    /// Such a limb.
    pub(super) full: u64,
    /// Those that start with one of them, two and so on, if there are any with as many or more.
    pub(super) levels: [Option<Level>; MAX_LIMBS],
}

/// Thresholds that start with so many full limbs.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// Those that start with no more.
    pub(super) thresholds: Vec<Threshold>,
    /// How many there are, those with more included.
    pub(super) all: u64,
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

/// A lead and a number of steps, or no guide.
pub(super) type Way = Option<(Lead, u32)>;

/// The keys of the thresholds that so many steps tell apart: they have different keys, and up to
/// `2^steps` of them are in a cell. The others are compared one by one.
fn guided_by(
    way: Way,
    thresholds: &[Threshold],
    limb_bits: u32,
) -> impl Iterator<Item = Option<u32>> {
    // Cells may depend on bits beyond the limb.
    let way = way.filter(|(lead, _)| lead.bits() <= limb_bits);
    // The path beyond the first threshold has an entry as well.
    let mut room = way.map_or(0, |_| 2 * TABLE - 1);
    let (lead, steps) = way.unwrap_or((Lead::Upper, 0));
    let (mut least, mut left) = (0, [1 << steps; CELLS]);
    thresholds.iter().map(move |threshold| {
        let key = key_of(threshold, limb_bits);
        let left = &mut left[lead.cell(key)];
        (key >= least && *left > 0 && room > 0).then(|| {
            (least, *left, room) = (key + 1, *left - 1, room - 1);
            key
        })
    })
}

/// The upper 31 bits of a word with this first limb.
fn key_of(threshold: &Threshold, limb_bits: u32) -> u32 {
    (threshold[0] << (64 - limb_bits) >> 33) as u32
}

impl Lead {
    fn cell(self, key: u32) -> usize {
        match self {
            Self::Upper => (key >> (31 - CELL_BITS)) as usize,
            Self::Shifted(shift) => CELLS.min((key >> shift) as usize + 1) - 1,
            Self::Ones => (key << 1).leading_ones() as usize,
        }
    }

    /// The upper bits of a key that its cell depends on.
    fn bits(self) -> u32 {
        match self {
            Self::Upper => CELL_BITS,
            Self::Shifted(shift) => 31 - shift,
            Self::Ones => 31,
        }
    }

    /// What it takes beyond the upper bits alone, in comparisons of a limb.
    fn cost(self) -> usize {
        match self {
            Self::Upper => 0,
            Self::Shifted(_) => 1,
            Self::Ones => 3,
        }
    }
}

impl Nested {
    /// Takes the thresholds that start with limbs full of ones out of these, if that pays.
    fn take(single: &mut Vec<Threshold>, limbs: usize, limb_bits: u32) -> Option<Self> {
        let full = u64::MAX >> (64 - limb_bits);
        let ones = |threshold: &Threshold| {
            let own = threshold[..limbs - 1].iter();
            own.take_while(|limb| **limb == full).count()
        };
        let levels = array::from_fn(|level| {
            let these = |more: bool| {
                let accepted = move |ones| ones == level + 1 || more && ones > level;
                single.iter().filter(move |each| accepted(ones(each)))
            };
            let all = these(true).count() as u64;
            (all > 0).then(|| Level {
                thresholds: these(false).copied().collect(),
                all,
            })
        });
        // Each level spares the comparison of one limb, and costs as much.
        let saved: u64 = levels.iter().flatten().map(|level| level.all - 1).sum();
        (saved > 0).then(|| {
            single.retain(|threshold| ones(threshold) == 0);
            Self { full, levels }
        })
    }
}

impl Guide {
    /// The guide of least cost.
    fn new(thresholds: &[Threshold], limbs: usize, limb_bits: u32) -> Self {
        // The last threshold has the last cell.
        let last = thresholds.last().map_or(0, |last| key_of(last, limb_bits));
        let shift = (u32::BITS - CELL_BITS).saturating_sub(last.leading_zeros());
        let leads = [Lead::Upper, Lead::Shifted(shift), Lead::Ones];
        let ways = leads.map(|lead| (0..=MAX_STEPS).map(move |steps| Some((lead, steps))));
        let all = iter::once(None).chain(ways.into_iter().flatten());
        let least = all.min_by_key(|way| {
            let guided = guided_by(*way, thresholds, limb_bits).flatten().count();
            let (lead, steps) = way.map_or((0, 0), |(lead, steps)| (lead.cost(), steps));
            lead + search_cost(thresholds.len() - guided, guided, steps as usize, limbs)
        });
        Self::by(least.flatten(), thresholds, limbs, limb_bits)
    }

    pub(super) fn by(way: Way, thresholds: &[Threshold], limbs: usize, limb_bits: u32) -> Self {
        let (mut single, mut guided) = (Vec::new(), Vec::new());
        for (threshold, key) in thresholds.iter().zip(guided_by(way, thresholds, limb_bits)) {
            match key {
                Some(key) => guided.push((key, *threshold)),
                None => single.push(*threshold),
            }
        }
        let (lead, steps) = way.unwrap_or((Lead::Upper, 0));
        let above = |i: usize| {
            guided
                .iter()
                .map(move |(key, _)| u8::from(lead.cell(*key) > i))
        };
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
            nested: Nested::take(&mut single, limbs, limb_bits),
            single,
            lead,
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
