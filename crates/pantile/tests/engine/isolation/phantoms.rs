//! Anti-dependency cycles through predicates.

use std::ops::Bound;

use pantile::{Range, Value};

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
