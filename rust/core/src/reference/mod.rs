//! What the draw is compared with.

pub mod law;
pub mod linear;
