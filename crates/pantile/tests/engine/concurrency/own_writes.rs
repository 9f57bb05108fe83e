//! A transaction sees its own writes, in the order in which it made them.

use pantile::{IndexDef, Range, Result, Transaction};

use super::table::{Thing, Things, thing};
use crate::support::{LEVELS, in_memory, is_duplicate};

/// All rows, found in every possible way.
fn seen(things: &Things, txn: &Transaction) -> Result<Vec<Thing>> {
    let all = things.all(txn)?;
    let mut backward: Vec<Thing> =
        txn.scan(&things.table, Range::all().reverse())?.map(thing).collect::<Result<_>>()?;
    backward.reverse();
    assert_eq!(backward, all);
    assert_eq!(things.indexed(txn, &things.index("by_name"))?, all);
    assert_eq!(things.indexed(txn, &things.index("by_size"))?, all);
    let by_name = things.index("by_name");
    for found in &all {
        assert_eq!(things.size(txn, found.0)?, Some(found.2));
        let row = txn.get_by_index(&by_name, &[found.1.into()])?.expect("it has a name");
        assert_eq!(&thing(Ok(row))?, found);
    }
    Ok(all)
}

#[test]
fn update_after_insert_after_delete() -> Result<()> {
    let db = in_memory();
    let indexes = [IndexDef::unique("by_name", ["name"]), IndexDef::new("by_size", ["size"])];
    let things = Things::new(&db, &indexes);
    things.fill((0..3).map(|n| (n, 10 + n, 0)));
    for level in LEVELS {
        let mut txn = things.begin(level);
        assert!(things.delete(&mut txn, 1)?);
        assert!(!things.delete(&mut txn, 1)?, "it is gone");
        assert_eq!(seen(&things, &txn)?, [(0, 10, 0), (2, 12, 0)]);
        things.insert(&mut txn, 1, 11, 5)?;
        assert!(is_duplicate(&things.insert(&mut txn, 1, 20, 0).unwrap_err()), "primary");
        assert!(is_duplicate(&things.insert(&mut txn, 9, 11, 0).unwrap_err()), "its own name");
        assert_eq!(seen(&things, &txn)?, [(0, 10, 0), (1, 11, 5), (2, 12, 0)]);
        assert!(things.resize(&mut txn, 1, 6)?);
        // Each row takes the name of another.
        assert!(things.rename(&mut txn, 1, 99)?);
        assert!(things.rename(&mut txn, 0, 11)?);
        assert!(things.rename(&mut txn, 1, 10)?);
        let full = seen(&things, &txn)?;
        assert_eq!(full, [(0, 11, 0), (1, 10, 6), (2, 12, 0)]);

        let savepoint = txn.savepoint();
        things.insert(&mut txn, 7, 70, 7)?;
        things.delete(&mut txn, 0)?;
        things.insert(&mut txn, 8, 11, 8)?;
        let inner = txn.savepoint();
        things.delete(&mut txn, 7)?;
        things.delete(&mut txn, 8)?;
        things.insert(&mut txn, 0, 70, 0)?;
        assert_eq!(seen(&things, &txn)?, [(0, 70, 0), (1, 10, 6), (2, 12, 0)]);
        txn.rollback_to(inner)?;
        assert_eq!(seen(&things, &txn)?, [(1, 10, 6), (2, 12, 0), (7, 70, 7), (8, 11, 8)]);
        txn.rollback_to(savepoint)?;
        assert_eq!(seen(&things, &txn)?, full);
        txn.rollback_to(savepoint)?;
        assert!(txn.rollback_to(inner).is_err(), "it was taken after the one gone back to");
        txn.commit()?;

        let check = db.begin()?;
        assert_eq!(seen(&things, &check)?, full);
        drop(check);
        // Restores the rows, with others inserted and deleted in between.
        let mut txn = things.begin(level);
        for id in 0..3 {
            things.delete(&mut txn, id)?;
        }
        things.insert(&mut txn, 50, 10, 0)?;
        things.delete(&mut txn, 50)?;
        for n in 0..3 {
            things.insert(&mut txn, n, 10 + n, 0)?;
        }
        txn.commit()?;
        assert_eq!(db.stats().tuples, 3 + 1, "and the definition");
    }
    Ok(())
}

/// Moving a name away and giving it to another row leaves no read mark that
/// blocks later writers.
#[test]
fn rows_stay_writable() -> Result<()> {
    let db = in_memory();
    let things = Things::new(&db, &[IndexDef::unique("by_name", ["name"])]);
    things.fill((0..2).map(|n| (n, n, 0)));
    for round in 0..20u64 {
        let mut txn = db.begin()?;
        let (one, two) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        things.rename(&mut txn, one, 99)?;
        things.rename(&mut txn, two, one.min(two))?;
        things.rename(&mut txn, one, one.max(two))?;
        txn.commit()?;
    }
    Ok(())
}
