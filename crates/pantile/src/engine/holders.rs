//! Holders of transaction slots: what can be said of a transaction that is still
//! open, and asking it to end (I-28).

use std::panic::Location;

use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::{Timestamp, thread_id};
use pantile_cc::Slot;

use crate::types::isolation::Isolation;
use crate::types::running::{EndedBy, TransactionId};

/// What a slot was taken for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Transaction {
        isolation: Isolation,
        read_only: bool,
    },
    /// Work of the database itself.
    Work(&'static str),
}

/// The transaction in a slot.
#[derive(Clone, Copy)]
pub(crate) struct Holder {
    pub purpose: Purpose,
    /// The thread that began it.
    pub thread: u32,
    /// What the program calls it.
    pub name: Option<&'static str>,
    /// Its number among those of this name.
    pub number: Option<u64>,
    /// Where the program began it.
    pub place: &'static Location<'static>,
    /// Where it reads, which says which of the slot's transactions a list means.
    pub reads_at: Timestamp,
    /// The transaction in the slot, counted from 1.
    pub turn: u64,
    /// It is to end, and has not been dropped yet.
    pub ended: Option<EndedBy>,
    /// It has been warned of.
    pub is_noted: bool,
    /// It is prepared, and ended by its name only.
    pub is_prepared: bool,
}

impl Holder {
    #[inline]
    pub fn new(
        purpose: Purpose,
        reads_at: Timestamp,
        name: Option<&'static str>,
        place: &'static Location<'static>,
    ) -> Self {
        Self {
            purpose,
            thread: thread_id(),
            name,
            number: None,
            place,
            reads_at,
            turn: 0,
            ended: None,
            is_noted: false,
            is_prepared: false,
        }
    }

    /// Its transaction, by which others name it.
    pub fn id(&self, slot: Slot) -> TransactionId {
        TransactionId(self.turn * TRANSACTION_SLOTS as u64 + slot.index() as u64)
    }

    /// Whether to people it is the same: a connection, of which several transactions are
    /// open.
    pub fn is_called_as(&self, other: &Holder) -> bool {
        self.number.is_some() && (self.name, self.number) == (other.name, other.number)
    }

    /// The thread's name, as the system has it.
    pub fn thread_name(self) -> Option<String> {
        let path = format!("/proc/self/task/{}/comm", self.thread);
        std::fs::read_to_string(path).ok().map(|name| name.trim_end().to_owned())
    }
}
