//! The geometric mechanism.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::float_cmp, clippy::float_arithmetic)
)]

pub mod bernoulli;
pub mod ct;
pub mod dyadic;
mod enclosure;
mod error;
pub mod kernel;
pub mod law;
pub mod linear;
mod mechanism;
pub mod plan;
pub mod privacy;
mod rate;
pub mod tape;

pub use error::Error;
pub use kernel::Count;
pub use mechanism::{Draws, Mechanism, draw};
pub use rate::Rate;
