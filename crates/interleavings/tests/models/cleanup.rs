//! Index entries are cleaned while the ids of their tuples are used again.

use pantile::{IndexDef, Range, Table, TableDef, Transaction, Type};
use pantile_base::sync::model::{advance, explore};
use pantile_interleavings::Model;

use crate::support::{EPOCH, Small, join};

pub const MODELS: &[Model] =
    &[Model { name: "clean_against_reuse", rounds: 1_500, scale: 9, run: clean_against_reuse }];

fn tag(small: &Small, tags: &Table, id: u64, tag: u64) {
    small.db.run(|txn| txn.upsert(tags, &[id.into(), tag.into()])).expect("a commit");
}

fn ids(txn: &Transaction, tags: &Table) -> Vec<u64> {
    let rows = txn.scan(tags, Range::all()).expect("scan");
    rows.map(|row| row.and_then(|row| row.get(0)).expect("a row")).collect()
}

/// I-15: the cleaner removes an entry of a deleted tuple only if no new row has
/// the tuple's id and the entry's key.
fn clean_against_reuse() {
    let small = Small::new(4);
    let def = TableDef::new("tags").column("id", Type::U64).column("tag", Type::U64).primary_key(["id"]);
    let tags = small.db.create_table(def.index(IndexDef::new("by_tag", ["tag"]))).expect("create");
    tag(&small, &tags, 8, 8);
    tag(&small, &tags, 1, 1);
    // The entry of tag 1 waits in the queue of the first slot.
    tag(&small, &tags, 1, 2);
    let in_first_slot = small.db.begin_read().expect("begin");
    // The others wait in that of the second, which is worked off here, until
    // the tuple's id is free.
    assert!(small.db.run(|txn| txn.delete(&tags, &[1u64.into()])).expect("a commit"));
    in_first_slot.rollback();
    for n in 0..4 {
        advance(EPOCH * 4);
        tag(&small, &tags, 8, n);
    }
    explore(|| {
        let cleaning = small.spawn({
            let tags = tags.clone();
            move |small| tag(&small, &tags, 8, 8)
        });
        tag(&small, &tags, 2, 1);
        join([cleaning]);
    });
    let txn = small.db.begin_read().expect("begin");
    let by_tag = tags.index("by_tag").expect("index");
    let found = txn.get_by_index(&by_tag, &[1u64.into()]).expect("get");
    assert_eq!(found.map(|row| row.get::<u64>(0).expect("an id")), Some(2), "of rows {:?}", ids(&txn, &tags));
    drop(txn);
    small.check(&[]);
}
