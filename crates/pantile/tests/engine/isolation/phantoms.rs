//! Anti-dependency cycles through predicates.

use std::ops::Bound;

use pantile::{
    ConflictPolicy, IndexDef, MediumKind, Options, Range, Result, Table, TableDef, Transaction, Type, Value,
};

use super::bench::{Bench, Outcome};

fn between<'r>(low: &'r [Value<'r>], high: &'r [Value<'r>]) -> Range<'r> {
    Range::all().from(Bound::Included(low)).to(Bound::Excluded(high))
}

/// Both find a range of primary keys empty and insert into it.
pub fn primary_range(b: &Bench) -> Outcome {
    let [mut one, mut two] = b.begin();
    let (low, high) = ([10u32.into()], [20u32.into()]);
    let empty =
        one.ids(between(&low, &high))?.is_empty() && two.ids(between(&low, &high).reverse())?.is_empty();
    one.insert(11, 0)?;
    two.insert(12, 0)?;
    one.commit()?;
    two.commit()?;
    Ok(empty && b.rows().len() == 4)
}

/// Both find a range of values empty and insert rows with such values.
pub fn secondary_range(b: &Bench) -> Outcome {
    let [mut one, mut two] = b.begin();
    let (low, high) = ([30i64.into()], [40i64.into()]);
    let empty = one.by_value(between(&low, &high))?.is_empty()
        && two.by_value(between(&low, &high).reverse())?.is_empty();
    one.insert(3, 33)?;
    two.insert(4, 33)?;
    one.commit()?;
    two.commit()?;
    Ok(empty && b.rows().len() == 4)
}

/// Both find a range of values empty and move a row into it.
pub fn moved_rows(b: &Bench) -> Outcome {
    let [mut one, mut two] = b.begin();
    let (low, high) = ([30i64.into()], [40i64.into()]);
    let empty =
        one.by_value(between(&low, &high))?.is_empty() && two.by_value(between(&low, &high))?.is_empty();
    one.write(1, 31)?;
    two.write(2, 32)?;
    one.commit()?;
    two.commit()?;
    Ok(empty && b.rows() == [(1, 31), (2, 32)])
}

/// Both find two keys absent and insert one of them.
pub fn absent_key(b: &Bench) -> Outcome {
    let [mut one, mut two] = b.begin();
    let absent = one.read(4)?.is_none() && two.read(3)?.is_none();
    one.insert(3, 30)?;
    two.insert(4, 40)?;
    one.commit()?;
    two.commit()?;
    Ok(absent && b.rows().len() == 4)
}

/// The same with keys of the secondary index.
pub fn absent_index_key(b: &Bench) -> Outcome {
    let [mut one, mut two] = b.begin();
    let absent = one.txn.get_by_index(&b.by_value, &[40i64.into()])?.is_none()
        && two.txn.get_by_index(&b.by_value, &[30i64.into()])?.is_none();
    one.insert(3, 30)?;
    two.insert(4, 40)?;
    one.commit()?;
    two.commit()?;
    Ok(absent && b.rows().len() == 4)
}

/// The same with keys that existed before, some of them not long ago.
pub fn deleted_key(b: &Bench) -> Outcome {
    b.fill(&[(3, 30), (4, 40)]);
    for id in [3u32, 4] {
        b.db.run(|t| t.delete(&b.table, &[id.into()])).expect("no other transaction runs");
    }
    absent_key(b)
}

/// Both look for the first rows above a key, find fewer than they asked for,
/// and add one.
pub fn limit(b: &Bench) -> Outcome {
    let [mut one, mut two] = b.begin();
    let low = [2u32.into()];
    let above = || Range::all().from(Bound::Excluded(&low)).limit(1);
    let empty = one.ids(above())?.is_empty() && two.ids(above())?.is_empty();
    one.insert(u32::MAX, 0)?;
    two.insert(3, 0)?;
    one.commit()?;
    two.commit()?;
    Ok(empty && b.rows().len() == 4)
}

/// A cycle of three: each transaction finds absent what the next one inserts.
pub fn three(b: &Bench) -> Outcome {
    let mut actors: [_; 3] = b.begin();
    let mut absent = true;
    for (n, actor) in actors.iter().enumerate() {
        absent &= actor.with_value(100 + (n as i64 + 1) % 3)?.is_empty();
    }
    for (n, actor) in actors.iter_mut().enumerate() {
        actor.insert(10 + n as u32, 100 + n as i64)?;
    }
    for actor in actors {
        actor.commit()?;
    }
    Ok(absent && b.rows().len() == 5)
}

/// A row takes the place of a deleted one and is taken back, or the place is only asked for. Once the entry of the deleted
/// row is gone, another transaction adds the key. What the first one has been told counts all the same, under every protocol.
#[test]
fn a_key_that_was_free_under_a_deleted_row_counts_when_the_insert_is_taken_back() {
    counts_when_taken_back(&[false, true], |txn, things| txn.insert(things, &[1u64.into(), 1u64.into()]));
}

#[test]
fn a_key_that_was_free_under_a_deleted_row_counts_when_it_was_looked_at_to_be_locked() {
    counts_when_taken_back(&[false], |txn, things| {
        assert!(txn.get_for_update(things, &[1u64.into()])?.is_none());
        Ok(())
    });
    counts_when_taken_back(&[false, true], |txn, things| {
        assert!(txn.get_for_update(things, &[1u64.into()])?.is_none());
        txn.insert(things, &[1u64.into(), 1u64.into()])
    });
}

/// Another transaction adds the same key, or, if the other index is unique, only its key.
fn counts_when_taken_back(is_unique: &[bool], ask: impl Fn(&mut Transaction, &Table) -> Result<()>) {
    let protocols = pantile_protocols::all().iter().map(|protocol| Some(*protocol));
    for (is_unique, protocol) in [None]
        .into_iter()
        .chain(protocols)
        .flat_map(|p| is_unique.iter().map(move |&is_unique| (is_unique, p)))
    {
        let options = Options::new().medium(MediumKind::Dram).worker(false).conflict(ConflictPolicy::Abort);
        let db = options.protocol(protocol).open("unused").expect("open");
        let def =
            TableDef::new("things").column("id", Type::U64).column("name", Type::U64).primary_key(["id"]);
        let def = if is_unique { def.index(IndexDef::unique("name", ["name"])) } else { def };
        let things = db.create_table(def).expect("a table");
        let row = |id: u64, name: u64| [id.into(), name.into()];
        db.run(|txn| txn.insert(&things, &row(0, 0)).and_then(|()| txn.insert(&things, &row(1, 1))))
            .expect("rows");
        let keeps_the_entry = db.begin_safe_snapshot().expect("a reader");
        db.run(|txn| txn.delete(&things, &[1u64.into()])).expect("deleted");
        let mut first = db.begin().expect("begin");
        let before = first.savepoint();
        ask(&mut first, &things).expect("the key is free");
        first.rollback_to(before).expect("the savepoint");
        drop(keeps_the_entry);
        for _ in 0..10 {
            db.upkeep();
        }
        let mut second = db.begin().expect("begin");
        // Another row with the same key, or only with the same name.
        let id = if is_unique { 2 } else { 1 };
        let second = second
            .get(&things, &[0u64.into()])
            .map(drop)
            .and_then(|()| second.insert(&things, &row(id, 1)))
            .and_then(|()| second.commit());
        let first =
            first.update(&things, &[0u64.into()], &[("name", 9u64.into())]).and_then(|_| first.commit());
        assert!(first.is_err() || second.is_err(), "{protocol:?}, {is_unique}");
    }
}
