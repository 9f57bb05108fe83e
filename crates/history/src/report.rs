//! The report of the checker.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The kinds of anomalies. Cycles are listed from most to least severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AnomalyKind {
    /// The history is not well formed: two transactions or writes share an
    /// identifier, or a transaction ended before it began. The recording is at
    /// fault.
    Malformed,
    /// Two committed transactions with one timestamp wrote the same key.
    DuplicateTimestamp,
    /// A transaction read a value that was never written to that key.
    UnknownValue,
    /// A transaction did not see its own writes, or a scan is impossible.
    Internal,
    /// A transaction read a key twice and saw two states, or a scan showed a
    /// phantom in a range that the transaction had scanned before.
    NonRepeatableRead,
    /// Dirty write: a cycle of write-write edges.
    G0,
    /// Aborted read: a committed transaction read a write of an aborted one.
    G1a,
    /// Intermediate read: a committed transaction read a write that the writer
    /// itself overwrote.
    G1b,
    /// Circular information flow: a cycle of write-write and write-read edges,
    /// with at least one write-read edge.
    G1c,
    /// Lost update: a transaction read a key and overwrote it without seeing a
    /// version in between. A case of G-single with its own name.
    LostUpdate,
    /// Read skew: a cycle with exactly one anti-dependency edge.
    GSingle,
    /// A cycle with two or more anti-dependency edges, all on items: write
    /// skew.
    G2Item,
    /// A cycle with two or more anti-dependency edges, at least one of them on
    /// a predicate: a phantom.
    G2,
    /// A cycle with a real-time edge: a stale read, or an order of effects
    /// other than the order in which clients saw transactions end. Other cycles
    /// often have one of these around them. Alone, it means that the history is
    /// serializable, but not strictly.
    RealTime,
}

impl AnomalyKind {
    /// The name used in the literature, where one exists.
    pub fn name(self) -> &'static str {
        match self {
            AnomalyKind::Malformed => "malformed history",
            AnomalyKind::DuplicateTimestamp => "duplicate timestamp",
            AnomalyKind::UnknownValue => "unknown value",
            AnomalyKind::Internal => "internal inconsistency",
            AnomalyKind::NonRepeatableRead => "non-repeatable read",
            AnomalyKind::G0 => "G0 (dirty write)",
            AnomalyKind::G1a => "G1a (aborted read)",
            AnomalyKind::G1b => "G1b (intermediate read)",
            AnomalyKind::G1c => "G1c (circular information flow)",
            AnomalyKind::LostUpdate => "G-single (lost update)",
            AnomalyKind::GSingle => "G-single (read skew)",
            AnomalyKind::G2Item => "G2-item (write skew)",
            AnomalyKind::G2 => "G2 (phantom)",
            AnomalyKind::RealTime => "real-time violation",
        }
    }
}

impl fmt::Display for AnomalyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why one transaction must come before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependency {
    /// The second overwrote what the first wrote.
    WriteWrite,
    /// The second read what the first wrote.
    WriteRead,
    /// The second scanned a range and missed a key that the first had deleted.
    PredicateWriteRead,
    /// The second overwrote what the first read.
    ReadWrite,
    /// The second inserted a key that a scan by the first did not find.
    PredicateReadWrite,
    /// The first ended before the second began.
    RealTime,
}

impl Dependency {
    /// The usual abbreviation.
    pub fn name(self) -> &'static str {
        match self {
            Dependency::WriteWrite => "ww",
            Dependency::WriteRead => "wr",
            Dependency::PredicateWriteRead => "predicate-wr",
            Dependency::ReadWrite => "rw",
            Dependency::PredicateReadWrite => "predicate-rw",
            Dependency::RealTime => "rt",
        }
    }
}

/// One edge of a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The id of the transaction that comes first.
    pub from: u64,
    /// The id of the transaction that comes second.
    pub to: u64,
    /// Why.
    pub dependency: Dependency,
    /// The key of the dependency; `None` for real time.
    pub key: Option<u64>,
}

/// One anomaly, with its witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// What it is.
    pub kind: AnomalyKind,
    /// The cycle. Each edge starts where the previous one ends, and the last
    /// ends where the first starts. Empty for anomalies that are not cycles.
    pub cycle: Vec<Edge>,
    /// A description of the witness.
    pub text: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.text)
    }
}

/// Everything found in a history.
#[derive(Clone, Debug)]
pub struct Report {
    /// The anomalies, sorted by kind. Cycles appear once per kind and
    /// component.
    pub anomalies: Vec<Anomaly>,
    /// How many further anomalies were left out to keep the report readable.
    pub omitted: usize,
    /// False if the search for some witness was cut short. Cycles among placed
    /// reads are reported nevertheless, but G-single may have been called G2,
    /// or a cycle through reads of absent keys may have been missed.
    pub complete: bool,
}

impl Report {
    /// The kinds of anomalies found.
    pub fn kinds(&self) -> BTreeSet<AnomalyKind> {
        self.anomalies.iter().map(|a| a.kind).collect()
    }

    /// Whether nothing contradicts serializability. Real-time violations do
    /// not.
    pub fn is_serializable(&self) -> bool {
        self.anomalies.iter().all(|a| a.kind == AnomalyKind::RealTime)
    }

    /// Whether nothing was found at all. Meaningful only if real time was
    /// checked.
    pub fn is_strictly_serializable(&self) -> bool {
        self.anomalies.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.anomalies.is_empty() {
            write!(f, "no anomalies")?;
        }
        for (index, anomaly) in self.anomalies.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{anomaly}")?;
        }
        if self.omitted > 0 {
            write!(f, "\n... and {} more", self.omitted)?;
        }
        if !self.complete {
            write!(f, "\n(the search was cut short)")?;
        }
        Ok(())
    }
}

/// Collects anomalies, up to a limit per kind.
pub(crate) struct Collector {
    limit: usize,
    counts: BTreeMap<AnomalyKind, usize>,
    anomalies: Vec<Anomaly>,
    omitted: usize,
}

impl Collector {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, counts: BTreeMap::new(), anomalies: Vec::new(), omitted: 0 }
    }

    /// Adds an anomaly. Builds it only if there is room for it.
    pub(crate) fn add(&mut self, kind: AnomalyKind, make: impl FnOnce() -> (Vec<Edge>, String)) {
        let count = self.counts.entry(kind).or_default();
        if *count == self.limit {
            self.omitted += 1;
            return;
        }
        *count += 1;
        let (cycle, text) = make();
        self.anomalies.push(Anomaly { kind, cycle, text });
    }

    /// Adds an anomaly that is not a cycle.
    pub(crate) fn note(&mut self, kind: AnomalyKind, text: impl FnOnce() -> String) {
        self.add(kind, || (Vec::new(), text()));
    }

    pub(crate) fn finish(mut self, complete: bool) -> Report {
        self.anomalies.sort_by_key(|a| a.kind);
        Report { anomalies: self.anomalies, omitted: self.omitted, complete }
    }
}
