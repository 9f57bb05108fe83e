use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pantile::{Collector, Durability, Isolation};

use super::*;
use crate::load::{Observer, Silent};
use crate::record::to_json;
use crate::runner::Pace;
use crate::tpcc::{Scale, Tpcc};
use crate::ycsb::{Mix, Ycsb};

static NEVER: AtomicBool = AtomicBool::new(false);

fn context() -> Context<'static> {
    Context { threads: 2, stop: &NEVER, observer: &Silent }
}

fn settings(medium: Medium) -> Settings {
    Settings {
        variants: vec![Variant { medium, gc: Collector::None }],
        runs: 1,
        threads: 2,
        pace: Pace { warmup: Duration::from_millis(20), measure: Duration::from_millis(200), rate: 0.0 },
        isolation: Isolation::Serializable,
        durability: Durability::Sync,
        seed: 1,
        dir: None,
    }
}

fn tpcc() -> Tpcc {
    Tpcc { scale: Scale { warehouses: 1, items: 100, customers: 30 }, seed: 1 }
}

fn records<W: Workload>(workload: &W, settings: &Settings) -> Vec<Record> {
    let mut records = Vec::new();
    run_all(workload, settings, &context(), |record| records.push(record)).unwrap();
    records
}

#[test]
fn a_record_of_tpcc_has_what_scripts_rely_on() {
    let records = records(&tpcc(), &settings(Medium::Dram));
    let json: serde_json::Value = serde_json::from_str(&to_json(&records)).unwrap();
    assert_eq!(json["workload"], "tpcc");
    assert_eq!((&json["medium"], &json["gc"]), (&"dram".into(), &"none".into()));
    assert_eq!((&json["isolation"], &json["durability"]), (&"serializable".into(), &"sync".into()));
    assert_eq!(json["threads"], 2);
    assert!((json["seconds"].as_f64().unwrap() - 0.2).abs() < 0.01);
    assert!(json["tpmc"].as_f64().unwrap() > 0.0);
    for kind in ["new_order", "payment", "order_status", "delivery", "stock_level"] {
        for figure in ["mean", "stddev", "p50", "p95", "p99", "max"] {
            assert!(json["latency_us"][kind][figure].is_number(), "{kind} {figure}");
        }
    }
    for figure in ["payload_bytes", "bytes_written", "units_written", "flushes", "fences", "syncs"] {
        assert!(json["medium_io"][figure].is_number(), "{figure}");
    }
    for figure in ["medium_bytes", "dram_bytes", "live_bytes", "resident_bytes", "dram_bytes_per_tuple"] {
        assert!(json["space"][figure].as_f64().unwrap() > 0.0, "{figure}");
    }
    assert!(json["recovery"]["contents_scanned"].as_u64().unwrap() > 1000);
    assert_eq!(json["consistency"], serde_json::json!({ "checked": 12, "failed": 0 }));
    assert_eq!(json["per_second"][0], json["transactions"]);
    assert_eq!(json["config"]["warehouses"], 1);
    assert_eq!(json["config"]["seed"], 1);
    assert!(json.get("baseline").is_none() && json.get("interrupted").is_none());
}

#[test]
fn runs_of_several_variants_are_interleaved_and_make_an_array() {
    let dir = tempfile::tempdir().unwrap();
    let mix = Mix { updates: 50, ..Mix::default() };
    let ycsb = Ycsb { tuples: 500, tuple_bytes: 100, ops: 4, mix, theta: 0.9, latest: false, seed: 1 };
    let variant = |medium| Variant { medium, gc: Collector::None };
    let settings = Settings {
        variants: vec![variant(Medium::File), variant(Medium::Dram)],
        runs: 2,
        dir: Some(dir.path().to_owned()),
        ..settings(Medium::Dram)
    };
    let records = records(&ycsb, &settings);
    let order: Vec<_> = records.iter().map(|record| (record.run, record.medium.as_str())).collect();
    assert_eq!(order, [(1, "file"), (1, "dram"), (2, "file"), (2, "dram")]);
    assert!(records[0].baseline.is_some_and(|baseline| baseline.file_sync_us > 0.0));
    assert!(records[1].baseline.is_none());
    assert!(serde_json::from_str::<serde_json::Value>(&to_json(&records)).unwrap().is_array());
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

    let larger = Tpcc { scale: Scale { warehouses: 2, ..tpcc().scale }, seed: 1 };
    let error = run_all(&larger, &settings, &context(), |_| ()).unwrap_err();
    assert!(error.to_string().contains("--warehouses 1"), "{error}");
}

/// Tells a run to stop once it has got somewhere.
struct StopOnceRunning<'a> {
    running: AtomicBool,
    stop: &'a AtomicBool,
}

impl Observer for StopOnceRunning<'_> {
    fn begin(&self, what: &str, _: u64) {
        self.running.store(what == "running", Ordering::Relaxed);
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
    let pace = Pace { warmup: Duration::ZERO, measure: Duration::from_secs(2), rate: 0.0 };
    let settings = Settings { runs: 3, pace, ..settings(Medium::Dram) };
    let mut records = Vec::new();
    let context = Context { stop: &stop, observer: &observer, ..context() };
    run_all(&tpcc(), &settings, &context, |record| records.push(record)).unwrap();
    assert_eq!(records.len(), 1);
    assert!(records[0].interrupted && records[0].transactions > 0);
    assert!(records[0].consistency.is_none());
}
