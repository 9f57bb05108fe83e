//! Stores and flushes as persistent memory wants them.

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: u64 = 64;

/// The instruction that writes a line back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineFlush {
    /// Writes the line back and may keep it cached.
    #[cfg(target_arch = "x86_64")]
    Clwb,
    /// Writes the line back and evicts it; lines in any order.
    #[cfg(target_arch = "x86_64")]
    ClflushOpt,
    /// Writes the line back and evicts it, one after the other.
    #[cfg(target_arch = "x86_64")]
    Clflush,
    /// No such instruction is known here: nothing but the accounting is done,
    /// which is enough for emulation, since caches survive a process.
    #[cfg(not(target_arch = "x86_64"))]
    AccountOnly,
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
        pub(crate) fn detect() -> Self {
            let features = match __cpuid(0).eax {
                0..7 => 0,
                _ => __cpuid_count(7, 0).ebx,
            };
            if features >> CLWB_BIT & 1 == 1 {
                Self::Clwb
            } else if features >> CLFLUSHOPT_BIT & 1 == 1 {
                Self::ClflushOpt
            } else {
                Self::Clflush
            }
        }

        /// Writes back `lines` lines from the one at `start` on.
        ///
        /// # Safety
        /// The lines are mapped, and the CPU has the instruction.
        pub(crate) unsafe fn lines(self, start: *const u8, lines: u64) {
            for line in 0..lines {
                let line = start.wrapping_add((line * LINE_BYTES) as usize);
                // SAFETY: the caller promises both.
                unsafe { self.line(line) };
            }
        }

        #[inline(always)]
        unsafe fn line(self, line: *const u8) {
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
    pub(crate) fn store_fence() {
        // SAFETY: every x86-64 CPU has the instruction; it touches no memory.
        unsafe { _mm_sfence() }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod arch {
    use super::LineFlush;
    use std::sync::atomic::{Ordering, fence};

    impl LineFlush {
        /// Nothing is known for this architecture.
        pub(crate) fn detect() -> Self {
            Self::AccountOnly
        }

        /// Does nothing.
        ///
        /// # Safety
        /// Always safe; unsafe only as its counterpart is.
        pub(crate) unsafe fn lines(self, _start: *const u8, _lines: u64) {}
    }

    /// Orders this CPU's earlier stores before later ones.
    pub(crate) fn store_fence() {
        fence(Ordering::SeqCst);
    }
}

pub(crate) use arch::store_fence;
