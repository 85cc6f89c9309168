//! Tiers: noisy counts of several rates, the coarser ones made from the finer ones. Section 20 of
//! `docs/proofs.md` says why a reader of some tiers learns no more than the finest of them promises.
//!
//! There is one step from each tier to the next. Two coarse tables from one finer table would lose
//! more than either, so no call makes a tier from noisy counts alone.

use crate::Error;
use crate::Rate;
use crate::draw::Draws;
use crate::draw::kernel::{Count, Kernel};
use crate::draw::tape::Tape;
use crate::draw::wipe::without_trace;
use crate::mechanism::limits;
use crate::plan::tiers::{Tier, plans};

/// The plans of several tiers of the same counts. Holds public parameters only.
#[derive(Debug)]
pub struct Tiers {
    tiers: Vec<Tier>,
    kernels: Vec<Kernel>,
    bounds: (i128, i128),
}

impl Tiers {
    /// The tiers with these rates, the finest first, for outputs within the bounds.
    ///
    /// # Errors
    /// [`Error::Parameter`] if the bounds are reversed or farther apart than those of 64-bit
    /// integers; and those of [`plans`].
    pub fn new(rates: &[Rate], bounds: (i128, i128)) -> Result<Self, Error> {
        let range = (bounds.1.checked_sub(bounds.0)).and_then(|range| u64::try_from(range).ok());
        let range = range.ok_or_else(|| {
            let accepted = "lower <= upper, of one integer type of at most 64 bits";
            Error::parameter("bounds", format!("{bounds:?}"), accepted)
        })?;
        let tiers = plans(rates, range)?;
        Ok(Self {
            kernels: (tiers.iter().map(|tier| Kernel::new(tier.plan.clone()))).collect(),
            tiers,
            bounds,
        })
    }

    /// The tiers, the finest first.
    #[must_use]
    pub fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    /// The draw of the finest tier and the steps to the others.
    #[must_use]
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The same, for counts of type `T`, and the lower bound.
    ///
    /// # Errors
    /// [`Error::Overflow`] if type `T` cannot hold the bounds.
    pub fn kernels_for<T: Count>(&self) -> Result<(&[Kernel], T), Error> {
        let (lower, _) = limits(self.bounds.0, self.bounds.1)?;
        Ok((&self.kernels, lower))
    }

    /// Noisy counts of each tier, the finest first, with entropy from the operating system. Each tier
    /// has a tape of its own.
    ///
    /// # Errors
    /// Those of [`Self::kernels_for`], and [`Error::Entropy`].
    pub fn release<T: Count>(&self, counts: &[T]) -> Result<Vec<Vec<T>>, Error> {
        let (kernels, lower) = self.kernels_for()?;
        without_trace(|| {
            let mut released: Vec<Vec<T>> = Vec::with_capacity(kernels.len());
            for kernel in kernels {
                // Only then a copy, which would be of exact counts.
                let tape = Tape::from_os()?;
                let mut noisy = released.last().map_or(counts, Vec::as_slice).to_vec();
                Draws::new(kernel, lower, tape).add_noise(&mut noisy)?;
                released.push(noisy);
            }
            Ok(released)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(scales: &[f64]) -> Vec<Rate> {
        let rate = |&scale: &f64| Rate::from_scale(scale).unwrap();
        scales.iter().map(rate).collect()
    }

    #[test]
    fn every_tier_is_drawn_once_within_the_bounds() {
        let tiers = Tiers::new(&rates(&[1e6, 1e9, 1e12]), (-(1 << 50), 1 << 50)).unwrap();
        let counts = [7i64; 40];
        let released = tiers.release(&counts).unwrap();
        assert_eq!(released.len(), tiers.tiers().len());
        for (tier, scale) in released.iter().zip([1e6, 1e9, 1e12]) {
            assert_eq!(tier.len(), counts.len());
            // Half of the counts have less noise than that with probability below 2^-90, and one has
            // more than fifty times the scale with probability below 2^-65.
            let far = |&&noisy: &&i64| (noisy - 7).unsigned_abs() as f64 > scale / 100.0;
            assert!(tier.iter().filter(far).count() > 20);
            assert!(
                tier.iter()
                    .all(|&noisy| ((noisy - 7) as f64).abs() < 50.0 * scale)
            );
        }
        assert!(tiers.release::<i64>(&[]).unwrap().iter().all(Vec::is_empty));
    }

    #[test]
    fn bounds_that_are_refused() {
        for bounds in [(3, 2), (0, 1 << 64), (i128::MIN, i128::MAX)] {
            let error = Tiers::new(&rates(&[1.0, 2.0]), bounds).unwrap_err();
            assert!(error.to_string().starts_with("bounds = ("));
        }
        let tiers = Tiers::new(&rates(&[1.0, 2.0]), (0, 1000)).unwrap();
        assert!(tiers.release(&[1u8]).is_err() && tiers.release(&[1u16]).is_ok());
    }
}
