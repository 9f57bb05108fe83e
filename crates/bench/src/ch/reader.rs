//! An analytical client: all queries in a random order, then in another, and
//! so on.

use std::hint::black_box;

use pantile::Database;

use super::queries::QUERIES;
use super::schema;
use super::snapshot::Snapshot;
use crate::error::Result;
use crate::tpcc;
use pantile_testkit::Random;

/// An analytical client.
pub struct Reader {
    db: Database,
    tpcc: tpcc::schema::Tables,
    ch: schema::Tables,
    random: Random,
    /// The queries of this round.
    round: Vec<usize>,
    /// The one of them that was decided on.
    at: usize,
}

impl Reader {
    pub(super) fn new(
        db: &Database,
        tpcc: &tpcc::schema::Tables,
        ch: &schema::Tables,
        random: Random,
    ) -> Self {
        let round: Vec<_> = (0..QUERIES.len()).collect();
        let at = round.len() - 1;
        Self { db: db.clone(), tpcc: tpcc.clone(), ch: ch.clone(), random, round, at }
    }

    /// The number of the next query.
    pub(super) fn draw(&mut self) -> usize {
        self.at = (self.at + 1) % self.round.len();
        if self.at == 0 {
            self.random.shuffle(&mut self.round);
        }
        self.round[self.at]
    }

    /// Answers it at a safe snapshot, which neither waits for writers nor
    /// stands in their way.
    pub(super) fn attempt(&self) -> Result<()> {
        let txn = self.db.begin_safe_snapshot()?;
        let snapshot = Snapshot { txn: &txn, tpcc: &self.tpcc, ch: &self.ch };
        black_box((QUERIES[self.round[self.at]].run)(&snapshot)?);
        txn.commit()?;
        Ok(())
    }
}
