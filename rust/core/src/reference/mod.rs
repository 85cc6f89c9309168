//! References that the draw is compared with.

pub mod distribution;
pub mod linear;
