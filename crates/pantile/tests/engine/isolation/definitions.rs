//! Definitions change between what serializable transactions read and what
//! others write. The invariant of these tests: the flag is set only where no
//! row has the value 7, and such a row is added only where the flag is not set.

use pantile::{
    Conflict, Database, Error, Index, IndexDef, Isolation, Range, Result, Table, TableChange, TableDef,
    Transaction, TransactionOptions, Type,
};

use crate::support::{LEVELS, in_memory, is_conflict};

const SEVEN: u64 = 7;

struct Rule {
    db: Database,
    table: Table,
    flag: Table,
}

fn definition() -> TableDef {
    TableDef::new("t").column("id", Type::U64).column("value", Type::U64).primary_key(["id"])
}

impl Rule {
    fn new(index: Option<IndexDef>) -> Self {
        let db = in_memory();
        let def = index.into_iter().fold(definition(), TableDef::index);
        let table = db.create_table(def).expect("create");
        db.run(|txn| txn.insert(&table, &[1u64.into(), 1u64.into()])).expect("insert");
        let flag = TableDef::new("flag").column("id", Type::U64).column("on", Type::Bool);
        let flag = db.create_table(flag.primary_key(["id"])).expect("create");
        db.run(|txn| txn.insert(&flag, &[1u64.into(), false.into()])).expect("insert");
        Self { db, table, flag }
    }

    fn is_set(&self, txn: &Transaction) -> Result<bool> {
        txn.get(&self.flag, &[1u64.into()])?.expect("a flag").get(1)
    }

    fn set(&self, txn: &mut Transaction) -> Result<()> {
        txn.update(&self.flag, &[1u64.into()], &[(1, true.into())]).map(|_| ())
    }

    /// Whether a row of the table that is called `t` now has the value.
    fn has_seven(&self, txn: &Transaction) -> Result<bool> {
        let table = self.db.table("t")?;
        let values = txn.scan(&table, Range::all())?.map(|row| row?.get(1));
        Ok(values.collect::<Result<Vec<u64>>>()?.contains(&SEVEN))
    }

    fn check(&self) {
        let txn = self.db.begin_read().expect("begin");
        let both = self.is_set(&txn).expect("get") && self.has_seven(&txn).expect("scan");
        assert!(!both, "no order of the transactions leads here");
    }

    /// The writer is older than the reader. Both have read when the definition
    /// changes; then the writer writes and both commit. Returns how the writer
    /// ended.
    fn across(
        &self,
        read: impl FnOnce(&Transaction) -> bool,
        change: impl FnOnce(),
        write: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<()> {
        let mut writer = self.db.begin().expect("begin");
        let mut reader = self.db.begin().expect("begin");
        assert!(!self.is_set(&writer).expect("get"));
        assert!(!read(&reader), "no row has the value yet");
        self.set(&mut reader).expect("update");
        change();
        let written = write(&mut writer).and_then(|()| writer.commit().map(drop));
        let set = reader.commit().map(drop);
        self.check();
        // If the writer has moved behind the reader, what the reader has read
        // has changed.
        written.and(set)
    }

    /// Creates an index while the writers run, reads through it that no row has
    /// the value, and sets the flag.
    fn read_through_a_new_index(&self, reader: &mut Transaction) -> Index {
        let def = IndexDef::new("by_value", ["value"]);
        let index = self.db.create_index(&self.table, def).expect("create");
        assert!(!reads_through(&index)(reader));
        self.set(reader).expect("update");
        index
    }

    /// The writer, which adds a row with the value, and the reader cannot both
    /// commit.
    fn check_conflict(&self, writer: Transaction, reader: Transaction) {
        let ended = [writer.commit(), reader.commit()];
        self.check();
        assert_eq!(ended.iter().filter(|ended| ended.is_ok()).count(), 1, "{ended:?}");
        assert!(ended.iter().filter_map(|ended| ended.as_ref().err()).all(is_conflict), "{ended:?}");
    }
}

fn reads_through(index: &Index) -> impl FnOnce(&Transaction) -> bool {
    let index = index.clone();
    move |txn| txn.get_by_index(&index, &[SEVEN.into()]).expect("get").is_some()
}

fn inserts(table: &Table) -> impl FnOnce(&mut Transaction) -> Result<()> {
    let table = table.clone();
    move |txn| txn.insert(&table, &[2u64.into(), SEVEN.into()])
}

fn updates(table: &Table) -> impl FnOnce(&mut Transaction) -> Result<()> {
    let table = table.clone();
    move |txn| txn.update(&table, &[1u64.into()], &[(1, SEVEN.into())]).map(|_| ())
}

/// I-16: what was read through an index that has been dropped stays protected.
#[test]
fn a_dropped_index_protects_what_was_read_through_it() {
    for update in [false, true] {
        let rule = Rule::new(Some(IndexDef::new("by_value", ["value"])));
        let index = rule.table.index("by_value").expect("index");
        let change = || rule.db.drop_index(&rule.table, "by_value").expect("drop");
        let ended = match update {
            false => rule.across(reads_through(&index), change, inserts(&rule.table)),
            true => rule.across(reads_through(&index), change, updates(&rule.table)),
        };
        assert!(ended.as_ref().is_err_and(is_conflict), "{ended:?}");
        // Later transactions have nothing to do with the index.
        rule.db.run(|txn| updates(&rule.table)(txn)).expect("an update");
    }
}

/// The same for an index that came and went while the writer ran, and had
/// written before.
#[test]
fn an_index_that_came_and_went_protects_what_was_read_through_it() {
    let rule = Rule::new(None);
    let mut writer = rule.db.begin().expect("begin");
    assert!(!rule.is_set(&writer).expect("get"));
    inserts(&rule.table)(&mut writer).expect("insert");
    let mut reader = rule.db.begin().expect("begin");
    let _index = rule.read_through_a_new_index(&mut reader);
    rule.db.drop_index(&rule.table, "by_value").expect("drop");
    rule.check_conflict(writer, reader);
}

/// A transaction that checked a unique key is not followed by an older one that
/// takes the key. Later ones may.
#[test]
fn a_dropped_unique_index_binds_those_who_began_before() {
    let rule = Rule::new(Some(IndexDef::unique("by_value", ["value"])));
    let mut older = rule.db.begin().expect("begin");
    let mut writer = rule.db.begin().expect("begin");
    inserts(&rule.table)(&mut writer).expect("insert");
    rule.db.drop_index(&rule.table, "by_value").expect("drop");
    writer.commit().expect("commit");
    updates(&rule.table)(&mut older).expect_err("a later row has the key");
    older.rollback();
    rule.db.run(|txn| updates(&rule.table)(txn)).expect("there is no such index any more");
    rule.db.create_index(&rule.table, IndexDef::new("by_value", ["value"])).expect("the name is free");
}

/// I-16: an index that a reader takes before older writers know it.
#[test]
fn a_new_index_protects_what_is_read_through_it() {
    for update in [false, true] {
        let rule = Rule::new(None);
        let mut writer = rule.db.begin().expect("begin");
        assert!(!rule.is_set(&writer).expect("get"));
        match update {
            false => inserts(&rule.table)(&mut writer).expect("insert"),
            true => updates(&rule.table)(&mut writer).expect("update"),
        }
        let mut reader = rule.db.begin().expect("begin");
        let _index = rule.read_through_a_new_index(&mut reader);
        rule.check_conflict(writer, reader);
    }
}

/// I-31: one that enters its own rows into a new index, to find them, and takes them back. The
/// entry stays for a while, and the writer finds it instead of the gap that the reader has marked.
#[test]
fn an_entry_that_is_left_in_a_new_index_keeps_what_was_read() {
    for level in LEVELS {
        for to_savepoint in [false, true] {
            let rule = Rule::new(None);
            let options = TransactionOptions::new().isolation(level);
            let mut older = rule.db.begin_with(options).expect("begin");
            assert!(!rule.is_set(&older).expect("get"));
            let before = older.savepoint();
            updates(&rule.table)(&mut older).expect("nobody else writes");
            let mut writer = rule.db.begin().expect("begin");
            assert!(!rule.is_set(&writer).expect("get"));
            let mut reader = rule.db.begin().expect("begin");
            let index = rule.read_through_a_new_index(&mut reader);
            assert!(reads_through(&index)(&older), "its own row");
            match to_savepoint {
                true => older.rollback_to(before).expect("it is valid"),
                false => older.rollback(),
            }
            let written = updates(&rule.table)(&mut writer).and_then(|()| writer.commit().map(drop));
            let set = reader.commit().map(drop);
            rule.check();
            let ended = [written, set];
            assert_eq!(ended.iter().filter(|ended| ended.is_ok()).count(), 1, "{level:?}: {ended:?}");
            assert!(ended.iter().filter_map(|ended| ended.as_ref().err()).all(is_conflict), "{ended:?}");
        }
    }
}

/// I-16: a table that has been dropped takes nothing from transactions that
/// began before, and a table of the same name is another one.
#[test]
fn a_dropped_table_takes_no_writes() {
    let rule = Rule::new(None);
    let ended = rule.across(
        |txn| rule.has_seven(txn).expect("scan"),
        || {
            rule.db.drop_table("t").expect("drop");
            rule.db.create_table(definition()).expect("create");
        },
        inserts(&rule.table),
    );
    assert!(matches!(ended, Err(Error::TableDropped(_))), "{ended:?}");
}

/// The same for a transaction that has written before.
#[test]
fn a_dropped_table_keeps_no_writes() {
    let rule = Rule::new(None);
    let mut writer = rule.db.begin().expect("begin");
    inserts(&rule.table)(&mut writer).expect("insert");
    rule.db.drop_table("t").expect("drop");
    rule.db.create_table(definition()).expect("create");
    assert!(matches!(writer.commit(), Err(Error::TableDropped(_))));
    let txn = rule.db.begin_read().expect("begin");
    assert!(!rule.has_seven(&txn).expect("scan"));
}

/// I-16: to a serializable transaction that began before, the table does not
/// exist. It could otherwise write into a table of the same name what a later
/// transaction has found absent.
#[test]
fn a_new_table_is_not_for_transactions_that_began_before() {
    let rule = Rule::new(None);
    let ended = rule.across(
        |txn| rule.has_seven(txn).expect("scan"),
        || {
            rule.db.drop_table("t").expect("drop");
            rule.db.create_table(definition()).expect("create");
        },
        |txn| inserts(&rule.db.table("t").expect("a table"))(txn),
    );
    let is_newer = |e: &Error| matches!(e, Error::Conflict { conflict: Conflict::TableIsNewer, .. });
    assert!(ended.as_ref().is_err_and(is_newer), "{ended:?}");
}

/// At the other levels a transaction uses a new table as it finds it.
#[test]
fn a_new_table_is_for_late_writers() {
    for level in LEVELS {
        let db = in_memory();
        let mut before = db.begin_with(TransactionOptions::new().isolation(level)).expect("begin");
        let safe = db.begin_safe_snapshot().expect("begin");
        let table = db.create_table(definition()).expect("create");
        let refused = before.insert(&table, &[1u64.into(), 1u64.into()]);
        assert_eq!(refused.is_err(), level == Isolation::Serializable, "{level:?}");
        before.commit().expect("the transaction goes on");
        assert_eq!(safe.scan(&table, Range::all()).expect("scan").count(), 0);
        db.run(|txn| txn.upsert(&table, &[1u64.into(), 1u64.into()])).expect("it began after");
    }
}

/// A reader does not find a table empty that has taken the place of one with rows.
#[test]
fn a_new_table_is_not_empty_to_readers_that_began_before() {
    for level in LEVELS {
        for replaced in ["truncated", "dropped", "renamed"] {
            let db = in_memory();
            let table = db.create_table(definition()).expect("create");
            db.run(|txn| txn.upsert(&table, &[1u64.into(), 1u64.into()])).expect("upsert");
            let options = TransactionOptions::new().isolation(level).read_only(true);
            let before = db.begin_with(options).expect("begin");
            let safe =
                db.begin_with(TransactionOptions::new().isolation(level).safe_snapshot()).expect("begin");
            let other = db.create_table(TableDef { name: "other".into(), ..definition() }).expect("create");
            assert_eq!(before.count(&other, Range::all()).expect("it was not there"), 0);
            let table = match replaced {
                "truncated" => db.truncate_table(&table).expect("truncate"),
                "dropped" => {
                    db.drop_table("t").expect("drop");
                    db.create_table(definition()).expect("create")
                }
                _ => {
                    db.alter_table(&table, &TableChange::new().rename_table("old")).expect("rename");
                    db.create_table(definition()).expect("create")
                }
            };
            let counted = before.count(&table, Range::all());
            match level {
                Isolation::ReadCommitted => assert_eq!(counted.expect("count"), 0),
                _ => assert!(
                    matches!(counted, Err(Error::Conflict { conflict: Conflict::TableIsNewer, .. })),
                    "{level:?}, {replaced}: {counted:?}"
                ),
            }
            assert_eq!(safe.count(&table, Range::all()).expect("to safe snapshots it is empty"), 0);
            let after = db.begin_with(options).expect("begin");
            assert_eq!(after.count(&table, Range::all()).expect("count"), 0);
        }
    }
}

/// A writer sees that a table has rows, and sets the flag. Before it commits, the table
/// is truncated, or dropped or renamed and made again, and a reader finds it empty and
/// the flag not set. So the reader comes after the truncation and before the writer,
/// which has seen the rows.
#[test]
fn a_writer_comes_behind_readers_of_a_truncated_table() {
    for how in ["truncated", "dropped", "renamed"] {
        for (reads_range, meets_reader) in [(true, true), (false, true), (true, false), (false, false)] {
            let rule = Rule::new(None);
            let db = &rule.db;
            let mut writer = db.begin().expect("begin");
            let has_seen = match reads_range {
                true => has_rows(&writer, &rule.table),
                false => writer.get(&rule.table, &[1u64.into()]).expect("get").is_some(),
            };
            assert!(has_seen);
            rule.set(&mut writer).expect("nobody else writes");
            match how {
                "truncated" => drop(db.truncate_table(&rule.table).expect("it is there")),
                "dropped" => db.drop_table("t").expect("it is there"),
                _ => {
                    let change = TableChange::new().rename_table("old");
                    drop(db.alter_table(&rule.table, &change).expect("a free name"));
                }
            }
            if how != "truncated" {
                db.create_table(definition()).expect("a free name");
            }
            if meets_reader {
                let reader = db.begin_read().expect("begin");
                assert!(!has_rows(&reader, &db.table("t").expect("the new one")));
                assert!(!rule.is_set(&reader).expect("get"));
            }
            let ended = writer.commit();
            let is_changed = matches!(ended, Err(Error::Conflict { conflict: Conflict::ReadChanged, .. }));
            match meets_reader {
                true => assert!(is_changed, "{how}: {ended:?}"),
                // It comes before the truncation.
                false => assert!(ended.is_ok(), "{how}: {ended:?}"),
            }
        }
    }
}

fn has_rows(txn: &Transaction, table: &Table) -> bool {
    txn.scan(table, Range::all()).expect("a scan").next().transpose().expect("a row").is_some()
}
