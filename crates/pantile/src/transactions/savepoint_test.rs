//! Rows that one transaction writes again and again, beside a model, while its buffers
//! are squeezed before nearly every statement.

use std::collections::BTreeMap;

use pantile_testkit::{Random, SeedNote, seeds};

use super::*;
use crate::engine::writes::Pending;
use crate::{
    Database, Index, IndexDef, Isolation, MediumKind, Options, Range, Row, RowId, Table, TableDef,
    TransactionOptions, Type, Value,
};

/// Name, which is unique, size, which is indexed, and a text, which may lie out of line.
type Thing = (u64, u64, String);
type Things = BTreeMap<u64, Thing>;

const IDS: u64 = 6;
const NAMES: u64 = 9;

fn in_memory() -> Database {
    Options::new().medium(MediumKind::Dram).open("unused").expect("open")
}

fn create(db: &Database) -> Table {
    let def =
        TableDef::new("things").column("id", Type::U64).column("name", Type::U64).column("size", Type::U64);
    let def = def.column("text", Type::String(200_000)).primary_key(["id"]);
    let def = def.index(IndexDef::unique("by_name", ["name"])).index(IndexDef::new("by_size", ["size"]));
    db.create_table(def).expect("create")
}

fn read(row: &Row<'_>) -> (u64, Thing) {
    let number = |n: usize| row.get::<u64>(n).expect("a number");
    (number(0), (number(1), number(2), row.get("text").expect("text")))
}

fn any_thing(random: &mut Random) -> Thing {
    let len = if random.one_in(30) { 70_000 } else { random.index(200) };
    let letter = char::from(b'a' + random.below(26) as u8);
    (random.below(NAMES), random.below(4), String::from(letter).repeat(len))
}

fn values(id: u64, thing: &Thing) -> [Value<'_>; 4] {
    [id.into(), thing.0.into(), thing.1.into(), thing.2.as_str().into()]
}

/// A transaction, and what it must see.
struct Twin<'d> {
    txn: Transaction,
    table: &'d Table,
    by_size: &'d Index,
    things: Things,
    savepoints: Vec<(Savepoint, Things)>,
}

impl Twin<'_> {
    fn has_name(&self, but: u64, name: u64) -> bool {
        self.things.iter().any(|(id, thing)| *id != but && thing.0 == name)
    }

    /// A statement has put a thing in its place or was refused.
    fn put(&mut self, outcome: Result<()>, id: u64, thing: Thing, is_refused: bool) {
        match outcome {
            Ok(()) => {
                assert!(!is_refused);
                self.things.insert(id, thing);
            }
            Err(error) => assert!(is_refused && matches!(error, Error::DuplicateKey { .. }), "{error}"),
        }
    }

    fn write(&mut self, random: &mut Random) {
        let id = random.below(IDS);
        let thing = any_thing(random);
        let is_there = self.things.contains_key(&id);
        let takes_name = self.has_name(id, thing.0);
        let row = values(id, &thing);
        let changes = [(1, row[1]), (2, row[2]), (3, row[3])];
        let key = &row[..1];
        match random.below(9) {
            0 => {
                let outcome = self.txn.insert(self.table, &row);
                self.put(outcome, id, thing.clone(), is_there || takes_name);
            }
            1 => {
                let outcome = self.txn.upsert(self.table, &row).map(|had| assert_eq!(had, is_there));
                self.put(outcome, id, thing.clone(), takes_name);
            }
            2 => {
                let outcome = self.txn.replace(self.table, &row);
                let outcome = outcome.map(|had| assert_eq!(had.is_some(), is_there));
                self.put(outcome, id, thing.clone(), takes_name);
            }
            3 if is_there => {
                let outcome = self.txn.update(self.table, key, &changes).map(|found| assert!(found));
                self.put(outcome, id, thing.clone(), takes_name);
            }
            4 => {
                let changed = self.txn.modify(self.table, key, |row| row.set_all(&changes).map(|()| false));
                assert!(!changed.expect("no change"));
            }
            5 => {
                let others = [values(id, &thing), values(7, &thing)];
                let outcome = self.txn.insert_many(self.table, others);
                assert!(matches!(outcome, Err(Error::DuplicateKey { .. })), "a name comes twice");
            }
            6 => {
                assert_eq!(self.txn.delete(self.table, key).expect("delete"), is_there);
                self.things.remove(&id);
            }
            7 => self.resize_all(thing.1),
            _ => {
                let found = self.txn.get_for_update(self.table, key).expect("lock");
                assert_eq!(found.map(|row| read(&row).1).as_ref(), self.things.get(&id));
            }
        }
    }

    /// A cursor that is open while its transaction writes.
    fn resize_all(&mut self, size: u64) {
        let mut cursor = self.txn.cursor(self.table, Range::all()).expect("a cursor");
        let mut things = Things::new();
        while let Some(row) = cursor.next_for_update(&mut self.txn, false).expect("a row") {
            things.extend([read(&row)]);
            let place: RowId = cursor.row_id().expect("a place");
            self.txn.buffers.squeeze_at = 0;
            assert!(self.txn.update_row(self.table, place, &[("size", size.into())]).expect("update"));
        }
        assert_eq!(things, self.things);
        self.things.values_mut().for_each(|thing| thing.1 = size);
    }

    fn turn_back(&mut self, random: &mut Random) {
        match random.below(5) {
            0 | 1 => self.savepoints.push((self.txn.savepoint(), self.things.clone())),
            2 | 3 if !self.savepoints.is_empty() => {
                let at = random.index(self.savepoints.len());
                self.savepoints.truncate(at + 1);
                self.txn.rollback_to(self.savepoints[at].0).expect("known");
                self.things = self.savepoints[at].1.clone();
            }
            _ if !self.savepoints.is_empty() => {
                let at = random.index(self.savepoints.len());
                self.txn.release(self.savepoints[at].0);
                self.savepoints.truncate(at);
            }
            _ => {}
        }
    }

    fn check(&self) {
        let rows = self.txn.scan(self.table, Range::all()).expect("scan");
        let seen: Things = rows.map(|row| read(&row.expect("a row"))).collect();
        assert_eq!(seen, self.things);
        let rows = self.txn.scan_index(self.by_size, Range::all()).expect("scan");
        let sizes: Vec<_> = rows.map(|row| read(&row.expect("a row")).1.1).collect();
        assert!(sizes.len() == self.things.len() && sizes.is_sorted());
    }

    /// Nothing is held that neither the commit nor a savepoint needs.
    fn check_bounds(&mut self) {
        self.txn.squeeze();
        let buffers = &*self.txn.buffers;
        let states = buffers.undo.iter().filter(|undo| matches!(undo, Undo::Restore { .. })).count();
        assert!(states <= buffers.writes.len() * self.savepoints.len());
        if self.savepoints.is_empty() {
            let pending = buffers.writes.iter().map(|write| match write.pending {
                Pending::Row { len, .. } => len as usize,
                Pending::Nothing | Pending::Tombstone => 0,
            });
            assert!(buffers.rows.len() / 4 * 3 <= pending.sum());
        }
    }
}

#[test]
fn squeezed_transactions_write_what_the_model_does() {
    let levels = [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];
    for seed in seeds(1, 30) {
        let _note = SeedNote(seed);
        let mut random = Random::new(seed, 0);
        let db = in_memory();
        let table = create(&db);
        let by_size = table.index("by_size").expect("an index");
        let mut committed = Things::new();
        for _ in 0..6 {
            let options = TransactionOptions::new().isolation(*random.pick(&levels));
            let txn = db.begin_with(options).expect("begin");
            let things = committed.clone();
            let mut twin = Twin { txn, table: &table, by_size: &by_size, things, savepoints: Vec::new() };
            for _ in 0..60 {
                if !random.one_in(8) {
                    twin.txn.buffers.squeeze_at = 0;
                }
                twin.write(&mut random);
                if random.one_in(3) {
                    twin.turn_back(&mut random);
                }
                twin.check();
                if random.one_in(8) {
                    twin.check_bounds();
                    twin.check();
                }
            }
            if random.one_in(3) {
                twin.txn.rollback();
            } else {
                committed = twin.things;
                twin.txn.commit().expect("commit");
            }
        }
        let txn = db.begin().expect("begin");
        Twin { txn, table: &table, by_size: &by_size, things: committed, savepoints: Vec::new() }.check();
    }
}

/// Its lock comes before the savepoint, so what is undone afterwards does not reach it.
#[test]
fn a_lock_that_a_savepoint_knows_stays() {
    let db = in_memory();
    let table = create(&db);
    let thing = (1, 1, String::new());
    db.run(|txn| txn.insert(&table, &values(1, &thing))).expect("insert");
    let mut txn = db.begin().expect("begin");
    let mut cursor = txn.cursor(&table, Range::all()).expect("a cursor");
    assert!(cursor.next_for_update(&mut txn, false).expect("a row").is_some());
    let place = cursor.row_id().expect("a place");
    let savepoint = txn.savepoint();
    assert!(!txn.unlock_row(&table, place));
    txn.insert(&table, &values(2, &(2, 2, String::new()))).expect("insert");
    txn.rollback_to(savepoint).expect("known");
    txn.release(savepoint);
    assert!(txn.unlock_row(&table, place));
    txn.commit().expect("commit");
    assert_eq!(db.begin_read().expect("begin").count(&table, Range::all()).expect("count"), 1);
}

/// A load that is taken back, because there is no memory for it, say, takes none for a map of its
/// writes.
#[test]
fn a_load_is_taken_back_without_a_map() {
    let db = in_memory();
    let def = TableDef::new("rows").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
    let rows = db.create_table(def.index(IndexDef::new("by_n", ["n"]))).expect("a table");
    let mut txn = db.begin().expect("begin");
    let load = |txn: &mut Transaction, from: u64| {
        txn.insert_many(&rows, (from..from + 100).map(|id| [id.into(), (id % 7).into()])).expect("inserts");
    };
    load(&mut txn, 0);
    let savepoint = txn.savepoint();
    load(&mut txn, 100);
    txn.rollback_to(savepoint).expect("known");
    assert_eq!((txn.buffers.writes.len(), txn.buffers.by_tuple.bytes()), (100, 0));
    // Somebody asks, and what comes later is entered then.
    assert!(txn.get(&rows, &[5u64.into()]).expect("read").is_some());
    load(&mut txn, 300);
    assert!(txn.buffers.by_tuple.bytes() > 0);
    assert!(txn.delete(&rows, &[350u64.into()]).expect("delete"));
    txn.rollback_to(savepoint).expect("known");
    load(&mut txn, 100);
    txn.commit().expect("commit");
    assert_eq!(db.begin_read().expect("begin").count(&rows, Range::all()).expect("count"), 200);
}
