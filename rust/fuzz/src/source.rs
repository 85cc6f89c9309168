//! Makes choices from the bytes of an input while they last, then from a generator seeded by them.

use arbitrary::Unstructured;
use geomdp_core::Rate;
use geomdp_core::plan::{Plan, Widths};
use num_bigint::BigUint;

/// The source of a target's choices.
pub struct Source<'a> {
    bytes: Unstructured<'a>,
    state: u64,
}

impl<'a> Source<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        let state = data.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self {
            bytes: Unstructured::new(data),
            state,
        }
    }

    /// Any word.
    pub fn word(&mut self) -> u64 {
        if self.bytes.len() >= 8 {
            return self.bytes.arbitrary().unwrap_or(0);
        }
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, from one byte of the input if that is enough.
    pub fn below(&mut self, n: u64) -> u64 {
        if n <= 256 && !self.bytes.is_empty() {
            return u64::from(self.bytes.arbitrary::<u8>().unwrap_or(0)) % n;
        }
        self.word() % n
    }

    /// A number from `low` to `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    pub fn pick<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.below(options.len() as u64) as usize]
    }

    /// A word of any bit length, often at the limits of that length.
    pub fn sized(&mut self) -> u64 {
        let greatest = u64::MAX >> self.below(64);
        match self.below(4) {
            0 => greatest,
            1 => greatest / 2 + 1,
            _ => self.word() & greatest,
        }
    }

    /// Two numbers that fit an integer type, or none.
    pub fn pair(&mut self) -> (i128, i128) {
        let mut end = || match self.below(6) {
            0 => i128::from(self.word()) << 64 | i128::from(self.word()),
            1 => self.pick(&[i128::MIN, i128::MAX, -1, 0, 1, 1 << 63, -(1 << 63), 1 << 64]),
            2 => -i128::from(self.sized()),
            _ => i128::from(self.sized()),
        };
        let (one, other) = (end(), end());
        if self.below(8) == 0 {
            (one, other)
        } else {
            (one.min(other), one.max(other))
        }
    }

    /// Any float64, often with a moderate exponent.
    pub fn float(&mut self) -> f64 {
        let word = self.word();
        match self.below(8) {
            0..4 => f64::from_bits(self.between(1023 - 120, 1023 + 30) << 52 | word >> 12),
            4 => f64::from_bits(word),
            5 => f64::from_bits(word >> 12),
            6 => (word % 1000) as f64 / 100.0,
            _ => self.pick(&[
                0.0,
                -0.0,
                1.0,
                -1.0,
                f64::NAN,
                f64::INFINITY,
                f64::MAX,
                f64::MIN_POSITIVE,
                5e-324,
                1.0 - f64::EPSILON / 2.0,
            ]),
        }
    }

    /// An integer of up to 1600 bits.
    pub fn big(&mut self) -> BigUint {
        let words = self.pick(&[1, 1, 1, 2, 3, 5, 25]);
        let sum = (0..words).fold(BigUint::ZERO, |sum, _| (sum << 64u32) + self.word());
        sum >> self.below(64)
    }

    /// A valid rate, if the choices give one.
    pub fn rate(&mut self) -> Option<Rate> {
        match self.below(8) {
            0 => Rate::from_ratio(self.big(), self.big()).ok(),
            1 => Rate::from_epsilon(self.float(), self.sized()).ok(),
            2 => Rate::from_scale(self.float()).ok(),
            // Between 2^-130 and 2^20, which covers the interesting cases.
            _ => {
                let (num, den) = (self.between(1, 200), self.between(1, 200));
                let shift = self.pick(&[0, 0, 3, 9, 20, 40, 70, 110, 130]) + self.below(20);
                Rate::from_ratio(num.into(), BigUint::from(den) << shift).ok()
            }
        }
    }

    /// Widths from those of the exhaustive tests to full width.
    pub fn widths(&mut self) -> Widths {
        Widths {
            limb_bits: self.between(3, 63) as u32,
            slack_bits: self.between(1, 60) as u32,
            limbs: self.between(1, 3) as usize,
        }
    }

    /// Reduced widths and digits, and the resulting plan, if any.
    pub fn reduced(&mut self, rate: &Rate, range: u64) -> Option<(Widths, Plan)> {
        let widths = self.widths();
        let radix_bits: Vec<_> = (0..self.below(16))
            .map(|_| self.between(1, 4) as u32)
            .collect();
        let plan = Plan::reduced(rate, range, &widths, &radix_bits);
        Some((widths, plan.expect("no enclosure is too wide")?))
    }
}
