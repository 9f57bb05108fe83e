//! Records as tables for people: one line per medium, collector and protocol, medians
//! where there were several runs.

use pantile_bench::baseline::median;
use pantile_bench::cpu::MOST_FOR_OTHERS;
use pantile_bench::latency::LatencySummary;
use pantile_bench::record::{Emulation, Record};
use pantile_bench::settings::OWN_PROTOCOL;

use crate::figures::{decimals, whole};

/// A table whose columns are as wide as their cells need.
pub struct Table {
    /// Columns of text, which come first.
    texts: usize,
    lines: Vec<Vec<String>>,
}

impl Table {
    /// A table whose first `texts` columns are aligned left.
    pub fn new(texts: usize, head: &[&str]) -> Self {
        Self { texts, lines: vec![head.iter().map(ToString::to_string).collect()] }
    }

    /// Removes the columns in which every cell is empty.
    fn without_empty_columns(mut self) -> Self {
        for column in (0..self.lines[0].len()).rev() {
            if self.lines[1..].iter().all(|line| line[column].is_empty()) {
                for line in &mut self.lines {
                    line.remove(column);
                }
                self.texts -= usize::from(column < self.texts);
            }
        }
        self
    }

    /// Adds a line of as many cells as the head has.
    pub fn push(&mut self, line: Vec<String>) {
        assert_eq!(line.len(), self.lines[0].len(), "cells of a line");
        self.lines.push(line);
    }

    /// The table as text.
    pub fn render(&self) -> String {
        let width =
            |column: usize| self.lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<_> = (0..self.lines[0].len()).map(width).collect();
        let mut text = String::new();
        for line in &self.lines {
            let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                if column < self.texts { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            text += cells.collect::<Vec<_>>().join("  ").trim_end();
            text.push('\n');
        }
        text
    }
}

/// Runs of the same medium, collector and protocol.
struct Group<'a> {
    records: Vec<&'a Record>,
    /// Whether protocols are named.
    has_protocols: bool,
}

impl Group<'_> {
    /// The median of a figure, or `None` if no run has it.
    fn median(&self, figure: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        median(&self.records.iter().filter_map(|record| figure(record)).collect::<Vec<_>>())
    }

    fn name(&self) -> [String; 3] {
        let Record { medium, gc, protocol, .. } = self.records[0];
        let protocol = if self.has_protocols { (*protocol).to_owned() } else { String::new() };
        [medium.clone(), gc.clone(), protocol]
    }
}

fn groups(records: &[Record]) -> Vec<Group<'_>> {
    let name = |record: &Record| (record.medium.clone(), record.gc.clone(), record.protocol);
    let has_protocols = records.iter().any(|record| record.protocol != OWN_PROTOCOL);
    let mut groups: Vec<Group<'_>> = Vec::new();
    for record in records {
        let same = |group: &&mut Group<'_>| name(group.records[0]) == name(record);
        match groups.iter_mut().find(same) {
            Some(group) => group.records.push(record),
            None => groups.push(Group { records: vec![record], has_protocols }),
        }
    }
    groups
}

/// The tables for some runs of one workload.
pub fn render(records: &[Record]) -> String {
    let Some(first) = records.first() else { return String::new() };
    let groups = groups(records);
    let mut text = heading(first, records);
    text += &throughput(&groups);
    text.push('\n');
    text += &collectors(&groups);
    text.push('\n');
    text += &space(&groups);
    text.push('\n');
    text += &latencies(&groups);
    text += &remarks(&groups, records);
    text
}

fn heading(first: &Record, records: &[Record]) -> String {
    let runs = records.iter().map(|record| record.run).max().unwrap_or(1);
    let medians = if runs > 1 { format!(", medians of {runs} runs") } else { String::new() };
    let threads =
        if first.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", first.threads) };
    format!(
        "{}: {threads}, {:.1} s, {}, durability {}{medians}\n{}, commit {}\n\n",
        first.workload, first.seconds, first.isolation, first.durability, first.machine, first.commit
    )
}

fn throughput(groups: &[Group<'_>]) -> String {
    let head = [
        "medium",
        "gc",
        "protocol",
        "txn/s",
        "queries/s",
        "tpmC",
        "aborts/txn",
        "bytes/txn",
        "write ampl.",
        "flushes/txn",
        "fences/txn",
        "syncs/txn",
    ];
    let mut table = Table::new(3, &head);
    for group in groups {
        let per_txn = |figure: fn(&Record) -> u64| {
            group.median(|r| (r.transactions > 0).then(|| figure(r) as f64 / r.transactions as f64))
        };
        let [medium, gc, protocol] = group.name();
        table.lines.push(vec![
            medium,
            gc,
            protocol,
            whole(group.median(|r| Some(r.txn_per_s))),
            decimals(group.median(|r| r.queries_per_s), 2),
            whole(group.median(|r| r.tpmc)),
            decimals(group.median(|r| Some(r.aborts_per_txn)), 4),
            whole(per_txn(|r| r.medium_io.counted.bytes_written)),
            decimals(group.median(|r| r.medium_io.write_amplification), 2),
            decimals(per_txn(|r| r.medium_io.counted.flushes).filter(|&n| n > 0.0), 2),
            decimals(per_txn(|r| r.medium_io.counted.fences), 2),
            decimals(per_txn(|r| r.medium_io.counted.syncs).filter(|&n| n > 0.0), 2),
        ]);
    }
    table.without_empty_columns().render()
}

/// What the collectors did, and what that cost compared with the collector
/// named first, which runs first on every medium.
fn collectors(groups: &[Group<'_>]) -> String {
    let head = [
        "medium",
        "gc",
        "protocol",
        "txn/s",
        "mean",
        "p99",
        "ratio",
        "chain",
        "accesses",
        "blocks/s",
        "relocated/s",
        "pause us",
    ];
    let kind = groups[0].records[0].latency_us.first().map_or("", |(kind, _)| kind);
    let mut explained = "ratio: blocks in use to live; chain and accesses: versions per tuple\n".to_owned();
    let mut table = Table::new(3, &head);
    for group in groups {
        let mut on_medium = groups.iter().filter(|other| other.name()[0] == group.name()[0]);
        // A single collector is compared with nothing.
        let first = on_medium.next().zip(on_medium.next()).map(|(first, _)| first);
        let mut line = group.name().to_vec();
        line.extend(first.map_or_else(Default::default, |first| shares(group, first, kind)));
        line.extend(collected(group));
        table.lines.push(line);
    }
    if table.lines.iter().any(|line| line[3].ends_with('%')) {
        explained.insert_str(0, &format!("percent of the first (mean and p99 of {kind}); "));
    }
    explained + &table.without_empty_columns().render()
}

/// Throughput and latencies of one kind of transaction as shares of those of the first collector.
fn shares(group: &Group<'_>, first: &Group<'_>, kind: &str) -> [String; 3] {
    let share = |figure: &dyn Fn(&Record) -> Option<f64>| {
        let of_first = first.median(figure).filter(|&figure| figure > 0.0);
        let share = of_first.zip(group.median(figure)).map(|(first, own)| own / first * 100.0);
        share.map_or(String::new(), |share| format!("{share:.1} %"))
    };
    let latency = |figure: fn(&LatencySummary) -> f64| {
        share(&|r| r.latency_us.iter().find(|(name, _)| *name == kind).map(|(_, s)| figure(s)))
    };
    [share(&|r| Some(r.txn_per_s)), latency(|s| s.mean), latency(|s| s.p99)]
}

fn collected(group: &Group<'_>) -> [String; 6] {
    let per_second = |figure: fn(&Record) -> u64| {
        group.median(|r| (r.gc != "none" && r.seconds > 0.0).then(|| figure(r) as f64 / r.seconds))
    };
    let pause = group.median(|r| (r.gc != "none").then_some(r.collector.pause_us_max as f64));
    [
        decimals(group.median(|r| r.space.ratio()), 2),
        decimals(group.median(|r| Some(r.chains.sampled.mean)), 2),
        decimals(group.median(|r| Some(r.chains.accesses_per_tuple)), 2),
        whole(per_second(|r| r.collector.blocks_reclaimed)),
        whole(per_second(|r| r.collector.survivors_relocated)),
        whole(pause),
    ]
}

fn space(groups: &[Group<'_>]) -> String {
    let head = [
        "medium",
        "gc",
        "protocol",
        "used MB",
        "live MB",
        "DRAM MB",
        "DRAM B/tuple",
        "resident MB",
        "load s",
        "recovery s",
        "recovery MB/s",
        "conditions",
    ];
    let mut table = Table::new(3, &head);
    for group in groups {
        let megabytes =
            |figure: fn(&Record) -> u64| decimals(group.median(|r| Some(figure(r) as f64 / 1e6)), 1);
        let [medium, gc, protocol] = group.name();
        table.lines.push(vec![
            medium,
            gc,
            protocol,
            megabytes(|r| r.space.used_bytes),
            megabytes(|r| r.space.live_bytes),
            megabytes(|r| r.space.dram_bytes),
            decimals(group.median(|r| Some(r.space.dram_bytes_per_tuple)), 1),
            decimals(group.median(|r| r.space.resident_bytes.map(|bytes| bytes as f64 / 1e6)), 1),
            decimals(group.median(|r| r.load.map(|load| load.seconds)), 2),
            decimals(group.median(|r| r.recovery.map(|recovery| recovery.counted.seconds)), 3),
            whole(
                group.median(|r| {
                    r.recovery.and_then(|recovery| recovery.bytes_per_s).map(|bytes| bytes / 1e6)
                }),
            ),
            conditions(group),
        ]);
    }
    table.without_empty_columns().render()
}

/// The consistency conditions that hold, in the worst of the runs.
fn conditions(group: &Group<'_>) -> String {
    let checks = group.records.iter().filter_map(|record| record.consistency.as_ref());
    let worst = checks.max_by_key(|check| check.failed);
    worst.map_or(String::new(), |check| format!("{} of {} hold", check.checked - check.failed, check.checked))
}

fn latencies(groups: &[Group<'_>]) -> String {
    let head =
        ["medium", "gc", "protocol", "latency, us", "count", "mean", "stddev", "p50", "p95", "p99", "max"];
    let mut table = Table::new(4, &head);
    for group in groups {
        for (kind, _) in &group.records[0].latency_us {
            let of = |figure: fn(&LatencySummary) -> f64| {
                group.median(|r| r.latency_us.iter().find(|(name, _)| name == kind).map(|(_, s)| figure(s)))
            };
            let [medium, gc, protocol] = group.name();
            let figures: [fn(&LatencySummary) -> f64; 6] =
                [|s| s.mean, |s| s.stddev, |s| s.p50, |s| s.p95, |s| s.p99, |s| s.max];
            let mut line = vec![medium, gc, protocol, (*kind).to_owned(), whole(of(|s| s.count as f64))];
            line.extend(figures.map(|figure| decimals(of(figure), 1)));
            table.lines.push(line);
        }
    }
    table.without_empty_columns().render()
}

fn remarks(groups: &[Group<'_>], records: &[Record]) -> String {
    let mut text = String::new();
    for group in groups {
        if let Some(sync) = group.median(|r| r.baseline.map(|baseline| baseline.file_sync_us)) {
            text +=
                &format!("\nthe device alone: overwriting 4 KB and fdatasync takes {sync:.1} us (median)\n");
        }
    }
    for record in records {
        let emulation = record.emulation.and_then(emulation_warning);
        let others = record.cpu.others_share.and_then(others_warning);
        for warning in emulation.into_iter().chain(others) {
            text += &format!("\nwarning: run {} on {}: {warning}\n", record.run, variant(record));
        }
    }
    if let Some(record) = records.iter().find(|record| record.interrupted) {
        text += &format!(
            "\ninterrupted, after {:.1} s of measuring: not all of checking and opening again was done\n",
            record.seconds
        );
    }
    for record in records {
        for failure in record.consistency.iter().flat_map(|check| &check.failures) {
            text += &format!("\nrun {} on {}: {failure}", record.run, variant(record));
        }
    }
    if !text.ends_with('\n') && !text.is_empty() {
        text.push('\n');
    }
    text
}

/// What a record is of, with the protocol unless it is the engine's own.
pub fn variant(Record { medium, gc, protocol, .. }: &Record) -> String {
    match *protocol {
        OWN_PROTOCOL => format!("{medium}, {gc}"),
        protocol => format!("{medium}, {gc}, {protocol}"),
    }
}

/// The warning about emulated memory that did not have its configured bandwidth.
fn emulation_warning(emulation: Emulation) -> Option<String> {
    (!emulation.within_bound).then(|| {
        format!(
            "the emulated memory was off its configured bandwidth, reads by {:+.0} %, writes by {:+.0} % \
             (bound {:.0} %); run again on a quiet machine before you trust these figures",
            emulation.read_deviation * 100.0,
            emulation.write_deviation * 100.0,
            emulation.bound * 100.0
        )
    })
}

/// The warning about other programs that took part of the processors.
fn others_warning(share: f64) -> Option<String> {
    (share > MOST_FOR_OTHERS).then(|| {
        format!(
            "other programs took {:.0} % of the processors' time while measuring; run again on a quiet machine \
             before you trust these figures",
            share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let mut table = Table::new(1, &["name", "a", "b"]);
        table.lines.push(vec!["x".into(), "1".into(), String::new()]);
        table.lines.push(vec!["longer".into(), "100".into(), String::new()]);
        assert_eq!(table.without_empty_columns().render(), "name      a\nx         1\nlonger  100\n");
    }

    #[test]
    fn people_are_warned_of_emulation_that_is_off() {
        let good = Emulation {
            read_bytes_per_s: 5e9,
            read_deviation: -0.02,
            write_bytes_per_s: 3e9,
            write_deviation: 0.01,
            bound: 0.1,
            within_bound: true,
        };
        assert_eq!(emulation_warning(good), None);
        let off = Emulation { read_deviation: -0.11, within_bound: false, ..good };
        let warning = emulation_warning(off).expect("a warning");
        assert!(warning.contains("reads by -11 %, writes by +1 % (bound 10 %)"), "{warning}");
    }

    #[test]
    fn people_are_warned_of_other_programs() {
        assert_eq!(others_warning(MOST_FOR_OTHERS), None);
        let warning = others_warning(0.234).expect("a warning");
        assert!(warning.contains("took 23 % of the processors"), "{warning}");
    }
}
