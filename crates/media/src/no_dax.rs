//! Why a place cannot serve as persistent memory.

use std::fmt;

/// Why persistent memory cannot be mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoDax {
    /// The file system keeps the file in the page cache, or cannot promise
    /// that mapped blocks stay where they are (`MAP_SYNC`).
    FileSystem,
    /// Files here cannot be mapped at all.
    NoMapping,
    /// The kernel does not know `MAP_SYNC` (before Linux 4.15).
    Kernel,
    /// The CPU has no instruction, known here, that writes cache lines back to
    /// persistent memory.
    NoInstruction,
    /// The operating system is not Linux.
    System,
}

impl fmt::Display for NoDax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FileSystem => "its file system does not map persistent memory directly (MAP_SYNC)",
            Self::NoMapping => "its file system does not map files",
            Self::Kernel => "this kernel does not know MAP_SYNC, which came with Linux 4.15",
            Self::NoInstruction => {
                "this CPU has no instruction to write cache lines back to persistent memory \
                 (clwb, clflushopt or clflush; dc cvap, which Linux on Arm calls dcpop)"
            }
            Self::System => "Pantile maps persistent memory on Linux only",
        })
    }
}
