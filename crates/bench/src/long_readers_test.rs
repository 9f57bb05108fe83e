use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
fn read_beside<W: Workload>(
    workload: &W,
    protocol: Option<Protocol>,
    life: Option<Duration>,
    mut transactions: usize,
) {
    let (db, data) = loaded_under(workload, protocol);
    let begun = AtomicUsize::new(0);
    let begin = || {
        begun.fetch_add(1, Ordering::Relaxed);
        Ok(begin(&db, protocol)?)
    };
    let readers = LongReaders::begin(workload, &data, &begin, life, (2, 1)).unwrap();
    let mut client = workload.clients(&db, &data, 1, Isolation::Serializable).unwrap().remove(0);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers = scope.spawn(|| readers.run(|| over.load(Ordering::Relaxed)));
        let others_have_begun = || life.is_none() || begun.load(Ordering::Relaxed) > 4;
        while transactions > 0 || !others_have_begun() && !readers.is_finished() {
            transactions = transactions.saturating_sub(1);
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
    read_beside(&ycsb(), None, None, 200);
}

/// Those that end, and those that begin in their place.
#[test]
fn readers_of_some_life_are_followed_by_others() {
    read_beside(&ycsb(), None, Some(Duration::from_millis(150)), 200);
}

/// Under every protocol, one that is open sees one state, and keeps nobody from writing.
#[test]
fn readers_see_one_state_under_every_protocol() {
    for &protocol in pantile_protocols::all() {
        read_beside(&ycsb(), Some(protocol), None, 50);
    }
}

#[test]
fn readers_see_orders_that_were_delivered_since() {
    read_beside(
        &Tpcc { scale: Scale { warehouses: 1, items: 100, customers: 30 }, together: false, seed: 3 },
        None,
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
    let begin = || Ok(begin(&db, None)?);
    let mut readers = LongReaders::begin(&ycsb, &data, &begin, None, (1, 1)).unwrap();
    let reader = &mut readers.readers[0];
    reader.read_again(0).unwrap();
    let row = name(&reader.rows[0].row);

    let columns = reader.rows[0].columns.as_mut().unwrap();
    columns[1] ^= 1;
    let changed = failure(reader.read_again(0));
    assert!(changed.contains(&row) && changed.contains("field is 0x"), "{changed}");
    assert!(changed.contains("... (92 bytes) now") && changed.len() < 200, "{changed}");
    assert!(!changed.contains("key is") && !changed.contains('\n'), "{changed}");

    reader.rows[0].columns = None;
    assert!(failure(reader.read_again(0)).contains("was not there before"));
    reader.rows[1].row.key = vec![1_000_000u64.into()];
    assert!(failure(reader.read_again(1)).contains("is gone"));
}

#[test]
fn a_loaded_row_that_is_missing_is_an_error() {
    let (db, data) = loaded(&ycsb());
    let larger = Ycsb { tuples: 1_000_000, ..ycsb() };
    let begin = || Ok(begin(&db, None)?);
    let error = LongReaders::begin(&larger, &data, &begin, None, (1, 1)).map(|_| ());
    assert!(failure(error).contains("long reader, ycsb [UInt("));
}
