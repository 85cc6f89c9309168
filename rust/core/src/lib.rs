//! The geometric mechanism of differential privacy: exact pure epsilon-DP for a uniform tape, in
//! constant time.
//!
//! ```
//! use geomdp_core::{Mechanism, Rate};
//!
//! # fn main() -> Result<(), geomdp_core::Error> {
//! // Privacy loss 0.5 per unit of distance; outputs from 0 to 1000.
//! let mechanism = Mechanism::new(Some(Rate::from_epsilon(0.5, 1)?), Some((0, 1000)))?;
//! let mut counts = [512_u32, 313, 89, 19];
//! mechanism.release(&mut counts)?;
//! assert!(counts.iter().all(|&count| count <= 1000));
//! # Ok(())
//! # }
//! ```
//!
//! The crate is a pipeline:
//!
//! ```text
//! entropy  ->  tape  ->  kernel(plan, tape, counts)  ->  noisy counts
//!                         ^
//!    rate, bounds -> plan (public: thresholds, digits, floor)
//! ```
//!
//! The source folders are:
//!
//! * `params`: the exact public [`Rate`], integer enclosures of `exp(-rate)`, and the privacy map
//!   ([`privacy`]).
//! * [`plan`]: thresholds, digits and the floor for a rate and a range, and the numbers that prove
//!   the sampled distribution private.
//! * `draw`: [`tape`] expands 32 bytes of entropy into secret words and wipes them. The kernel is a
//!   pure function of plan, tape and counts that never branches on a secret. [`fold`] reflects
//!   noise at the bounds. [`keyed`] derives each count's tape from a key and the count's ids, for
//!   engines that may run a task twice. [`top`] finds the largest
//!   noisy counts, [`tiers`] releases counts at several rates, and [`groups`] those that reach a threshold in a
//!   domain that nobody can list. [`bernoulli`] is the constant-time bit sampler.
//! * `reference`: the exact distribution that a plan samples, and the linear algorithm of the
//!   source notes.
//!
//! [`Mechanism`] combines them; its [`Kernel`] is a plan that is ready to draw. [`distribution`]
//! gives the exact distribution of a plan. With the feature `reference` the crate also exports what
//! only its tests use: exact floats, and the linear algorithm. These may change in any version.
//!
//! On Linux, build with `--cfg=getrandom_backend="linux_getrandom"`: see [`tape::key_from_os`].
//!
//! `docs/proofs.md` in the repository specifies the draw and proves it private.
#![cfg_attr(
    test,
    allow(
        clippy::float_arithmetic,
        clippy::float_cmp,
        clippy::panic,
        clippy::unwrap_used
    )
)]

mod draw;
mod error;
mod mechanism;
mod params;
pub mod plan;
mod reference;

pub use draw::kernel::{Backend, Count, Kernel};
pub use draw::lanes::LANES;
pub use draw::{Draws, bernoulli, features, fold, groups, keyed, tape, tiers, top, wipe};
pub use error::Error;
pub use mechanism::Mechanism;
#[cfg(feature = "reference")]
pub use params::dyadic;
pub use params::privacy;
pub use params::rate::Rate;
pub use reference::distribution;
#[cfg(feature = "reference")]
pub use reference::linear;
