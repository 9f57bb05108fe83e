//! A toy store that isolates transactions in several ways, or not at all, and
//! clients that run random transactions on it, one step at a time.

use std::collections::BTreeMap;

use pantile_history::{Check, History, Op, Outcome, Txn};
use pantile_testkit::Random;

/// How the store isolates transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Writes in place. Writes are seen at once and stay after aborts.
    Nothing,
    /// Reads the latest committed version. Installs writes at commit.
    ReadCommitted,
    /// Reads as of the begin. The first transaction to commit a write of a key
    /// wins.
    Snapshot,
    /// As `Snapshot`, but what was read must still hold at commit.
    Optimistic,
    /// Strict two-phase locking. A transaction that would have to wait aborts.
    Locking,
}

/// The shape of random transactions.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub transactions: u64,
    pub clients: usize,
    pub keys: u64,
    pub ops: u64,
    /// Percentages of operations that write, delete and scan.
    pub writes: u64,
    pub deletes: u64,
    pub scans: u64,
    /// The greatest length of a scan.
    pub range: u64,
    /// The percentage of transactions whose outcome the clients do not know.
    pub unknown: u32,
    /// Whether each transaction either only reads or only writes.
    pub split: bool,
}

impl Load {
    /// Few keys, much of everything.
    pub const MIXED: Load = Load {
        transactions: 200,
        clients: 5,
        keys: 8,
        ops: 4,
        writes: 30,
        deletes: 10,
        scans: 10,
        range: 4,
        unknown: 0,
        split: false,
    };
}

/// A committed version: its timestamp and its value, or `None` for a tombstone.
type Version = (u64, Option<u64>);

struct Client {
    txn: Txn,
    snapshot: u64,
    left: u64,
    buffer: BTreeMap<u64, (Option<u64>, u64)>,
    reads: BTreeMap<u64, Option<u64>>,
}

struct Store {
    mode: Mode,
    keys: Vec<Vec<Version>>,
    /// Values in place: the last write of each key, and all writes in order.
    places: Vec<Option<u64>>,
    installed: Vec<Vec<u64>>,
    shared: Vec<Vec<u64>>,
    exclusive: Vec<Option<u64>>,
    clock: u64,
}

impl Store {
    fn committed(&self, key: u64, as_of: u64) -> Option<u64> {
        let versions = &self.keys[key as usize];
        let count = versions.partition_point(|version| version.0 <= as_of);
        versions[..count].last().and_then(|version| version.1)
    }

    /// Takes a lock. Returns false if another transaction holds it.
    fn lock(&mut self, id: u64, key: u64, write: bool) -> bool {
        if self.mode != Mode::Locking {
            return true;
        }
        let shared = &mut self.shared[key as usize];
        let exclusive = &mut self.exclusive[key as usize];
        if exclusive.is_some_and(|owner| owner != id) || write && shared.iter().any(|owner| *owner != id) {
            return false;
        }
        if write {
            *exclusive = Some(id);
        } else if !shared.contains(&id) {
            shared.push(id);
        }
        true
    }

    fn get(&mut self, client: &mut Client, key: u64) -> Option<u64> {
        if self.mode == Mode::Nothing {
            return self.places[key as usize];
        }
        if let Some((value, _)) = client.buffer.get(&key) {
            return *value;
        }
        let as_of = match self.mode {
            Mode::Snapshot | Mode::Optimistic => client.snapshot,
            _ => u64::MAX,
        };
        let value = self.committed(key, as_of);
        client.reads.entry(key).or_insert(value);
        value
    }

    fn put(&mut self, client: &mut Client, key: u64, value: Option<u64>, name: u64) {
        self.places[key as usize] = value;
        self.installed[key as usize].push(name);
        client.buffer.insert(key, (value, name));
    }

    fn commit(&mut self, client: &Client) -> bool {
        let newest = |key: u64| self.keys[key as usize].last().map_or(0, |version| version.0);
        let overtaken = client.buffer.keys().any(|key| newest(*key) > client.snapshot);
        let stale = client.reads.keys().any(|key| newest(*key) > client.snapshot);
        match self.mode {
            Mode::Snapshot if overtaken => return false,
            Mode::Optimistic if overtaken || stale => return false,
            _ => {}
        }
        for (key, (value, _)) in &client.buffer {
            self.keys[*key as usize].push((self.clock, *value));
        }
        true
    }

    fn unlock(&mut self, id: u64) {
        if self.mode == Mode::Locking {
            self.shared.iter_mut().for_each(|owners| owners.retain(|owner| *owner != id));
            for owner in self.exclusive.iter_mut().filter(|owner| **owner == Some(id)) {
                *owner = None;
            }
        }
    }

    /// One operation. Returns false if the transaction must abort.
    fn step(&mut self, client: &mut Client, load: &Load, rng: &mut Random, name: u64) -> bool {
        let id = client.txn.id;
        let key = rng.below(load.keys);
        let writing = load.writes + load.deletes;
        let choice = match load.split {
            true if id.is_multiple_of(2) => rng.below(writing),
            true => writing + rng.below(100 - writing),
            false => rng.below(100),
        };
        let write = choice < writing;
        let op = if write {
            if !self.lock(id, key, true) {
                return false;
            }
            let deletion = choice >= load.writes;
            self.put(client, key, (!deletion).then_some(name), name);
            if deletion { Op::Delete { key, value: name } } else { Op::Write { key, value: name } }
        } else if choice < writing + load.scans {
            let high = (key + rng.below(load.range)).min(load.keys - 1);
            if (key..=high).any(|key| !self.lock(id, key, false)) {
                return false;
            }
            let found = (key..=high).filter_map(|key| Some((key, self.get(client, key)?))).collect();
            Op::Scan { low: key, high, found }
        } else {
            if !self.lock(id, key, false) {
                return false;
            }
            let value = self.get(client, key);
            Op::Read { key, value }
        };
        client.txn.ops.push(op);
        true
    }
}

/// Runs random transactions. Returns the recorded history, and a check that
/// knows the order of versions where timestamps do not define it.
pub fn run(mode: Mode, load: Load, seed: u64) -> (History, Check) {
    let mut rng = Random::new(seed, 0);
    let count = load.keys as usize;
    let mut store = Store {
        mode,
        keys: vec![Vec::new(); count],
        places: vec![None; count],
        installed: vec![Vec::new(); count],
        shared: vec![Vec::new(); count],
        exclusive: vec![None; count],
        clock: 0,
    };
    let mut clients: Vec<Option<Client>> = (0..load.clients).map(|_| None).collect();
    let mut history = History::default();
    let (mut begun, mut open) = (0, 0);
    while begun < load.transactions || open > 0 {
        store.clock += 1;
        let now = store.clock;
        let slot = &mut clients[rng.below(load.clients as u64) as usize];
        let Some(mut client) = slot.take() else {
            if begun < load.transactions {
                begun += 1;
                open += 1;
                *slot = Some(Client {
                    txn: Txn {
                        id: begun,
                        outcome: Outcome::Unknown,
                        begin: now,
                        end: u64::MAX,
                        ops: Vec::new(),
                    },
                    snapshot: now,
                    left: 1 + rng.below(load.ops),
                    buffer: BTreeMap::new(),
                    reads: BTreeMap::new(),
                });
            }
            continue;
        };
        if client.left > 0 && store.step(&mut client, &load, &mut rng, now) {
            client.left -= 1;
            *slot = Some(client);
            continue;
        }
        let commits = client.left == 0 && !rng.percent(5) && store.commit(&client);
        client.txn.outcome = match commits {
            _ if rng.percent(load.unknown) => Outcome::Unknown,
            true => Outcome::Committed { ts: now },
            false => Outcome::Aborted,
        };
        client.txn.end = now;
        store.unlock(client.txn.id);
        history.transactions.push(client.txn);
        open -= 1;
    }
    let mut check = Check::new();
    if mode == Mode::Nothing {
        for (key, values) in store.installed.into_iter().enumerate() {
            check = check.version_order(key as u64, values);
        }
    }
    (history, check)
}
