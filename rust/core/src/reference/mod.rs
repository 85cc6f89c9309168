//! References that the draw is compared with.

pub mod distribution;
#[cfg(any(test, feature = "reference"))]
pub mod linear;
