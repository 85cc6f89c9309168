//! The geometric mechanism of differential privacy: exactly and purely private for a uniform tape, in
//! constant time.
//!
//! ```
//! use geomdp_core::{Mechanism, Rate};
//!
//! # fn main() -> Result<(), geomdp_core::Error> {
//! // Loss 0.5 for each unit of distance; outputs from 0 to 1000.
//! let mechanism = Mechanism::new(Some(Rate::from_epsilon(0.5, 1)?), Some((0, 1000)))?;
//! let mut counts = [512_u32, 313, 89, 19];
//! mechanism.release(&mut counts)?;
//! assert!(counts.iter().all(|&count| count <= 1000));
//! # Ok(())
//! # }
//! ```
//!
//! The crate is a pipe:
//!
//! ```text
//! entropy  ->  tape  ->  kernel(plan, tape, counts)  ->  noisy counts
//!                         ^
//!    rate, bounds -> plan (public: thresholds, digits, floor)
//! ```
//!
//! * [`Rate`] is the exact public rate; [`plan`] turns it and a range into thresholds, by integer
//!   enclosures of `exp(-rate)`, and says why the law that they give is private.
//! * [`tape`] makes secret words from 32 bytes of entropy, and wipes them.
//! * [`kernel`] is a pure function of plan, tape and counts, without branches on secrets: the one
//!   place where a release joins a count and the words of its tape.
//! * [`Mechanism`] joins them; [`privacy`] is its privacy map.
//! * [`fold`] reflects noise at the bounds, where it is wanted instead of censoring.
//! * [`keyed`] chooses the tape of a count by a key and the count's ids, for engines that may run a task twice.
//! * [`law`] works out, exactly, the law that a plan samples.
//! * [`bernoulli`] is the constant-time bit sampler; [`linear`] the algorithm of the seed notes, for
//!   reference.
//! * [`ct`] holds words without branches, and the marks that the check of constant time reads;
//!   [`dyadic`] takes floats exactly.
//!
//! On Linux, build with `--cfg=getrandom_backend="linux_getrandom"`: see [`tape::key_from_os`].
//!
//! `docs/proofs.md` in the repository states and proves what is drawn.
#![cfg_attr(
    test,
    allow(
        clippy::float_arithmetic,
        clippy::float_cmp,
        clippy::panic,
        clippy::unwrap_used
    )
)]

pub mod bernoulli;
mod cmac;
pub mod ct;
mod digit;
pub mod dyadic;

mod enclosure;
mod error;
pub mod fold;
pub mod kernel;
pub mod keyed;
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
