//! Prepared transactions, by their names: who has them in hand, and what their tables
//! are kept from. `api/prepared.rs` has what a database does with them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::{Condvar, Instant, Mutex, thread};
use pantile_base::{TableId, Timestamp};

use crate::engine::core::Core;
use crate::engine::seats::Seat;
use crate::engine::table::{Table, TableInner};
use crate::transactions::commit::Published;
use crate::transactions::in_flight::InFlight;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::isolation::Isolation;
use crate::types::transaction_options::TransactionOptions;

/// For how long a change of a definition holds back those that are to be prepared, at a time.
const MOST_HELD_BACK: Duration = Duration::from_millis(100);

/// Between two such times.
const BETWEEN: Duration = Duration::from_millis(10);

/// For how long it waits for those that are prepared already.
const MOST_WAITED: Duration = Duration::from_secs(10);

pub(super) fn late() -> TransactionOptions {
    TransactionOptions::new().isolation(Isolation::ReadCommitted)
}

/// A name as text.
pub(super) fn text(name: &[u8]) -> String {
    name.escape_ascii().to_string()
}

/// The prepared transactions of an open database. Its handles share them, and so do
/// those who have one in hand.
#[derive(Default)]
pub(crate) struct AllPrepared {
    pub(super) state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    pub by_name: BTreeMap<Vec<u8>, Entry>,
    /// Tables whose definitions are being changed.
    changing: Vec<TableId>,
    /// The database is being closed.
    pub is_closing: bool,
}

impl State {
    /// A transaction that has changed rows of a table: one that waits for its decision, if there is any.
    fn of_table(&self, table: TableId) -> Option<(&Vec<u8>, &Entry)> {
        let is_of =
            |entry: &Entry| entry.tables.contains(&table) && !is_removed(Control::PreparedDefinitions);
        let of = || self.by_name.iter().filter(|(_, entry)| is_of(entry));
        of().find(|(_, entry)| entry.waits.is_some()).or_else(|| of().next())
    }
}

pub(super) struct Entry {
    /// Those whose rows it has changed, that of its record included.
    pub tables: Vec<TableId>,
    /// The record, if it has one.
    pub record: Option<Record>,
    /// None while somebody has it in hand.
    pub waits: Option<Box<Transaction>>,
    /// Why it could not be made again when the database was opened.
    pub broken: Option<Arc<str>>,
}

/// Where a record lies, and its rows.
pub(super) type Record = (Table, usize);

/// A transaction that somebody has in hand.
pub(super) struct Held {
    pub record: Option<Record>,
    pub txn: Box<Transaction>,
    pub broken: Option<Arc<str>>,
}

/// While it lives, no transaction is prepared that has changed rows of the table.
pub(crate) struct Changing<'a> {
    all: &'a AllPrepared,
    table: TableId,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        let mut state = self.all.state.lock();
        if let Some(at) = state.changing.iter().position(|id| *id == self.table) {
            state.changing.swap_remove(at);
        }
        self.all.changed.notify_all();
    }
}

impl AllPrepared {
    /// Lets the caller change the definition of a table.
    ///
    /// # Errors
    /// [`Error::PreparedChanges`].
    pub fn change(&self, table: &TableInner) -> Result<Changing<'_>> {
        let changing = self.hold_back(table);
        let name = self.state.lock().of_table(table.id).map(|(name, _)| text(name));
        name.map_or(Ok(changing), |name| Err(Error::PreparedChanges { table: table.name(), name }))
    }

    /// The same beside transactions that are prepared and committed all the time: waits until those that somebody has
    /// in hand are decided. Meanwhile others are held back from being prepared, but never for long: one that is prepared
    /// may wait for one of these, as on a replica, which commits in the order of its source. `goes_on` is asked in
    /// between.
    ///
    /// # Errors
    /// [`Error::PreparedChanges`] if one waits for its decision, or takes too long; those of `goes_on`.
    pub fn change_when_decided(
        &self,
        table: &TableInner,
        goes_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Changing<'_>> {
        let last = Instant::now() + MOST_WAITED;
        loop {
            let changing = self.hold_back(table);
            let until = Instant::now() + MOST_HELD_BACK;
            let mut state = self.state.lock();
            while let Some((name, entry)) = state.of_table(table.id) {
                if entry.waits.is_some() || Instant::now() >= last {
                    return Err(Error::PreparedChanges { table: table.name(), name: text(name) });
                }
                if self.changed.wait_until(&mut state, until).timed_out() {
                    break;
                }
            }
            if state.of_table(table.id).is_none() {
                return Ok(changing);
            }
            drop(state);
            drop(changing);
            goes_on()?;
            // Those that were held back go on.
            thread::sleep(BETWEEN);
        }
    }

    /// Keeps transactions that have changed rows of the table from being prepared.
    fn hold_back(&self, table: &TableInner) -> Changing<'_> {
        self.state.lock().changing.push(table.id);
        Changing { all: self, table: table.id }
    }

    /// Takes a name for a transaction that has changed these tables, and waits for those
    /// who change their definitions.
    pub(super) fn enter(&self, name: &[u8], tables: Vec<TableId>) -> Result<()> {
        let mut state = self.state.lock();
        while state.changing.iter().any(|id| tables.contains(id)) {
            self.changed.wait(&mut state);
        }
        if state.by_name.contains_key(name) {
            return Err(Error::AlreadyPrepared { name: text(name) });
        }
        state.by_name.insert(name.to_vec(), Entry { tables, record: None, waits: None, broken: None });
        Ok(())
    }

    pub(super) fn leave(&self, name: &[u8]) {
        self.state.lock().by_name.remove(name);
        self.changed.notify_all();
    }

    /// Keeps a transaction until somebody takes it.
    pub(super) fn keep(&self, name: &[u8], held: Held) {
        let Held { record, txn, broken } = held;
        if let Some(entry) = self.state.lock().by_name.get_mut(name) {
            (entry.record, entry.waits, entry.broken) = (record, Some(txn), broken);
        }
        self.changed.notify_all();
    }

    /// Lets go of those that wait, if no other transaction is open. Their records
    /// stay. The gate is closing, so none begins. Returns whether that was done.
    pub fn let_go(&self, core: &Core) -> bool {
        let mut state = self.state.lock();
        let waiting = state.by_name.values().filter(|entry| entry.waits.is_some()).count();
        if core.registry.running() > waiting {
            return false;
        }
        state.is_closing = true;
        let gone = std::mem::take(&mut state.by_name);
        drop(state);
        drop(gone);
        true
    }
}

impl Drop for AllPrepared {
    /// No handle of the database is left.
    fn drop(&mut self) {
        let waiting: Vec<_> =
            self.state.get_mut().by_name.values_mut().filter_map(|e| e.waits.take()).collect();
        let core = waiting.first().map(|txn| Arc::clone(txn.core()));
        // A transaction that outlives the handles must not change the rows that these
        // have locked: nobody writes any more.
        if let Some(core) = core.filter(|core| core.registry.running() > waiting.len()) {
            core.gate.close();
        }
    }
}

/// A prepared transaction, from [`Database::prepare`](crate::Database::prepare) or
/// [`Database::take_prepared`](crate::Database::take_prepared).
///
/// It keeps its locks. Its commit can fail only because of the medium, whatever happens to the process.
/// Dropping the handle leaves the transaction prepared.
#[must_use = "dropping it leaves the transaction prepared"]
pub struct PreparedTransaction {
    all: Arc<AllPrepared>,
    name: Vec<u8>,
    /// None once it has ended.
    held: Option<Held>,
}

impl std::fmt::Debug for PreparedTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedTransaction").field("name", &text(&self.name)).finish_non_exhaustive()
    }
}

impl Drop for PreparedTransaction {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.all.keep(&self.name, held);
        }
    }
}

impl PreparedTransaction {
    pub(super) fn new(all: &Arc<AllPrepared>, name: &[u8], held: Held) -> Self {
        Self { all: Arc::clone(all), name: name.to_vec(), held: Some(held) }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Makes the writes durable and visible, as [`Transaction::commit`].
    ///
    /// # Errors
    /// - [`Error::StorageFull`], [`Error::Closed`], and [`Error::MediumFailed`] if the write fails: the
    ///   transaction stays prepared, and [`Database::take_prepared`](crate::Database::take_prepared) returns it.
    /// - [`Error::MediumFailed`] if the sync fails: others may have seen the writes. When the database is next
    ///   opened, the transaction is either committed or still prepared.
    /// - [`Error::Damaged`]: the changes could not be made again when the database was opened. The transaction
    ///   can only be rolled back.
    pub fn commit(self) -> Result<Timestamp> {
        let (mut txn, published) = self.show()?;
        txn.land(published)
    }

    /// Makes the writes visible and returns before they are durable, as [`Transaction::publish`].
    ///
    /// If the process ends before they are durable, the transaction is prepared when the database is next
    /// opened. A coordinator that has recorded its decision to commit can then commit it again.
    ///
    /// # Errors
    /// As [`PreparedTransaction::commit`].
    pub fn publish(self) -> Result<InFlight> {
        let (txn, published) = self.show()?;
        Ok(InFlight::of_published(txn, published))
    }

    fn show(mut self) -> Result<(Transaction, Published)> {
        let mut held = self.held.take().expect("it has not ended");
        let shown = match &held.broken {
            None => held.txn.make_visible(),
            Some(why) => Err(Error::Damaged { place: place(&self.name), detail: why.to_string() }),
        };
        match shown {
            Ok(published) => {
                self.all.leave(&self.name);
                Ok((*held.txn, published))
            }
            Err(error) => {
                held.txn.stay_prepared();
                self.held = Some(held);
                Err(error)
            }
        }
    }

    /// Undoes all writes. They do not come back once the call has returned.
    ///
    /// # Errors
    /// [`Error::StorageFull`], [`Error::Closed`], [`Error::MediumFailed`], [`Error::TooManyTransactions`].
    /// The transaction stays prepared then.
    pub fn rollback(mut self) -> Result<()> {
        // The record is deleted durably before the locks go: others must not change rows
        // whose locks could come back.
        let held = self.held.as_mut().expect("it has not ended");
        if let Some((table, parts)) = &held.record {
            held.txn.let_go_of_record();
            if let Err(error) = forget(held.txn.seat(), table, &self.name, *parts) {
                // One that could not be made again has not had it. Without it, none can be committed.
                if held.broken.is_none()
                    && let Err(why) = held.txn.hold_record(table, &self.name, *parts)
                {
                    held.broken = Some(why.to_string().into());
                }
                return Err(error);
            }
        }
        if let Some(held) = self.held.take() {
            held.txn.rollback();
        }
        self.all.leave(&self.name);
        Ok(())
    }
}

pub(super) fn place(name: &[u8]) -> String {
    format!("the prepared transaction \"{}\"", text(name))
}

/// Deletes a record durably.
pub(super) fn forget(core: Seat, table: &Table, name: &[u8], parts: usize) -> Result<()> {
    let mut txn = Transaction::begin_within(core, late())?;
    txn.delete_record(table, name, parts)?;
    txn.delete_mark(table, name)?;
    txn.commit().map(drop)
}
