//! What a transaction has under a protocol of the laboratory. `transactions/protocol.rs` asks the protocol.

use std::cell::{Cell, RefCell};

use pantile_base::{TableId, Timestamp};
use pantile_cc::{Item, Protocol, Read, Reads, Slot, Txn};
use smallvec::SmallVec;

use crate::engine::core::Core;
use crate::types::isolation::Isolation;

/// What a transaction has under a protocol.
pub(crate) struct UnderProtocol {
    pub txn: Txn,
    pub reads: RefCell<Vec<Read>>,
    /// The items of [`Item::Keys`] that it has changed.
    pub keys: RefCell<Vec<Item>>,
    /// It has read something of which the protocol does not know, so that it cannot commit.
    pub has_lost: Cell<bool>,
    /// Indexes and tables, by their primary indexes, that it has read.
    pub looked_at: RefCell<SmallVec<[(TableId, u32); 4]>>,
}

/// At which isolation level the engine reads and writes for a protocol.
pub(crate) fn isolation_of(protocol: Protocol) -> Isolation {
    match protocol.reads() {
        Reads::UnderLocks | Reads::Newest => Isolation::ReadCommitted,
        Reads::AtBegin => Isolation::Snapshot,
        Reads::InOrder { .. } => Isolation::Serializable,
    }
}

impl UnderProtocol {
    /// A transaction that begins to take part in the database's protocol.
    #[cold]
    pub fn begin(core: &Core, began_at: Timestamp, slot: Slot) -> Self {
        let txn = Txn { slot, began: began_at };
        if let Some(control) = &core.protocol {
            control.begin(txn);
        }
        Self {
            txn,
            reads: RefCell::default(),
            keys: RefCell::default(),
            has_lost: Cell::new(false),
            looked_at: RefCell::default(),
        }
    }
}
