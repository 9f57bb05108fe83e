use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pantile::{Collector, Durability, ExclusiveStage, GcOptions, Isolation};

use super::*;
use crate::load::{Observer, Silent};
use crate::record::{Consistency, Records, Second};
use crate::runner::Pace;
use crate::tpcc::{Scale, Tpcc};
use crate::workload::LoadedRow;
use crate::ycsb::Ycsb;
use pantile_testkit::{Patience, Random};

static NEVER: AtomicBool = AtomicBool::new(false);

fn context() -> Context<'static> {
    Context { threads: 2, stop: &NEVER, observer: &Silent }
}

fn settings(medium: Medium) -> Settings {
    Settings {
        variants: vec![Variant::new(medium, Collector::NONE)],
        runs: 1,
        gc: GcOptions::default(),
        threads: 2,
        long_readers: 0,
        long_seconds: None,
        pace: Pace { warmup: Duration::from_millis(20), measure: Duration::from_millis(200), rate: 0.0 },
        isolation: Isolation::Serializable,
        writers_move: true,
        stage: ExclusiveStage::default(),
        row_cache: None,
        durability: Durability::Sync,
        seed: 1,
        dir: None,
    }
}

fn tpcc() -> Tpcc {
    Tpcc { scale: Scale { warehouses: 1, items: 100, customers: 30 }, together: false, seed: 1 }
}

fn records<W: Workload>(workload: &W, settings: &Settings) -> Vec<Record> {
    let mut records = Vec::new();
    run_all(workload, settings, &context(), |record| records.push(record)).unwrap();
    records
}

/// Runs again until there is something to see in the records: a machine that
/// is busy with something else may not get to it in time.
fn records_until<W: Workload>(
    workload: &W,
    settings: &Settings,
    shows: impl Fn(&[Record]) -> bool,
) -> Vec<Record> {
    let patience = Patience::new();
    loop {
        let records = records(workload, settings);
        if shows(&records) {
            return records;
        }
        patience.check(|| "the records never show it".into());
    }
}

#[test]
fn a_record_of_tpcc_has_what_scripts_rely_on() {
    let shows = |records: &[Record]| {
        let record = &records[0];
        record.tpmc.is_some_and(|tpmc| tpmc > 0.0) && record.cpu.user_seconds > 0.0
    };
    let records = records_until(&tpcc(), &Settings { long_readers: 2, ..settings(Medium::Dram) }, shows);
    let json = serde_json::to_value(Records { records: &records, of_several: false }).unwrap();
    assert_eq!(json["workload"], "tpcc");
    assert_eq!((&json["medium"], &json["gc"]), (&"dram".into(), &"none".into()));
    assert_eq!((&json["isolation"], &json["durability"]), (&"serializable".into(), &"sync".into()));
    assert_eq!(json["threads"], 2);
    assert!((json["seconds"].as_f64().unwrap() - 0.2).abs() < 0.01);
    assert!(json["tpmc"].as_f64().unwrap() > 0.0);
    // How many kinds have ended one in so short a time is the machine's business.
    let kinds = json["latency_us"].as_object().unwrap();
    assert!(kinds.contains_key("new_order"));
    for kind in kinds.keys() {
        assert!(["new_order", "payment", "order_status", "delivery", "stock_level"].contains(&&**kind));
        for figure in ["mean", "stddev", "p50", "p95", "p99", "max"] {
            assert!(json["latency_us"][kind][figure].is_number(), "{kind} {figure}");
        }
    }
    for figure in ["payload_bytes", "bytes_written", "units_written", "flushes", "fences", "syncs"] {
        assert!(json["medium_io"][figure].is_number(), "{figure}");
    }
    assert!(json["cpu"]["user_seconds"].as_f64().unwrap() > 0.0);
    for figure in ["system_seconds", "measuring_seconds", "memory_seconds", "background_seconds"] {
        assert!(json["cpu"][figure].is_number(), "{figure}");
    }
    // Without a collector, too, it is known what is superseded.
    let of_medium = ["medium_bytes", "used_bytes", "live_bytes", "obsolete_bytes"];
    for figure in of_medium.into_iter().chain(["dram_bytes", "resident_bytes", "dram_bytes_per_tuple"]) {
        assert!(json["space"][figure].as_f64().unwrap() > 0.0, "{figure}");
    }
    assert!(json["recovery"]["contents_scanned"].as_u64().unwrap() > 1000);
    assert_eq!(json["consistency"], serde_json::json!({ "checked": 12, "failed": 0 }));
    for figure in ["blocks_reclaimed", "survivors_relocated", "versions_traversed", "pause_us_max"] {
        assert!(json["collector"][figure].is_u64(), "{figure}");
    }
    for figure in ["mean", "max", "stored_mean", "accesses_per_tuple"] {
        assert!(json["chains"][figure].is_number(), "{figure}");
    }
    assert!(json["space"]["tile_bytes"].is_u64());
    assert!(json["space"].get("ratio_trend_percent_per_minute").is_none());
    let seconds = json["per_second"].as_array().unwrap();
    assert_eq!(seconds.len(), 1);
    assert_eq!((&seconds[0]["second"], &seconds[0]["seconds"]), (&1.into(), &json["seconds"]));
    assert_eq!(seconds[0]["transactions"], json["transactions"]);
    assert_eq!(seconds[0]["accesses_per_tuple"], json["chains"]["accesses_per_tuple"]);
    assert!(seconds[0]["accesses_per_tuple"].as_f64().unwrap() > 0.0);
    for figure in ["medium_bytes", "live_bytes", "dram_bytes"] {
        assert!(seconds[0][figure].as_u64().unwrap() > 0, "{figure}");
    }
    for figure in ["tile_bytes", "queued_blocks", "queue_capacity", "kept_tiles", "chain_mean", "stored_mean"]
    {
        assert!(seconds[0][figure].is_number(), "{figure}");
    }
    assert_eq!(json["config"]["long_readers"], 2);
    assert_eq!((&json["config"]["gc_theta"], &json["config"]["gc_queue_share"]), (&0.9.into(), &0.15.into()));
    assert_eq!(
        (&json["config"]["gc_epoch_ms"], &json["config"]["gc_pacing"]),
        (&40.0.into(), &"adaptive".into())
    );
    assert_eq!(json["config"]["gc_pass_over"], true);
    assert_eq!(json["config"]["warehouses"], 1);
    assert_eq!(json["config"]["seed"], 1);
    assert!(json.get("baseline").is_none() && json.get("interrupted").is_none());
}

/// Runs at a rate that any machine keeps up with for longer than a second.
fn assert_rate_and_seconds<W: Workload>(workload: &W) {
    let pace = Pace { warmup: Duration::ZERO, measure: Duration::from_millis(1200), rate: 100.0 };
    let shows = |records: &[Record]| records[0].transactions > 0;
    let record = records_until(workload, &Settings { pace, ..settings(Medium::Dram) }, shows).remove(0);
    // Each client may end one that was due at the very end.
    assert!((1..=122).contains(&record.transactions), "{}", record.transactions);
    let seconds: Vec<_> = record.per_second.iter().map(|second| second.second).collect();
    assert_eq!(seconds, [1, 2]);
    let sum = |of: fn(&Second) -> u64| record.per_second.iter().map(of).sum::<u64>();
    assert_eq!(sum(|second| second.transactions), record.transactions);
    assert_eq!(sum(|second| second.blocks_reclaimed), record.collector.blocks_reclaimed);
    assert_eq!(sum(|second| second.survivors_relocated), record.collector.survivors_relocated);
    assert!(record.per_second.iter().all(|second| second.queries.is_none()));
}

#[test]
fn standard_mixes_keep_a_rate_and_tell_their_seconds() {
    for letter in 'A'..='F' {
        let (mix, latest) = Ycsb::standard(letter).unwrap();
        assert_rate_and_seconds(&Ycsb { tuples: 500, mix, latest, theta: 0.99, ..Ycsb::default() });
    }
}

#[test]
fn long_transactions_scans_and_tpcc_keep_a_rate_and_tell_their_seconds() {
    assert_rate_and_seconds(&Ycsb { tuples: 500, long_share: 20, scan_share: 20, ..Ycsb::default() });
    assert_rate_and_seconds(&tpcc());
}

#[test]
fn runs_of_several_variants_are_interleaved_and_make_an_array() {
    let dir = tempfile::tempdir().unwrap();
    let ycsb = Ycsb { tuples: 500, ops: 4, theta: 0.9, seed: 1, ..Ycsb::default() };
    let variant = |medium| Variant::new(medium, Collector::NONE);
    let settings = Settings {
        variants: vec![variant(Medium::File), variant(Medium::Dram)],
        runs: 2,
        dir: Some(dir.path().to_owned()),
        ..settings(Medium::Dram)
    };
    let records = records(&ycsb, &settings);
    let order: Vec<_> = records.iter().map(|record| (record.run, record.medium.as_str())).collect();
    assert_eq!(order, [(1, "file"), (1, "dram"), (2, "dram"), (2, "file")]);
    assert!(records[0].baseline.is_some_and(|baseline| baseline.file_sync_us > 0.0));
    assert!(records[1].baseline.is_none());
    assert!(serde_json::to_value(Records { records: &records, of_several: true }).unwrap().is_array());
    // One of several that were asked for.
    let one = Records { records: &records[..1], of_several: true };
    assert!(serde_json::to_value(one).unwrap().is_array());
    assert!(dir.path().join("file-none-2").is_dir());
}

/// Keeps what it is told.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn end(&self) {}
    fn note(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

#[test]
fn a_second_command_goes_on_with_the_database_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { dir: Some(dir.path().to_owned()), ..settings(Medium::File) };
    let notes = Notes::default();
    let noting = Context { observer: &notes, ..context() };
    let mut loads = Vec::new();
    for _ in 0..2 {
        run_all(&tpcc(), &settings, &noting, |record| loads.push((record.load.is_some(), record.found)))
            .unwrap();
    }
    assert!(loads[0].0 && loads[0].1.is_none());
    let found = loads[1].1.as_ref().unwrap();
    assert!(!loads[1].0 && found.was_closed);
    assert_eq!(found.consistency.as_ref().map(|c| (c.checked, c.failed)), Some((12, 0)));
    let notes = notes.0.into_inner().unwrap();
    assert!(notes[0].contains("left closed") && notes[0].contains("12 of 12"), "{notes:?}");

    let larger = Tpcc { scale: Scale { warehouses: 2, ..tpcc().scale }, together: false, seed: 1 };
    let error = run_all(&larger, &settings, &context(), |_| ()).unwrap_err();
    assert!(error.to_string().contains("--warehouses 1"), "{error}");
}

#[test]
fn a_variant_that_fails_is_named_and_the_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let of_other_size = Settings { dir: Some(dir.path().join("file-none-1")), ..settings(Medium::File) };
    records(&tpcc(), &of_other_size);
    let variants = [Collector::NONE, Collector::TB_COLLECT].map(|gc| Variant::new(Medium::File, gc)).into();
    let settings = Settings { variants, runs: 2, dir: Some(dir.path().to_owned()), ..settings(Medium::File) };
    let larger = Tpcc { scale: Scale { warehouses: 2, ..tpcc().scale }, together: false, seed: 1 };
    let notes = Notes::default();
    let mut made = Vec::new();
    let noting = Context { observer: &notes, ..context() };
    let error =
        run_all(&larger, &settings, &noting, |record| made.push((record.run, record.gc))).unwrap_err();
    assert!(error.to_string().starts_with("file, none: "), "{error}");
    assert_eq!(made, [(1, "tb-collect".to_owned()), (2, "tb-collect".to_owned())]);
    let notes = notes.0.into_inner().unwrap();
    assert_eq!(notes.iter().filter(|note| note.starts_with("file, none failed: ")).count(), 1, "{notes:?}");
}

/// Tells a run to stop once it has got somewhere.
struct StopOnceRunning<'a> {
    running: AtomicBool,
    stop: &'a AtomicBool,
}

impl Observer for StopOnceRunning<'_> {
    fn begin(&self, what: &str, _: u64) {
        self.running.store(what.starts_with("running"), Ordering::Relaxed);
    }
    fn advance(&self, _: u64) {
        self.stop.fetch_or(self.running.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    fn end(&self) {}
    fn note(&self, _: &str) {}
}

#[test]
fn a_run_that_is_stopped_gives_its_record_and_is_the_last() {
    let stop = AtomicBool::new(false);
    let observer = StopOnceRunning { running: AtomicBool::new(false), stop: &stop };
    let pace = Pace { warmup: Duration::ZERO, measure: Duration::from_secs(600), rate: 0.0 };
    let settings = Settings { runs: 3, pace, ..settings(Medium::Dram) };
    let context = Context { stop: &stop, observer: &observer, ..context() };
    let mut records = Vec::new();
    let patience = Patience::new();
    while records.iter().all(|record: &Record| record.transactions == 0) {
        patience.check(|| "nothing is done before the stop".into());
        stop.store(false, Ordering::Relaxed);
        records.clear();
        run_all(&tpcc(), &settings, &context, |record| records.push(record)).unwrap();
    }
    assert_eq!(records.len(), 1);
    assert!(records[0].interrupted);
    assert!(records[0].consistency.is_none());
}

/// YCSB whose long readers find, a while after they have begun, that a row is not there.
struct Faulty {
    ycsb: Ycsb,
    rows: AtomicU64,
}

impl Workload for Faulty {
    type Client = <Ycsb as Workload>::Client;
    type Data = <Ycsb as Workload>::Data;

    fn name(&self) -> &'static str {
        self.ycsb.name()
    }
    fn config(&self) -> serde_json::Value {
        self.ycsb.config()
    }
    fn kinds(&self) -> &'static [&'static str] {
        self.ycsb.kinds()
    }
    fn find(&self, db: &Database) -> Result<Found<Self::Data>> {
        self.ycsb.find(db)
    }
    fn load(&self, db: &Database, context: &Context<'_>) -> Result<Self::Data> {
        self.ycsb.load(db, context)
    }
    fn clients(
        &self,
        db: &Database,
        data: &Self::Data,
        count: usize,
        isolation: Isolation,
    ) -> Result<Vec<Self::Client>> {
        self.ycsb.clients(db, data, count, isolation)
    }
    fn random_row<'d>(&self, data: &'d Self::Data, random: &mut Random) -> LoadedRow<'d> {
        let row = self.ycsb.random_row(data, random);
        match self.rows.fetch_add(1, Ordering::Relaxed) {
            ..66 => row,
            _ => LoadedRow { key: vec![u64::MAX.into()], ..row },
        }
    }
    fn check(&self, db: &Database, data: &Self::Data, context: &Context<'_>) -> Result<Option<Consistency>> {
        self.ycsb.check(db, data, context)
    }
}

#[test]
fn a_long_reader_that_fails_ends_the_run() {
    let ycsb = Ycsb { tuples: 500, ops: 4, theta: 0.9, seed: 1, ..Ycsb::default() };
    let faulty = Faulty { ycsb, rows: AtomicU64::new(0) };
    let pace = Pace { warmup: Duration::ZERO, measure: Duration::from_secs(600), rate: 0.0 };
    let settings = Settings { long_readers: 1, pace, ..settings(Medium::Dram) };
    let error = run_all(&faulty, &settings, &context(), |_| ()).unwrap_err();
    assert!(error.to_string().contains("long reader, ycsb"), "{error}");
}

/// The paths of a JSON value's leaves; kinds of transaction are written as `*`.
fn paths(at: &str, value: &serde_json::Value, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                let name = if at == "latency_us" { "*" } else { name };
                paths(&if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }, value, found);
            }
        }
        serde_json::Value::Array(items) => {
            items.iter().for_each(|item| paths(&format!("{at}[]"), item, found));
        }
        _ => _ = found.insert(at.to_owned()),
    }
}

/// Scripts read records by these paths: none may go or change its name. `?`
/// marks those that not every run has.
#[test]
fn records_have_the_paths_that_scripts_read() {
    // In memory, where the baseline's syncs take no time.
    let dir = DatabaseDir::temporary(true).unwrap();
    let file = Settings { dir: Some(dir.path().to_owned()), ..settings(Medium::File) };
    let emulated = settings(Medium::by_name("nvm:E").unwrap());
    let mut found = BTreeSet::new();
    for settings in [&file, &file, &emulated] {
        paths("", &serde_json::to_value(&records(&tpcc(), settings)[0]).unwrap(), &mut found);
    }
    let (mut known, mut required) = (BTreeSet::new(), BTreeSet::new());
    for line in include_str!("record_paths.txt").lines() {
        let path = line.strip_suffix(" ?");
        if path.is_none() {
            required.insert(line.to_owned());
        }
        known.insert(path.unwrap_or(line).to_owned());
    }
    assert_eq!(required.difference(&found).collect::<Vec<_>>(), Vec::<&String>::new(), "missing");
    assert_eq!(found.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new(), "not listed");
}
