//! Dirty writes, dirty reads, and predicates with many preceders.

use super::bench::{Bench, Outcome};

/// Two transactions write both rows, each row 1 first. Both rows must end up
/// with the same writer.
pub fn g0(b: &Bench) -> Outcome {
    let [mut one, mut two] = b.begin();
    one.write(1, 11)?;
    let met = two.write(1, 12).and_then(|_| {
        one.write(2, 21)?;
        one.commit()?;
        two.write(2, 22)?;
        two.commit()
    });
    met?;
    let rows = b.rows();
    Ok(rows != [(1, 11), (2, 21)] && rows != [(1, 12), (2, 22)])
}

/// A value that is then rolled back is read.
pub fn g1a(b: &Bench) -> Outcome {
    let [mut one, two] = b.begin();
    one.write(1, 101)?;
    let dirty = two.read(1)? == Some(101) || two.with_value(101)? == [1];
    one.rollback();
    let after = two.read(1)? == Some(101);
    two.commit()?;
    Ok(dirty || after)
}

/// A value that its writer then overwrites is read.
pub fn g1b(b: &Bench) -> Outcome {
    let [mut one, two] = b.begin();
    one.write(1, 101)?;
    let first = two.read(1)?;
    one.write(1, 11)?;
    one.commit()?;
    let second = two.read(1)?;
    two.commit()?;
    Ok(first == Some(101) || second == Some(101))
}

/// Each of two transactions reads what the other wrote.
pub fn g1c(b: &Bench) -> Outcome {
    let [mut one, mut two] = b.begin();
    one.write(1, 11)?;
    two.write(2, 22)?;
    let (by_one, by_two) = (one.read(2)?, two.read(1)?);
    one.commit()?;
    two.commit()?;
    Ok(by_one == Some(22) && by_two == Some(11))
}

/// What a transaction wrote is seen in one row and later no longer in another,
/// although no transaction that the reader sees overwrote it there.
pub fn otv(b: &Bench) -> Outcome {
    let [mut one, mut two, three] = b.begin();
    one.write(1, 11)?;
    one.write(2, 19)?;
    one.commit()?;
    two.write(1, 12)?;
    let first = (three.read(1)?, three.read(2)?);
    two.write(2, 18)?;
    let uncommitted = three.read(2)?;
    two.commit()?;
    let second = (three.read(2)?, three.read(1)?);
    three.commit()?;
    let torn = first == (Some(11), Some(20)) || first == (Some(10), Some(19));
    let vanished = second == (Some(18), Some(11)) || second == (Some(18), Some(10));
    Ok(torn || vanished || uncommitted == Some(18))
}

/// Two predicate reads of one transaction see different sets of writers.
pub fn pmp(b: &Bench) -> Outcome {
    let [one, mut two] = b.begin();
    let before = one.with_value(30)?;
    two.insert(3, 30)?;
    two.commit()?;
    let after = one.multiples_of_three()?;
    one.commit()?;
    Ok(before.is_empty() && after == [3])
}

/// A deletion by predicate hits a row that no longer satisfies it.
pub fn pmp_write(b: &Bench) -> Outcome {
    let [mut one, mut two] = b.begin();
    one.write(1, 20)?;
    one.write(2, 30)?;
    let found = two.with_value(20)?;
    one.commit()?;
    for id in found {
        two.delete(id)?;
    }
    two.commit()?;
    // Row 2 had the value 30 when it was deleted.
    Ok(b.rows() == [(1, 20)])
}
