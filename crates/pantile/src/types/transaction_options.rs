//! Options of a transaction.

use std::time::Duration;

use crate::types::isolation::Isolation;

/// What a call does when another running transaction has locked what it needs.
///
/// ```
/// use std::time::Duration;
/// use pantile::{ConflictPolicy, Options, TransactionOptions};
/// // Calls wait up to 50 ms, and those of some transactions not at all.
/// let options = Options::new().conflict(ConflictPolicy::Wait(Duration::from_millis(50)));
/// let impatient = TransactionOptions::new().conflict(ConflictPolicy::Abort);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConflictPolicy {
    /// The call fails at once with [`Error::Conflict`](crate::Error::Conflict).
    Abort,
    /// The call waits at most this long, if waiting can help, and then fails. For a serializable
    /// transaction, waiting helps only if the other transaction is older, or if this one has read
    /// and written nothing and can begin again behind the other.
    Wait(Duration),
}

impl Default for ConflictPolicy {
    /// Waits up to one second.
    fn default() -> Self {
        ConflictPolicy::Wait(Duration::from_secs(1))
    }
}

/// How one transaction runs.
///
/// ```
/// use pantile::{Isolation, TransactionOptions};
/// let options = TransactionOptions::new().isolation(Isolation::Snapshot).read_only(true);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransactionOptions {
    pub(crate) isolation: Isolation,
    pub(crate) read_only: bool,
    pub(crate) safe_snapshot: bool,
    pub(crate) conflict: Option<ConflictPolicy>,
    pub(crate) name: Option<&'static str>,
    pub(crate) number: Option<u64>,
}

impl TransactionOptions {
    /// Serializable, read-write, with the database's conflict policy.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the isolation level.
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Whether writes are rejected. At a safe snapshot they always are.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only || self.safe_snapshot;
        self
    }

    /// Makes it read-only, at the newest safe snapshot; see
    /// [`Database::begin_safe_snapshot`](crate::Database::begin_safe_snapshot).
    #[must_use]
    pub fn safe_snapshot(mut self) -> Self {
        self.safe_snapshot = true;
        self.read_only = true;
        self
    }

    /// Sets what it does on conflicts.
    #[must_use]
    pub fn conflict(mut self, conflict: ConflictPolicy) -> Self {
        self.conflict = Some(conflict);
        self
    }

    /// Sets a name for people to read. [`Database::transactions`](crate::Database::transactions),
    /// warnings and messages show it.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// let report = db.begin_with(TransactionOptions::new().safe_snapshot().name("report"))?;
    /// assert_eq!(db.transactions()[0].transaction.name, Some("report"));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn name(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    /// Sets a number that distinguishes transactions of the same name for people, such as that of a
    /// connection. Warnings and messages show it behind the name.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// let txn = db.begin_with(TransactionOptions::new().name("connection").number(17))?;
    /// assert_eq!(db.transactions()[0].transaction.label().as_deref(), Some("connection 17"));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn number(mut self, number: u64) -> Self {
        self.number = Some(number);
        self
    }
}
