//! A round that panics.

use std::time::Duration;

use pantile_base::{TableId, Timestamp};
use pantile_reclaim::{Collector, CollectorStats, Context, Description, OldVersion, Reclaimer};
use pantile_store::{Store, StoreError};
use pantile_testkit::await_that;

use crate::{Database, MediumKind, Options, TableDef, Type};

/// A collector with a fault, which shows in its first round.
const FAULTY: Collector =
    Collector::new(&Description { name: "faulty", about: "panics", build: |_, _| Box::new(Faulty) });

struct Faulty;

impl Reclaimer for Faulty {
    fn notes_superseded(&self) -> bool {
        false
    }

    fn superseded(&self, _: &Context<'_>, _: &OldVersion, _: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    fn background(&self) -> Option<Duration> {
        Some(Duration::from_millis(1))
    }

    fn run_background(&self, _: &Context<'_>) -> Result<(), StoreError> {
        panic!("the fault of a collector, as the test wants it");
    }

    fn step(&self, _: &Context<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    fn make_room(&self, _: &Context<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    fn resume(&self, _: &Store) {}

    fn forget(&self, _: &Store, _: TableId) {}

    fn stats(&self, _: &Store) -> CollectorStats {
        CollectorStats::default()
    }
}

#[test]
fn a_round_that_panics_is_noted_and_commits_samples_and_closing_go_on() {
    let options = Options::new().medium(MediumKind::Dram).collector(FAULTY);
    let db: Database = options.open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).primary_key(["id"]);
    let table = db.create_table(def).expect("a table");
    let insert = |id: u64| db.run(|txn| txn.insert(&table, &[id.into()])).expect("a row");
    insert(0);
    await_that("a round has panicked", || db.stats().upkeep_has_ended);
    assert_eq!(db.figures().upkeep_has_ended, 1);
    // The thread takes samples of what happens.
    let before = db.history().seconds.len();
    let mut id = 0;
    await_that("there is another sample", || {
        id += 1;
        insert(id);
        db.history().seconds.len() > before
    });
    // Committing threads would do rounds now.
    assert!(!db.core.rounds.has_worker());
    drop(table);
    db.close().expect("nothing is left of the round");
}
