//! What the threads of a load do: read blocks, insert their rows.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use pantile::{Database, Transaction};

use crate::batch::Batch;
use crate::block::Block;
use crate::error::{Committed, Error};
use crate::target::Target;

/// What the threads share.
pub struct Work<'d> {
    db: &'d Database,
    batch: Option<u64>,
    /// The first block that has failed.
    failed: AtomicU64,
    failure: Mutex<Option<Error>>,
    ordered: Mutex<Ordered>,
    turned: Condvar,
}

/// The transaction of tables that existed before. Blocks come to it in turn.
#[derive(Default)]
struct Ordered {
    turn: u64,
    transaction: Option<Transaction>,
    /// Rows in the transaction.
    rows: u64,
    /// Rows in the transaction, by table.
    pending: Vec<(usize, Committed)>,
    committed: Vec<(usize, Committed)>,
}

impl<'d> Work<'d> {
    pub fn new(db: &'d Database, batch: Option<u64>) -> Self {
        Self {
            db,
            batch,
            failed: AtomicU64::new(u64::MAX),
            failure: Mutex::default(),
            ordered: Mutex::default(),
            turned: Condvar::new(),
        }
    }

    /// Works until no more blocks come. After a failure, only on blocks before
    /// it: the first failure is the one to report.
    pub fn run(&self, blocks: &Mutex<Receiver<Block>>) {
        loop {
            let next = blocks.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(block) = next else { return };
            if self.is_before_failure(block.number) {
                let loaded = catch_unwind(AssertUnwindSafe(|| self.load(&block)));
                // Others may be waiting for its turn.
                let failed = |panic| {
                    self.fail(block.number, Error::Interrupted);
                    resume_unwind(panic)
                };
                if let Err(error) = loaded.unwrap_or_else(failed) {
                    self.fail(block.number, error);
                }
            }
        }
    }

    /// Whether a block has failed.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire) != u64::MAX
    }

    fn is_before_failure(&self, block: u64) -> bool {
        block < self.failed.load(Ordering::Acquire)
    }

    fn fail(&self, block: u64, error: Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_before_failure(block) {
            self.failed.store(block, Ordering::Release);
            *failure = Some(error);
        }
        drop(failure);
        // Later blocks wait for a turn that does not come.
        let _ordered = self.ordered();
        self.turned.notify_all();
    }

    fn ordered(&self) -> MutexGuard<'_, Ordered> {
        self.ordered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(&self, block: &Block) -> Result<(), Error> {
        let (batch, read) = block.read();
        let Some(turn) = block.turn else {
            return read.and_then(|()| self.commit(&block.target, &batch));
        };
        let is_waiting = |ordered: &mut Ordered| ordered.turn != turn && self.is_before_failure(block.number);
        let ordered = self.turned.wait_while(self.ordered(), is_waiting);
        let mut ordered = ordered.unwrap_or_else(PoisonError::into_inner);
        if ordered.turn == turn {
            // In batches, rows before one that cannot be read count.
            ordered.insert(self.db, self.batch, &block.target, &batch).and(read)?;
            ordered.turn += 1;
            self.turned.notify_all();
        }
        Ok(())
    }

    /// Inserts and commits rows of a table that the load can empty again.
    fn commit(&self, target: &Target, batch: &Batch) -> Result<(), Error> {
        let mut refused = None;
        let inserted = self.db.run(|txn| {
            refused = None;
            batch.try_each(|n, row| txn.insert(&target.table, row).inspect_err(|_| refused = Some(n)))
        });
        inserted.map_err(|error| match refused {
            Some(row) => Error::Row { at: batch.place(row), source: error.into() },
            None => Error::Database(error),
        })
    }

    /// Ends the load after all threads have ended. `read` is how reading the
    /// input ended, which is behind all blocks.
    pub fn end(self, read: Result<(), Error>) -> (Result<(), Error>, Vec<Committed>) {
        let failure = self.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut ordered = self.ordered.into_inner().unwrap_or_else(PoisonError::into_inner);
        let outcome = failure.map_or(read, Err).and_then(|()| ordered.commit());
        // What has not been committed is rolled back, before tables are dropped.
        ordered.transaction = None;
        (outcome, ordered.committed.into_iter().map(|(_, committed)| committed).collect())
    }
}

impl Ordered {
    fn insert(
        &mut self,
        db: &Database,
        most: Option<u64>,
        target: &Target,
        batch: &Batch,
    ) -> Result<(), Error> {
        batch.try_each(|n, row| {
            let transaction = match &mut self.transaction {
                Some(transaction) => transaction,
                none => none.insert(db.begin()?),
            };
            transaction
                .insert(&target.table, row)
                .map_err(|error| Error::Row { at: batch.place(n), source: error.into() })?;
            self.rows += 1;
            if most.is_some() {
                note(&mut self.pending, target, batch, n);
            }
            if most.is_some_and(|most| self.rows >= most) { self.commit() } else { Ok(()) }
        })
    }

    fn commit(&mut self) -> Result<(), Error> {
        let Some(transaction) = self.transaction.take() else { return Ok(()) };
        transaction.commit()?;
        self.rows = 0;
        for (number, new) in self.pending.drain(..) {
            match self.committed.iter_mut().find(|(other, _)| *other == number) {
                Some((_, old)) => {
                    old.rows += new.rows;
                    old.last = new.last;
                }
                None => self.committed.push((number, new)),
            }
        }
        Ok(())
    }
}

/// Counts a row.
fn note(pending: &mut Vec<(usize, Committed)>, target: &Target, batch: &Batch, row: usize) {
    match pending.last_mut() {
        Some((number, pending)) if *number == target.number => {
            pending.rows += 1;
            pending.last.line = batch.lines[row].last;
        }
        _ => {
            let table = target.def.name.clone();
            pending.push((target.number, Committed { table, rows: 1, last: batch.end(row) }));
        }
    }
}
