//! What is said of the transactions that have not ended.

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_cc::{Clock, Open};

use crate::engine::core::Core;
use crate::engine::holders::{Holder, Purpose};
use crate::types::error::Error;
use crate::types::running::OpenTransaction;

impl Core {
    /// The error of closing, with the transactions that are open.
    pub fn still_open(&self, waited: Duration) -> Error {
        let now = self.registry.now();
        let mut open: Vec<_> =
            self.registry.open().map(|open| describe(&open, self.holder_of(&open), now)).collect();
        open.sort_by_key(|transaction| std::cmp::Reverse(transaction.age));
        Error::StillOpen { waited, open }
    }

    /// What is known of it, unless it has ended meanwhile.
    pub fn holder_of(&self, open: &Open) -> Option<Holder> {
        self.buffers.holder(open.slot).filter(|holder| holder.reads_at == open.reads_at)
    }
}

/// A transaction as it shows in messages and lists.
pub(crate) fn describe(open: &Open, holder: Option<Holder>, now: Timestamp) -> OpenTransaction {
    let nobody = OpenTransaction {
        id: None,
        name: None,
        number: None,
        place: None,
        age: age(open, now),
        isolation: None,
        read_only: false,
        prepared: false,
        thread: holder.and_then(Holder::thread_name),
        thread_id: holder.map(|holder| holder.thread),
        ended: None,
    };
    match holder.map(|holder| (holder, holder.purpose)) {
        None => nobody,
        Some((_, Purpose::Work(work))) => OpenTransaction { name: Some(work), ..nobody },
        Some((holder, Purpose::Transaction { isolation, read_only })) => OpenTransaction {
            id: Some(holder.id(open.slot)),
            name: holder.name,
            number: holder.number,
            place: Some(holder.place),
            isolation: Some(isolation),
            read_only,
            prepared: holder.is_prepared,
            ended: holder.ended,
            ..nobody
        },
    }
}

/// How long ago it began, or the age of the safe snapshot that it reads.
pub(crate) fn age(open: &Open, now: Timestamp) -> Duration {
    Clock::duration(now.tick().saturating_sub(open.reads_at.tick()))
}
