//! Two-phase commit: transactions that are prepared, by their names.
//!
//! `transactions/prepare.rs` has what the transaction itself does.

use std::collections::BTreeMap;
use std::sync::Arc;

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::{Condvar, Mutex};
use pantile_base::{TableId, Timestamp};

use crate::api::database::Database;
use crate::engine::core::Core;
use crate::engine::pieces::PIECE;
use crate::engine::table::{Table, TableInner};
use crate::transactions::commit::Published;
use crate::transactions::in_flight::InFlight;
use crate::transactions::prepare;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::isolation::Isolation;
use crate::types::prepared_record;
use crate::types::range::Range;
use crate::types::schema::{TableDef, Type};
use crate::types::transaction_options::{ConflictPolicy, TransactionOptions};

/// The table with what prepared transactions have changed.
pub(crate) const RECORD: &str = "#prepared";

/// Most bytes of a name.
const MOST_OF_NAME: usize = 255;

fn definition() -> TableDef {
    TableDef::new(RECORD)
        .column("name", Type::Bytes(MOST_OF_NAME as u32))
        .column("part", Type::U32)
        .column("changes", Type::Bytes(PIECE as u32))
        .primary_key(["name", "part"])
}

fn late() -> TransactionOptions {
    TransactionOptions::new().isolation(Isolation::ReadCommitted)
}

fn text(name: &[u8]) -> String {
    name.escape_ascii().to_string()
}

/// The prepared transactions of an open database. Its handles share them, and so do
/// those who have one in hand.
#[derive(Default)]
pub(crate) struct AllPrepared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    by_name: BTreeMap<Vec<u8>, Entry>,
    /// Tables whose definitions are being changed.
    changing: Vec<TableId>,
    /// The database is being closed.
    is_closing: bool,
}

struct Entry {
    /// Those whose rows it has changed, that of its record included.
    tables: Vec<TableId>,
    /// The record, if it has one.
    record: Option<Record>,
    /// None while somebody has it in hand.
    waits: Option<Box<Transaction>>,
    /// Why it could not be made again when the database was opened.
    broken: Option<Arc<str>>,
}

/// Where a record lies, and its rows.
type Record = (Table, usize);

/// A transaction that somebody has in hand.
struct Held {
    record: Option<Record>,
    txn: Box<Transaction>,
    broken: Option<Arc<str>>,
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
        let mut state = self.state.lock();
        let is_of =
            |entry: &Entry| entry.tables.contains(&table.id) && !is_removed(Control::PreparedDefinitions);
        if let Some((name, _)) = state.by_name.iter().find(|(_, entry)| is_of(entry)) {
            return Err(Error::PreparedChanges { table: table.name(), name: text(name) });
        }
        state.changing.push(table.id);
        Ok(Changing { all: self, table: table.id })
    }

    /// Takes a name for a transaction that has changed these tables, and waits for those
    /// who change their definitions.
    fn enter(&self, name: &[u8], tables: Vec<TableId>) -> Result<()> {
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

    fn leave(&self, name: &[u8]) {
        self.state.lock().by_name.remove(name);
    }

    /// Keeps a transaction until somebody takes it.
    fn keep(&self, name: &[u8], held: Held) {
        let Held { record, txn, broken } = held;
        if let Some(entry) = self.state.lock().by_name.get_mut(name) {
            (entry.record, entry.waits, entry.broken) = (record, Some(txn), broken);
        }
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

/// A transaction that is prepared, from [`Database::prepare`] or
/// [`Database::take_prepared`]: it keeps its locks, and its commit cannot fail but for
/// the medium, whatever happens to the process. Dropping it leaves it prepared.
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
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Makes the writes durable and visible, as [`Transaction::commit`].
    ///
    /// # Errors
    /// [`Error::StorageFull`], [`Error::Closed`], and [`Error::MediumFailed`] of the
    /// write: it is prepared as before, and waits for [`Database::take_prepared`].
    /// [`Error::MediumFailed`] of the sync: others may have seen it; whether it has
    /// been committed or is prepared shows when the database is next opened.
    /// [`Error::Damaged`]: what it has changed could not be made again when the database
    /// was opened. It can only be rolled back.
    pub fn commit(self) -> Result<Timestamp> {
        let (mut txn, published) = self.show()?;
        txn.land(published)
    }

    /// Makes the writes visible and returns before they are durable, as
    /// [`Transaction::publish`]. If the process ends before they are, the transaction
    /// is prepared when the database is next opened: whoever has written down that it
    /// commits can commit it again.
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
    /// [`Error::StorageFull`], [`Error::Closed`], [`Error::MediumFailed`],
    /// [`Error::TooManyTransactions`]: it is prepared as before.
    pub fn rollback(mut self) -> Result<()> {
        // The record goes first, and durably, while the locks are held: others must not
        // change rows whose locks could come back.
        let held = self.held.as_mut().expect("it has not ended");
        if let Some((table, parts)) = &held.record {
            held.txn.let_go_of_record()?;
            if let Err(error) = forget(held.txn.core(), table, &self.name, *parts) {
                held.txn.hold_record(table, &self.name, *parts)?;
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

fn place(name: &[u8]) -> String {
    format!("the prepared transaction \"{}\"", text(name))
}

/// Deletes a record durably.
fn forget(core: &Arc<Core>, table: &Table, name: &[u8], parts: usize) -> Result<()> {
    let mut txn = Transaction::begin_within(Arc::clone(core), late())?;
    txn.delete_record(table, name, parts)?;
    txn.commit().map(drop)
}

impl Database {
    /// Prepares a transaction for the commit of a coordinator that has parts of it in
    /// several databases (two-phase commit): it writes down durably what it has
    /// changed, under a name that the coordinator chooses, and keeps its locks. From
    /// then on its commit does not fail, and it is neither committed nor rolled back
    /// but by its name, before or after the database is opened again.
    ///
    /// Rows that it has locked and not changed are locked until the database is closed.
    /// The definitions of tables whose rows it has changed cannot change.
    ///
    /// Readers do not wait for it, unless it is serializable: then its place in the
    /// order is settled here, and those that read what it has written wait until it
    /// ends, as does the freeing of space. Decide soon. After the database has been
    /// opened again, the order of such a transaction is that of its commit, and what it
    /// has read is not protected any more: decide before others write.
    ///
    /// # Errors
    /// [`Error::AlreadyPrepared`]; [`Error::InvalidOption`] for a name of more than 255
    /// bytes, and for a serializable transaction with
    /// [`Options::writers_move(false)`](crate::Options::writers_move); what
    /// [`Transaction::commit`] returns, and [`Error::MemoryFull`]. The transaction has
    /// been rolled back.
    ///
    /// ```
    /// # use pantile::*;
    /// # let dir = tempfile::tempdir().unwrap();
    /// let def = TableDef::new("accounts").column("id", Type::U32).column("sum", Type::I64).primary_key(["id"]);
    /// let db = Database::open(dir.path())?;
    /// let accounts = db.open_or_create(def.clone())?;
    /// let mut txn = db.begin()?;
    /// txn.insert(&accounts, &[1u32.into(), 100i64.into()])?;
    /// drop(db.prepare(txn, b"transfer 5")?);
    /// db.close()?;
    ///
    /// let db = Database::open(dir.path())?;
    /// assert_eq!(db.prepared(), [b"transfer 5"]);
    /// db.take_prepared(b"transfer 5")?.commit()?;
    /// assert_eq!(db.begin_read()?.count(&db.table("accounts")?, Range::all())?, 1);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn prepare(&self, mut txn: Transaction, name: &[u8]) -> Result<PreparedTransaction> {
        if name.len() > MOST_OF_NAME {
            let bytes = name.len();
            return Err(Error::InvalidOption(format!(
                "a name of {bytes} bytes for a prepared transaction; it takes at most {MOST_OF_NAME}"
            )));
        }
        if !Arc::ptr_eq(txn.core(), &self.core) {
            return Err(Error::InvalidOption(
                "a transaction of another database, which is rolled back".into(),
            ));
        }
        if !txn.can_be_prepared() {
            let why =
                "a serializable transaction can be prepared only where writers move (Options::writers_move)";
            return Err(Error::InvalidOption(why.into()));
        }
        let mut tables = txn.changed_tables();
        if tables.is_empty() {
            self.prepared.enter(name, tables)?;
            let prepared = txn.prepare_nothing();
            let held = Held { record: None, txn: Box::new(txn), broken: None };
            return prepared.inspect_err(|_| self.prepared.leave(name)).map(|()| self.hand_out(name, held));
        }
        let record_table = self.record_table()?;
        tables.push(record_table.inner.id);
        self.prepared.enter(name, tables)?;
        let mut parts = 0;
        let prepared = self.prepare_as(&mut txn, &record_table, name, &mut parts);
        let record = (parts > 0).then_some((record_table, parts));
        let Err(error) = prepared else {
            return Ok(self.hand_out(name, Held { record, txn: Box::new(txn), broken: None }));
        };
        // The record goes before the locks, as when it is rolled back.
        let gone = record.as_ref().map_or(Ok(()), |(table, parts)| {
            txn.let_go_of_record()?;
            forget(&self.core, table, name, *parts)
        });
        match gone {
            Ok(()) => {
                drop(txn);
                self.prepared.leave(name);
            }
            // Its record would come back, so its locks stay. Nobody was told that it is
            // prepared, and so nobody commits it.
            Err(why) => {
                tracing::warn!(error = %why, name = text(name), "a transaction that was not prepared stays so");
                let broken = Some(error.to_string().into());
                self.prepared.keep(name, Held { record, txn: Box::new(txn), broken });
            }
        }
        Err(error)
    }

    /// The table of records, which is made when it is first needed.
    fn record_table(&self) -> Result<Table> {
        match self.table(RECORD) {
            Ok(table) if definition().differences(&table.definition()).is_none() => Ok(table),
            Ok(_) | Err(Error::UnknownTable(_)) => self.open_or_create(definition()),
            Err(error) => Err(error),
        }
    }

    /// `parts` is set once there may be a record.
    fn prepare_as(&self, txn: &mut Transaction, table: &Table, name: &[u8], parts: &mut usize) -> Result<()> {
        txn.check_prepare()?;
        // Definitions do not change any more.
        let record = txn.record()?;
        let mut other = Transaction::begin_within(Arc::clone(&self.core), late())?;
        other.write_record(table, name, &record, txn)?;
        *parts = prepare::parts(&record);
        other.commit()?;
        txn.prepare(table, name, *parts)
    }

    fn hand_out(&self, name: &[u8], held: Held) -> PreparedTransaction {
        PreparedTransaction { all: Arc::clone(&self.prepared), name: name.to_vec(), held: Some(held) }
    }

    /// The names of the prepared transactions that wait to be committed or rolled
    /// back, in order. Those that somebody has in hand are not among them.
    pub fn prepared(&self) -> Vec<Vec<u8>> {
        let state = self.prepared.state.lock();
        let waiting = state.by_name.iter().filter(|(_, entry)| entry.waits.is_some());
        waiting.map(|(name, _)| name.clone()).collect()
    }

    /// Checks that no prepared transaction has changed rows of a table, so that its
    /// definition can change and it can be dropped.
    ///
    /// # Errors
    /// [`Error::PreparedChanges`].
    pub fn check_prepared(&self, table: &Table) -> Result<()> {
        self.prepared.change(&table.inner).map(drop)
    }

    /// Takes a prepared transaction, to commit it or to roll it back.
    ///
    /// # Errors
    /// [`Error::UnknownPrepared`]; [`Error::Closed`].
    pub fn take_prepared(&self, name: &[u8]) -> Result<PreparedTransaction> {
        let mut state = self.prepared.state.lock();
        if state.is_closing {
            return Err(Error::Closed);
        }
        let entry = state.by_name.get_mut(name);
        let found = entry.and_then(|entry| {
            let txn = entry.waits.take()?;
            Some(Held { record: entry.record.clone(), txn, broken: entry.broken.clone() })
        });
        drop(state);
        let held = found.ok_or_else(|| Error::UnknownPrepared { name: text(name) })?;
        Ok(self.hand_out(name, held))
    }

    /// Makes the transactions again that were prepared when the database was last
    /// open. Nobody else has it yet. One that cannot be made again, because its record is
    /// damaged or there is no memory, keeps nobody from the rest of the database: it can
    /// be rolled back.
    pub(crate) fn repeat_prepared(&self) -> Result<()> {
        if self.core.options.is_read_only() || !self.core.tables.exists(RECORD) {
            return Ok(());
        }
        let table = self.table(RECORD)?;
        if definition().differences(&table.definition()).is_some() {
            // A table of the user's.
            return Ok(());
        }
        let mut records: BTreeMap<Vec<u8>, (Vec<u8>, usize)> = BTreeMap::new();
        let txn = self.begin_read()?;
        for row in txn.scan(&table, Range::all())? {
            let row = row?;
            let (record, parts) = records.entry(row.get(0)?).or_default();
            record.extend_from_slice(row.get(2)?);
            *parts += 1;
        }
        drop(txn);
        for (name, (record, parts)) in records {
            self.prepared.enter(&name, vec![table.inner.id])?;
            let (txn, broken) = match self.repeat(&table, &name, &record, parts) {
                Ok(txn) => (txn, None),
                Err(error) => {
                    tracing::error!(%error, name = text(&name), "a prepared transaction cannot be made again");
                    (self.begin_again()?, Some(error.to_string().into()))
                }
            };
            let mut tables = txn.changed_tables();
            tables.push(table.inner.id);
            if let Some(entry) = self.prepared.state.lock().by_name.get_mut(&name) {
                entry.tables = tables;
            }
            let record = Some((table.clone(), parts));
            self.prepared.keep(&name, Held { record, txn: Box::new(txn), broken });
        }
        Ok(())
    }

    /// Nobody is there for whom it could wait.
    fn begin_again(&self) -> Result<Transaction> {
        Transaction::begin_within(Arc::clone(&self.core), late().conflict(ConflictPolicy::Abort))
    }

    fn repeat(&self, table: &Table, name: &[u8], record: &[u8], parts: usize) -> Result<Transaction> {
        let changes = prepared_record::decode(&text(name), record)?;
        let mut txn = self.begin_again()?;
        txn.repeat(&changes)?;
        txn.prepare_again(table, name, parts)?;
        Ok(txn)
    }
}
