//! What collectors may change.

use std::time::Duration;

use pantile_cc::{Begin, SimulatedTime};

use super::*;
use crate::{Collector, MediumKind, Options, TableDef, Type};

/// A sweep noted a tombstone. Meanwhile the id was used again, its next row was
/// deleted, and the new tombstone lies where the old one lay. It may hide
/// versions that the sweep has not met (T3).
#[test]
fn a_later_tombstone_in_the_same_place_stays() {
    let time = SimulatedTime::default();
    let options = Options::new().medium(MediumKind::Dram).collector(Collector::NONE);
    let db = options.simulated_time(time.clone()).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).primary_key(["id"]);
    let table = db.create_table(def).expect("create");
    db.run(|txn| txn.insert(&table, &[1u64.into()])).expect("insert");
    db.run(|txn| txn.delete(&table, &[1u64.into()])).expect("delete");
    let (tuple, cell) = (TupleId(0), table.inner.anchor(TupleId(0)));
    for _ in 0..100 {
        time.advance(Duration::from_millis(5));
        db.upkeep();
    }
    let anchor = Anchor::load(cell);
    assert!(anchor.is_dead(), "nothing leads to the tuple any more");
    let core = &db.core;
    let (slot, now) = core.registry.begin(Begin::Reader).expect("a slot");
    let (view, address) = (View::new(core, slot), anchor.newest());
    let begin = core.store.content(address).timestamp();
    for other in [Timestamp::from_raw(begin.get() - 1), now] {
        assert!(!view.drop_tombstone(table.inner.id, tuple, address, other));
    }
    assert!(view.drop_tombstone(table.inner.id, tuple, address, begin));
    assert!(Anchor::load(cell).newest().is_none());
    core.registry.release(slot);
}
