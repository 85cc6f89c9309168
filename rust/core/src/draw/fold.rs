//! Folding: noise that would leave the bounds is reflected at them, back into the range.
//!
//! The noise comes from an unbounded [`Mechanism`] on `i64`. Counts are folded before the noise is
//! added; folding again afterwards is post-processing. Folding is straight-line code: the remainder
//! by the public period uses multiplication by its reciprocal, since the time of a division depends
//! on the dividend.

use crate::draw::Draws;
use crate::draw::ct;
use crate::draw::kernel::Count;
use crate::draw::kernel::sealed::Count as _;
use crate::draw::lanes::LANES;
use crate::draw::tape::{Tape, Words};
use crate::draw::wipe::without_trace;
use crate::mechanism::limits;
use crate::{Error, Mechanism, Rate};
use zeroize::Zeroizing;

/// Binary logarithm of the largest scale. The noise has room for `2^62` on either side before it
/// saturates, which has probability `exp(-2^62 / scale)`: below `2^-92`.
const MAX_SCALE_LOG2: u32 = 56;
/// Counts folded at a time.
const CHUNK: usize = 512;
const _: () = assert!(CHUNK.is_multiple_of(LANES));
/// The key of 0 as `i64`: see [`crate::draw::kernel::sealed::Count`].
const ZERO: u64 = 1 << 63;

/// The geometric mechanism with outputs folded into the bounds instead of censored.
///
/// Bounds may be half-integers: the outermost integers are then their own reflections.
#[derive(Debug)]
pub struct Folded {
    unfolded: Mechanism,
    /// The least and greatest output.
    least: i128,
    greatest: i128,
    /// Twice the width: after this many steps in one direction a count is back at its place.
    period: u64,
    /// Whether the lower bound is half a unit below the least output.
    half: bool,
}

impl Folded {
    /// The mechanism with this rate (`None` for scale 0: no noise), folded into the bounds. `twice`
    /// is the bounds times two.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the bounds are reversed or have no integer between them, or if the
    /// rate is below `2^-56`; [`Error::Overflow`] if they are `2^63` or more apart.
    pub fn new(rate: Option<Rate>, twice: (i128, i128)) -> Result<Self, Error> {
        let (lower, upper) = twice;
        let bounds = || format!("({}, {})", halves(lower), halves(upper));
        let (least, greatest) = (lower - lower.div_euclid(2), upper.div_euclid(2));
        if lower > upper || least > greatest {
            let accepted = "lower <= upper, with an integer between them";
            return Err(Error::parameter("bounds", bounds(), accepted));
        }
        let period = upper
            .checked_sub(lower)
            .and_then(|width| u64::try_from(width).ok());
        let period = period.ok_or_else(|| {
            Error::overflow("bounds", bounds(), "two values less than 2^63 apart")
        })?;
        if let Some(rate) = &rate
            && (rate.num() << MAX_SCALE_LOG2) < *rate.den()
        {
            let accepted = format!("a scale of at most 2^{MAX_SCALE_LOG2} for folding");
            let scale = format!("{}/{}", rate.den(), rate.num());
            return Err(Error::parameter("scale", scale, accepted));
        }
        Ok(Self {
            unfolded: Mechanism::new(rate, None)?,
            least,
            greatest,
            // With a single output, any period will do, but not 0.
            period: period.max(1),
            half: lower.rem_euclid(2) == 1,
        })
    }

    /// Draws for counts of type `T` from this source.
    ///
    /// # Errors
    /// [`Error::Overflow`] if type `T` cannot hold the bounds.
    pub fn draws<T: Count, W: Words>(&self, source: W) -> Result<FoldedDraws<'_, T, W>, Error> {
        let (kernel, lower) = self.unfolded.kernel_for()?;
        self.fold(Draws::new(kernel, lower, source))
    }

    /// Like [`Self::draws`], for the counts from an index on: see [`Draws::at`].
    ///
    /// # Errors
    /// Those of [`Self::draws`] and of [`Draws::at`].
    pub fn draws_at<T: Count>(
        &self,
        key: &[u8; 32],
        index: usize,
    ) -> Result<FoldedDraws<'_, T, Tape>, Error> {
        let (kernel, lower) = self.unfolded.kernel_for()?;
        self.fold(Draws::at(kernel, lower, key, index)?)
    }

    fn fold<'a, T: Count, W>(
        &self,
        draws: Draws<'a, i64, W>,
    ) -> Result<FoldedDraws<'a, T, W>, Error> {
        let (least, _) = limits::<T>(self.least, self.greatest)?;
        // Centre the range on the zero of `i64`, so that both sides have the same room.
        let middle = (self.greatest - self.least) / 2;
        Ok(FoldedDraws {
            least,
            before: self.reflection(-i128::from(least.to_key())),
            centre: ZERO.wrapping_sub(word(middle)),
            after: self.reflection(middle - i128::from(ZERO)),
            draws,
            chunk: Zeroizing::default(),
        })
    }

    /// Adds noise to the counts in place, with entropy from the operating system.
    ///
    /// # Errors
    /// Those of [`Self::draws`], and [`Error::Entropy`]. On error the counts are unchanged.
    pub fn release<T: Count>(&self, counts: &mut [T]) -> Result<(), Error> {
        limits::<T>(self.least, self.greatest)?;
        without_trace(|| self.draws(Tape::from_os()?)?.add_noise(counts))
    }

    /// The reflection of keys, where the least output has key `-shift`.
    fn reflection(&self, shift: i128) -> Reflection {
        let half = u64::from(self.half);
        Reflection {
            period: self.period,
            reciprocal: u64::MAX / self.period,
            shift: word(shift.rem_euclid(i128::from(self.period))),
            turn: (self.period - half) / 2,
            mirror: self.period - half,
        }
    }
}

/// Converts a distance within the bounds, which are less than `2^63` apart.
fn word(distance: i128) -> u64 {
    let Ok(word) = u64::try_from(distance) else {
        unreachable!("a distance within the bounds takes 63 bits")
    };
    word
}

/// Formats half of a number, with a fraction only if it is not an integer.
fn halves(twice: i128) -> String {
    let sign = if twice < 0 { "-" } else { "" };
    let fraction = if twice % 2 == 0 { "" } else { ".5" };
    format!("{sign}{}{fraction}", twice.unsigned_abs() / 2)
}

/// A map from keys to offsets in the range. All its fields are public parameters.
#[derive(Debug)]
struct Reflection {
    period: u64,
    reciprocal: u64,
    shift: u64,
    /// The greatest remainder in the rising half of the period; larger ones are in the falling
    /// half.
    turn: u64,
    /// The sum of two remainders that map to the same offset.
    mirror: u64,
}

impl Reflection {
    /// The offset of a key: `(key + shift) mod period`, or its mirror image.
    #[inline(always)]
    fn offset(&self, key: u64) -> u64 {
        // The quotient is exact or one too small: `reciprocal >= 2^64 / period - 1`.
        let product = u128::from(key) * u128::from(self.reciprocal);
        #[allow(clippy::cast_possible_truncation)]
        let quotient = (product >> 64) as u64;
        let rest = reduce(
            key.wrapping_sub(quotient.wrapping_mul(self.period)),
            self.period,
        );
        // `rest + shift - period`, or `rest + shift` if that is negative.
        let room = self.period - self.shift;
        let wraps = ct::mask(ct::borrow(rest, room, 0) ^ 1);
        let phase = rest
            .wrapping_add(self.shift)
            .wrapping_sub(wraps & self.period);
        let falls = ct::mask(ct::borrow(self.turn, phase, 0));
        ct::select(falls, self.mirror.wrapping_sub(phase), phase)
    }
}

/// `x - period` if that is not negative, else `x`.
#[inline(always)]
fn reduce(x: u64, period: u64) -> u64 {
    x.wrapping_sub(period & ct::mask(ct::borrow(x, period, 0) ^ 1))
}

/// Folded noise for counts that arrive in parts.
pub struct FoldedDraws<'a, T, W> {
    least: T,
    before: Reflection,
    /// The key, as `i64`, of the least output once it is centred for the noise.
    centre: u64,
    after: Reflection,
    draws: Draws<'a, i64, W>,
    /// Centred counts to which the noise is added.
    chunk: Zeroizing<Vec<i64>>,
}

impl<T: Count, W: Words> FoldedDraws<'_, T, W> {
    /// Adds noise to the next part of the counts. For the noise to equal that of a single call, the
    /// length of every part except the last should be a multiple of [`LANES`].
    ///
    /// # Errors
    /// Any error of the source. Some counts may have noise by then.
    pub fn add_noise(&mut self, counts: &mut [T]) -> Result<(), Error> {
        if self.chunk.len() < counts.len().min(CHUNK) {
            self.chunk = Zeroizing::new(vec![0; counts.len().min(CHUNK)]);
        }
        for part in counts.chunks_mut(CHUNK) {
            let wide = &mut self.chunk[..part.len()];
            fold_in(&self.before, self.centre, part, wide);
            self.draws.add_noise(wide)?;
            fold_out(&self.after, self.least, wide, part);
        }
        Ok(())
    }
}

impl<T, W> core::fmt::Debug for FoldedDraws<'_, T, W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("FoldedDraws { .. }")
    }
}

/// Folds the counts into the range, centred on zero.
#[inline(never)]
fn fold_in<T: Count>(reflection: &Reflection, centre: u64, counts: &[T], wide: &mut [i64]) {
    for (wide, count) in wide.iter_mut().zip(counts) {
        *wide = i64::from_key(centre.wrapping_add(reflection.offset(count.to_key())));
    }
}

/// Folds the noisy counts back into the range.
#[inline(never)]
fn fold_out<T: Count>(reflection: &Reflection, least: T, wide: &[i64], counts: &mut [T]) {
    for (count, wide) in counts.iter_mut().zip(wide) {
        let offset = reflection.offset(wide.to_key());
        *count = T::from_key(least.to_key().wrapping_add(offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Regression test, found by fuzzing: the difference of the bounds overflowed.
    #[test]
    fn bounds_at_the_limits_of_i128_are_an_error() {
        for twice in [(i128::MIN, i128::MAX), (-1, i128::MAX), (i128::MIN, 0)] {
            assert!(matches!(
                Folded::new(None, twice),
                Err(Error::Overflow { .. })
            ));
        }
    }

    /// Folding by definition: reflect until the value is inside. (With zero width it never would
    /// be.)
    fn slow(mut twice: i128, lower: i128, upper: i128) -> i128 {
        if lower == upper {
            return lower;
        }
        while twice < lower || twice > upper {
            twice = if twice < lower {
                2 * lower - twice
            } else {
                2 * upper - twice
            };
        }
        twice
    }

    /// Folding in one step of wide arithmetic, for distant values.
    fn wide(twice: i128, lower: i128, upper: i128) -> i128 {
        let place = (twice - lower).rem_euclid((2 * (upper - lower)).max(1));
        lower + place.min(2 * (upper - lower) - place)
    }

    fn noiseless(lower: i128, upper: i128) -> Folded {
        Folded::new(None, (lower, upper)).unwrap()
    }

    fn release<T: Count>(folded: &Folded, count: T) -> T {
        let mut counts = [count];
        folded.release(&mut counts).unwrap();
        counts[0]
    }

    #[test]
    fn every_byte_with_every_pair_of_bounds() {
        for lower in -50i128..=50 {
            for upper in lower..=50 {
                if lower == upper && lower % 2 != 0 {
                    assert!(Folded::new(None, (lower, upper)).is_err());
                    continue;
                }
                let folded = noiseless(lower, upper);
                let mut counts: Vec<i8> = (i8::MIN..=i8::MAX).collect();
                folded.release(&mut counts).unwrap();
                for (count, noisy) in (i8::MIN..=i8::MAX).zip(counts) {
                    let twice = slow(2 * i128::from(count), lower, upper);
                    assert_eq!(2 * i128::from(noisy), twice, "{count} {lower} {upper}");
                    assert_eq!(twice, wide(2 * i128::from(count), lower, upper));
                }
            }
        }
    }

    #[test]
    fn ranges_of_the_largest_width() {
        let most = i128::from(i64::MAX);
        for (lower, upper) in [
            (0, most),
            (-most - 1, -1),
            (-5, most - 5),
            (-1 << 62, (1 << 62) - 1),
        ] {
            let folded = noiseless(2 * lower, 2 * upper);
            for count in [i64::MIN, i64::MIN + 1, -6, -1, 0, 1, i64::MAX - 1, i64::MAX] {
                let expected = wide(2 * i128::from(count), 2 * lower, 2 * upper);
                assert_eq!(2 * i128::from(release(&folded, count)), expected);
            }
        }
        assert!(matches!(
            Folded::new(None, (-2, 2 * most)),
            Err(Error::Overflow { .. })
        ));
    }

    #[test]
    fn errors_name_the_parameter() {
        let message = |rate, twice| Folded::new(rate, twice).unwrap_err().to_string();
        assert!(message(None, (3, 1)).starts_with("bounds = (1.5, 0.5)"));
        assert!(message(None, (-1, -1)).starts_with("bounds = (-0.5, -0.5)"));
        assert!(message(None, (4, 0)).starts_with("bounds = (2, 0)"));
        let faint = Rate::from_scale(1e17).unwrap();
        assert!(message(Some(faint), (0, 10)).starts_with("scale"));
        for scale in [7e16, 2f64.powi(56)] {
            assert!(Folded::new(Some(Rate::from_scale(scale).unwrap()), (0, 10)).is_ok());
        }
        let above = Rate::from_scale(2f64.powi(56).next_up()).unwrap();
        assert!(message(Some(above), (0, 10)).starts_with("scale"));
        assert!(noiseless(0, 600).release(&mut [0u8]).is_err());
    }

    /// The noise has room on both sides, whatever the width of the bounds and the place of the
    /// count.
    #[test]
    fn noise_at_the_bounds_of_the_widest_range_is_reflected() {
        let most = i128::from(i64::MAX);
        let rate = || Some(Rate::from_scale(2f64.powi(50)).unwrap());
        let folded = Folded::new(rate(), (0, 2 * most)).unwrap();
        let key = [4; 32];
        let mut noise = [0i64; 64];
        let mechanism = Mechanism::new(rate(), None).unwrap();
        mechanism
            .release_with(&mut Tape::from_key(&key), &mut noise)
            .unwrap();
        for count in [0, i64::MAX] {
            let mut counts = [count; 64];
            let mut draws = folded.draws(Tape::from_key(&key)).unwrap();
            draws.add_noise(&mut counts).unwrap();
            for (noisy, noise) in counts.iter().zip(noise) {
                let twice = 2 * (i128::from(count) + i128::from(noise));
                assert_eq!(2 * i128::from(*noisy), wide(twice, 0, 2 * most));
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_wide_arithmetic(a: i64, b: i64, count: i64, half: bool) {
            let (a, b) = (2 * i128::from(a), 2 * i128::from(b) - i128::from(half));
            let (lower, upper) = (a.min(b), a.max(b));
            if let Ok(folded) = Folded::new(None, (lower, upper)) {
                let expected = wide(2 * i128::from(count), lower, upper);
                prop_assert_eq!(2 * i128::from(release(&folded, count)), expected);
            }
        }

        #[test]
        fn small_ranges_far_away(near: u64, width in 1i128..1000, count: u64) {
            let lower = 2 * i128::from(near);
            let upper = (lower + width).min(2 * i128::from(u64::MAX));
            let folded = noiseless(lower, upper);
            let expected = wide(2 * i128::from(count), lower, upper);
            prop_assert_eq!(2 * i128::from(release(&folded, count)), expected);
        }

        /// A folded release is an unbounded release, folded.
        #[test]
        fn agrees_with_the_folded_unbounded_mechanism(key: [u8; 32], count in -20i64..50) {
            let rate = || Some(Rate::from_scale(30.0).unwrap());
            let folded = Folded::new(rate(), (-1, 41)).unwrap();
            let mut counts = [count; 3];
            let mut tape = Tape::from_key(&key);
            folded.draws(&mut tape).unwrap().add_noise(&mut counts).unwrap();
            let start = wide(2 * i128::from(count), -1, 41) / 2;
            let mut plain = [i64::try_from(start).unwrap(); 3];
            Mechanism::new(rate(), None).unwrap()
                .release_with(&mut Tape::from_key(&key), &mut plain).unwrap();
            for (folded, plain) in counts.iter().zip(plain) {
                prop_assert_eq!(2 * i128::from(*folded), wide(2 * i128::from(plain), -1, 41));
            }
        }
    }
}
