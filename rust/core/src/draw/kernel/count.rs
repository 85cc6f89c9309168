//! The integer types that counts can have.

pub(crate) mod sealed {
    /// The eight integer types, each with an order-preserving map to `u64`.
    pub trait Count: Copy + Default + Send + Sync {
        /// The key of the greatest value.
        const GREATEST: u64;

        fn to_key(self) -> u64;
        fn from_key(key: u64) -> Self;
    }
}

/// An integer type that counts can have: `i8` to `i64` and `u8` to `u64`.
pub trait Count: sealed::Count + Into<i128> {
    /// The least value.
    const MIN: i128;
    /// The greatest value.
    const MAX: i128;

    /// The bound as a value of this type, or `None` if the type cannot hold it.
    fn exact(bound: i128) -> Option<Self>;
}

macro_rules! count {
    ($($t:ty, $wide:ty, $flip:expr;)*) => {$(
        impl sealed::Count for $t {
            #[allow(clippy::cast_sign_loss, clippy::cast_lossless)]
            const GREATEST: u64 = (<$t>::MAX as $wide as u64) ^ $flip;

            #[inline(always)]
            #[allow(clippy::cast_sign_loss, clippy::cast_lossless)]
            fn to_key(self) -> u64 {
                (self as $wide as u64) ^ $flip
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
            fn from_key(key: u64) -> Self {
                (key ^ $flip) as $t
            }
        }

        impl Count for $t {
            const MIN: i128 = <$t>::MIN as i128;
            const MAX: i128 = <$t>::MAX as i128;

            fn exact(bound: i128) -> Option<Self> {
                bound.try_into().ok()
            }
        }
    )*};
}

/// Flips the sign bit, which maps the order of `i64` to that of `u64`.
const SIGN: u64 = 1 << 63;

/// Calls a macro with the types that counts can have, each with the type of 64 bits that it extends
/// to, and the bits to flip for its key.
#[doc(hidden)]
#[macro_export]
macro_rules! with_count_types {
    ($name:ident! $($before:tt)*) => {
        $name! {
            $($before)*
            i8, i64, SIGN;
            i16, i64, SIGN;
            i32, i64, SIGN;
            i64, i64, SIGN;
            u8, u64, 0;
            u16, u64, 0;
            u32, u64, 0;
            u64, u64, 0;
        }
    };
}

with_count_types!(count!);
