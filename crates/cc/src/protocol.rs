//! The seam of concurrency controls.
//!
//! The product has one protocol, which is in the engine's transactions. The laboratory compares
//! it with others over the same commit path, index and medium. A protocol of this seam says what its
//! transactions read ([`Reads`]), is asked before they read and write ([`ConcurrencyControl`]), and
//! decides at the commit whether and when they commit ([`Committing`]). Under each of them a write
//! takes its tuple's lock when it is made: what differs is what becomes of reads.

use std::fmt;

use pantile_base::{TableId, Timestamp, TupleId};

use crate::registry::Slot;

/// What a transaction reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Item {
    /// A tuple.
    Tuple(TableId, TupleId),
    /// Which keys an index has. Those who scan it or do not find a key read that, those who add or
    /// delete a key write it. The primary index has number 0.
    Keys(TableId, u32),
}

impl Item {
    /// A number that is spread over all 64 bits, for tables of items.
    pub fn hash(self) -> u64 {
        let word = match self {
            Item::Tuple(table, tuple) => tuple.0 ^ (u64::from(table.0) << TupleId::BITS),
            Item::Keys(table, index) => !(u64::from(index) ^ (u64::from(table.0) << TupleId::BITS)),
        };
        word.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// A running transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Txn {
    /// Its slot.
    pub slot: Slot,
    /// When it began. No other transaction has the same.
    pub began: Timestamp,
}

impl Txn {
    /// The transaction that began at this timestamp.
    pub fn of(began: Timestamp) -> Self {
        Self { slot: Slot::from_index(began.slot()), began }
    }
}

/// Which versions the transactions of a protocol read, and where they write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// The newest committed ones, which locks of the protocol keep from changing. They write at a
    /// timestamp that they draw when they commit.
    UnderLocks,
    /// Those that are the newest committed ones when they are read. They write at a timestamp
    /// that they draw when they commit.
    Newest,
    /// Those of the moment at which they began. They write at a timestamp that they draw when
    /// they commit.
    AtBegin,
    /// Those of the moment at which they began, and they write at that moment.
    InOrder {
        /// Whether reads leave marks at once, so that nobody writes below them.
        marks: bool,
    },
}

impl Reads {
    /// Whether the engine lists what is read, for [`Committing::reads`] and its checks.
    pub fn are_listed(self) -> bool {
        !matches!(self, Reads::UnderLocks | Reads::InOrder { marks: true })
    }
}

/// What a protocol says to a read or a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// It may go on. The number is kept with the read.
    Granted(u64),
    /// It is to ask again once this transaction has ended.
    WaitFor(Txn),
    /// The transaction has to be rolled back.
    Refused(Refusal),
}

/// Why a transaction has to be rolled back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Another one has locked what it needs.
    Locked,
    /// Something that it has read has changed.
    ReadChanged,
    /// A later one has read what it writes.
    ReadByLater,
    /// The engine knows why.
    Reported,
}

/// What a transaction has read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Read {
    /// What.
    pub item: Item,
    /// The `begin_ts` of the version, zero if there was none; of keys, when they were looked for.
    pub version: Timestamp,
    /// What the protocol gave with [`Access::Granted`].
    pub ticket: u64,
}

/// A transaction that commits, as its protocol sees it. It has announced that it commits, and has
/// locked all tuples that it writes.
pub trait Committing {
    /// The transaction.
    fn txn(&self) -> Txn;

    /// Where it reads, if it reads at one moment.
    fn reads_at(&self) -> Timestamp;

    /// What it has read, by item. An item of which it has read two versions is there twice.
    fn reads(&self) -> &[Read];

    /// What it writes, by item, each once.
    fn writes(&self) -> &[Item];

    /// Draws the timestamp at which it commits, and waits until every transaction that draws one
    /// later gets a later one. A writer that reads in order has its timestamp since it began.
    fn draw(&self) -> Timestamp;

    /// Makes sure that all that it has read is the same at `to`, and stays so: rows, and which rows
    /// the ranges have that it has read. Where transactions write in the order in which they began, it
    /// leaves marks at `to`.
    ///
    /// # Errors
    /// [`Refusal::ReadChanged`], or the engine's own.
    fn reads_hold(&self, to: Timestamp) -> Result<(), Refusal> {
        self.rows_hold(to)?;
        self.ranges_hold(to)
    }

    /// The same of rows only.
    ///
    /// # Errors
    /// As [`Committing::reads_hold`].
    fn rows_hold(&self, to: Timestamp) -> Result<(), Refusal>;

    /// The same of ranges: no row has come into one. That one has left shows in the rows.
    ///
    /// # Errors
    /// As [`Committing::reads_hold`].
    fn ranges_hold(&self, to: Timestamp) -> Result<(), Refusal>;

    /// Makes sure that no later transaction has marked what it writes.
    ///
    /// # Errors
    /// [`Refusal::ReadByLater`].
    fn marks_hold(&self) -> Result<(), Refusal>;
}

/// A concurrency control.
pub trait ConcurrencyControl: Send + Sync {
    /// A transaction has begun.
    fn begin(&self, _txn: Txn) {}

    /// A transaction is about to read an item.
    fn read(&self, _txn: Txn, _item: Item) -> Access {
        Access::Granted(0)
    }

    /// Whether what was read of an item is what belongs to the number that [`ConcurrencyControl::read`] gave. If
    /// not, it asks and reads again.
    fn has_read(&self, _item: Item, _ticket: u64) -> bool {
        true
    }

    /// A transaction is about to lock a tuple that it has not locked, to write it, or to change
    /// which keys an index has.
    fn write(&self, _txn: Txn, _item: Item) -> Access {
        Access::Granted(0)
    }

    /// Decides whether a transaction commits, and at which timestamp.
    ///
    /// # Errors
    /// Why it does not.
    fn validate(&self, commit: &dyn Committing) -> Result<Timestamp, Refusal>;

    /// A transaction has ended: what it has written is visible, if it `has_written`, or undone.
    fn end(&self, _txn: Txn, _has_written: bool) {}
}

/// What is known about a protocol before it works.
#[derive(Clone, Copy, Debug)]
pub struct ProtocolDescription {
    /// The name that commands and records use for it.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// What its transactions read.
    pub reads: Reads,
    /// Whether the order of timestamps is one in which the transactions could have run one after
    /// the other. If not, snapshots that do not take part in the protocol may be of no such state.
    pub orders_by_timestamp: bool,
    /// Makes it.
    pub build: fn() -> Box<dyn ConcurrencyControl>,
}

/// Which concurrency control keeps transactions apart: a handle to a [`ProtocolDescription`]. Two are equal if
/// their names are.
#[derive(Clone, Copy)]
pub struct Protocol(&'static ProtocolDescription);

impl Protocol {
    /// A handle to this description.
    pub const fn new(description: &'static ProtocolDescription) -> Self {
        Self(description)
    }

    /// The name that commands and records use for it.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// What it does, in one line.
    pub const fn about(self) -> &'static str {
        self.0.about
    }

    /// What its transactions read.
    pub const fn reads(self) -> Reads {
        self.0.reads
    }

    /// Whether its transactions could have run one after the other in the order of their timestamps.
    pub const fn orders_by_timestamp(self) -> bool {
        self.0.orders_by_timestamp
    }

    /// Makes it.
    pub fn build(self) -> Box<dyn ConcurrencyControl> {
        (self.0.build)()
    }
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Protocol {}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
