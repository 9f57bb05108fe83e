use std::sync::atomic::{AtomicBool, Ordering};

use pantile::{Isolation, MediumKind, Options};

use super::*;
use crate::load::{Context, Silent};
use crate::runner::Client as _;
use crate::tpcc::{Scale, Tpcc};
use crate::ycsb::{Mix, Ycsb};

static NEVER: AtomicBool = AtomicBool::new(false);

fn loaded<W: Workload>(workload: &W) -> (Database, W::Data) {
    loaded_under(workload, None)
}

fn loaded_under<W: Workload>(workload: &W, protocol: Option<Protocol>) -> (Database, W::Data) {
    let db = Options::new().medium(MediumKind::Dram).protocol(protocol).open("unused").unwrap();
    let context = Context { threads: 2, stop: &NEVER, observer: &Silent };
    let data = workload.load(&db, &context).unwrap();
    (db, data)
}

fn ycsb() -> Ycsb {
    let mix = Mix { updates: 100, ..Mix::default() };
    Ycsb { tuples: 300, mix, seed: 7, ..Ycsb::default() }
}

/// Makes one client run this many transactions while readers read.
fn read_beside<W: Workload>(workload: &W, protocol: Option<Protocol>, transactions: usize) {
    let (db, data) = loaded_under(workload, protocol);
    let readers = LongReaders::begin(workload, &db, protocol, &data, (2, 1)).unwrap();
    let mut client = workload.clients(&db, &data, 1, Isolation::Serializable).unwrap().remove(0);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers = scope.spawn(|| readers.run(|| over.load(Ordering::Relaxed)));
        for _ in 0..transactions {
            client.draw();
            client.attempt().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        readers.join().unwrap().unwrap();
    });
    assert_eq!(db.stats().running, 0);
    db.close().unwrap();
}

#[test]
fn readers_see_what_was_there_before_all_tuples_were_updated() {
    read_beside(&ycsb(), None, 200);
}

/// Under every protocol, one that is open sees one state, and keeps nobody from writing.
#[test]
fn readers_see_one_state_under_every_protocol() {
    for &protocol in pantile_protocols::all() {
        read_beside(&ycsb(), Some(protocol), 50);
    }
}

#[test]
fn readers_see_orders_that_were_delivered_since() {
    read_beside(
        &Tpcc { scale: Scale { warehouses: 1, items: 100, customers: 30 }, together: false, seed: 3 },
        None,
        500,
    );
}

fn failure(error: Result<()>) -> String {
    error.unwrap_err().to_string()
}

#[test]
fn a_row_that_changes_is_told_with_its_columns() {
    let ycsb = ycsb();
    let (db, data) = loaded(&ycsb);
    let mut readers = LongReaders::begin(&ycsb, &db, None, &data, (1, 1)).unwrap();
    let reader = &mut readers.readers[0];
    reader.read_again(0, readers.began).unwrap();
    let row = name(&reader.rows[0].row);

    let columns = reader.rows[0].columns.as_mut().unwrap();
    columns[1] ^= 1;
    let changed = failure(reader.read_again(0, readers.began));
    assert!(changed.contains(&row) && changed.contains("field is 0x"), "{changed}");
    assert!(changed.contains("... (92 bytes) now") && changed.len() < 200, "{changed}");
    assert!(!changed.contains("key is") && !changed.contains('\n'), "{changed}");

    reader.rows[0].columns = None;
    assert!(failure(reader.read_again(0, readers.began)).contains("was not there before"));
    reader.rows[1].row.key = vec![1_000_000u64.into()];
    assert!(failure(reader.read_again(1, readers.began)).contains("is gone"));
}

#[test]
fn a_loaded_row_that_is_missing_is_an_error() {
    let (db, data) = loaded(&ycsb());
    let larger = Ycsb { tuples: 1_000_000, ..ycsb() };
    let error = LongReaders::begin(&larger, &db, None, &data, (1, 1)).map(|_| ());
    assert!(failure(error).contains("long reader, ycsb [UInt("));
}
