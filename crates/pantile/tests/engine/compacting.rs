//! What compacting returns where it can do little or nothing.

use pantile::lab::SimulatedTime;
use pantile::{Collector, Database, Error, MediumKind, Options, TableDef, Type};
use pantile_testkit::cut::Image;
use pantile_testkit::{FaultMedium, fails};

/// A row that was updated a few times.
fn update(db: &Database) {
    let def = TableDef::new("t").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
    let table = db.create_table(def).expect("create");
    (0..20u64).for_each(|n| {
        db.run(|txn| txn.upsert(&table, &[1u64.into(), n.into()])).expect("upsert");
    });
}

#[test]
fn a_medium_that_has_failed_is_not_compacted() {
    let medium = FaultMedium::new(&Image::default(), None);
    let options = Options::new().on_medium(medium.clone()).simulated_time(SimulatedTime::default());
    let db = options.open("unused").expect("open");
    update(&db);
    medium.fail("the disk does not answer");
    fails!(db.compact(), Error::MediumFailed { .. }, "does not answer");
}

#[test]
fn a_collector_that_moves_nothing_says_what_it_leaves() {
    let options = Options::new().medium(MediumKind::Dram).simulated_time(SimulatedTime::default());
    let db = options.collector(Collector::NONE).open("unused").expect("open");
    update(&db);
    let left = db.compact().expect("compact");
    assert!(left.is_held && !left.is_done(), "{left:?}");
}
