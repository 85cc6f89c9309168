//! Branch-free word operations, and markers for constant-time checkers.
//!
//! Every function here compiles to straight-line code: results are formed by borrows, shifts and
//! masks. A barrier hides from the compiler that a value is a single bit, so that it cannot turn it
//! into a jump. (It did: `make ct`, which checks the machine code, found it.)

/// Returns `x`, opaque to the optimizer.
#[inline(always)]
pub(crate) fn barrier(x: u64) -> u64 {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let y;
        // SAFETY: the statement is empty; it passes the register on unchanged.
        unsafe {
            core::arch::asm!(
                "/* {0} */",
                inlateout(reg) x => y,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        y
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    core::hint::black_box(x)
}

/// 1 if `x < y`, else 0, for words whose signed difference fits 64 bits; limbs satisfy this.
#[inline(always)]
pub(crate) fn less_limb(x: u64, y: u64) -> u64 {
    barrier(x.wrapping_sub(y) >> 63)
}

/// 1 if `x - y - borrow` is negative, else 0, for all words.
#[inline(always)]
pub(crate) fn borrow(x: u64, y: u64, borrow: u64) -> u64 {
    let difference = x.wrapping_sub(y).wrapping_sub(borrow);
    barrier(((!x & y) | ((!x | y) & difference)) >> 63)
}

/// All ones if `bit` is 1, zero if it is 0.
#[inline(always)]
pub(crate) fn mask(bit: u64) -> u64 {
    bit.wrapping_neg()
}

/// `yes` where the mask is set, else `no`.
#[inline(always)]
pub(crate) fn select(mask: u64, yes: u64, no: u64) -> u64 {
    no ^ (mask & (yes ^ no))
}

/// The smaller of two words.
#[inline(always)]
pub(crate) fn min(x: u64, y: u64) -> u64 {
    select(mask(borrow(x, y, 0)), x, y)
}

/// Clears the vector and mask registers. Secrets would otherwise stay there until the registers are
/// reused, and a signal or the dynamic linker would copy them to memory.
#[inline(never)]
pub fn clear_registers() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the processor was just found to have the instructions. They change vector and mask
    // registers only, and all of these are declared as clobbered: the calling convention preserves
    // none.
    unsafe {
        use core::arch::asm;
        if is_x86_feature_detected!("avx512bw") {
            asm!(
                ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
                "vpxor xmm\\i, xmm\\i, xmm\\i",
                ".endr",
                ".irp i, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
                "vpxord zmm\\i, zmm\\i, zmm\\i",
                ".endr",
                ".irp i, 0,1,2,3,4,5,6,7",
                "kxorq k\\i, k\\i, k\\i",
                ".endr",
                "vzeroupper",
                clobber_abi("sysv64"),
                options(nomem, nostack, preserves_flags),
            );
        } else if is_x86_feature_detected!("avx") {
            asm!(
                "vzeroall",
                clobber_abi("sysv64"),
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}

/// Marks these values as secret: the checker then reports every jump or address that depends on
/// them. Does nothing in a normal build.
#[inline(always)]
pub fn secret<T>(values: &[T]) {
    mark::client_request(mark::MAKE_UNDEFINED, values);
}

/// Marks these values as public again. Does nothing in a normal build.
#[inline(always)]
pub fn public<T>(values: &[T]) {
    mark::client_request(mark::MAKE_DEFINED, values);
}

/// Whether the checker considers at least one bit of every value secret; `None` if no checker is
/// running.
#[must_use]
pub fn is_secret<T>(values: &[T]) -> Option<bool> {
    mark::is_undefined(values)
}

/// Valgrind's client requests: a magic sequence of rotations that does nothing on a real processor.
/// The numbers come from `valgrind.h` and `memcheck.h`.
#[cfg(all(
    feature = "checkmem",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod mark {
    const BASE: u64 = 0x4d43_0000;
    pub(super) const MAKE_UNDEFINED: u64 = BASE + 1;
    pub(super) const MAKE_DEFINED: u64 = BASE + 2;
    const GET_VBITS: u64 = BASE + 8;

    fn request(code: u64, first: u64, second: u64, third: u64) -> u64 {
        let arguments = [code, first, second, third, 0, 0];
        let result;
        // SAFETY: the sequence changes no register but the result's, which is declared, and valgrind
        // reads only the argument block, which outlives the statement.
        unsafe {
            #[cfg(target_arch = "aarch64")]
            core::arch::asm!(
                "ror x12, x12, #3",
                "ror x12, x12, #13",
                "ror x12, x12, #51",
                "ror x12, x12, #61",
                "orr x10, x10, x10",
                inout("x3") 0u64 => result,
                in("x4") arguments.as_ptr(),
            );
            #[cfg(target_arch = "x86_64")]
            core::arch::asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                inout("rdx") 0u64 => result,
                in("rax") arguments.as_ptr(),
                inout("rdi") 0u64 => _,
            );
        }
        result
    }

    pub(super) fn client_request<T>(code: u64, values: &[T]) {
        request(
            code,
            values.as_ptr() as u64,
            core::mem::size_of_val(values) as u64,
            0,
        );
    }

    pub(super) fn is_undefined<T>(values: &[T]) -> Option<bool> {
        let mut bits = vec![0u8; core::mem::size_of_val(values)];
        let answer = request(
            GET_VBITS,
            values.as_ptr() as u64,
            bits.as_mut_ptr() as u64,
            bits.len() as u64,
        );
        let mut values = bits.chunks_exact(core::mem::size_of::<T>());
        (answer == 1).then(|| values.all(|value| value.iter().any(|&byte| byte != 0)))
    }
}

/// MemorySanitizer's functions, for code that valgrind cannot run. Not to be combined with
/// `checkmem`.
#[cfg(all(feature = "checkmsan", not(feature = "checkmem")))]
mod mark {
    use core::ffi::c_void;

    unsafe extern "C" {
        fn __msan_poison(start: *const c_void, size: usize);
        fn __msan_unpoison(start: *const c_void, size: usize);
        fn __msan_test_shadow(start: *const c_void, size: usize) -> isize;
    }

    pub(super) const MAKE_UNDEFINED: bool = true;
    pub(super) const MAKE_DEFINED: bool = false;

    pub(super) fn client_request<T>(undefined: bool, values: &[T]) {
        let (start, size) = (values.as_ptr().cast(), core::mem::size_of_val(values));
        // SAFETY: the functions change only the shadow of these bytes, not the bytes.
        unsafe {
            if undefined {
                __msan_poison(start, size);
            } else {
                __msan_unpoison(start, size);
            }
        }
    }

    pub(super) fn is_undefined<T>(values: &[T]) -> Option<bool> {
        // SAFETY: the function reads only the shadow of these bytes.
        let undefined = |value: &T| unsafe {
            __msan_test_shadow(core::ptr::from_ref(value).cast(), core::mem::size_of::<T>()) >= 0
        };
        Some(values.iter().all(undefined))
    }
}

#[cfg(not(any(
    feature = "checkmsan",
    all(
        feature = "checkmem",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )
)))]
mod mark {
    pub(super) const MAKE_UNDEFINED: u64 = 0;
    pub(super) const MAKE_DEFINED: u64 = 0;

    #[inline(always)]
    pub(super) fn client_request<T>(_code: u64, _values: &[T]) {}

    pub(super) fn is_undefined<T>(_values: &[T]) -> Option<bool> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(x: u64, y: u64, carry: u64) {
        let wide = i128::from(x) - i128::from(y) - i128::from(carry);
        assert_eq!(borrow(x, y, carry), u64::from(wide < 0));
        assert_eq!(min(x, y), x.min(y));
        let (x, y) = (x >> 1, y >> 1);
        assert_eq!(
            less_limb(x.wrapping_sub(carry), y),
            u64::from(x < y + carry)
        );
    }

    #[test]
    fn corners() {
        let corners = [
            0,
            1,
            2,
            u64::MAX / 2 - 1,
            u64::MAX / 2,
            u64::MAX / 2 + 1,
            u64::MAX - 1,
            u64::MAX,
        ];
        for x in corners {
            for y in corners {
                check(x, y, 0);
                check(x, y, 1);
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_wide_arithmetic(x: u64, y: u64, carry in 0u64..2) {
            check(x, y, carry);
        }
    }

    /// Reads vector registers before and after they are cleared.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn registers_are_cleared() {
        use core::arch::asm;
        let (mut before, mut after) = ([[0u64; 8]; 3], [[!0u64; 8]; 3]);
        if is_x86_feature_detected!("avx512bw") {
            // SAFETY: the processor has the instructions, which write 192 bytes to an array of that
            // size.
            unsafe {
                asm!(
                    "vpternlogq zmm0, zmm0, zmm0, 255",
                    "vpternlogq zmm15, zmm15, zmm15, 255",
                    "vpternlogq zmm31, zmm31, zmm31, 255",
                    "vmovdqu64 [{to}], zmm0",
                    "vmovdqu64 [{to} + 64], zmm15",
                    "vmovdqu64 [{to} + 128], zmm31",
                    to = in(reg) &raw mut before,
                    out("xmm0") _, out("xmm15") _, out("xmm31") _,
                );
                clear_registers();
                asm!(
                    "vmovdqu64 [{to}], zmm0",
                    "vmovdqu64 [{to} + 64], zmm15",
                    "vmovdqu64 [{to} + 128], zmm31",
                    to = in(reg) &raw mut after,
                );
            }
        } else if is_x86_feature_detected!("avx") {
            // SAFETY: as above.
            unsafe {
                asm!(
                    "vcmptrueps ymm0, ymm0, ymm0",
                    "vcmptrueps ymm7, ymm7, ymm7",
                    "vcmptrueps ymm15, ymm15, ymm15",
                    "vmovdqu [{to}], ymm0",
                    "vmovdqu [{to} + 64], ymm7",
                    "vmovdqu [{to} + 128], ymm15",
                    to = in(reg) &raw mut before,
                    out("xmm0") _, out("xmm7") _, out("xmm15") _,
                );
                clear_registers();
                asm!(
                    "vmovdqu [{to}], ymm0",
                    "vmovdqu [{to} + 64], ymm7",
                    "vmovdqu [{to} + 128], ymm15",
                    to = in(reg) &raw mut after,
                );
            }
            for row in &mut after {
                row[4..].fill(0);
            }
        } else {
            return;
        }
        for (before, after) in before.iter().zip(after) {
            assert_eq!(before[..4], [u64::MAX; 4]);
            assert_eq!(after, [0; 8]);
        }
    }

    #[test]
    fn markers_do_nothing_without_a_checker() {
        let values = [1u64, 2];
        secret(&values);
        public(&values);
        if cfg!(not(feature = "marks")) {
            assert_eq!(is_secret(&values), None);
        }
    }
}
