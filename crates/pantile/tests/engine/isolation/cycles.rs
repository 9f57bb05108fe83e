//! Lost updates, read skew, write skew, and the anomaly that a reader shows.

use super::bench::{Bench, Outcome};
use crate::support::{Beside, LEVELS, in_memory};
use pantile::{Isolation, Range};

/// Two transactions add to what they have read; one addition is lost.
pub fn p4(b: &Bench) -> Outcome {
    let [mut one, mut two] = b.begin();
    let (first, second) = (one.read(1)?, two.read(1)?);
    one.write(1, first.expect("the row is there") + 1)?;
    one.commit()?;
    two.write(1, second.expect("the row is there") + 1)?;
    two.commit()?;
    Ok(b.rows()[0] == (1, 11))
}

/// Half of another transaction is seen.
pub fn g_single(b: &Bench) -> Outcome {
    let [one, mut two] = b.begin();
    let first = one.read(1)?;
    two.write(1, 12)?;
    two.write(2, 18)?;
    two.commit()?;
    let second = one.read(2)?;
    one.commit()?;
    Ok((first, second) == (Some(10), Some(18)))
}

/// The same, with predicates.
pub fn g_single_predicate(b: &Bench) -> Outcome {
    let [one, mut two] = b.begin();
    let first = one.by_value(Range::all())?;
    let unchanged = one.with_value(10)? == [1];
    for id in two.with_value(10)? {
        two.write(id, 12)?;
    }
    two.commit()?;
    let second = one.multiples_of_three()?;
    one.commit()?;
    Ok(unchanged && first.len() == 2 && second == [1])
}

/// A read before another transaction, a write after it.
pub fn g_single_write(b: &Bench) -> Outcome {
    let [mut one, mut two] = b.begin();
    let first = one.read(1)?;
    two.write(1, 12)?;
    two.write(2, 18)?;
    two.commit()?;
    one.write(2, 0)?;
    one.commit()?;
    Ok(first == Some(10) && b.rows() == [(1, 12), (2, 0)])
}

/// Each of two transactions reads both rows and writes one.
pub fn g2_item(b: &Bench) -> Outcome {
    let [mut one, mut two] = b.begin();
    let reads = [one.read(1)?, one.read(2)?, two.read(1)?, two.read(2)?];
    one.write(1, 11)?;
    two.write(2, 21)?;
    one.commit()?;
    two.commit()?;
    Ok(reads == [Some(10), Some(20), Some(10), Some(20)] && b.rows() == [(1, 11), (2, 21)])
}

/// Each deletes one row because the other is still there.
pub fn g2_item_deletions(b: &Bench) -> Outcome {
    let [mut one, mut two] = b.begin();
    let both = one.read(2)?.is_some() && two.read(1)?.is_some();
    one.delete(1)?;
    two.delete(2)?;
    one.commit()?;
    two.commit()?;
    Ok(both && b.rows().is_empty())
}

/// A withdrawal is fined because it missed a deposit; a reader sees the
/// deposit and not the withdrawal, so no serial order explains all three.
pub fn read_only(b: &Bench) -> Outcome {
    let [mut deposit, mut withdrawal, _] = b.begin();
    let seen = (withdrawal.read(1)?, withdrawal.read(2)?);
    deposit.write(2, 40)?;
    deposit.commit()?;
    let report = b.actor();
    let reported = (report.read(1)?, report.read(2)?);
    report.commit()?;
    withdrawal.write(1, -11)?;
    withdrawal.commit()?;
    let missed = seen == (Some(10), Some(20)) && reported == (Some(10), Some(40));
    Ok(missed && b.rows() == [(1, -11), (2, 40)])
}

/// Beside serializable writers, a safe snapshot sees the state before both and
/// causes no conflict. Behind a fresh read-only transaction the older writer
/// cannot commit, because what it has read has changed by then.
#[test]
fn safe_snapshot_avoids_the_read_only_anomaly() {
    for fresh in [false, true] {
        let b = Bench::new(Isolation::Serializable, vec![1, 0], Beside::Any, true);
        let [mut deposit, mut withdrawal] = b.begin();
        assert_eq!(withdrawal.read(2).unwrap(), Some(20));
        deposit.write(2, 40).unwrap();
        deposit.commit().unwrap();
        let report = if fresh { b.db.begin_read() } else { b.db.begin_safe_snapshot() }.unwrap();
        let read = |id: u32| report.get(&b.table, &[id.into()]).unwrap().unwrap().get::<i64>(1).unwrap();
        assert_eq!((read(1), read(2)), (10, if fresh { 40 } else { 20 }));
        assert!(withdrawal.write(1, -11).unwrap());
        let ended = withdrawal.commit();
        assert_eq!(ended.is_ok(), !fresh, "the fresh reader has left a read mark, {ended:?}");
        assert_eq!((read(1), read(2)), (10, if fresh { 40 } else { 20 }), "the snapshot stays as it is");
    }
}

/// A transaction that does not write sees one state, however long it runs.
#[test]
fn one_moment() {
    for level in LEVELS {
        let b = Bench::new(level, vec![0], Beside::Any, true);
        let [reader] = b.begin();
        let before = reader.ids(Range::all()).unwrap();
        for n in 0..50 {
            b.fill(&[(3 + n, 30), (1, i64::from(n))]);
        }
        let moves = reader.ids(Range::all()).unwrap() != before || reader.read(1).unwrap() != Some(10);
        assert_eq!(moves, level == Isolation::ReadCommitted);
    }
}

/// Each transaction has its own level, and reports it.
#[test]
fn levels_are_named() {
    let db = in_memory();
    assert_eq!(db.begin().unwrap().isolation(), Isolation::Serializable);
    for level in LEVELS {
        assert_eq!(db.begin_with(crate::support::abort_at(level)).unwrap().isolation(), level);
    }
}
