//! What a full medium does, with any collector (T14).

use pantile::{Database, Error, Range, Result, Table};
use pantile_testkit::Patience;

pub fn ids(db: &Database, table: &Table) -> Vec<u64> {
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(table, Range::all()).expect("scan");
    rows.map(|row| row.and_then(|row| row.get(0)).expect("row")).collect()
}

/// Fills the medium by `put`, which writes a row with an id and a number.
/// Writers are refused, three rows of four can be deleted, and half as many as
/// there were can be written again. Returns how many there were.
pub fn fill_and_make_room(db: &Database, table: &Table, put: impl Fn(u64, u64) -> Result<()>) -> u64 {
    let full = (0..).find_map(|id| put(id, 0).err().map(|error| (id, error)));
    let (end, error) = full.expect("full at last");
    assert!(matches!(error, Error::StorageFull { .. }), "{error}");
    assert_eq!(ids(db, table), (0..end).collect::<Vec<_>>(), "readers go on");
    // Every one of these rows can be deleted, whatever else is refused
    // meanwhile.
    for id in (0..end).filter(|id| id % 4 != 0) {
        let gone = db.run(|txn| txn.delete(table, &[id.into()]));
        assert!(gone.unwrap_or_else(|e| panic!("delete {id} of {end}: {e}\n{:#?}", db.stats())));
    }
    let kept: Vec<u64> = (0..end).filter(|id| id % 4 == 0).collect();
    assert_eq!(ids(db, table), kept);
    // Space comes back, so writers are accepted again.
    let patience = Patience::new();
    let mut written = 0;
    while written < end / 2 {
        match put(1_000_000 + written, 1) {
            Ok(()) => written += 1,
            Err(Error::StorageFull { .. }) => {
                patience.check(|| format!("{written} of {}: {:#?}", end / 2, db.stats()));
            }
            Err(error) => panic!("{error}"),
        }
    }
    let all: Vec<u64> = kept.into_iter().chain((0..written).map(|n| 1_000_000 + n)).collect();
    assert_eq!(ids(db, table), all);
    end
}
