//! One error type for the whole crate.

use core::fmt;

/// The reason why a call failed. It never depends on a count or on a random word.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A public parameter has a value that is not accepted.
    Parameter {
        /// The parameter's name in the public interface.
        name: &'static str,
        /// The given value.
        value: String,
        /// The accepted values.
        accepted: String,
    },
    /// A public parameter does not fit the integer type that must hold it.
    Overflow {
        /// The parameter's name in the public interface.
        name: &'static str,
        /// The given value.
        value: String,
        /// The accepted values.
        accepted: String,
    },
    /// No plan within this crate's word sizes is exactly private for these parameters.
    Uncertifiable {
        /// The requested scale is about two to this power.
        scale_log2: i64,
        /// The requested range `upper - lower`.
        range: u64,
        /// Every scale of at most two to this power is accepted for that range.
        max_scale_log2: u64,
    },
    /// The operating system or the caller's generator gave no random bytes.
    Entropy(String),
}

impl Error {
    pub(crate) fn parameter(
        name: &'static str,
        value: impl ToString,
        accepted: impl Into<String>,
    ) -> Self {
        Self::Parameter {
            name,
            value: value.to_string(),
            accepted: accepted.into(),
        }
    }

    pub(crate) fn overflow(
        name: &'static str,
        value: impl ToString,
        accepted: impl Into<String>,
    ) -> Self {
        Self::Overflow {
            name,
            value: value.to_string(),
            accepted: accepted.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter {
                name,
                value,
                accepted,
            }
            | Self::Overflow {
                name,
                value,
                accepted,
            } => write!(f, "{name} = {value} is not accepted: give {accepted}"),
            Self::Uncertifiable {
                scale_log2,
                range,
                max_scale_log2,
            } => write!(
                f,
                "scale = about 2**{scale_log2} is too large to be certified for outputs in a range of {range}: \
                 give a scale of at most 2**{max_scale_log2}, or narrower bounds"
            ),
            Self::Entropy(reason) => write!(f, "no random bytes available: {reason}"),
        }
    }
}

impl core::error::Error for Error {}
