//! The fuzz targets' code. Each target is a module with a function of bytes that panics if the
//! crate is wrong. `tests/reach.rs` counts the cases they reach.
//!
//! The models are written from `docs/proofs.md` in big integers and share no code with the crate.

pub mod coins;
pub mod exact;
pub mod fold;
pub mod groups;
pub mod kernel;
pub mod model;
pub mod plan;
pub mod source;

use std::collections::BTreeMap;

/// How often each case was seen.
#[derive(Debug, Default)]
pub struct Seen(BTreeMap<String, u64>);

impl Seen {
    /// Counts one more occurrence.
    pub fn add(&mut self, case: impl Into<String>) {
        *self.0.entry(case.into()).or_default() += 1;
    }

    /// How often this case was seen.
    pub fn count(&self, case: &str) -> u64 {
        self.0.get(case).copied().unwrap_or(0)
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0
            .iter()
            .try_for_each(|(case, count)| writeln!(f, "{count:>9}  {case}"))
    }
}
