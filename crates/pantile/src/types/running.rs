//! Transactions that have not ended, as people are told of them.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use crate::types::isolation::Isolation;

/// Identifies a transaction of an open database, in any thread; see
/// [`Database::end_transaction`](crate::Database::end_transaction).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TransactionId(pub(crate) u64);

impl TransactionId {
    /// As a number, for messages and protocols.
    pub fn get(self) -> u64 {
        self.0
    }

    /// From the number of [`TransactionId::get`].
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a transaction has been ended from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EndedBy {
    /// [`Database::end_transaction`](crate::Database::end_transaction) was called here.
    Call(&'static Location<'static>),
    /// It held back garbage for longer than
    /// [`Options::max_pinned_age`](crate::Options::max_pinned_age) allows.
    Age(Duration),
    /// It held back more bytes than
    /// [`Options::max_pinned_bytes`](crate::Options::max_pinned_bytes) allows.
    Bytes(u64),
}

impl fmt::Display for EndedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(place) => write!(f, "a call of end_transaction at {place}"),
            Self::Age(limit) => write!(f, "the option max_pinned_age of {limit:?}"),
            Self::Bytes(limit) => write!(f, "the option max_pinned_bytes of {limit}"),
        }
    }
}

/// A transaction that has not ended; see [`Error::StillOpen`](crate::Error::StillOpen) and
/// [`RunningTransaction`](crate::stats::RunningTransaction).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OpenTransaction {
    /// Its id, by which it can be ended; `None` for work of the database itself.
    pub id: Option<TransactionId>,
    /// What the program calls it, by [`TransactionOptions::name`](crate::TransactionOptions::name),
    /// or what the work of the database is.
    pub name: Option<&'static str>,
    /// Its number, by [`TransactionOptions::number`](crate::TransactionOptions::number).
    pub number: Option<u64>,
    /// Where the program began it; `None` for work of the database itself.
    pub place: Option<&'static Location<'static>>,
    /// How long ago it began. At a safe snapshot, the age of the state that it reads.
    pub age: Duration,
    /// How it is isolated; `None` for work of the database itself, like the
    /// creation of an index.
    pub isolation: Option<Isolation>,
    /// Whether it is read-only.
    pub read_only: bool,
    /// The name of the thread that began it, if the thread still runs and the system knows the
    /// name.
    pub thread: Option<String>,
    /// The system's number of that thread.
    pub thread_id: Option<u32>,
    /// Whether it is prepared. Then only a commit or a rollback by its name ends it.
    pub prepared: bool,
    /// What has ended it, if its program has not dropped it yet.
    pub ended: Option<EndedBy>,
}

impl OpenTransaction {
    /// Its name and its number.
    pub fn label(&self) -> Option<String> {
        match (self.name, self.number) {
            (None, None) => None,
            (Some(name), None) => Some(name.to_owned()),
            (None, Some(number)) => Some(number.to_string()),
            (Some(name), Some(number)) => Some(format!("{name} {number}")),
        }
    }
}

impl fmt::Display for OpenTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(id) = self.id {
            write!(f, "transaction {id}, ")?;
        }
        match (self.isolation, self.label()) {
            (Some(isolation), None) => write!(f, "{isolation:?}")?,
            (Some(isolation), Some(name)) => write!(f, "{name:?}, {isolation:?}")?,
            (None, None) => f.write_str("work of the database itself")?,
            (None, Some(work)) => write!(f, "work of the database itself: {work}")?,
        }
        let kind = match (self.read_only, self.prepared) {
            (true, _) => ", read-only",
            (_, true) => ", prepared",
            _ => "",
        };
        write!(f, "{kind}, open for {:.1?}", self.age)?;
        if let Some(place) = self.place {
            write!(f, ", begun at {place}")?;
        }
        match (&self.thread, self.thread_id) {
            (Some(name), Some(id)) => write!(f, ", begun by thread {name:?} ({id})")?,
            (None, Some(id)) => write!(f, ", begun by a thread ({id}) that has ended")?,
            _ => {}
        }
        match self.ended {
            Some(by) => write!(f, ", ended by {by} and not yet dropped"),
            None => Ok(()),
        }
    }
}

/// What the database does about a transaction that holds back too much; see
/// [`Options::max_pinned_age`](crate::Options::max_pinned_age).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OnPinned {
    /// Counts the transaction and warns of it through `tracing`, once.
    #[default]
    Warn,
    /// Also ends the transaction.
    End,
}

/// How much one transaction may hold back, and what is done about one that holds
/// back more.
#[derive(Clone, Copy, Default)]
pub(crate) struct PinnedLimits {
    pub age: Option<(Duration, OnPinned)>,
    pub bytes: Option<(u64, OnPinned)>,
}
