//! Who has a transaction slot: what an error can say of a transaction that is
//! still open.

use std::time::Duration;

use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::{Timestamp, thread_id};
use pantile_cc::{Clock, Slot};

use crate::engine::core::Core;
use crate::types::error::{Error, OpenTransaction};
use crate::types::options::Isolation;

/// The transaction in a slot: the thread that began it, and its kind.
#[derive(Clone, Copy)]
pub(crate) struct Holder {
    thread: u32,
    isolation: Isolation,
    read_only: bool,
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
    fn thread_name(self) -> Option<String> {
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

impl Core {
    /// The error of closing, with the transactions that are open.
    pub fn still_open(&self, waited: Duration) -> Error {
        let now = self.registry.now();
        let mut open: Vec<_> = self.registry.open().map(|(slot, ts)| self.describe(slot, ts, now)).collect();
        open.sort_by_key(|transaction| std::cmp::Reverse(transaction.age));
        Error::StillOpen { waited, open }
    }

    fn describe(&self, slot: Slot, ts: Timestamp, now: Timestamp) -> OpenTransaction {
        let holder = self.buffers.holder(slot);
        OpenTransaction {
            age: Clock::duration(now.tick().saturating_sub(ts.tick())),
            isolation: holder.map(|holder| holder.isolation),
            read_only: holder.is_some_and(|holder| holder.read_only),
            thread: holder.and_then(Holder::thread_name),
            thread_id: holder.map(|holder| holder.thread),
        }
    }
}
