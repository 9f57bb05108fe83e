//! Two-phase commit: preparing transactions, and taking them up again.
//!
//! `transactions/prepare.rs` has what the transaction itself does.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use pantile_base::TableId;

use crate::api::all_prepared::{Held, PreparedTransaction, forget, late, place, text};
use crate::api::database::Database;
use crate::engine::table::Table;
use crate::transactions::prepare::BROKEN;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::pieces::PIECE;
use crate::types::prepared_record::{self, Change};
use crate::types::range::Range;
use crate::types::schema::{TableDef, Type};
use crate::types::transaction_options::ConflictPolicy;

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

impl Database {
    /// Prepares a transaction for two-phase commit, under a name.
    ///
    /// A coordinator prepares the parts of one transaction in several databases before it commits
    /// them all. The call durably records what the transaction has changed, under a name that the
    /// coordinator chooses. The transaction keeps its locks. From then on its commit does not fail.
    /// The transaction ends only when it is committed or rolled back: through the handle that the
    /// call returns, or by its name with [`Database::take_prepared`], also after the database has
    /// been opened again.
    ///
    /// Locks of rows that the transaction has not changed last only until the database is closed.
    /// The definitions of tables whose rows it has changed cannot change.
    ///
    /// A transaction that has changed nothing has no record. So after the database has been opened
    /// again, its name is unknown. That is no loss: there was nothing to decide.
    ///
    /// Readers do not wait for the transaction, unless it is serializable. The call fixes the
    /// timestamp of a serializable transaction. From then on, transactions that read what it has
    /// written wait until it ends, or until their conflict policy lets them fail, and so does the
    /// freeing of space: decide soon. After the database has been opened again, a serializable
    /// transaction gets its timestamp when it commits, and what it has read is not protected any
    /// more: decide before others write.
    ///
    /// # Errors
    /// [`Error::AlreadyPrepared`]; [`Error::InvalidOption`] for a name of more than 255 bytes, for
    /// a transaction of another database, and for a serializable transaction with
    /// [`Options::writers_move(false)`](crate::Options::writers_move); what [`Transaction::commit`]
    /// returns, and [`Error::MemoryFull`]. The transaction has been rolled back then, unless its
    /// record cannot be removed: in that case [`Database::prepared`] lists it, and it can only be
    /// rolled back.
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
            let why = "a serializable transaction can be prepared only where writers move (Options::writers_move), under the engine's own protocol";
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
        // Waiting runs the program's own code (`Transaction::interrupt_when`), which may panic.
        let prepare = || self.prepare_as(&mut txn, &record_table, name, &mut parts);
        let prepared = catch_unwind(AssertUnwindSafe(prepare));
        let record = (parts > 0).then_some((record_table, parts));
        let failed = match prepared {
            Ok(Ok(())) => {
                return Ok(self.hand_out(name, Held { record, txn: Box::new(txn), broken: None }));
            }
            Ok(Err(error)) => Ok(error),
            Err(panic) => Err(panic),
        };
        // The record goes before the locks, as when it is rolled back.
        let gone = record.as_ref().map_or(Ok(()), |(table, parts)| {
            txn.let_go_of_record();
            forget(self.seats.own(), table, name, *parts)
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
                let cause = |error: &Error| error.to_string();
                let broken = failed.as_ref().map_or_else(|_| "the program panicked meanwhile".into(), cause);
                let broken = Some(broken.into());
                // If it was asked to end, it is listed so, but it stays all the same.
                let _ = txn.stay_broken();
                self.prepared.keep(name, Held { record, txn: Box::new(txn), broken });
            }
        }
        match failed {
            Ok(error) => Err(error),
            Err(panic) => resume_unwind(panic),
        }
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
        let mut other = Transaction::begin_within(self.seats.own(), late())?;
        // Definitions do not change any more.
        *parts = other.write_record(table, name, txn)?;
        other.commit().map_err(|error| txn.name_another_holder(error))?;
        txn.prepare(table, name, *parts)
    }

    fn hand_out(&self, name: &[u8], held: Held) -> PreparedTransaction {
        PreparedTransaction::new(&self.prepared, name, held)
    }

    /// The names of the prepared transactions that wait to be committed or rolled back, in order.
    ///
    /// A transaction is not among them while there is a [`PreparedTransaction`] of it.
    pub fn prepared(&self) -> Vec<Vec<u8>> {
        let state = self.prepared.state.lock();
        let waiting = state.by_name.iter().filter(|(_, entry)| entry.waits.is_some());
        waiting.map(|(name, _)| name.clone()).collect()
    }

    /// Checks that no prepared transaction has changed rows of a table, so that the table can be
    /// altered and dropped.
    ///
    /// # Errors
    /// [`Error::PreparedChanges`].
    pub fn check_prepared(&self, table: &Table) -> Result<()> {
        self.prepared.change(&table.inner).map(drop)
    }

    /// Whether a table is the one in which prepared transactions are written down, and not another of that name.
    #[doc(hidden)]
    pub fn is_for_prepared(&self, table: &str) -> bool {
        let is_record = |table: Table| definition().differences(&table.definition()).is_none();
        table == RECORD && self.table(RECORD).is_ok_and(is_record)
    }

    /// The names of the prepared transactions that are written down, also in a database that only reads, as far as
    /// they can be read.
    #[doc(hidden)]
    pub fn written_prepared(&self) -> Result<Vec<Vec<u8>>> {
        if !self.is_for_prepared(RECORD) {
            return Ok(Vec::new());
        }
        let (table, txn) = (self.table(RECORD)?, self.begin_read()?);
        let rows = txn.scan(&table, Range::all())?;
        let mut names: Vec<Vec<u8>> = rows.filter_map(|row| row.ok()?.get(0).ok()).collect();
        // Each has a row for each part of its record.
        names.dedup();
        Ok(names)
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
    /// damaged, keeps nobody from the rest of the database: it can be rolled back. Nothing
    /// else refuses one: others could change its rows, and a later opening make it again.
    pub(crate) fn repeat_prepared(&self) -> Result<()> {
        if self.core.options.is_read_only() || !self.core.tables.exists(RECORD) {
            return Ok(());
        }
        let table = self.table(RECORD)?;
        if definition().differences(&table.definition()).is_some() {
            // A table of the user's.
            return Ok(());
        }
        let mut records: BTreeMap<Vec<u8>, Recorded> = BTreeMap::new();
        let txn = self.begin_read()?;
        for row in txn.scan(&table, Range::all())? {
            let row = row?;
            let recorded = records.entry(row.get(0)?).or_default();
            let (part, bytes): (u32, &[u8]) = (row.get(1)?, row.get(2)?);
            if part == BROKEN {
                recorded.broken = Some(String::from_utf8_lossy(bytes).into_owned());
                continue;
            }
            recorded.bytes.extend_from_slice(bytes);
            recorded.parts += 1;
        }
        drop(txn);
        if !records.is_empty() && self.core.options.protocol.is_some() {
            let n = records.len();
            return Err(Error::InvalidOption(format!(
                "a protocol of the laboratory (Options::protocol) while prepared transactions, of which there are {n}, wait for their outcome; open it without, and commit them or roll them back"
            )));
        }
        for (name, recorded) in records {
            self.prepared.enter(&name, vec![table.inner.id])?;
            let (changes, mut tables) = recorded.changes(&name);
            // A new table must not be taken for one that is named here.
            tables.iter().for_each(|id| self.core.tables.id_is_used(*id));
            let parts = recorded.parts;
            let repeated = changes.and_then(|changes| self.repeat(&table, &name, &changes, parts));
            let (txn, broken) = match repeated {
                Ok(txn) => (txn, None),
                // Of the moment, and not of the record.
                Err(
                    error @ (Error::TooManyTransactions { .. }
                    | Error::MemoryFull(_)
                    | Error::MediumFailed { .. }
                    | Error::Closed),
                ) => return Err(error),
                Err(error) => {
                    tracing::error!(%error, name = text(&name), "a prepared transaction cannot be made again");
                    if recorded.broken.is_none() {
                        self.note_broken(&table, &name, &error)?;
                    }
                    let mut txn = self.begin_again()?;
                    txn.stay_broken()?;
                    (txn, Some(why(&error).into()))
                }
            };
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
        Transaction::begin_within(self.seats.own(), late().conflict(ConflictPolicy::Abort))
    }

    /// Sees that it is not repeated by a later opening, which could undo what others will have done to its rows.
    fn note_broken(&self, table: &Table, name: &[u8], error: &Error) -> Result<()> {
        let mut txn = self.begin_again()?;
        // A medium that is full must not keep the database from being opened.
        txn.frees = true;
        txn.mark_broken(table, name, &why(error))?;
        txn.commit().map(drop)
    }

    fn repeat(
        &self,
        table: &Table,
        name: &[u8],
        changes: &[(TableId, Change)],
        parts: usize,
    ) -> Result<Transaction> {
        let mut txn = self.begin_again()?;
        txn.repeat(changes)?;
        txn.prepare_again(table, name, parts)?;
        Ok(txn)
    }
}

/// Why one cannot be made again, for an error that names it.
fn why(error: &Error) -> String {
    match error {
        Error::Damaged { detail, .. } => detail.clone(),
        other => other.to_string(),
    }
}

/// What there is of a prepared transaction when the database is opened.
#[derive(Default)]
struct Recorded {
    bytes: Vec<u8>,
    parts: usize,
    /// Why an earlier opening could not repeat it.
    broken: Option<String>,
}

impl Recorded {
    /// What it has changed, and the tables that the record names, as far as it can be read.
    fn changes(&self, name: &[u8]) -> (Result<Vec<(TableId, Change)>>, Vec<TableId>) {
        let changes = prepared_record::decode(&text(name), &self.bytes);
        let mut tables: Vec<_> = changes.iter().flatten().map(|(id, _)| *id).collect();
        tables.sort_unstable();
        tables.dedup();
        match &self.broken {
            None => (changes, tables),
            Some(why) => (Err(Error::Damaged { place: place(name), detail: why.clone() }), tables),
        }
    }
}
