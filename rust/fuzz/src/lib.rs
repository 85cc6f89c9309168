//! What the fuzz targets do with an input: each target is a function of bytes, in a module here, that
//! panics if the crate is wrong. `tests/reach.rs` counts what they reach.
//!
//! The models are written from `docs/proofs.md`, in big integers, and share nothing with the crate.

pub mod coins;
pub mod exact;
pub mod fold;
pub mod kernel;
pub mod model;
pub mod plan;
pub mod source;

use std::collections::BTreeMap;

/// How often each thing was met.
#[derive(Debug, Default)]
pub struct Seen(BTreeMap<String, u64>);

impl Seen {
    /// Counts one more.
    pub fn add(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    /// How often this was met.
    pub fn count(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0
            .iter()
            .try_for_each(|(what, count)| writeln!(f, "{count:>9}  {what}"))
    }
}
