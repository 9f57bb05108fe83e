//! What each transaction saw of others, and what it should not have seen.
//!
//! As in Elle, only the first sight of a key counts as an observation of other
//! transactions. What a transaction sees of the key later is compared with what
//! it saw or wrote before.

use crate::graph::{Link, NONE, WR};
use crate::history::{History, Op, Outcome, Txn};
use crate::report::{AnomalyKind, Collector};
use crate::versions::{NumberMap, Versions, Write};

/// The first sight that a transaction had of a key.
#[derive(Clone)]
pub(crate) struct Observation {
    pub(crate) txn: u32,
    /// Index of the key's chain.
    pub(crate) key: u32,
    /// The position of the version that the same transaction wrote, or `NONE`.
    pub(crate) own: u32,
    /// Whether only a scan saw it, by not finding the key.
    pub(crate) predicate: bool,
    pub(crate) seen: Seen,
}

/// What was seen.
#[derive(Clone, Copy)]
pub(crate) enum Seen {
    /// The version at a position of the chain.
    Version(u32),
    /// Absence, in one of the chain's runs `first..=last`.
    Absent { first: u32, last: u32 },
}

/// Everything seen in a history.
pub(crate) struct Observations {
    pub(crate) list: Vec<Observation>,
    /// Observations of versions that have no place in the order.
    pub(crate) loose: Vec<Link>,
    /// For each transaction, whether it is known to have committed.
    pub(crate) committed: Vec<bool>,
}

/// The state of a key as a transaction knows it.
#[derive(Clone, Copy)]
enum Known {
    Own(Option<u64>),
    Seen {
        value: Option<u64>,
        /// The index of the observation, if only a scan made it so far.
        scanned: Option<usize>,
    },
}

impl Observations {
    pub(crate) fn new(history: &History, versions: &Versions, collector: &mut Collector) -> Self {
        let mut observer = Observer {
            history,
            versions,
            collector,
            known: NumberMap::default(),
            out: Self { list: Vec::new(), loose: Vec::new(), committed: committed(history, versions) },
        };
        for txn in 0..history.transactions.len() as u32 {
            if observer.out.committed[txn as usize] {
                observer.transaction(txn);
            }
        }
        observer.out
    }
}

/// Calls `visit` with each key and value that a transaction found.
fn each_found(txn: &Txn, mut visit: impl FnMut(u64, u64)) {
    for op in &txn.ops {
        match op {
            Op::Read { key, value: Some(value) } => visit(*key, *value),
            Op::Scan { found, .. } => found.iter().for_each(|(key, value)| visit(*key, *value)),
            _ => {}
        }
    }
}

/// Which transactions committed: those that say so, and those of unknown
/// outcome whose last writes were seen by one of these.
fn committed(history: &History, versions: &Versions) -> Vec<bool> {
    let mut committed: Vec<bool> =
        history.transactions.iter().map(|txn| matches!(txn.outcome, Outcome::Committed { .. })).collect();
    let mut pending: Vec<usize> = (0..committed.len()).filter(|i| committed[*i]).collect();
    while let Some(index) = pending.pop() {
        each_found(&history.transactions[index], |key, value| {
            if let Some(write) = versions.writes.get(&value)
                && write.key == key
                && write.last
                && !write.tombstone
                && !committed[write.txn as usize]
                && history.transactions[write.txn as usize].outcome == Outcome::Unknown
            {
                committed[write.txn as usize] = true;
                pending.push(write.txn as usize);
            }
        });
    }
    committed
}

struct Observer<'a> {
    history: &'a History,
    versions: &'a Versions,
    collector: &'a mut Collector,
    known: NumberMap<Known>,
    out: Observations,
}

/// The state of a key in words.
fn show(value: Option<u64>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| format!("value {value}"))
}

impl Observer<'_> {
    fn id(&self, txn: u32) -> u64 {
        self.history.transactions[txn as usize].id
    }

    fn transaction(&mut self, txn: u32) {
        self.known.clear();
        let before = self.out.list.len();
        let mut wrote: Vec<(u64, u64)> = Vec::new();
        let history = self.history;
        for op in &history.transactions[txn as usize].ops {
            match op {
                Op::Read { key, value } => self.sight(txn, *key, *value, false),
                Op::Write { key, value } => {
                    self.known.insert(*key, Known::Own(Some(*value)));
                    wrote.push((*key, *value));
                }
                Op::Delete { key, value } => {
                    self.known.insert(*key, Known::Own(None));
                    wrote.push((*key, *value));
                }
                Op::Scan { low, high, found } => self.scan(txn, *low, *high, found),
            }
        }
        if wrote.is_empty() {
            return;
        }
        let own: NumberMap<u32> = wrote
            .iter()
            .filter_map(|(key, value)| Some((*key, self.versions.writes.get(value)?)))
            .filter(|(_, write)| write.last && write.txn == txn)
            .map(|(key, write)| (key, write.position))
            .collect();
        for observation in &mut self.out.list[before..] {
            let key = self.versions.chain(observation.key).key;
            observation.own = own.get(&key).copied().unwrap_or(NONE);
        }
    }

    fn scan(&mut self, txn: u32, low: u64, high: u64, found: &[(u64, u64)]) {
        let mut found = found.to_vec();
        found.sort_unstable();
        for (index, (key, value)) in found.iter().enumerate() {
            if *key < low || *key > high || (index > 0 && found[index - 1].0 == *key) {
                let id = self.id(txn);
                self.collector.note(AnomalyKind::Internal, || {
                    format!("T{id} scanned {low}..={high} and found key {key} outside or twice")
                });
                continue;
            }
            self.sight(txn, *key, Some(*value), false);
        }
        let chains = &self.versions.chains;
        let start = chains.partition_point(|chain| chain.key < low);
        let mut present = found.iter().map(|(key, _)| *key).peekable();
        for chain in chains[start..].iter().take_while(|chain| chain.key <= high) {
            while present.next_if(|key| *key < chain.key).is_some() {}
            if present.peek() != Some(&chain.key) {
                self.sight(txn, chain.key, None, true);
            }
        }
    }

    /// Records that the transaction saw a key in a state.
    fn sight(&mut self, txn: u32, key: u64, value: Option<u64>, predicate: bool) {
        match self.known.get(&key).copied() {
            None => {
                let scanned = predicate.then_some(self.out.list.len());
                self.known.insert(key, Known::Seen { value, scanned });
                match value {
                    Some(value) => self.present(txn, key, value),
                    None => self.absent(txn, key, predicate),
                }
            }
            Some(Known::Own(own)) if own != value => {
                let id = self.id(txn);
                self.collector.note(AnomalyKind::Internal, || {
                    format!("T{id} left {} at key {key}, then read {}", show(own), show(value))
                });
            }
            Some(Known::Seen { value: before, .. }) if before != value => {
                let id = self.id(txn);
                self.collector.note(AnomalyKind::NonRepeatableRead, || {
                    format!("T{id} read {} at key {key}, then {}", show(before), show(value))
                });
            }
            // A point read is more specific than an earlier scan.
            Some(Known::Seen { scanned: Some(index), .. }) if !predicate => {
                let key = self.versions.chain_index(key);
                if let Some(observation) = self.out.list.get_mut(index)
                    && (observation.txn, observation.key) == (txn, key)
                {
                    observation.predicate = false;
                }
            }
            Some(_) => {}
        }
    }

    fn present(&mut self, txn: u32, key: u64, value: u64) {
        let versions = self.versions;
        let id = self.id(txn);
        let write = match versions.writes.get(&value) {
            Some(write) if write.key == key && !write.tombstone => write,
            other => {
                self.collector.note(AnomalyKind::UnknownValue, || {
                    let why = stray(other, |txn| self.history.transactions[txn as usize].id);
                    format!("T{id} read value {value} at key {key}, {why}")
                });
                return;
            }
        };
        let writer = self.id(write.txn);
        let outcome = self.history.transactions[write.txn as usize].outcome;
        if write.txn == txn {
            self.collector.note(AnomalyKind::Internal, || {
                format!("T{id} read value {value} at key {key} before it wrote it")
            });
        } else if outcome == Outcome::Aborted {
            self.collector.note(AnomalyKind::G1a, || {
                format!("T{id} read value {value} at key {key}, written by T{writer}, which aborted")
            });
        } else if !write.last {
            self.collector.note(AnomalyKind::G1b, || {
                format!("T{id} read value {value} at key {key}, which T{writer} wrote and then overwrote")
            });
        } else if write.position == NONE {
            self.out.loose.push(Link { from: write.txn, to: txn, key: versions.chain_index(key), label: WR });
        } else {
            self.push(txn, versions.chain_index(key), false, Seen::Version(write.position));
        }
    }

    fn absent(&mut self, txn: u32, key: u64, predicate: bool) {
        let index = self.versions.chain_index(key);
        if index == NONE || self.versions.chain(index).vague {
            return;
        }
        let chain = self.versions.chain(index);
        // The initial version is in the first run of every chain. The reader
        // could not see a run that starts with its own tombstone.
        let mut last = chain.runs.len() as u32 - 1;
        while last > 0 && chain.writer(chain.runs[last as usize].start) == txn {
            last -= 1;
        }
        self.push(txn, index, predicate, Seen::Absent { first: 0, last });
    }

    fn push(&mut self, txn: u32, key: u32, predicate: bool, seen: Seen) {
        self.out.list.push(Observation { txn, key, own: NONE, predicate, seen });
    }
}

/// Why a value does not belong at the key where it was read.
fn stray(write: Option<&Write>, id: impl Fn(u32) -> u64) -> String {
    match write {
        None => "which was never written".to_owned(),
        Some(write) if write.tombstone => format!("which names a deletion by T{}", id(write.txn)),
        Some(write) => format!("which T{} wrote to key {}", id(write.txn), write.key),
    }
}
