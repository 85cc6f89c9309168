//! The exact public parameters, and the arithmetic on them.

pub mod dyadic;
pub(crate) mod enclosure;
pub mod privacy;
pub(crate) mod rate;
pub(crate) mod wide;
