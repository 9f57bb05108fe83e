//! Looking at checksums while a database is in use.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use pantile_base::TupleId;

use crate::api::database::Database;
use crate::engine::catalog;
use crate::engine::pieces;
use crate::engine::table::{Table, TableInner};
use crate::types::error::{Error, Result};
use crate::types::verified::{DamagedRow, Verified};

/// Tuples between two looks at the rate.
const STEP: u64 = 256;

/// The longest pause. The database may be closed meanwhile.
const PAUSE: Duration = Duration::from_millis(100);

impl Database {
    /// Verifies the checksum of the newest version of every row, beside other transactions.
    ///
    /// The call reads at most `bytes_per_second`. By default, reads by transactions do not verify
    /// checksums: call this from time to time, in a thread of its own. Damage is no error; the
    /// result lists it. What is in the system's page cache is verified there, not on the device.
    ///
    /// # Errors
    /// [`Error::Closed`], also if the database is closed meanwhile;
    /// [`Error::TooManyTransactions`]; [`Error::InvalidOption`] if the rate is 0.
    ///
    /// ```
    /// use pantile::stats::{DamagedRow, Verified};
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U32).primary_key(["id"]))?;
    /// db.run(|txn| txn.insert(&t, &[1u32.into()]))?;
    /// let found: Verified = db.verify(Some(10 << 20))?;
    /// let damaged: &[DamagedRow] = &found.damaged;
    /// assert!(damaged.is_empty() && found.rows == 1);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn verify(&self, bytes_per_second: Option<u64>) -> Result<Verified> {
        if bytes_per_second == Some(0) {
            return Err(Error::InvalidOption("bytes_per_second is 0; it can be 1 or more".into()));
        }
        self.verify_all(self.core.tables.all(), bytes_per_second, || ControlFlow::Continue(()))
    }

    /// Verifies the rows of one table like [`Database::verify`], without a limit on the rate.
    ///
    /// `goes_on` is called now and then, and ends the call if it returns `Break`.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when `goes_on` returns `Break`; [`Error::ForeignTable`];
    /// [`Error::TableDropped`]; [`Error::Closed`], also if the database is closed
    /// meanwhile; [`Error::TooManyTransactions`].
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U32).primary_key(["id"]))?;
    /// db.run(|txn| txn.insert(&t, &[1u32.into()]))?;
    /// assert_eq!(db.verify_table(&t, || ControlFlow::Continue(()))?.rows, 1);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn verify_table(&self, table: &Table, goes_on: impl Fn() -> ControlFlow<()>) -> Result<Verified> {
        let inner = &table.inner;
        self.core.tables.check_own(inner)?;
        // None if the table has just been dropped.
        let pieces = self.core.tables.in_use(pieces::of(inner.id));
        self.verify_all([Arc::clone(inner)].into_iter().chain(pieces), None, goes_on)
    }

    fn verify_all(
        &self,
        tables: impl IntoIterator<Item = Arc<TableInner>>,
        bytes_per_second: Option<u64>,
        goes_on: impl Fn() -> ControlFlow<()>,
    ) -> Result<Verified> {
        let (mut found, began) = (Verified::default(), self.core.registry.clock().elapsed());
        for table in tables {
            for first in (0..table.tuples_end()).step_by(STEP as usize) {
                self.core.check_open()?;
                if goes_on().is_break() {
                    return Err(Error::Cancelled);
                }
                self.verify_some(&table, first, &mut found)?;
                self.wait_for_rate(found.bytes, bytes_per_second, began)?;
            }
        }
        Ok(found)
    }

    fn verify_some(&self, table: &TableInner, first: u64, found: &mut Verified) -> Result<()> {
        // Held for a short time only: what it may read stays.
        let visitor = self.core.visitor("verifying")?;
        // From here on it would not be released (I-37).
        if table.is_dropped() {
            return Ok(());
        }
        for tuple in first..(first + STEP).min(table.tuples_end()) {
            match visitor.verify(table, TupleId(tuple)) {
                Ok(bytes) => {
                    found.rows += u64::from(bytes > 0 && catalog::is_of_user(table.id));
                    found.bytes += bytes;
                }
                Err(Error::Damaged { place, detail }) => found.damaged.push(DamagedRow {
                    table: table.schema().name.clone(),
                    tuple,
                    what: format!("{place}: {detail}"),
                }),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait_for_rate(&self, bytes: u64, bytes_per_second: Option<u64>, began: Duration) -> Result<()> {
        let Some(rate) = bytes_per_second else { return Ok(()) };
        let clock = self.core.registry.clock();
        let due = began + Duration::from_secs_f64(bytes as f64 / rate as f64);
        loop {
            let left = due.saturating_sub(clock.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            clock.sleep(left.min(PAUSE));
            self.core.check_open()?;
        }
    }
}
