//! A medium that is too small for everything that is written to it over time.
//! All threads make room at once and compact the same blocks, and chunks are
//! taken and handed back.

use std::sync::atomic::AtomicBool;

use pantile::{Database, Error, Result, Table, TableDef, Transaction, Type, Value};
use pantile_testkit::{Bed, Home, Random, SaysDone, SeedNote, seeds};

use crate::support::{is_conflict, read_for_long};

const KEYS: u64 = 400;

fn table(db: &Database) -> Table {
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(40_000));
    db.create_table(def.primary_key(["id"])).expect("a table")
}

/// Rows of many sizes, each of which has chunks of its own; some rows stay for
/// a long time.
fn change(table: &Table, txn: &mut Transaction, rng: &mut Random) -> Result<()> {
    let id = if rng.percent(90) { rng.below(KEYS / 8) } else { rng.below(KEYS) };
    if rng.percent(30) {
        return txn.delete(table, &[id.into()]).map(|_| ());
    }
    let len = 30 << rng.below(8);
    let data = vec![id as u8; len as usize];
    txn.upsert(table, &[id.into(), Value::Bytes(&data)]).map(|_| ())
}

fn check(table: &Table, txn: &Transaction) -> Result<()> {
    for row in txn.scan(table, pantile::Range::all())? {
        let row = row?;
        let (id, data): (u64, &[u8]) = (row.get(0)?, row.get(1)?);
        assert!(data.iter().all(|byte| *byte == id as u8), "row {id} of another");
    }
    Ok(())
}

fn run(seed: u64, transactions: u64) {
    let _note = SeedNote(seed);
    let home = Home::new(Bed::Dram).eager(seed);
    let chunks = 10 + seed % 14;
    let db = home.options().max_bytes(chunks << 21).open("nowhere").expect("a database");
    let table = table(&db);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = SaysDone(&done);
        let writers: Vec<_> = (0..4)
            .map(|n| {
                let (db, table) = (&db, &table);
                let mut rng = Random::new(seed << 8 | n, 0);
                scope.spawn(move || {
                    let mut refused = 0;
                    for _ in 0..transactions {
                        let mut txn = db.begin().expect("a transaction");
                        let steps = 1 + rng.below(4);
                        let changed = (0..steps).try_for_each(|_| change(table, &mut txn, &mut rng));
                        match changed.and_then(|()| txn.commit().map(|_| ())) {
                            Ok(()) => {}
                            Err(Error::StorageFull { .. }) => refused += 1,
                            Err(error) => assert!(is_conflict(&error), "{error}"),
                        }
                        if rng.percent(1) {
                            db.chains(100);
                        }
                    }
                    refused
                })
            })
            .collect();
        let (db, done) = (&db, &done);
        scope.spawn(move || read_for_long(db, done, seed));
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        drop(over);
        let refused: u64 = ended.into_iter().map(|writer| writer.expect("the writer ends")).sum();
        println!("{chunks} chunks, {refused} refused, {:?}", db.stats().collector);
    });
    let txn = db.begin().expect("a transaction");
    check(&table, &txn).expect("no conflict");
}

#[test]
fn room_is_made_by_everybody_at_once() {
    seeds(1, 4).into_iter().for_each(|seed| run(seed, 600));
}
