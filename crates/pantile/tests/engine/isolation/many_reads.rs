//! Writers that read so much that what they have read is united, and then move.

use std::collections::BTreeSet;
use std::ops::Bound;

use pantile::{
    Conflict, Database, Error, Index, IndexDef, MediumKind, Options, Range, Result, Table, TableDef,
    Transaction, Type,
};
use pantile_testkit::{Random, SeedNote, seeds};

/// Rows have every tenth id, and as many values.
const IDS: u64 = 600;
const STEP: u64 = 10;
/// Nobody reads from here on, but for the row that makes the writer move.
const UNREAD: u64 = 10_000;
const MOVES: u64 = 20_000;
/// A row that nobody knows of.
const NEW: [u64; 3] = [UNREAD + 2; 3];

/// What a writer knows of: ids, values and codes that are there or are not.
#[derive(Default)]
struct Known {
    ids: BTreeSet<u64>,
    values: BTreeSet<u64>,
    codes: BTreeSet<u64>,
}

fn create() -> (Database, Table) {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("value", Type::U64).column("code", Type::U64);
    let def = def.primary_key(["id"]).index(IndexDef::new("by_value", ["value"]));
    let table = db.create_table(def.index(IndexDef::unique("by_code", ["code"]))).expect("create");
    let ids = (0..IDS).step_by(STEP as usize).chain([MOVES]);
    db.run(|txn| txn.insert_many(&table, ids.clone().map(|id| [id, id, id].map(Into::into)))).expect("fill");
    (db, table)
}

fn read(
    txn: &mut Transaction,
    table: &Table,
    by_value: &Index,
    random: &mut Random,
    known: &mut Known,
) -> Result<()> {
    let low = random.below(IDS);
    let high = low + random.below(25);
    let (from, to) = ([low.into()], [high.into()]);
    let range = Range::all().from(Bound::Included(&from)).to(Bound::Included(&to));
    let range = if random.one_in(2) { range.reverse() } else { range };
    match random.below(6) {
        0 | 1 => {
            txn.get(table, &from)?;
            known.ids.insert(low);
        }
        2 => {
            txn.count(table, range)?;
            known.ids.extend(low..=high);
        }
        3 => {
            txn.count_index(by_value, range)?;
            known.values.extend(low..=high);
        }
        4 if !low.is_multiple_of(STEP) => {
            txn.delete(table, &from)?;
            known.ids.insert(low);
        }
        5 if !low.is_multiple_of(STEP) => {
            let savepoint = txn.savepoint();
            txn.insert(table, &[low.into(), (UNREAD + 1).into(), (low + IDS).into()])?;
            txn.rollback_to(savepoint)?;
            txn.release(savepoint);
            known.ids.insert(low);
            known.codes.insert(low + IDS);
        }
        _ => {}
    }
    Ok(())
}

/// A row that changes what a writer knows.
fn known_row(random: &mut Random, known: &Known) -> Option<[u64; 3]> {
    let kinds = [&known.ids, &known.values, &known.codes];
    let n = random.index(3);
    let free: Vec<u64> = kinds[n].iter().copied().filter(|k| *k >= IDS || !k.is_multiple_of(STEP)).collect();
    let mut row = NEW;
    row[n] = *free.get(random.index(free.len().max(1)))?;
    Some(row)
}

/// What is inserted into a range that it has read is found, however often and in
/// whatever way that was read; what is inserted elsewhere is no matter.
#[test]
fn writers_that_read_much_move_only_if_all_of_it_still_holds() {
    for seed in seeds(0, 60) {
        let _note = SeedNote(seed);
        let mut random = Random::new(seed, 0);
        let (db, table) = create();
        let by_value = table.index("by_value").expect("an index");
        let (mut txn, mut known) = (db.begin().expect("begin"), Known::default());
        let end = [IDS.into()];
        let range = Range::all().to(Bound::Excluded(&end));
        let mut cursor = txn.cursor(&table, range).expect("a cursor");
        let mut last = None;
        for _ in 0..random.below(3000) {
            read(&mut txn, &table, &by_value, &mut random, &mut known).expect("a read");
            if random.one_in(50) {
                let row = cursor.next(&txn).expect("a row");
                last = row.map(|row| row.get::<u64>(0).expect("an id")).or(last);
            }
        }
        known.ids.extend(last.into_iter().flat_map(|last| 0..=last));
        let changes_it = if random.one_in(2) { known_row(&mut random, &known) } else { None };
        let (is_known, row) = (changes_it.is_some(), changes_it.unwrap_or(NEW));
        txn.update(&table, &[MOVES.into()], &[(1, (UNREAD + 3).into())]).expect("update");
        db.run(|other| other.insert(&table, &row.map(Into::into))).expect("insert");
        assert!(db.begin_read().expect("begin").get(&table, &[MOVES.into()]).expect("get").is_some());
        match txn.commit() {
            Ok(_) => assert!(!is_known, "{row:?} was inserted into what it has read"),
            Err(Error::Conflict { conflict: Conflict::ReadChanged, .. }) => {
                assert!(is_known, "{row:?} is elsewhere")
            }
            Err(error) => panic!("{error}"),
        }
    }
}
