//! A recorded history: transactions and their operations.

/// A set of recorded transactions, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The transactions; their `id`s differ.
    pub transactions: Vec<Txn>,
}

impl History {
    /// Combines the transactions of several clients into one history.
    pub fn merge(clients: impl IntoIterator<Item = Vec<Txn>>) -> Self {
        Self { transactions: clients.into_iter().flatten().collect() }
    }
}

/// One recorded transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txn {
    /// Identifies the transaction in witnesses. Unique in the history.
    pub id: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Real time in nanoseconds, not later than its first operation.
    pub begin: u64,
    /// Real time in nanoseconds, not earlier than the moment its outcome was
    /// known.
    pub end: u64,
    /// Its operations, in program order.
    pub ops: Vec<Op>,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It committed.
    Committed {
        /// The timestamp that orders its versions among those of others: the
        /// begin timestamp under timestamp ordering, otherwise the commit
        /// timestamp.
        ts: u64,
    },
    /// It had no effect, and no transaction may have seen any.
    Aborted,
    /// The client does not know. It may have committed, at any timestamp.
    Unknown,
}

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A read of one key.
    Read {
        /// The key.
        key: u64,
        /// The value found there, or `None` if the key was absent.
        value: Option<u64>,
    },
    /// An insertion or update of one key.
    Write {
        /// The key.
        key: u64,
        /// Identifies this write. No other write or deletion has this value.
        value: u64,
    },
    /// A deletion of one key.
    Delete {
        /// The key.
        key: u64,
        /// Identifies the tombstone. No other write or deletion has this value.
        value: u64,
    },
    /// A predicate read: all keys in a range, with their values.
    Scan {
        /// The least key of the range.
        low: u64,
        /// The greatest key of the range, inclusive.
        high: u64,
        /// The keys present and their values, in any order.
        found: Vec<(u64, u64)>,
    },
}
