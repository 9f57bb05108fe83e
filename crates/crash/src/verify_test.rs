//! Faults are found, and reported for what they are.

use pantile::{MediumKind, Options};

use super::*;
use crate::history::{Change, Line};
use crate::workload::{Workload, extra_definition};

const WORKLOAD: Workload = Workload { seed: 3, clients: 2 };

/// A database with the given number of transactions of each client, and its
/// true history.
fn database(lasts: [u64; 2]) -> (Database, History) {
    let db = Options::new().medium(MediumKind::Dram).open("unused").unwrap();
    let tables = Tables::open(&db).unwrap();
    let mut history = History::default();
    for line in [Line::Run(WORKLOAD), Line::Opening, Line::Opened(crate::history::Found::Nothing)] {
        history.take(&line).unwrap();
    }
    for (client, last) in (0..).zip(lasts) {
        for seq in 1..=last {
            let run = |txn: &mut pantile::Transaction| {
                assert!(WORKLOAD.transaction(&tables, txn, client, seq)?);
                Ok::<_, pantile::Error>(txn.timestamp())
            };
            let ts = db.run(run).unwrap();
            history.take(&Line::Commit(client, seq, ts)).unwrap();
        }
    }
    (db, history)
}

fn problems(db: &Database, history: &History) -> Vec<String> {
    verify(db, &mut history.clone()).unwrap()
}

#[test]
fn nothing_is_wrong_with_what_was_acknowledged() {
    let (db, mut history) = database([230, 40]);
    assert_eq!(verify(&db, &mut history).unwrap(), [""; 0]);
    assert_eq!((history.lasts, history.lives), (vec![230, 40], 0));
}

#[test]
fn one_transaction_more_in_each_life_is_all_right_and_two_are_not() {
    let (db, mut history) = database([9, 9]);
    history.lasts = vec![8, 9];
    assert_eq!(problems(&db, &history), [""; 0]);
    history.lasts = vec![7, 9];
    assert_eq!(
        problems(&db, &history),
        ["client 0: 9 transactions exist, but only 7 were acknowledged in 1 lives"]
    );
}

#[test]
fn a_missing_transaction_is_named() {
    let (db, mut history) = database([9, 9]);
    history.lasts = vec![9, 11];
    assert_eq!(problems(&db, &history), ["client 1: the last 2 of 11 acknowledged transactions are missing"]);
}

#[test]
fn a_row_that_is_missing_changed_or_too_much_is_named() {
    let (db, history) = database([9, 9]);
    let [accounts, ledger, items] = ["accounts", "ledger", "items"].map(|name| db.table(name).unwrap());
    db.run(|txn| {
        assert!(txn.delete(&items, &[1u32.into(), 9u32.into()])?);
        txn.upsert(&accounts, &[0u32.into(), 1_000_000i64.into()])?;
        txn.insert(&ledger, &[7u32.into(), 1u64.into(), 0u32.into(), 0u32.into(), 5i64.into()])
    })
    .unwrap();
    let found = problems(&db, &history).join("\n");
    for wanted in [
        "table items: 1 9 9 ",
        "table accounts: 0 1000000 must not exist",
        "table ledger: 7 1 0 0 5 must not exist",
    ] {
        assert!(found.contains(wanted), "{found}");
    }
    assert_eq!(found.lines().count(), 4, "{found}");
}

#[test]
fn a_definition_that_is_gone_or_back_is_named() {
    let (db, history) = database([9, 9]);
    let with = |lines: &[Line]| {
        let mut history = history.clone();
        for line in lines {
            history.take(line).unwrap();
        }
        problems(&db, &history)
    };
    let name = || "extra20".to_owned();
    let (begin, end) = (|change| Line::Begin(change, name()), |change| Line::End(change, name()));
    let made = [begin(Change::Make), end(Change::Make)];
    assert_eq!(with(&made[..1]), [""; 0]);
    assert_eq!(with(&made), ["table extra20 was created and is gone"]);
    db.create_table(extra_definition("extra20")).unwrap();
    assert_eq!(with(&[]), ["table extra20 was dropped or never created, but exists"]);
    assert_eq!(with(&made), [""; 0]);
    let dropped = [&made[..], &[begin(Change::Drop), end(Change::Drop)]].concat();
    assert_eq!(with(&dropped[..3]), [""; 0]);
    assert_eq!(with(&dropped), ["table extra20 was dropped or never created, but exists"]);
    let indexed = [&made[..], &[begin(Change::Index), end(Change::Index)]].concat();
    assert_eq!(with(&indexed[..3]), [""; 0]);
    assert_eq!(with(&indexed), ["the index of extra20 was created and is gone"]);
}

#[test]
fn an_index_is_compared_with_its_table_by_row_and_by_number() {
    let row = |n: u64| vec![n.to_string()];
    let table = Rows::from([row(1), row(2)]);
    assert_eq!(differences("index", &[row(2), row(1)], &table), [""; 0]);
    assert_eq!(differences("index", &[row(1)], &table), ["index: 2 is missing"]);
    assert_eq!(differences("index", &[row(1), row(2), row(2)], &table), ["index: 1 rows appear twice"]);
    let many: Rows = (0..20).map(row).collect();
    let told = differences("index", &[], &many);
    assert_eq!(told.last().unwrap(), "index: 20 rows are missing, 0 must not exist");
    assert_eq!(told.len(), TOLD + 1);
}

#[test]
fn a_clock_that_goes_back_is_noticed() {
    let (db, mut history) = database([1, 1]);
    history.highest = pantile::Timestamp::from_raw(u64::MAX);
    assert!(problems(&db, &history)[0].starts_with("the clock went back from "));
}

#[test]
fn a_log_is_read_up_to_its_last_whole_line() {
    let log =
        "run 3 2\r\nopening\nopened nothing\ncommit 0 1 77\nbegin make extra20\ncommit 1 1 78\ncommit 1 2";
    let mut history = History::default();
    history.read(log).unwrap();
    assert_eq!((&history.lasts, history.acknowledged, history.lives), (&vec![1, 1], 2, 1));
    assert_eq!(history.phase, crate::history::Phase::Defining);
    assert!(History::default().read("commit 0 1 77\n").is_err());
    assert!(History::default().read("run 3 2\nnonsense\n").is_err());
    history.read("run 3 2\nopening\nopened killed\n").unwrap();
    assert_eq!(history.lives, 2);
    assert!(history.read("run 4 2\n").is_err());
}
