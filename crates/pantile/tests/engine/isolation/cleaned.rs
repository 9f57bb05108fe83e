//! What the cleaner removes from the indexes still counts as written for
//! transactions that began before the removal. Time is simulated, so that the
//! cleaner runs at a known moment.
//!
//! Found by the simulator (seed 18, on file, tb-collect): an older writer put a
//! row where a younger one had deleted its own, once the entry had gone.

use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{
    Conflict, Database, Error, IndexDef, Isolation, MediumKind, Options, Result, Table, TableDef,
    Transaction, TransactionOptions, Type,
};

struct Cleaned {
    db: Database,
    table: Table,
    time: SimulatedTime,
}

impl Cleaned {
    /// With an index that is used for checks, or with one that is not.
    fn new(index: IndexDef) -> Self {
        Self::with(index, true)
    }

    /// Writers move behind later readers, or stay where they began.
    fn with(index: IndexDef, move_: bool) -> Self {
        let time = SimulatedTime::default();
        let options =
            Options::new().medium(MediumKind::Dram).simulated_time(time.clone()).writers_move(move_);
        let db = options.open("unused").expect("open");
        let def = TableDef::new("t").column("id", Type::U64).column("code", Type::U64).primary_key(["id"]);
        let table = db.create_table(def.index(index)).expect("create");
        Self { db, table, time }
    }

    fn put(&self, id: u64, code: u64) {
        self.db.run(|txn| txn.upsert(&self.table, &[id.into(), code.into()])).expect("a commit");
    }

    /// Lets the cleaner do what it can beside a running transaction.
    fn clean(&self) {
        for _ in 0..500 {
            self.time.advance(Duration::from_millis(50));
            self.put(1_000, 1_000);
        }
    }

    /// The outcome of a transaction that began before what `meanwhile` did.
    fn older(
        &self,
        meanwhile: impl FnOnce(&Self),
        write: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<()> {
        self.older_at(Isolation::Serializable, meanwhile, write)
    }

    fn older_at(
        &self,
        isolation: Isolation,
        meanwhile: impl FnOnce(&Self),
        write: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<()> {
        self.put(1_000, 1_000);
        let options = TransactionOptions::new().isolation(isolation);
        let mut older = self.db.begin_with(options).expect("begin");
        meanwhile(self);
        self.clean();
        write(&mut older)?;
        older.commit().map(drop)
    }
}

/// A writer that moves comes after the deletion. One that stays is refused.
#[test]
fn an_older_writer_does_not_come_before_a_row_that_has_gone() {
    for move_ in [true, false] {
        let here = Cleaned::with(IndexDef::new("by_code", ["code"]), move_);
        let outcome = here.older(
            |here| {
                here.put(7, 70);
                here.db.run(|txn| txn.delete(&here.table, &[7u64.into()])).expect("a commit");
            },
            |older| older.insert(&here.table, &[7u64.into(), 71u64.into()]),
        );
        check(outcome, move_);
    }
}

fn check(outcome: Result<()>, moves: bool) {
    match outcome {
        Ok(()) => assert!(moves, "it cannot have moved"),
        Err(Error::Conflict { .. }) => assert!(!moves, "nothing that it has read has changed"),
        Err(error) => panic!("{error}"),
    }
}

/// The first committer wins, though nothing in the index tells of it any more.
/// A key that nobody has written stays free, and so does a deleted one at read
/// committed.
#[test]
fn an_older_snapshot_does_not_insert_a_key_that_came_and_went() {
    let come_and_go = |here: &Cleaned| {
        here.put(7, 70);
        here.db.run(|txn| txn.delete(&here.table, &[7u64.into()])).expect("a commit");
    };
    let insert = |isolation| {
        let here = Cleaned::new(IndexDef::new("by_code", ["code"]));
        here.older_at(isolation, come_and_go, |older| older.insert(&here.table, &[7u64.into(), 71u64.into()]))
    };
    let outcome = insert(Isolation::Snapshot);
    let is_changed = |error: &Error| matches!(error, Error::Conflict { conflict, .. } if *conflict == Conflict::ChangedSinceSnapshot);
    assert!(outcome.as_ref().is_err_and(is_changed), "{outcome:?}");
    insert(Isolation::ReadCommitted).expect("read committed sees that the key is free");
    let here = Cleaned::new(IndexDef::new("by_code", ["code"]));
    here.older_at(
        Isolation::Snapshot,
        |_| (),
        |older| older.insert(&here.table, &[7u64.into(), 71u64.into()]),
    )
    .expect("nobody has written the key");
}

#[test]
fn an_older_writer_does_not_take_a_unique_key_that_was_held_after_it() {
    for move_ in [true, false] {
        let here = Cleaned::with(IndexDef::unique("by_code", ["code"]), move_);
        let outcome = here.older(
            |here| {
                here.put(7, 70);
                here.put(7, 71);
            },
            |older| older.insert(&here.table, &[8u64.into(), 70u64.into()]),
        );
        check(outcome, move_);
    }
}

/// A transaction adds a row and deletes it, or gives a row two keys one after the other. That told it
/// that nobody else had the first one. If it moves behind a reader, nobody gets that key before it.
#[test]
fn a_unique_key_that_was_given_up_is_taken_after_that() {
    for is_deleted in [true, false] {
        let here = Cleaned::new(IndexDef::unique("by_code", ["code"]));
        here.put(1, 10);
        here.put(2, 20);
        let table = &here.table;
        let mut giver = here.db.begin().expect("begin");
        let mut taker = here.db.begin().expect("begin");
        let reader = here.db.begin_read().expect("begin");
        let key = [if is_deleted { 7u64 } else { 2 }.into()];
        giver.upsert(table, &[key[0], 70u64.into()]).expect("a row");
        match is_deleted {
            true => assert!(giver.delete(table, &key).expect("a row")),
            false => assert!(giver.update(table, &key, &[("code", 71u64.into())]).expect("a row")),
        }
        assert!(giver.update(table, &[1u64.into()], &[("code", 11u64.into())]).expect("a row"));
        assert!(reader.get(table, &[1u64.into()]).expect("it passes the lock").is_some());
        let given = giver.commit().expect("a commit behind the reader");
        assert!(given > reader.timestamp());
        let taken = taker.insert(table, &[8u64.into(), 70u64.into()]).and_then(|()| taker.commit());
        match taken {
            Ok(taken) => assert!(taken > given, "the key was taken before it was free"),
            Err(Error::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// A program that has asked whether a table is newer than its transaction finds it so for as long as
/// the transaction runs.
#[test]
fn what_was_said_of_a_tables_age_holds() {
    let here = Cleaned::new(IndexDef::new("by_code", ["code"]));
    here.put(1, 10);
    let mut txn = here.db.begin().expect("begin");
    let def = TableDef::new("later").column("id", Type::U64).primary_key(["id"]);
    let later = here.db.create_table(def).expect("create");
    here.put(1, 11);
    assert!(txn.is_before(&later));
    let _ = txn.update(&here.table, &[1u64.into()], &[("code", 12u64.into())]);
    assert!(txn.is_before(&later));
}
