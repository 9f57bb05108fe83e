//! What is said of the transactions that have not ended.

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_cc::{Clock, Open};

use crate::engine::core::Core;
use crate::engine::holders::Holder;
use crate::types::error::{Error, OpenTransaction};

impl Core {
    /// The error of closing, with the transactions that are open.
    pub fn still_open(&self, waited: Duration) -> Error {
        let now = self.registry.now();
        let mut open: Vec<_> = self.registry.open().map(|open| self.describe(&open, now)).collect();
        open.sort_by_key(|transaction| std::cmp::Reverse(transaction.age));
        Error::StillOpen { waited, open }
    }

    /// A transaction as it shows in messages and lists.
    pub fn describe(&self, open: &Open, now: Timestamp) -> OpenTransaction {
        let holder = self.buffers.holder(open.slot);
        OpenTransaction {
            age: Clock::duration(now.tick().saturating_sub(open.reads_at.tick())),
            isolation: holder.map(|holder| holder.isolation),
            read_only: holder.is_some_and(|holder| holder.read_only),
            thread: holder.and_then(Holder::thread_name),
            thread_id: holder.map(|holder| holder.thread),
        }
    }
}
