//! Holders of transaction slots: what can be said of a transaction that is still
//! open.

use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::thread_id;

use crate::types::isolation::Isolation;

/// The transaction in a slot: the thread that began it, and its kind.
#[derive(Clone, Copy)]
pub(crate) struct Holder {
    pub thread: u32,
    pub isolation: Isolation,
    pub read_only: bool,
}

const READ_ONLY: u64 = 1 << 2;
const IN_USE: u64 = 1 << 3;
const THREAD_SHIFT: u32 = 32;

impl Holder {
    #[inline]
    pub fn new(isolation: Isolation, read_only: bool) -> Self {
        Self { thread: thread_id(), isolation, read_only }
    }

    fn word(self) -> u64 {
        let isolation = match self.isolation {
            Isolation::Serializable => 0,
            Isolation::Snapshot => 1,
            Isolation::ReadCommitted => 2,
        };
        let read_only = if self.read_only { READ_ONLY } else { 0 };
        u64::from(self.thread) << THREAD_SHIFT | IN_USE | read_only | isolation
    }

    fn from_word(word: u64) -> Option<Self> {
        let isolation = match word & 3 {
            0 => Isolation::Serializable,
            1 => Isolation::Snapshot,
            _ => Isolation::ReadCommitted,
        };
        let thread = (word >> THREAD_SHIFT) as u32;
        (word & IN_USE != 0).then_some(Self { thread, isolation, read_only: word & READ_ONLY != 0 })
    }

    /// The thread's name, as the system has it.
    pub fn thread_name(self) -> Option<String> {
        let path = format!("/proc/self/task/{}/comm", self.thread);
        std::fs::read_to_string(path).ok().map(|name| name.trim_end().to_owned())
    }
}

/// The holder of a slot, or none.
#[derive(Default)]
pub(crate) struct HolderCell(AtomicU64);

impl HolderCell {
    #[inline]
    pub fn set(&self, holder: Option<Holder>) {
        self.0.store(holder.map_or(0, Holder::word), Ordering::Relaxed);
    }

    pub fn get(&self) -> Option<Holder> {
        Holder::from_word(self.0.load(Ordering::Relaxed))
    }
}
