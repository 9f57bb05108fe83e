//! What the transactions of one client share.

use pantile::{Database, Index, Isolation, Range, Row, Savepoint, Transaction, TransactionOptions, Value};

use super::random::{Constants, Text, last_name, non_uniform};
use super::scale::Scale;
use super::schema::{Tables, customer};
use crate::error::{Error, Result};
use pantile_testkit::Random;

/// A client's connection: handles, options, buffers.
pub struct Session {
    pub(super) db: Database,
    pub(super) tables: Tables,
    writing: TransactionOptions,
    reading: TransactionOptions,
    /// Rows of one table whose keys are known are the matter of one call.
    pub(super) together: bool,
    /// This client's stream of HISTORY and the number of its next payment.
    pub(super) history: (u32, u32),
    /// Numbers found by a scan.
    pub(super) found: Vec<u32>,
}

impl Session {
    /// A session whose payments go to the given stream of HISTORY.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn new(
        db: &Database,
        tables: &Tables,
        isolation: Isolation,
        together: bool,
        stream: u32,
    ) -> Result<Self> {
        let writing = TransactionOptions::new().isolation(isolation);
        let reading = TransactionOptions::new().isolation(isolation).read_only(true);
        let (db, tables) = (db.clone(), tables.clone());
        let (history, found) = ((stream, 0), Vec::with_capacity(512));
        let mut session = Self { db, tables, writing, reading, together, history, found };
        session.history.1 = session.next_payment()?;
        Ok(session)
    }

    /// One more than the highest number in this client's stream.
    fn next_payment(&self) -> Result<u32> {
        let txn = self.reader()?;
        let prefix = [self.history.0.into()];
        let mut last = txn.scan(&self.tables.history, Range::prefix(&prefix).reverse().limit(1))?;
        match last.next() {
            Some(row) => Ok(row?.get::<u32>(super::schema::history::H_NUMBER)? + 1),
            None => Ok(0),
        }
    }

    /// Begins a transaction that writes.
    #[inline]
    pub(super) fn writer(&self) -> pantile::Result<Transaction> {
        self.db.begin_with(self.writing)
    }

    /// Begins a transaction that only reads.
    #[inline]
    pub(super) fn reader(&self) -> pantile::Result<Transaction> {
        self.db.begin_with(self.reading)
    }
}

/// How Payment and Order-Status tell which customer they are for.
#[derive(Clone, Copy)]
pub(super) enum Who {
    /// By number.
    Id(u32),
    /// By last name: the middle one, rounded up, of those who have it, by first name.
    Name(Text<16>),
}

impl Who {
    /// In 60 of 100 cases by last name.
    pub fn draw(random: &mut Random, constants: &Constants, scale: Scale) -> Self {
        if random.percent(60) {
            let names = scale.last_names();
            Who::Name(last_name(non_uniform(random, 255, constants.last_name, 0, names - 1)))
        } else {
            Who::Id(non_uniform(random, 1023, constants.customer, 1, scale.customers))
        }
    }

    /// The customer's number.
    pub fn find(
        &self,
        txn: &Transaction,
        by_name: &Index,
        w: u16,
        d: u8,
        found: &mut Vec<u32>,
    ) -> Result<u32> {
        let name = match self {
            Who::Id(id) => return Ok(*id),
            Who::Name(name) => name.as_str(),
        };
        let prefix = [w.into(), d.into(), name.into()];
        found.clear();
        for row in txn.scan_index(by_name, Range::prefix(&prefix))? {
            found.push(row?.get(customer::C_ID)?);
        }
        match found.len() {
            0 => Err(missing("a customer of the name", &prefix)),
            n => Ok(found[n.div_ceil(2) - 1]),
        }
    }
}

/// The row, which the workload knows to exist.
#[inline]
pub(super) fn expect<'t>(row: Option<Row<'t>>, what: &'static str, key: &[Value<'_>]) -> Result<Row<'t>> {
    row.ok_or_else(|| missing(what, key))
}

/// Makes sure that a row, which the workload knows to exist, was changed.
#[inline]
pub(super) fn expect_changed(changed: bool, what: &'static str, key: &[Value<'_>]) -> Result<()> {
    if changed { Ok(()) } else { Err(missing(what, key)) }
}

/// The error of a transaction that has found a row missing. Under an optimistic protocol, a transaction that will be
/// refused may have seen a state that never existed. So the row counts as missing only if what the transaction has read
/// may commit; otherwise the refusal is the error, and the transaction can run again.
#[cold]
pub(super) fn confirmed(mut txn: Transaction, before: Savepoint, missing: Error) -> Error {
    match txn.rollback_to(before).and_then(|()| txn.commit()) {
        Ok(_) => missing,
        Err(refused) => refused.into(),
    }
}

#[cold]
pub(super) fn missing(what: &'static str, key: &[Value<'_>]) -> Error {
    Error::Missing { what, key: format!("{key:?}") }
}
