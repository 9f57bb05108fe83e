//! Statistics in the text format of Prometheus, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::engine::core::Core;
use crate::engine::latencies::{Counts, end_of};
use crate::types::figures::{Described, Figures, Kind, Meaning};
use crate::types::stats::{ReadingProcess, RunningTransaction, TableSpace};

/// A text that is being written.
#[derive(Default)]
struct Text(String);

/// Writing to a string does not fail.
macro_rules! put {
    ($text:expr, $($what:tt)+) => { _ = writeln!($text.0, $($what)+) };
}

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        put!(self, "# HELP pantile_{name} {help}");
        put!(self, "# TYPE pantile_{name} {kind}");
    }

    fn figure(&mut self, meaning: &Meaning, value: u64) {
        let (kind, suffix) = match meaning.kind {
            Kind::Counter => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
        };
        let (name, value) = in_base_units(meaning.name, value);
        // In the figures themselves times have other units.
        let help = match name.ends_with("_seconds") {
            true => &meaning.help.replace("microseconds", "seconds").replace("nanoseconds", "seconds"),
            false => meaning.help,
        };
        let name = format!("{name}{suffix}");
        self.head(&name, kind, help);
        put!(self, "pantile_{name} {value}");
    }

    /// A series is there once. Items that share their labels, like two readers in one process, get a number, from the
    /// second one on.
    fn family<'t, T: 't>(
        &mut self,
        name: &str,
        help: &str,
        items: impl Iterator<Item = &'t T>,
        value: impl Fn(&T) -> (String, f64),
    ) {
        let mut items = items.peekable();
        if items.peek().is_some() {
            self.head(name, "gauge", help);
        }
        let mut seen = BTreeMap::<String, u32>::new();
        for item in items {
            let (labels, value) = value(item);
            let number = seen.entry(labels.clone()).and_modify(|number| *number += 1).or_insert(1);
            match number {
                1 => put!(self, "pantile_{name}{{{labels}}} {value}"),
                _ => put!(self, "pantile_{name}{{{labels},number=\"{number}\"}} {value}"),
            }
        }
    }

    fn commits(&mut self, counts: &Counts) {
        let name = "commit_seconds";
        self.head(name, "histogram", "How long commits took that were timed.");
        let (mut seen, mut sum) = (0, 0.0);
        for (bucket, count) in counts.iter().enumerate() {
            let end = end_of(bucket) as f64 / 1e9;
            seen += count;
            sum += *count as f64 * end;
            // The same ends in every database at any time, so that series can be added up.
            if bucket % 4 == 3 {
                put!(self, "pantile_{name}_bucket{{le=\"{end}\"}} {seen}");
            }
        }
        put!(self, "pantile_{name}_bucket{{le=\"+Inf\"}} {seen}");
        put!(self, "pantile_{name}_sum {sum}");
        put!(self, "pantile_{name}_count {seen}");
    }

    fn tables(&mut self, tables: &[TableSpace]) {
        let of = |table: &TableSpace, value: u64| (label("table", &table.table), value as f64);
        self.family("table_bytes", "Bytes of the blocks of a table.", tables.iter(), |t| of(t, t.bytes));
        self.family("table_blocks", "Blocks of a table.", tables.iter(), |t| of(t, t.blocks));
        let help = "Bytes of superseded versions of a table.";
        self.family("table_obsolete_bytes", help, tables.iter(), |t| of(t, t.obsolete_bytes));
    }

    fn readers(&mut self, readers: &[ReadingProcess]) {
        let help = "Superseded bytes that are held back for another process that reads the database.";
        self.family("reader_held_bytes", help, readers.iter(), |reader| {
            let process = reader.process.map_or("unknown".into(), |process| process.to_string());
            (label("process", &process), reader.held_bytes as f64)
        });
    }

    fn holders(&mut self, running: &[RunningTransaction]) {
        let help = "Superseded bytes that a transaction holds back.";
        let holds = |t: &&RunningTransaction| t.held_bytes > 0;
        self.family("transaction_held_bytes", help, running.iter().filter(holds), |t| {
            (labels_of(t), t.held_bytes as f64)
        });
        let help = "Age of a transaction that holds something back.";
        self.family("transaction_age_seconds", help, running.iter().filter(holds), |t| {
            (labels_of(t), t.transaction.age.as_secs_f64())
        });
    }
}

/// Times are in seconds there.
fn in_base_units(name: &str, value: u64) -> (String, f64) {
    let is_in = |unit: &str, per_second: f64| {
        let stem = name.strip_suffix(unit)?;
        Some((format!("{stem}_seconds"), value as f64 / per_second))
    };
    let found = is_in("_micros", 1e6).or_else(|| is_in("_nanos", 1e9));
    found.unwrap_or_else(|| (name.to_owned(), value as f64))
}

fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}

fn labels_of(running: &RunningTransaction) -> String {
    let transaction = &running.transaction;
    let id = transaction.id.map(|id| id.to_string()).unwrap_or_default();
    let place = transaction.place.map(ToString::to_string).unwrap_or_default();
    let name = transaction.label().unwrap_or_default();
    [label("id", &id), label("name", &name), label("place", &place)].join(",")
}

impl Core {
    /// All that there is to say, for Prometheus.
    pub fn metrics(&self) -> String {
        let mut text = Text::default();
        let values = self.figures().values();
        // The histogram says it better.
        let is_shown = |meaning: &Meaning| !meaning.name.starts_with("commit_");
        let figures = Figures::MEANINGS.iter().zip(values).filter(|(meaning, _)| is_shown(meaning));
        figures.for_each(|(meaning, value)| text.figure(meaning, value));
        text.commits(&self.insight.latencies.counts());
        text.tables(&self.space_by_table());
        text.holders(&self.running_transactions());
        text.readers(&self.reading_processes());
        text.0
    }
}
