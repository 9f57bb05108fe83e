//! Figures, their history, and the text for Prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{Database, Options, Table, TableDef, TransactionOptions, Type, Value};
use pantile_testkit::await_that;

use super::{open, rewrite};

fn timed() -> (Database, Table, SimulatedTime) {
    let time = SimulatedTime::default();
    let (db, table) = open(Options::new().simulated_time(time.clone()).max_bytes(64 << 20));
    (db, table, time)
}

#[test]
fn history_is_a_sample_a_second_while_something_happens() {
    let (db, table, time) = timed();
    for _ in 0..30 {
        rewrite(&db, &table, 10, 1);
        // More often than samples are due.
        for _ in 0..4 {
            db.upkeep();
            time.advance(Duration::from_millis(250));
        }
    }
    let busy = db.history();
    assert!((28..=31).contains(&busy.seconds.len()), "{}", busy.seconds.len());
    assert_eq!(busy.minutes.len(), 1);
    for two in busy.seconds.windows(2) {
        assert_eq!(two[1].at_millis - two[0].at_millis, 1000);
        assert_eq!(two[1].commits - two[0].commits, 10);
    }
    let figures = db.figures();
    assert_eq!(busy.seconds.last().map(|last| last.live_bytes), Some(figures.live_bytes));
    // Then nothing happens for an hour.
    for _ in 0..3600 {
        db.upkeep();
        time.advance(Duration::from_secs(1));
    }
    assert!(db.history().seconds.len() <= busy.seconds.len() + 2, "an idle database adds no samples");
}

#[test]
fn history_knows_who_pins_and_for_how_long() {
    let (db, table, time) = timed();
    rewrite(&db, &table, 100, 1);
    let report = db.begin_read().expect("begin");
    rewrite(&db, &table, 100, 2);
    time.advance(Duration::from_secs(90));
    db.upkeep();
    let last = db.history().seconds.pop().expect("a sample");
    assert!(last.oldest_micros >= 89_000_000, "{last:?}");
    assert!(last.pinned_bytes >= 100 * 200 && last.pinned_bytes <= last.obsolete_bytes, "{last:?}");
    assert_eq!(last.running, 1);
    drop(report);
    db.compact().expect("compact");
    time.advance(Duration::from_secs(2));
    db.upkeep();
    let last = db.history().seconds.pop().expect("a sample");
    assert_eq!((last.running, last.oldest_micros, last.pinned_bytes), (0, 0, 0));
}

#[test]
fn the_time_until_the_medium_is_full_follows_from_growth() {
    let (db, table, time) = timed();
    assert_eq!(db.full_in(), None);
    for second in 1..=20u64 {
        rewrite(&db, &table, second * 200, 1);
        db.upkeep();
        time.advance(Duration::from_secs(1));
    }
    let full_in = db.full_in().expect("it grows").as_secs_f64();
    let history = db.history().seconds;
    let (first, last) = (history[0], history[history.len() - 1]);
    let rate = (last.used_bytes - first.used_bytes) as f64 * 1e3 / (last.at_millis - first.at_millis) as f64;
    let expected = db.figures().room_bytes as f64 / rate;
    assert!((full_in - expected).abs() <= expected * 0.01 + 1.0, "{full_in} {expected}");
    assert!(full_in < 1e5, "{full_in}");
    for _ in 0..70 {
        time.advance(Duration::from_secs(1));
        drop(db.begin_read());
        db.upkeep();
    }
    assert_eq!(db.full_in(), None, "it has not grown for a minute");
}

#[test]
fn commits_are_timed() {
    let (db, table) = open(Options::new());
    rewrite(&db, &table, 1000, 1);
    let metrics = db.metrics();
    let values = parse(&metrics);
    let timed = values["pantile_commit_seconds_count"];
    assert!((1000.0 / 16.0 - 2.0..1000.0).contains(&timed), "one in 16 in memory: {timed}");
    assert_eq!(values["pantile_commit_seconds_bucket{le=\"+Inf\"}"], timed);
    let ends = |metrics: &str| -> Vec<String> {
        let ends = metrics.lines().filter_map(|line| line.strip_prefix("pantile_commit_seconds_bucket"));
        ends.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    let (idle, _table) = open(Options::new());
    assert_eq!(ends(&metrics), ends(&idle.metrics()), "buckets do not depend on what has been timed");
}

/// Values by name and labels. Panics at what is no line of the format.
fn parse(text: &str) -> BTreeMap<&str, f64> {
    let mut types = BTreeMap::new();
    let mut values = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(types.insert(name, kind).is_none(), "{name} has two types");
            assert!(kind != "counter" || name.ends_with("_total"), "{line}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.split_once(' ').is_some_and(|(_, help)| help.ends_with('.')), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next().expect("a name");
            let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(name.starts_with("pantile_") && name.chars().all(is_word), "{line}");
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
            let is_known =
                types.contains_key(name) || family.is_some_and(|f| types.get(f) == Some(&"histogram"));
            assert!(is_known, "{line} has no type");
            assert_eq!(series.contains('{'), series.ends_with('}'), "{line}");
            assert!(
                values.insert(series, value.parse().expect("a number")).is_none(),
                "{series} is there twice"
            );
        }
    }
    values
}

#[test]
fn metrics_are_in_the_format_of_prometheus() {
    let (db, table) = open(Options::new());
    rewrite(&db, &table, 100, 1);
    let report =
        db.begin_with(TransactionOptions::new().safe_snapshot().name("a \"b\" \\c\n")).expect("begin");
    rewrite(&db, &table, 100, 1);
    let text = db.metrics();
    let values = parse(&text);
    // Times are in seconds, and their explanations say so.
    assert!(text.contains("# HELP pantile_oldest_seconds Age of the oldest transaction, in seconds."));
    assert!(!text.contains("microseconds") && !text.contains("nanoseconds"));
    let stats = db.stats();
    assert_eq!(values["pantile_commits_total"], stats.commits as f64);
    assert_eq!(values["pantile_live_bytes"], stats.live_bytes as f64);
    assert_eq!(values["pantile_running"], 1.0);
    let space = db.space_by_table().into_iter().find(|space| space.table == "t").expect("the table");
    assert_eq!(values["pantile_table_bytes{table=\"t\"}"], space.bytes as f64);
    let holder = values.iter().find(|(name, _)| name.starts_with("pantile_transaction_held_bytes{"));
    let (labels, bytes) = holder.expect("the report holds something");
    assert!(
        labels.contains(&format!("id=\"{}\",name=\"a \\\"b\\\" \\\\c\\n\",place=", report.id())),
        "{labels}"
    );
    assert!(*bytes >= 100.0 * 200.0);
    drop(report);
}

/// Each series is there once, which `parse` looks at, also where names are not.
#[test]
fn tables_that_had_one_name_are_series_of_their_own() {
    let (db, table) = open(Options::new());
    rewrite(&db, &table, 10, 1);
    let holder = db.begin_read().expect("begin");
    for _ in 0..2 {
        let def = TableDef::new("gone").column("id", Type::U64).column("data", Type::Bytes(1 << 20));
        let gone = db.create_table(def.primary_key(["id"])).expect("create");
        // The value has a table of its own.
        let row = [1u64.into(), Value::Bytes(&[7; 100_000])];
        db.run(|txn| txn.insert(&gone, &row)).expect("insert");
        db.drop_table("gone").expect("drop");
    }
    let text = db.metrics();
    let values = parse(&text);
    let is_gone = |name: &&&str| name.starts_with("pantile_table_bytes{table=\"gone");
    assert_eq!(values.keys().filter(is_gone).count(), 4, "{text}");
    let spaces = db.space_by_table();
    let names: BTreeSet<_> = spaces.iter().map(|space| &space.table).collect();
    assert_eq!(names.len(), spaces.len(), "{spaces:#?}");
    drop(holder);
}

/// Sampled by the worker, without any call.
#[test]
fn the_worker_takes_samples() {
    let (db, table) = open(Options::new());
    await_that("the first sample", || !db.history().seconds.is_empty());
    await_that("the next ones", || {
        rewrite(&db, &table, 10, 1);
        db.history().seconds.len() >= 3
    });
    let bytes = db.stats().dram_bytes;
    assert!(bytes > 0);
}
