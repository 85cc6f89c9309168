//! The places of the largest noisy counts, and no counts: section 19 of `docs/proofs.md`.
//!
//! Each place is drawn with noise of its own, among those that are left. The places that are drawn
//! stay secret until all are: earlier ones are left out by comparing every place with them.

use crate::draw::Draws;
pub use crate::draw::kernel::Best;
use crate::draw::kernel::{Count, Kernel, Rule, WIDEST};
use crate::draw::lanes::LANES;
use crate::draw::tape::{Tape, Words};
use crate::draw::wipe::without_trace;
use crate::mechanism::limits;
use crate::{Error, Mechanism};
use core::marker::PhantomData;
use zeroize::Zeroizing;

/// Binary logarithm of the largest scale. Noise of `2^61` counts as infinite, with probability
/// `exp(-2^61 / scale)`: below `2^-369`.
const MAX_SCALE_LOG2: u32 = 53;
/// Counts compared at a time.
const CHUNK: usize = 512;
const _: () = assert!(CHUNK.is_multiple_of(LANES));

/// Draws the place of the largest noisy count, for counts that may arrive in parts.
pub struct Pick<'a, T, W> {
    rule: Rule<'a>,
    draws: Draws<'a, u64, W>,
    noise: Zeroizing<Vec<u64>>,
    next: u64,
    best: Best,
    counts: PhantomData<T>,
}

impl<'a, T: Count, W: Words> Pick<'a, T, W> {
    /// Draws with this kernel's plan from this source. Counts are clamped to the window; the places
    /// in `named` are left out.
    ///
    /// # Panics
    /// If the plan's range is not one less than a power of two, or if it is below 7; if the ends of
    /// the window are reversed, or `2^62` or more apart.
    pub fn new(kernel: &'a Kernel, window: (T, T), source: W, named: &'a [u64]) -> Self {
        Self::from(Draws::new(kernel, 0, source), 0, window, named)
    }

    fn from(draws: Draws<'a, u64, W>, next: u64, window: (T, T), named: &'a [u64]) -> Self {
        let (least, greatest) = (window.0.to_key(), window.1.to_key());
        assert!(least <= greatest, "the window has ends in order");
        Self {
            rule: Rule::new(draws.kernel.plan(), least, greatest - least, named),
            draws,
            noise: Zeroizing::default(),
            next,
            best: Best::default(),
            counts: PhantomData,
        }
    }

    /// Compares the next part of the counts. For the noise to equal that of a single call, the
    /// length of every part except the last should be a multiple of [`LANES`].
    ///
    /// # Errors
    /// Any error of the source.
    pub fn compare(&mut self, counts: &[T]) -> Result<(), Error> {
        let need = counts.len().min(CHUNK).next_multiple_of(LANES);
        if self.noise.len() < need {
            self.noise = Zeroizing::new(vec![0; need]);
        }
        for part in counts.chunks(CHUNK) {
            let noise = &mut self.noise[..part.len().next_multiple_of(LANES)];
            noise.fill(self.rule.middle());
            self.draws.add_noise(noise)?;
            let (kernel, best) = (self.draws.kernel, &mut self.best);
            kernel.compare(&self.rule, self.next, noise, part, best);
            self.next += part.len() as u64;
        }
        Ok(())
    }

    /// The largest sums of these counts. The place of the largest is public only together with
    /// those of the whole call.
    #[must_use]
    pub fn best(self) -> Best {
        self.best
    }
}

impl<T, W> core::fmt::Debug for Pick<'_, T, W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Pick { .. }")
    }
}

impl Mechanism {
    /// Draws the place of the largest noisy count from this source. Counts are clamped to the bounds
    /// and, in wider bounds than that, to the `2^62` values nearest to 0; sums are not clamped. The
    /// places in `named` are left out.
    ///
    /// # Errors
    /// [`Error::Overflow`] if type `T` cannot hold the bounds; [`Error::Parameter`] if the scale is
    /// above `2^53`.
    pub fn pick<'a, T: Count, W: Words>(
        &'a self,
        source: W,
        named: &'a [u64],
    ) -> Result<Pick<'a, T, W>, Error> {
        let (kernel, window) = self.noise_and_window()?;
        Ok(Pick::new(kernel, window, source, named))
    }

    /// Like [`Self::pick`], for the counts from an index on: see [`Draws::at`].
    ///
    /// # Errors
    /// Those of [`Self::pick`] and of [`Draws::at`].
    pub fn pick_at<'a, T: Count>(
        &'a self,
        key: &[u8; 32],
        index: usize,
        named: &'a [u64],
    ) -> Result<Pick<'a, T, Tape>, Error> {
        let (kernel, window) = self.noise_and_window()?;
        let draws = Draws::at(kernel, 0, key, index)?;
        Ok(Pick::from(draws, index as u64, window, named))
    }

    fn noise_and_window<T: Count>(&self) -> Result<(&Kernel, (T, T)), Error> {
        if let Some(rate) = self.rate()
            && (rate.num() << MAX_SCALE_LOG2) < *rate.den()
        {
            let accepted = format!("a scale of at most 2^{MAX_SCALE_LOG2} for the largest counts");
            let scale = format!("{}/{}", rate.den(), rate.num());
            return Err(Error::parameter("scale", scale, accepted));
        }
        let (lower, upper) = self.bounds().unwrap_or((T::MIN, T::MAX));
        limits::<T>(lower, upper)?;
        let widest = i128::from(WIDEST);
        let least = (-(1 << 61)).min(upper - widest).max(lower);
        let window = limits(least, upper.min(least + widest))?;
        Ok((self.widest_kernel()?, window))
    }

    /// Draws the places of the `k` largest noisy counts, the largest first, with entropy from the
    /// operating system. Each is drawn with noise of its own, among those that are left.
    ///
    /// # Errors
    /// Those of [`Self::pick`]; [`Error::Parameter`] unless `1 <= k <= counts.len()`; and
    /// [`Error::Entropy`].
    pub fn top<T: Count>(&self, counts: &[T], k: usize) -> Result<Vec<u64>, Error> {
        if k == 0 || k > counts.len() {
            let accepted = format!(
                "an integer from 1 to {}, the number of counts",
                counts.len()
            );
            return Err(Error::parameter("k", k, accepted));
        }
        without_trace(|| {
            let mut named = Zeroizing::new(Vec::with_capacity(k));
            for _ in 0..k {
                let mut pick = self.pick(Tape::from_os()?, &named)?;
                pick.compare(counts)?;
                let place = pick.best().place();
                named.push(place);
            }
            Ok(named.to_vec())
        })
    }
}
