//! Marks for constant-time checkers: which values are secret.

/// Marks these values as secret: the checker then reports every jump or address that depends on
/// them.
pub fn secret<T>(values: &[T]) {
    checker::client_request(checker::MAKE_UNDEFINED, values);
}

/// Marks these values as public again.
pub fn public<T>(values: &[T]) {
    checker::client_request(checker::MAKE_DEFINED, values);
}

/// Whether the checker considers at least one bit of every value secret; `None` if no checker is
/// running.
pub fn is_secret<T>(values: &[T]) -> Option<bool> {
    checker::is_undefined(values)
}

/// Valgrind's client requests: a magic sequence of rotations that does nothing on a real processor.
/// The numbers come from `valgrind.h` and `memcheck.h`.
#[cfg(feature = "checkmem")]
mod checker {
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
mod checker {
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
