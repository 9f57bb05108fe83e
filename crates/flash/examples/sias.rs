//! What TPC-C writes to flash when rows are appended and when they are updated in place, and what a simulated SSD
//! makes of it (SIAS, section III and table I).
//!
//! Arguments: warehouses (1), transactions to measure (20,000), `synced` if each commit is to be (as with `Durability::Sync`; as
//! with `Durability::None` otherwise), megabytes of the buffer pool of the store that updates in place (16).
//!
//! Both layouts get the same changes: they are read from a database whose collector frees nothing. Columns: megabytes of rows
//! changed, megabytes and requests written, write amplification in the device, erased blocks, and seconds that the
//! device takes with 1 and 32 requests under way. The device has room for one and a half times what the layout takes at the end.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pantile::lab::{SimulatedTime, medium_of};
use pantile::{Durability, Isolation, Options};
use pantile_bench::load::{Context, Silent};
use pantile_bench::runner::Client;
use pantile_bench::tpcc::{Scale, Tpcc};
use pantile_bench::workload::Workload;
use pantile_bench::{Error, Result};
use pantile_flash::{
    Change, InPlace, InPlaceSettings, Operation, PAGE_BYTES, Request, Ssd, SsdSettings, Trace, TracedFactory,
};
use pantile_store::{SurveyCalls, survey};

/// Simulated time between two transactions.
const INTERVAL: Duration = Duration::from_micros(100);

/// Pages that the system keeps before it writes them by itself: 16 MB.
const MOST_DIRTY: usize = 4096;

static NEVER: AtomicBool = AtomicBool::new(false);

/// What a layout writes: while it is loaded, and while transactions are measured.
struct Written {
    load: Vec<Request>,
    measured: Vec<Request>,
    /// Pages of the device that it takes at the end.
    pages: u64,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_synced = arguments.iter().any(|word| word == "synced");
    let numbers: Vec<u64> = arguments.iter().filter_map(|word| word.parse().ok()).collect();
    let number = |n: usize, otherwise| numbers.get(n).copied().unwrap_or(otherwise);
    let (warehouses, transactions, pool) = (number(0, 1) as u16, number(1, 20_000), number(2, 16));
    let tpcc = Tpcc { scale: Scale::full(warehouses), together: false, seed: 1 };
    println!("layout changed_MB written_MB requests amplification erases seconds_1 seconds_32");
    let changes = {
        let (written, changes) = appended(&tpcc, "none", transactions, is_synced)?;
        show("appended, nothing freed", &written, &changes.1);
        changes
    };
    let (written, _) = appended(&tpcc, "tb-collect", transactions, is_synced)?;
    show("appended, tb-collect", &written, &changes.1);
    let defaults = InPlaceSettings::default();
    let mut store = InPlace::new(InPlaceSettings {
        commits_per_sync: if is_synced { 1 } else { u32::MAX },
        pool_pages: ((pool << 20) / (defaults.device_pages * PAGE_BYTES)) as usize,
        ..defaults
    });
    changes.0.iter().for_each(|commit| store.commit(commit));
    store.checkpoint();
    let load = store.take();
    changes.1.iter().for_each(|commit| store.commit(commit));
    store.checkpoint();
    let written = Written { load, measured: store.take(), pages: store.device_pages() };
    show("in place", &written, &changes.1);
    Ok(())
}

/// The changes of each commit, while loading and after.
type Changes = (Vec<Vec<Change>>, Vec<Vec<Change>>);

/// Runs the transactions over a traced medium.
fn appended(tpcc: &Tpcc, collector: &str, transactions: u64, is_synced: bool) -> Result<(Written, Changes)> {
    let unknown = || Error::Setting(format!("there is no collector {collector}"));
    let trace = Trace::new(MOST_DIRTY);
    let time = SimulatedTime::default();
    let options = Options::new()
        .custom_medium(TracedFactory { trace: trace.clone(), syncs_at_fences: is_synced })
        .durability(if is_synced { Durability::Sync } else { Durability::None })
        .collector(pantile_rivals::by_name(collector).ok_or_else(unknown)?)
        .index_image(false)
        .simulated_time(time.clone());
    let db = options.open("traced")?;
    let data = tpcc.load(&db, &Context { threads: 1, stop: &NEVER, observer: &Silent })?;
    trace.sync();
    let load = trace.take();
    let loaded = db.begin()?.timestamp();
    let mut clients = tpcc.clients(&db, &data, 1, Isolation::Serializable)?;
    for _ in 0..transactions {
        clients[0].draw();
        clients[0].attempt()?;
        time.advance(INTERVAL);
    }
    drop(clients);
    trace.sync();
    let measured = trace.take();
    let medium = medium_of(&db);
    let pages = medium.len() / PAGE_BYTES;
    drop(data);
    db.close()?;
    let found = Mutex::new(Vec::new());
    let all = |table: pantile_base::TableId, contents: &[pantile_store::Surveyed<'_>]| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.extend(contents.iter().map(|surveyed| {
            let content = surveyed.content;
            let operation = match content.flags().is_tombstone() {
                true => Operation::Delete,
                false => Operation::Put(content.row_len() as u32),
            };
            (content.timestamp(), Change { table: table.0, row: content.tuple().0, operation })
        }));
    };
    survey(&*medium, &SurveyCalls { threads: 1, contents: &all, finding: &|_| {}, progress: &|_, _| {} });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(timestamp, _)| *timestamp);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for commit in found.chunk_by(|(one, _), (other, _)| one == other) {
        let list = if commit[0].0 < loaded { &mut before } else { &mut after };
        list.push(commit.iter().map(|(_, change)| *change).collect());
    }
    Ok((Written { load, measured, pages }, (before, after)))
}

fn show(layout: &str, written: &Written, changes: &[Vec<Change>]) {
    let changed: u64 = changes
        .iter()
        .flatten()
        .map(|change| match change.operation {
            Operation::Put(len) => u64::from(len),
            Operation::Delete => 0,
        })
        .sum();
    let reports = [1, 32].map(|depth| {
        let mut ssd = Ssd::new(SsdSettings { pages: written.pages * 3 / 2, ..SsdSettings::default() }, depth);
        written.load.iter().for_each(|request| ssd.execute(request));
        ssd.start_over();
        written.measured.iter().for_each(|request| ssd.execute(request));
        ssd.report()
    });
    let requests = written.measured.iter().filter(|request| matches!(request, Request::Write { .. })).count();
    let [one, many] = &reports;
    println!(
        "{layout}: {:.1} {:.1} {requests} {:.2} {} {:.1} {:.1}",
        changed as f64 / 1e6,
        one.host_bytes() as f64 / 1e6,
        one.write_amplification(),
        one.erases,
        one.micros / 1e6,
        many.micros / 1e6,
    );
}
