//! Writing cache lines back to persistent memory, with the best instruction
//! that the CPU has. It is found when the program runs.

/// Bytes of a cache line, for counting and for iterating over a range.
pub const LINE_BYTES: u64 = 64;

/// The instruction that writes a line back to persistent memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFlush {
    /// Writes the line back and may keep it cached.
    #[cfg(target_arch = "x86_64")]
    Clwb,
    /// Writes the line back and evicts it; lines in any order.
    #[cfg(target_arch = "x86_64")]
    ClflushOpt,
    /// Writes the line back and evicts it, one after the other.
    #[cfg(target_arch = "x86_64")]
    Clflush,
    /// `dc cvap`: writes the line back to the point of persistence.
    #[cfg(target_arch = "aarch64")]
    DcCvap {
        /// Bytes of this CPU's smallest line, at most [`LINE_BYTES`].
        step: u64,
    },
}

impl LineFlush {
    /// Writes back `lines` lines of [`LINE_BYTES`] from `start` on, which is
    /// the beginning of one.
    ///
    /// # Safety
    /// The lines are mapped.
    pub unsafe fn lines(self, start: *const u8, lines: u64) {
        let step = self.step();
        for line in 0..lines * (LINE_BYTES / step) {
            // SAFETY: the caller promises mapped lines, and `detect` found the
            // instruction on this CPU.
            unsafe { self.line(start.wrapping_add((line * step) as usize)) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use super::{LINE_BYTES, LineFlush};
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::arch::x86_64::{_mm_clflush, _mm_sfence};

    /// Leaf 7, register EBX.
    const CLFLUSHOPT_BIT: u32 = 23;
    const CLWB_BIT: u32 = 24;

    impl LineFlush {
        /// The best instruction this CPU has.
        // Newer versions of Rust know that asking is safe.
        #[allow(unused_unsafe)]
        pub fn detect() -> Option<Self> {
            // SAFETY: every x86-64 CPU has the instruction, and leaf 7 is asked for
            // only where there is one.
            let features = unsafe {
                match __cpuid(0).eax {
                    0..7 => 0,
                    _ => __cpuid_count(7, 0).ebx,
                }
            };
            Some(if features >> CLWB_BIT & 1 == 1 {
                Self::Clwb
            } else if features >> CLFLUSHOPT_BIT & 1 == 1 {
                Self::ClflushOpt
            } else {
                Self::Clflush
            })
        }

        #[inline(always)]
        pub(super) fn step(self) -> u64 {
            LINE_BYTES
        }

        #[inline(always)]
        pub(super) unsafe fn line(self, line: *const u8) {
            // SAFETY: the caller promises a mapped line and a CPU that has the
            // instruction; none of the three changes memory or registers.
            unsafe {
                match self {
                    Self::Clwb => {
                        asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags))
                    }
                    Self::ClflushOpt => {
                        asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
                    }
                    Self::Clflush => _mm_clflush(line),
                }
            }
        }
    }

    /// Waits until this CPU's earlier stores and flushes have left it.
    pub fn store_fence() {
        // SAFETY: every x86-64 CPU has the instruction; it touches no memory.
        unsafe { _mm_sfence() }
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use super::{LINE_BYTES, LineFlush};
    use crate::os::has_dc_cvap;
    use std::arch::asm;

    impl LineFlush {
        /// `dc cvap`, if the kernel says that programs may use it (`dcpop`).
        pub fn detect() -> Option<Self> {
            has_dc_cvap().then(|| Self::DcCvap { step: smallest_line() })
        }

        #[inline(always)]
        pub(super) fn step(self) -> u64 {
            let Self::DcCvap { step } = self;
            step
        }

        #[inline(always)]
        pub(super) unsafe fn line(self, line: *const u8) {
            // SAFETY: the caller promises a mapped line; the instruction, which
            // assemblers know by this name only where it is switched on
            // (`dc cvap` is `sys #3, c7, c12, #1`), changes no memory or register.
            unsafe { asm!("sys #3, c7, c12, #1, {}", in(reg) line, options(nostack, preserves_flags)) };
        }
    }

    /// The smallest line of any data cache, from CTR_EL0.DminLine.
    fn smallest_line() -> u64 {
        let ctr: u64;
        // SAFETY: Linux lets programs read the register, or reads it for them.
        unsafe { asm!("mrs {}, ctr_el0", out(reg) ctr, options(nomem, nostack, preserves_flags)) };
        (4 << (ctr >> 16 & 0xf)).min(LINE_BYTES)
    }

    /// Waits until this CPU's earlier stores and write-backs are done.
    pub fn store_fence() {
        // SAFETY: every CPU has the instruction. That it may touch memory, as
        // far as the compiler knows, keeps stores on their side of it.
        unsafe { asm!("dsb sy", options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    use super::{LINE_BYTES, LineFlush};
    use std::sync::atomic::{Ordering, fence};

    impl LineFlush {
        /// Nothing is known for this architecture.
        pub fn detect() -> Option<Self> {
            None
        }

        pub(super) fn step(self) -> u64 {
            LINE_BYTES
        }

        pub(super) unsafe fn line(self, _line: *const u8) {}
    }

    /// Orders this CPU's earlier stores before later ones.
    pub fn store_fence() {
        fence(Ordering::SeqCst);
    }
}

pub use arch::store_fence;

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    #[repr(align(64))]
    struct Lines([u8; 256]);

    #[test]
    fn what_is_found_can_be_executed_and_changes_nothing() {
        let lines = Lines([7; 256]);
        let found = LineFlush::detect();
        println!("{found:?}");
        // An Arm CPU may have none.
        if let Some(flush) = found {
            // SAFETY: the lines are on the stack.
            unsafe { flush.lines(lines.0.as_ptr(), 4) };
        }
        store_fence();
        assert_eq!(lines.0, [7; 256]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_instruction_that_the_kernel_knows_of_can_be_executed() {
        let lines = Lines([7; 256]);
        let cpu = std::fs::read_to_string("/proc/cpuinfo").expect("cpuinfo");
        let has = |name| cpu.split_whitespace().any(|word| word == name);
        for (flush, name) in [
            (LineFlush::Clwb, "clwb"),
            (LineFlush::ClflushOpt, "clflushopt"),
            (LineFlush::Clflush, "clflush"),
        ] {
            if has(name) {
                // SAFETY: the CPU has it, and the lines are on the stack.
                unsafe { flush.lines(lines.0.as_ptr(), 4) };
            }
        }
        store_fence();
        assert_eq!(lines.0, [7; 256]);
        assert_eq!(LineFlush::detect() == Some(LineFlush::Clwb), has("clwb"));
    }
}
