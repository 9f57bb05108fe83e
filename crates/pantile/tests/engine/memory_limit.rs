//! `Options::memory_limit`: what is refused at the limit, and what goes on.

use std::sync::Arc;

use pantile::{
    Conflict, ConflictPolicy, Database, Error, IndexDef, Medium, Options, Range, Table, TableDef,
    Transaction, TransactionOptions, Type, Value,
};
use pantile_testkit::{await_that, exact_memory, fails};

const LIMIT: u64 = 12 << 20;

fn options(medium: &Arc<dyn Medium>, limit: u64) -> Options {
    Options::new().on_medium(Arc::clone(medium)).worker(false).memory_limit(limit)
}

fn table(db: &Database) -> Table {
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(20_000));
    db.create_table(def.primary_key(["id"])).expect("create")
}

fn insert(db: &Database, table: &Table, ids: std::ops::Range<u64>) -> pantile::Result<()> {
    let mut txn = db.begin()?;
    for id in ids {
        txn.insert(table, &[id.into(), Value::Bytes(b"x")])?;
    }
    txn.commit().map(|_| ())
}

/// Adds rows until there is no memory for more. Returns their number.
fn fill(db: &Database, table: &Table) -> (u64, Error) {
    let (mut rows, mut step) = (0, 500);
    loop {
        match insert(db, table, rows..rows + step) {
            Ok(()) => rows += step,
            // There may still be room for a smaller transaction.
            Err(_) if step > 1 => step = 1,
            Err(error) => return (rows, error),
        }
        assert!(rows < 10_000_000, "the limit is never reached");
    }
}

/// A database that takes no more rows, how many it has, and what it says to the next one.
fn full() -> (Database, Table, u64, Error) {
    let db = options(&exact_memory(), LIMIT).open("unused").expect("open");
    let table = table(&db);
    let (rows, error) = fill(&db, &table);
    (db, table, rows, error)
}

#[test]
fn at_the_limit_rows_can_be_read_changed_and_deleted_but_not_added() {
    let (db, table, rows, error) = full();
    assert!(rows > 10_000, "{rows} rows");
    let Error::MemoryFull(taken) = &error else { panic!("{error}") };
    assert!(taken.indexes > taken.anchors && taken.anchors >= rows * 8, "{taken:?}");
    let text = error.to_string();
    for part in ["12.6 MB", "by indexes", "changed nothing", "deletes", "memory_limit"] {
        assert!(text.contains(part), "{text}");
    }
    let stats = db.stats();
    assert!(stats.dram_bytes <= LIMIT, "{} of {LIMIT}", stats.dram_bytes);

    let txn = db.begin_read().expect("begin");
    assert_eq!(txn.get_many(&table, &[[Value::UInt(0)], [Value::UInt(rows)]]).expect("get").len(), 2);
    drop(txn);
    db.run(|txn| txn.update(&table, &[0u64.into()], &[(1, Value::Bytes(b"y"))])).expect("update");
    // What was given up meanwhile makes room for a few rows.
    let added = (0..1000).find(|n| insert(&db, &table, rows + n..rows + n + 1).is_err());
    let rows = rows + added.expect("rows are still refused");
    assert!(db.stats().dram_bytes <= LIMIT);
    for first in (0..rows / 2 - 500).step_by(500) {
        db.run(|txn| (first..first + 500).try_for_each(|id| txn.delete(&table, &[id.into()]).map(|_| ())))
            .expect("delete");
    }
    // The cleaner takes the entries away.
    await_that("there is memory again", || {
        db.upkeep();
        insert(&db, &table, rows..rows + 500).is_ok()
    });
}

/// A lock takes memory, although it changes nothing.
#[test]
fn at_the_limit_a_few_rows_can_be_locked_and_not_all() {
    let (db, table, rows, _) = full();
    let mut txn = db.begin().expect("begin");
    let mut cursor = txn.cursor(&table, Range::all()).expect("a cursor");
    let mut locked = 0;
    let error = loop {
        match cursor.next_for_update(&mut txn, false) {
            Ok(Some(_)) => locked += 1,
            Ok(None) => panic!("all {rows} rows are locked"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::MemoryFull(_)), "{error}");
    assert!(locked >= 4096, "{locked} rows");
    let id = [locked.into()];
    assert!(matches!(txn.get_for_update(&table, &id), Err(Error::MemoryFull(_))));
    // Some 200 bytes for each of the few.
    let taken = db.stats().dram_bytes;
    assert!(taken < LIMIT + (2 << 20), "{taken} bytes");
    drop(txn);
    db.run(|txn| txn.get_for_update(&table, &id).map(|row| row.is_some()))
        .expect("there is memory for a few");
}

/// A table whose index has larger nodes than that of [`table`].
fn table_of_texts(db: &Database, name: &str) -> Table {
    let def = TableDef::new(name).column("key", Type::String(100));
    db.create_table(def.primary_key(["key"])).expect("create")
}

fn insert_texts(db: &Database, table: &Table, numbers: std::ops::Range<u64>) -> pantile::Result<()> {
    let mut txn = db.begin()?;
    for n in numbers {
        txn.insert(table, &[format!("{n:0100}").as_str().into()])?;
    }
    txn.commit().map(|_| ())
}

/// As [`fill`]. Returns the number of rows.
fn fill_texts(db: &Database, table: &Table) -> u64 {
    let (mut rows, mut step) = (0, 100);
    loop {
        match insert_texts(db, table, rows..rows + step) {
            Ok(()) => rows += step,
            Err(_) if step > 1 => step = 1,
            Err(_) => return rows,
        }
        assert!(rows < 10_000_000, "the limit is never reached");
    }
}

/// Those of texts are larger than those of numbers.
#[test]
fn free_nodes_count_for_tables_that_cannot_use_them() {
    let db = options(&exact_memory(), LIMIT).open("unused").expect("open");
    let texts = table_of_texts(&db, "texts");
    let rows = fill_texts(&db, &texts);
    let taken = db.stats().index_bytes;
    drop(texts);
    db.drop_table("texts").expect("nobody uses it");
    await_that("its nodes are free", || {
        db.upkeep();
        db.stats().free_node_bytes >= taken
    });
    let (numbers, texts) = (table(&db), table_of_texts(&db, "texts again"));
    let (mut next, error) = fill(&db, &numbers);
    let stats = db.stats();
    assert!(stats.dram_bytes <= LIMIT, "{} of {LIMIT}", stats.dram_bytes);
    assert!(stats.free_node_bytes >= taken, "{} of {taken} bytes are free", stats.free_node_bytes);
    let Error::MemoryFull(full) = &error else { panic!("{error}") };
    assert!(full.free_nodes - full.spare >= taken, "{full:?}");
    // What one table may still take is not for the other.
    for first in (0..rows / 4).step_by(100) {
        insert_texts(&db, &texts, first..first + 100).expect("there are free nodes");
        let added = (0..100).find(|n| insert(&db, &numbers, next + n..next + n + 1).is_err());
        next += added.expect("numbers are still refused");
    }
    assert!(db.stats().dram_bytes <= LIMIT);
}

/// Each slot keeps the buffers of its last transaction for the next one, and most slots have none
/// for a long time after many clients at once.
#[test]
fn after_a_peak_of_transactions_their_memory_is_for_others() {
    let medium = exact_memory();
    let db = options(&medium, LIMIT).open("unused").expect("open");
    let table = table(&db);
    let value = [1; 600];
    let mut running = Vec::new();
    'full: loop {
        let mut txn = db.begin().expect("a slot");
        let first = running.len() as u64 * 400;
        for id in first..first + 400 {
            if let Err(error) = txn.insert(&table, &[id.into(), Value::Bytes(&value)]) {
                assert!(matches!(error, Error::MemoryFull(_)), "{error}");
                break 'full;
            }
        }
        running.push(txn);
    }
    assert!(running.len() > 20, "{} transactions", running.len());
    drop(running);
    insert(&db, &table, 0..1).expect("nothing runs, and the table is empty");
}

/// It has been promised, and a later opening with more memory would make it again over what others have changed.
#[test]
fn a_prepared_update_is_made_again_at_the_limit() {
    let medium = exact_memory();
    let open = |limit| options(&medium, limit).open("unused").expect("open");
    let db = open(4 * LIMIT);
    let t = table(&db);
    let (least, row) = (8 << 20, u64::MAX);
    db.run(|txn| txn.insert(&t, &[row.into(), Value::Bytes(b"x")])).expect("a row");
    let mut txn = db.begin().expect("begin");
    assert!(txn.update(&t, &[row.into()], &[(1, Value::Bytes(b"prepared"))]).expect("the row"));
    drop(db.prepare(txn, b"p").expect("prepared"));
    let rows = (0..).step_by(1_000).find(|&first| {
        insert(&db, &t, first..first + 1_000).expect("rows");
        db.stats().dram_bytes > 3 * least
    });
    let next = rows.expect("rows take memory") + 1_000;
    db.close().expect("close");

    let db = open(least);
    let t = db.table("t").expect("the table");
    assert!(matches!(insert(&db, &t, next..next + 1), Err(Error::MemoryFull(_))), "the limit is reached");
    let at_once = TransactionOptions::new().conflict(ConflictPolicy::Abort);
    let mut other = db.begin_with(at_once).expect("begin");
    let outcome = other.delete(&t, &[row.into()]);
    assert!(matches!(outcome, Err(Error::Conflict { .. })), "the row is locked: {outcome:?}");
    drop(other);
    db.take_prepared(b"p").expect("it waits").commit().expect("it was promised");
    let txn = db.begin_read().expect("begin");
    let found = txn.get(&t, &[row.into()]).expect("a read").expect("the row");
    assert_eq!(found.get::<&[u8]>(1).expect("bytes"), b"prepared");
}

#[test]
fn a_large_transaction_ends_before_its_buffers_outgrow_the_limit() {
    let medium = exact_memory();
    let db = options(&medium, LIMIT).open("unused").expect("open");
    let table = table(&db);
    let mut txn = db.begin().expect("begin");
    let mut put = |id: u64| txn.insert(&table, &[id.into(), Value::Bytes(&[1; 10_000])]);
    let (rows, error) = (0..).find_map(|id| put(id).err().map(|error| (id, error))).expect("an error");
    fails!(Err::<(), _>(error), Error::MemoryFull(_), "by buffers", "smaller steps");
    assert!(rows > 100 && db.stats().dram_bytes <= LIMIT, "{rows} rows, {}", db.stats().dram_bytes);
    txn.commit().expect("what it has written can be committed");
    let txn = db.begin_read().expect("begin");
    assert!(txn.get(&table, &[(rows - 1).into()]).expect("get").is_some());
    assert!(txn.get(&table, &[rows.into()]).expect("get").is_none());
}

/// What it gives up has told that nobody else had the keys. The notes of that have their limit, and still keep
/// the transaction from moving behind one that takes such a key.
#[test]
fn a_load_that_is_taken_back_to_a_savepoint_leaves_few_notes() {
    let medium = exact_memory();
    let db = options(&medium, LIMIT).open("unused").expect("open");
    let table = table(&db);
    for name in ["a", "b", "c", "d"] {
        db.create_index(&table, IndexDef::new(name, ["id"])).expect("create");
    }
    insert(&db, &table, 0..1).expect("insert");
    let mut txn = db.begin().expect("begin");
    assert!(txn.update(&table, &[0u64.into()], &[(1, Value::Bytes(b"y"))]).expect("update"));
    let savepoint = txn.savepoint();
    let mut put = |id: u64| txn.insert(&table, &[id.into(), Value::Bytes(b"x")]);
    let (rows, error) = (1..).find_map(|id| put(id).err().map(|error| (id, error))).expect("an error");
    assert!(rows > 2_000 && matches!(error, Error::MemoryFull(_)), "{rows} rows: {error}");
    let before = db.stats().buffer_bytes;
    txn.rollback_to(savepoint).expect("known");
    let after = db.stats().buffer_bytes;
    assert!(after < before / 2, "{before} bytes, then {after}");
    // The reader comes before the update, which it does not see. So the update moves behind it, where a key that
    // was found free is taken.
    let reader = db.begin_read().expect("begin");
    assert!(reader.get(&table, &[0u64.into()]).expect("get").is_some());
    insert(&db, &table, 5..6).expect("there is memory for a row");
    let outcome = txn.commit();
    let changed = matches!(&outcome, Err(Error::Conflict { conflict: Conflict::ReadChanged, .. }));
    assert!(changed, "{outcome:?}");
}

#[test]
fn a_database_beyond_the_limit_is_opened_and_can_shrink() {
    let medium = exact_memory();
    let db = options(&medium, 4 * LIMIT).open("unused").expect("open");
    let (rows, _) = fill(&db, &table(&db));
    db.close().expect("close");
    let db = options(&medium, LIMIT).open("unused").expect("open");
    let table = db.table("t").expect("table");
    fails!(insert(&db, &table, rows..rows + 1), Error::MemoryFull(_), "12.6 MB");
    let changed = db.run(|txn| txn.update(&table, &[0u64.into()], &[(1, Value::Bytes(b"y"))]));
    fails!(changed, Error::MemoryFull(_), "12.6 MB");
    assert!(db.run(|txn| txn.delete(&table, &[0u64.into()])).expect("delete"));
    assert!(db.begin_read().expect("begin").get(&table, &[1u64.into()]).expect("get").is_some());
}

/// The ways out that the error names are open.
#[test]
fn at_the_limit_indexes_can_be_dropped_and_tables_emptied() {
    let medium = exact_memory();
    let db = options(&medium, 4 * LIMIT).open("unused").expect("open");
    let of_rows = table(&db);
    db.create_index(&of_rows, IndexDef::new("second", ["id"])).expect("create");
    let (rows, _) = fill(&db, &of_rows);
    drop(of_rows);
    db.close().expect("close");
    let db = options(&medium, LIMIT).open("unused").expect("open");
    let table = db.table("t").expect("table");
    fails!(insert(&db, &table, rows..rows + 1), Error::MemoryFull(_), "drop an index");
    db.drop_index(&table, "second").expect("it needs no memory");
    let emptied = db.truncate_table(&table).expect("nor does that");
    // A handle keeps what it leads to.
    drop(table);
    await_that("there is memory again", || {
        db.upkeep();
        insert(&db, &emptied, 0..100).is_ok()
    });
}

#[test]
fn an_index_that_does_not_fit_is_not_made() {
    let (db, table, rows, _) = full();
    let made = db.create_index(&table, IndexDef::new("second", ["id"]));
    fails!(made, Error::MemoryFull(_), "by indexes");
    assert!(db.stats().dram_bytes <= LIMIT + LIMIT / 8, "{}", db.stats().dram_bytes);
    assert!(db.run(|txn| txn.delete(&table, &[(rows - 1).into()])).expect("delete"));
}

#[test]
fn limits_below_the_least_are_refused() {
    let opened = options(&exact_memory(), 1 << 20).open("unused");
    fails!(opened, Error::InvalidOption(_), "memory_limit is 1048576", "from 8388608");
}

/// A writer that may move notes what it reads.
#[test]
fn reads_of_a_writer_are_counted_once_however_often_it_reads() {
    let medium = exact_memory();
    let db = options(&medium, LIMIT).open("unused").expect("open");
    let table = table(&db);
    let second = db.create_index(&table, IndexDef::unique("second", ["id"])).expect("create");
    insert(&db, &table, 0..1).expect("insert");
    let mut txn = db.begin().expect("begin");
    let row = [7u64.into(), Value::Bytes(b"y")];
    txn.insert(&table, &[8u64.into(), Value::Bytes(b"z")]).expect("insert");
    let before = db.stats().dram_bytes;
    for n in 0..60_000 {
        match n % 6 {
            0 => assert!(txn.get(&table, &row[..1]).expect("get").is_none()),
            1 => assert!(txn.get(&table, &[0u64.into()]).expect("get").is_some()),
            2 => assert!(!txn.delete(&table, &row[..1]).expect("delete")),
            3 => assert_eq!(txn.count(&table, Range::all()).expect("count"), 2),
            4 => assert_eq!(txn.count_index(&second, Range::prefix(&row[..1])).expect("count"), 0),
            _ => {
                let savepoint = txn.savepoint();
                txn.insert(&table, &row).expect("insert");
                txn.rollback_to(savepoint).expect("known");
                txn.release(savepoint);
            }
        }
    }
    let taken = db.stats().dram_bytes - before;
    assert!((1000..1 << 20).contains(&taken), "{taken} bytes");
    txn.commit().expect("commit");
}

#[test]
fn a_writer_that_reads_much_ends_before_its_notes_outgrow_the_limit() {
    let medium = exact_memory();
    let db = options(&medium, LIMIT).open("unused").expect("open");
    let table = table(&db);
    insert(&db, &table, 0..1).expect("insert");
    type Read = fn(&mut Transaction, &Table, u64) -> pantile::Result<()>;
    let reads: [Read; 4] = [
        |txn, table, id| txn.get(table, &[id.into()]).map(|row| assert!(row.is_none())),
        |txn, table, id| txn.delete(table, &[id.into()]).map(|had| assert!(!had)),
        |txn, table, id| txn.count(table, Range::prefix(&[id.into()])).map(|count| assert_eq!(count, 0)),
        |txn, table, id| {
            let savepoint = txn.savepoint();
            txn.insert(table, &[id.into(), Value::Bytes(b"x")])?;
            txn.rollback_to(savepoint)
        },
    ];
    for (n, read) in reads.into_iter().enumerate() {
        let mut txn = db.begin().expect("begin");
        txn.update(&table, &[0u64.into()], &[(1, Value::Bytes(b"y"))]).expect("update");
        let mut read = |id: u64| read(&mut txn, &table, 2 * id + 1);
        let (rows, error) =
            (0..1 << 20).find_map(|id| read(id).err().map(|error| (id, error))).expect("an error");
        let taken = db.stats().dram_bytes;
        assert!(rows > 10_000 && taken > 3 << 20 && taken <= LIMIT, "{n}: {rows} reads, {taken} bytes");
        fails!(Err::<(), _>(error), Error::MemoryFull(_), "by buffers", "smaller steps");
        fails!(read(1 << 20), Error::MemoryFull(_), "by buffers");
        txn.commit().expect("what it has written can be committed");
        let txn = db.begin_read().expect("begin");
        for id in 0..2 * rows {
            assert!(txn.get(&table, &[(2 * id + 1).into()]).expect("it takes no notes").is_none());
        }
    }
}
