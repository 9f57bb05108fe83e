//! Tables are dropped while old versions of their rows wait.

use super::beside::{collectors, options, settle};
use crate::collector::rows::{Rows, collect_until, open, seen};

#[test]
fn what_waits_of_a_dropped_table_is_forgotten() {
    for (collector, stays) in collectors().flat_map(|collector| [false, true].map(|stays| (collector, stays)))
    {
        let db = open(options(collector));
        let mut kept = Rows::named(&db, "kept");
        kept.put(0..100);
        let before = kept.expected.clone();
        // It reads none of the tables that come and go.
        let stays = stays.then(|| db.begin_read().expect("begin"));
        for round in 0..6u64 {
            // A reader makes versions of both tables wait.
            let reader = (round % 2 == 0).then(|| db.begin_read().expect("begin"));
            let name = format!("dropped {round}");
            let mut rows = Rows::named(&db, &name);
            for _ in 0..5 {
                rows.put(0..100);
                kept.put(0..50);
                rows.delete((0..100).filter(|key| key % 3 == round % 3));
            }
            if round % 3 == 0 {
                drop(reader);
                db.drop_table(&name).expect("drop");
            } else {
                db.drop_table(&name).expect("drop");
                kept.put(0..50);
                drop(reader);
            }
            assert!(db.table(&name).is_err());
            // Another table takes its blocks.
            let mut rows = Rows::named(&db, &format!("other {round}"));
            for _ in 0..3 {
                rows.put(0..100);
                kept.put(0..100);
            }
            rows.check();
            kept.check();
        }
        if let Some(reader) = stays {
            collect_until(&db, "dropped tables take no space", |_| {
                !db.space_by_table().iter().any(|space| space.table.contains("dropped"))
            });
            assert_eq!(seen(&reader, &kept.table).expect("rows"), before);
        }
        settle(&db);
        kept.check_after_crash(options(collector));
        for round in 0..6 {
            let rows = Rows::named(&db, &format!("other {round}"));
            assert_eq!(rows.expected.len(), 100);
            rows.check_after_crash(options(collector));
        }
    }
}
