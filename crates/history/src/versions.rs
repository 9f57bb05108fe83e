//! Which transaction wrote what, and the order of the versions of every key.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::graph::NONE;
use crate::history::{History, Op, Outcome};
use crate::report::{AnomalyKind, Collector};

/// A hash map for numbers that no adversary chooses.
pub(crate) type NumberMap<V> = HashMap<u64, V, BuildHasherDefault<NumberHasher>>;

/// Multiplies, then folds the high bits into the low ones.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// One write or deletion.
pub(crate) struct Write {
    /// Index of the transaction.
    pub(crate) txn: u32,
    pub(crate) key: u64,
    pub(crate) tombstone: bool,
    /// Whether it is the transaction's last write of the key.
    pub(crate) last: bool,
    /// Index in the key's chain, or `NONE`.
    pub(crate) position: u32,
}

/// A committed version with a place in the order.
pub(crate) struct Version {
    pub(crate) txn: u32,
    pub(crate) value: u64,
    pub(crate) ts: u64,
    pub(crate) tombstone: bool,
}

/// A part of a chain in which the key is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The position of its first tombstone; `NONE` if it starts with the
    /// initial version.
    pub(crate) start: u32,
    /// The position of the live version that ends it; `NONE` if it does not
    /// end.
    pub(crate) next: u32,
}

/// The ordered versions of one key, without the initial one.
pub(crate) struct Chain {
    pub(crate) key: u64,
    pub(crate) versions: Vec<Version>,
    pub(crate) runs: Vec<Run>,
    /// Whether there may be tombstones without a place in the order.
    pub(crate) vague: bool,
}

impl Chain {
    /// The transaction that wrote the version at a position, or `NONE`.
    pub(crate) fn writer(&self, position: u32) -> u32 {
        self.versions.get(position as usize).map_or(NONE, |version| version.txn)
    }

    fn find_runs(&mut self) {
        let mut run = Some(NONE);
        for (position, version) in (0u32..).zip(&self.versions) {
            match (run, version.tombstone) {
                (None, true) => run = Some(position),
                (Some(start), false) => {
                    self.runs.push(Run { start, next: position });
                    run = None;
                }
                _ => {}
            }
        }
        if let Some(start) = run {
            self.runs.push(Run { start, next: NONE });
        }
    }
}

/// Orders of versions given by the caller, oldest first, by key.
pub(crate) type Orders = BTreeMap<u64, Vec<u64>>;

/// All writes of a history, by value, and the chains of all keys, by key.
pub(crate) struct Versions {
    pub(crate) writes: NumberMap<Write>,
    pub(crate) chains: Vec<Chain>,
}

impl Versions {
    pub(crate) fn new(history: &History, orders: &Orders, collector: &mut Collector) -> Self {
        well_formed(history, collector);
        let mut writes = collect_writes(history, collector);
        let mut last: Vec<(u64, Version)> = Vec::new();
        let mut loose: Vec<(u64, bool)> = Vec::new();
        for (value, write) in writes.iter().filter(|(_, write)| write.last) {
            match history.transactions[write.txn as usize].outcome {
                Outcome::Committed { ts } => last.push((
                    write.key,
                    Version { txn: write.txn, value: *value, ts, tombstone: write.tombstone },
                )),
                Outcome::Unknown => loose.push((write.key, write.tombstone)),
                Outcome::Aborted => {}
            }
        }
        last.sort_unstable_by_key(|(key, version)| (*key, version.ts, version.txn));

        let mut chains: BTreeMap<u64, Chain> = BTreeMap::new();
        let mut chain_of = |key: u64, given: Option<Version>, tombstone_elsewhere: bool| {
            let chain = chains.entry(key).or_insert_with(|| Chain {
                key,
                versions: Vec::new(),
                runs: Vec::new(),
                vague: false,
            });
            chain.versions.extend(given);
            chain.vague |= tombstone_elsewhere;
        };
        let mut previous: Option<(u64, u64, u32)> = None;
        for (key, version) in last {
            if orders.contains_key(&key) {
                chain_of(key, Some(version), false);
                continue;
            }
            match previous {
                Some((same, ts, other)) if same == key && ts == version.ts => {
                    let id = |txn: u32| history.transactions[txn as usize].id;
                    collector.note(AnomalyKind::DuplicateTimestamp, || {
                        format!(
                            "T{} and T{} both wrote key {key} at timestamp {ts}",
                            id(other),
                            id(version.txn)
                        )
                    });
                    chain_of(key, None, version.tombstone);
                }
                _ => {
                    previous = Some((key, version.ts, version.txn));
                    chain_of(key, Some(version), false);
                }
            }
        }
        for (key, tombstone) in loose {
            chain_of(key, None, tombstone);
        }

        let mut chains: Vec<Chain> = chains.into_values().collect();
        for chain in &mut chains {
            if let Some(order) = orders.get(&chain.key) {
                reorder(chain, order);
            }
            chain.find_runs();
            for (position, version) in (0u32..).zip(&chain.versions) {
                if let Some(write) = writes.get_mut(&version.value) {
                    write.position = position;
                }
            }
        }
        Self { writes, chains }
    }

    /// The index of a key's chain, or `NONE`.
    pub(crate) fn chain_index(&self, key: u64) -> u32 {
        self.chains.binary_search_by_key(&key, |chain| chain.key).map_or(NONE, |index| index as u32)
    }

    pub(crate) fn chain(&self, index: u32) -> &Chain {
        &self.chains[index as usize]
    }
}

/// Puts a chain in the given order. Versions not in that order lose their
/// place.
fn reorder(chain: &mut Chain, order: &[u64]) {
    let rank: NumberMap<usize> = order.iter().copied().zip(0..).collect();
    let (mut placed, left): (Vec<Version>, Vec<Version>) = std::mem::take(&mut chain.versions)
        .into_iter()
        .partition(|version| rank.contains_key(&version.value));
    placed.sort_by_key(|version| rank[&version.value]);
    chain.versions = placed;
    chain.vague |= left.iter().any(|version| version.tombstone);
}

fn well_formed(history: &History, collector: &mut Collector) {
    let mut ids = HashSet::new();
    for txn in &history.transactions {
        if !ids.insert(txn.id) {
            collector.note(AnomalyKind::Malformed, || format!("several transactions have the id {}", txn.id));
        }
        if txn.outcome != Outcome::Unknown && txn.end < txn.begin {
            collector.note(AnomalyKind::Malformed, || format!("T{} ended before it began", txn.id));
        }
    }
}

fn collect_writes(history: &History, collector: &mut Collector) -> NumberMap<Write> {
    let mut writes: NumberMap<Write> = NumberMap::default();
    let mut latest: NumberMap<u64> = NumberMap::default();
    for (txn, transaction) in (0u32..).zip(&history.transactions) {
        latest.clear();
        for op in &transaction.ops {
            let (key, value, tombstone) = match *op {
                Op::Write { key, value } => (key, value, false),
                Op::Delete { key, value } => (key, value, true),
                Op::Read { .. } | Op::Scan { .. } => continue,
            };
            if writes.contains_key(&value) {
                collector
                    .note(AnomalyKind::Malformed, || format!("the value {value} was written more than once"));
                continue;
            }
            let write = Write { txn, key, tombstone, last: true, position: NONE };
            writes.insert(value, write);
            if let Some(earlier) = latest.insert(key, value)
                && let Some(write) = writes.get_mut(&earlier)
            {
                write.last = false;
            }
        }
    }
    writes
}
