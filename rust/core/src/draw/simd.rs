//! Detection of this processor's vector instructions, and code compiled for them.

/// Code that the compiler may turn into vector instructions.
pub(crate) trait Work {
    fn run(self);
}

/// Runs the work with the widest vectors that this processor has. On AArch64 the compiler uses NEON
/// unasked.
#[inline(always)]
pub(crate) fn with_widest(work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx512) = Avx512::detect() {
        return avx512.run(work);
    } else if let Some(avx2) = Avx2::detect() {
        return avx2.run(work);
    }
    work.run();
}

/// Defines a token type. A token proves that this processor has some features: only detection
/// creates one.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! token {
    ($(#[$doc:meta])* $name:ident $(runs $features:literal)?, $detected:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(());

        impl $name {
            /// The token, if this processor has the features.
            #[inline]
            #[must_use]
            pub fn detect() -> Option<Self> {
                ($detected).then_some(Self(()))
            }

            $(
                /// Runs work compiled for these features.
                #[inline(always)]
                pub(crate) fn run(self, work: impl Work) {
                    #[target_feature(enable = $features)]
                    fn compiled(work: impl Work) {
                        work.run();
                    }
                    // SAFETY: the processor has the features, as this token shows.
                    unsafe { compiled(work) }
                }
            )?
        }
    };
}

#[cfg(target_arch = "x86_64")]
token! {
    /// This processor has AVX2.
    Avx2 runs "avx2", is_x86_feature_detected!("avx2")
}
#[cfg(target_arch = "x86_64")]
token! {
    /// This processor has AVX-512. The kernel's intrinsics are AVX-512F; the compiler uses the
    /// other features for narrow counts.
    Avx512 runs "avx512f,avx512bw,avx512cd,avx512dq,avx512vl",
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}
#[cfg(target_arch = "x86_64")]
token! {
    /// This processor has AES on vectors of 128 bits.
    Aes,
    is_x86_feature_detected!("aes") && is_x86_feature_detected!("avx2")
}
#[cfg(target_arch = "x86_64")]
token! {
    /// This processor has AES on vectors of 256 bits.
    Vaes,
    is_x86_feature_detected!("aes")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("vaes")
}
#[cfg(target_arch = "x86_64")]
token! {
    /// This processor has AES on vectors of 512 bits.
    Vaes512,
    is_x86_feature_detected!("aes")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("vaes")
        && is_x86_feature_detected!("avx512f")
}
#[cfg(all(test, target_arch = "x86_64"))]
impl Vaes {
    /// The token, also where `scripts/emulate_vaes.sh` runs the tests.
    pub(crate) fn detect_or_emulated() -> Option<Self> {
        let emulated = std::env::var_os("VAES_IS_EMULATED").is_some();
        Self::detect().or(emulated.then_some(Self(())))
    }
}
#[cfg(target_arch = "aarch64")]
token! {
    /// This processor has NEON.
    Neon, std::arch::is_aarch64_feature_detected!("neon")
}

/// The processor features that decide which code runs, and whether this processor has each.
#[must_use]
pub fn features() -> Vec<(&'static str, bool)> {
    #[allow(unused_macros)]
    macro_rules! detected {
        ($detected:ident: $($name:tt)+) => { vec![$(($name, std::arch::$detected!($name))),+] };
    }
    #[cfg(target_arch = "x86_64")]
    return detected!(
        is_x86_feature_detected:
        "aes" "vaes" "avx2" "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl"
    );
    #[cfg(target_arch = "aarch64")]
    return detected!(is_aarch64_feature_detected: "aes" "neon");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    Vec::new()
}
