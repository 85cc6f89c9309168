//! Wiping of the stack and of the vector registers, where the compiler leaves copies of secrets.

use zeroize::zeroize_stack;

/// Bytes of stack to wipe: several times what a release uses, plus room for the registers that a
/// signal handler may have stored there.
const STACK: usize = 1 << 14;

/// Runs work on secrets, then wipes the stack that it used and the vector registers: the compiler
/// leaves copies of round keys and words in both.
pub fn without_trace<R>(work: impl FnOnce() -> R) -> R {
    /// Wipes on drop, and so after a panic too.
    struct Wipe;

    impl Drop for Wipe {
        fn drop(&mut self) {
            // Registers first: a signal in between would store them below the wiped stack.
            clear_registers();
            zeroize_stack::<STACK>();
        }
    }

    let _wipe = Wipe;
    in_own_frame(work)
}

/// Keeps the work in its own frame, below the caller's. On return, a register that functions must
/// preserve has its value of before the work.
#[inline(never)]
fn in_own_frame<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Clears the vector and mask registers. Secrets would otherwise stay there until the registers are
/// reused, and a signal or the dynamic linker would copy them to memory. On processors other than
/// x86-64 this does nothing.
///
/// Windows preserves xmm6 to xmm15: a function that clears them restores them on return. So this one
/// is always inlined, and its caller restores the values of before the caller's own secrets.
#[inline(always)]
pub fn clear_registers() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::asm;

        // The named convention is not this platform's, but one that preserves none of the registers.
        macro_rules! clear {
            ($($line:literal),+) => {
                asm!(
                    $($line,)+
                    clobber_abi("sysv64"),
                    options(nomem, nostack, preserves_flags),
                )
            };
        }
        if is_x86_feature_detected!("avx512bw") {
            // SAFETY: the processor has AVX-512BW, as the condition shows. The statement changes
            // vector and mask registers only, all of which are declared.
            unsafe {
                clear!(
                    ".irp i, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
                    "vpxord zmm\\i, zmm\\i, zmm\\i",
                    ".endr",
                    ".irp i, 0,1,2,3,4,5,6,7",
                    "kxorq k\\i, k\\i, k\\i",
                    ".endr",
                    "vzeroall"
                );
            }
        } else if is_x86_feature_detected!("avx") {
            // SAFETY: as above, with AVX.
            unsafe { clear!("vzeroall") }
        } else {
            // SAFETY: as above; every x86-64 processor has SSE2.
            unsafe {
                clear!(
                    ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
                    "pxor xmm\\i, xmm\\i",
                    ".endr"
                );
            }
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[cfg(test)]
mod tests {
    use super::*;
    use core::arch::asm;

    type Registers = [[u64; 8]; 32];

    /// Runs an instruction for each vector register, that of the widest vectors that this processor
    /// has. It may write the register to its place in the array.
    macro_rules! each_register {
        ($array:expr, $avx512:literal, $avx:literal, $sse2:literal) => {{
            let array: &mut Registers = $array;
            macro_rules! each {
                ($instruction:literal, $more:literal) => {
                    // SAFETY: the processor has the instruction, as the conditions show. It changes
                    // registers that are declared, or writes at most 64 bytes at 64 times its
                    // register's number, to an array of 32 times 64 bytes.
                    unsafe {
                        asm!(
                            concat!(".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15", $more),
                            $instruction,
                            ".endr",
                            to = in(reg) &raw mut *array,
                            clobber_abi("sysv64"),
                        )
                    }
                };
            }
            if is_x86_feature_detected!("avx512bw") {
                each!($avx512, ",16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31");
            } else if is_x86_feature_detected!("avx") {
                each!($avx, "");
            } else {
                each!($sse2, "");
            }
        }};
    }

    /// Sets the vector registers to ones.
    #[inline(always)]
    fn fill(unused: &mut Registers) {
        each_register!(
            unused,
            "vpternlogd zmm\\i, zmm\\i, zmm\\i, 255 # {to}",
            "vcmptrueps ymm\\i, ymm\\i, ymm\\i # {to}",
            "pcmpeqd xmm\\i, xmm\\i # {to}"
        );
    }

    #[inline(always)]
    fn store(registers: &mut Registers) {
        each_register!(
            registers,
            "vmovdqu64 [{to} + 64 * \\i], zmm\\i",
            "vmovdqu [{to} + 64 * \\i], ymm\\i",
            "movdqu [{to} + 64 * \\i], xmm\\i"
        )
    }

    #[test]
    fn registers_are_cleared() {
        let (mut before, mut after) = ([[0; 8]; 32], [[0; 8]; 32]);
        fill(&mut after);
        store(&mut before);
        clear_registers();
        store(&mut after);
        assert!((before[..16].iter()).all(|register| register[..2] == [u64::MAX; 2]));
        assert_eq!(after, [[0; 8]; 32]);
    }

    /// Nothing of the work stays, not even in registers that functions must preserve.
    #[test]
    fn registers_keep_no_trace() {
        let mut after = [[0; 8]; 32];
        clear_registers();
        without_trace(|| fill(&mut [[0; 8]; 32]));
        store(&mut after);
        assert!(!after.as_flattened().contains(&u64::MAX), "{after:x?}");
    }
}
