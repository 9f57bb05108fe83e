//! A client of YCSB.

use std::hint::black_box;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pantile::{Database, Isolation, Range, Row, RowEdit, Table, Transaction, TransactionOptions, Value};

use super::data::{Data, FIELD};
use super::keys::Keys;
use super::settings::{Beside, KEY_BYTES, Mix, Ycsb};
use crate::error::{Error, Result};
use crate::partition::Assign;
use crate::runner::{self, Outcome};
use pantile_testkit::Random;

/// Most tuples of a scan that is an operation.
const MAX_SCAN: u32 = 100;

/// The kinds of transaction, by [`TransactionKind`].
pub(super) const KINDS: [&str; 5] = ["transaction", "long", "table_scan", "scan_beside", "update_beside"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TransactionKind {
    /// Of the usual number of operations.
    Usual,
    /// Of another number of operations.
    Long,
    /// Reads the whole table, or many tuples in a row, at a safe snapshot.
    TableScan,
    /// What the client beside the others does.
    ScanBeside,
    UpdateBeside,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Read(u64),
    /// Overwrites with a field that begins with this word.
    Update(u64, u64),
    Insert(u64, u64),
    Scan(u64, u32),
    /// Changes the first word by this one.
    Rmw(u64, u64),
}

/// How large transactions are, and how often.
#[derive(Clone, Copy)]
struct Sizes {
    usual: u32,
    long: u32,
    /// In percent.
    long_share: u32,
    scan: Option<u64>,
    /// In percent.
    scan_share: u32,
}

/// A client.
pub struct Client {
    db: Database,
    options: TransactionOptions,
    table: Table,
    mix: Mix,
    sizes: Sizes,
    keys: Arc<Keys>,
    next: Arc<AtomicU64>,
    random: Random,
    /// What it does if it is the one beside the others.
    beside: Option<Beside>,
    /// The transaction decided on.
    kind: TransactionKind,
    /// Its operations.
    pub(super) ops: Vec<Op>,
    /// Where it begins if it is a table scan.
    scan_from: u64,
    /// The field that is written.
    field: Vec<u8>,
    /// Keys up to here were loaded and are there.
    loaded: u64,
    /// Whether operations of a kind are one call.
    together: bool,
    batch: Batch,
}

impl Client {
    pub(super) fn new(
        ycsb: &Ycsb,
        db: &Database,
        data: &Data,
        keys: &Arc<Keys>,
        n: usize,
        isolation: Isolation,
    ) -> Self {
        let mut random = Random::new(ycsb.seed, (1 << 32) + n as u64);
        let mut field = vec![0; (ycsb.tuple_bytes - KEY_BYTES) as usize];
        random.fill_letters(&mut field);
        Self {
            db: db.clone(),
            options: TransactionOptions::new().isolation(isolation).read_only(!ycsb.mix.writes()),
            table: data.table.clone(),
            mix: ycsb.mix,
            sizes: Sizes {
                usual: ycsb.ops,
                long: ycsb.long_ops,
                long_share: ycsb.long_share,
                scan: ycsb.scan_tuples,
                scan_share: ycsb.scan_share,
            },
            keys: Arc::clone(keys),
            next: Arc::clone(&data.next),
            random,
            beside: None,
            kind: TransactionKind::Usual,
            ops: Vec::new(),
            scan_from: 0,
            field,
            loaded: ycsb.tuples,
            together: ycsb.together,
            batch: Batch::default(),
        }
    }

    /// It runs long transactions from here on.
    pub(super) fn run_beside(&mut self, beside: Beside) {
        self.options = self.options.read_only(false);
        self.beside = Some(beside);
    }

    fn draw_op(&mut self) -> Op {
        let (mix, random) = (self.mix, &mut self.random);
        let mut point = random.below(100) as u32;
        let mut falls_in = |share: u32| {
            let inside = point < share;
            point = point.wrapping_sub(share);
            inside
        };
        if falls_in(mix.inserts) {
            return Op::Insert(self.next.fetch_add(1, Ordering::Relaxed), random.word());
        }
        let key = self.keys.draw(random, self.next.load(Ordering::Relaxed));
        if falls_in(mix.updates) {
            Op::Update(key, random.word())
        } else if falls_in(mix.scans) {
            Op::Scan(key, random.between(1, MAX_SCAN))
        } else if falls_in(mix.rmw) {
            Op::Rmw(key, random.word())
        } else {
            Op::Read(key)
        }
    }

    fn run(&mut self, txn: &mut Transaction, op: Op) -> Result<()> {
        let table = &self.table;
        let (key, found) = match op {
            Op::Read(key) => {
                let row = txn.get(table, &[key.into()])?;
                (key, row.map(|row| look_at(&row)).transpose()?.is_some())
            }
            Op::Update(key, word) => {
                let field = write_word(&mut self.field, word);
                (key, txn.update(table, &[key.into()], &[(FIELD, field.into())])?)
            }
            Op::Insert(key, word) => {
                let field = write_word(&mut self.field, word);
                txn.insert(table, &[key.into(), field.into()])?;
                (key, true)
            }
            Op::Scan(key, count) => {
                let from = [key.into()];
                let range = Range::all().from(Bound::Included(&from)).limit(count as usize);
                for row in txn.scan(table, range)? {
                    look_at(&row?)?;
                }
                (key, true)
            }
            Op::Rmw(key, word) => (key, modify(txn, table, key, word, &mut self.field)?),
        };
        self.expect(key, found)
    }

    /// A key beyond those loaded may be of an insert that has not committed.
    fn expect(&self, key: u64, found: bool) -> Result<()> {
        match found || key >= self.loaded {
            true => Ok(()),
            false => Err(Error::Missing { what: "the tuple", key: key.to_string() }),
        }
    }

    /// The operations, with one call for all reads and one for all changes.
    fn run_together(&mut self, txn: &mut Transaction) -> Result<()> {
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        for n in 0..self.ops.len() {
            match self.ops[n] {
                Op::Read(key) => batch.reads.push([Value::UInt(key)]),
                op @ (Op::Update(key, _) | Op::Rmw(key, _)) => {
                    batch.changed.push([Value::UInt(key)]);
                    batch.changes.push(op);
                }
                op => self.run(txn, op)?,
            }
        }
        for (row, key) in txn.get_many(&self.table, &batch.reads)?.iter().zip(&batch.reads) {
            row.as_ref().map(look_at).transpose()?;
            if let [Value::UInt(key)] = key {
                self.expect(*key, row.is_some())?;
            }
        }
        let found = match batch.changes.iter().any(|op| matches!(op, Op::Rmw(..))) {
            true => self.modify_together(txn, &batch)?,
            false => self.update_together(txn, &mut batch)?,
        };
        self.expect_all(&batch.changed, found)?;
        self.batch = batch;
        Ok(())
    }

    /// Changes that are all updates. Returns how many tuples there were.
    fn update_together(&mut self, txn: &mut Transaction, batch: &mut Batch) -> Result<u64> {
        for op in &batch.changes {
            if let Op::Update(_, word) = op {
                batch.fields.extend_from_slice(write_word(&mut self.field, *word));
            }
        }
        let fields = batch.fields.chunks(self.field.len());
        let change = |(key, field)| (key, [(FIELD, Value::Bytes(field))]);
        let changes: Vec<_> = batch.changed.iter().zip(fields).map(change).collect();
        Ok(txn.update_many(&self.table, &changes)?)
    }

    /// The same with changes that read.
    fn modify_together(&mut self, txn: &mut Transaction, batch: &Batch) -> Result<u64> {
        let field = &mut self.field;
        let found = txn.modify_many(&self.table, &batch.changed, |n, row| {
            match batch.changes[n] {
                Op::Rmw(_, change) => change_word(row, change, field)?,
                Op::Update(_, word) => row.set(FIELD, write_word(field, word).into())?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// A call has found this many of these keys.
    fn expect_all(&self, keys: &[[Value<'_>; 1]], found: u64) -> Result<()> {
        let is_loaded = |key: &&[Value<'_>; 1]| matches!(key, [Value::UInt(key)] if *key < self.loaded);
        let least = keys.iter().filter(is_loaded).count() as u64;
        match found >= least {
            true => Ok(()),
            false => Err(Error::Missing { what: "a tuple", key: format!("one of {keys:?}") }),
        }
    }
}

/// The operations of a transaction by kind, kept from one to the next.
#[derive(Default)]
struct Batch {
    reads: Vec<[Value<'static>; 1]>,
    /// Updates and changes, and their keys.
    changes: Vec<Op>,
    changed: Vec<[Value<'static>; 1]>,
    /// The fields of updates, one behind the other.
    fields: Vec<u8>,
}

impl Batch {
    fn clear(&mut self) {
        self.reads.clear();
        self.changes.clear();
        self.changed.clear();
        self.fields.clear();
    }
}

/// The field with another first word.
fn write_word(field: &mut [u8], word: u64) -> &[u8] {
    field[..8].copy_from_slice(&word.to_le_bytes());
    field
}

/// Changes the first word of a tuple by `change`.
fn modify(
    txn: &mut Transaction,
    table: &Table,
    key: u64,
    change: u64,
    field: &mut [u8],
) -> pantile::Result<bool> {
    txn.modify(table, &[key.into()], |row| change_word(row, change, field).map(|()| true))
}

fn change_word(row: &mut RowEdit<'_>, change: u64, field: &mut [u8]) -> pantile::Result<()> {
    field.copy_from_slice(row.get(FIELD)?);
    for (byte, change) in field.iter_mut().zip(change.to_le_bytes()) {
        *byte ^= change;
    }
    row.set(FIELD, (&*field).into())
}

/// Looks at every byte of the field.
#[inline]
fn look_at(row: &Row<'_>) -> pantile::Result<()> {
    let field: &[u8] = row.get(FIELD)?;
    let (words, rest) = field.as_chunks::<8>();
    let sum = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    black_box((sum, rest.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte))));
    Ok(())
}

impl Client {
    fn draw_kind(&mut self) -> TransactionKind {
        let (sizes, random) = (self.sizes, &mut self.random);
        match self.beside {
            Some(Beside::Scans(_)) => return TransactionKind::ScanBeside,
            Some(Beside::Updates(_)) => return TransactionKind::UpdateBeside,
            None => {}
        }
        if random.percent(sizes.scan_share) {
            TransactionKind::TableScan
        } else if random.percent(sizes.long_share) {
            TransactionKind::Long
        } else {
            TransactionKind::Usual
        }
    }

    /// Reads this many tuples in a row, or all.
    fn scan_table(&self, tuples: Option<u64>) -> Result<()> {
        let txn = self.db.begin_safe_snapshot()?;
        let from = [self.scan_from.into()];
        let range = match tuples {
            None => Range::all(),
            Some(tuples) => Range::all().from(Bound::Included(&from)).limit(tuples as usize),
        };
        for row in txn.scan(&self.table, range)? {
            look_at(&row?)?;
        }
        txn.commit()?;
        Ok(())
    }

    /// Updates this many tuples, the last ones, in one transaction. It gets the exclusive stage if that is
    /// needed (Zen+ 4.1).
    fn update_last(&mut self, tuples: u64) -> Result<()> {
        let (db, options) = (self.db.clone(), self.options);
        let keys = self.loaded - tuples..self.loaded;
        db.run_with(options, |txn| {
            keys.clone().try_for_each(|key| {
                let op = Op::Update(key, self.random.word());
                self.run(txn, op)
            })
        })
    }
}

impl Client {
    fn run_ops(&mut self) -> Result<()> {
        let mut txn = self.db.begin_with(self.options)?;
        if self.together {
            self.run_together(&mut txn)?;
        } else {
            for n in 0..self.ops.len() {
                self.run(&mut txn, self.ops[n])?;
            }
        }
        txn.commit()?;
        Ok(())
    }
}

impl runner::Client for Client {
    /// It ignores the rate, and is counted apart.
    fn is_analytical(&self) -> bool {
        self.beside.is_some()
    }

    fn draw(&mut self) -> usize {
        self.kind = self.draw_kind();
        self.ops.clear();
        let ops = match self.kind {
            TransactionKind::Usual => self.sizes.usual,
            TransactionKind::Long => self.sizes.long,
            TransactionKind::ScanBeside | TransactionKind::UpdateBeside => 0,
            TransactionKind::TableScan => {
                // So that no scan is shorter for where it begins.
                let last = self.loaded.saturating_sub(self.sizes.scan.unwrap_or(u64::MAX));
                self.scan_from = self.random.below(last + 1);
                0
            }
        };
        for _ in 0..ops {
            let op = self.draw_op();
            self.ops.push(op);
        }
        self.kind as usize
    }

    fn attempt(&mut self) -> Result<Outcome> {
        match (self.kind, self.beside) {
            (_, Some(Beside::Scans(tuples))) => self.scan_table(Some(tuples))?,
            (_, Some(Beside::Updates(tuples))) => self.update_last(tuples)?,
            (TransactionKind::TableScan, None) => self.scan_table(self.sizes.scan)?,
            _ => self.run_ops()?,
        }
        Ok(Outcome::Committed)
    }
}

/// A transaction with all its inputs.
pub struct Drawn {
    kind: TransactionKind,
    ops: Vec<Op>,
    scan_from: u64,
}

impl Assign for Client {
    type Drawn = Drawn;

    /// It does anyway.
    fn draw_for_all(&mut self) {}

    fn drawn(&self) -> Drawn {
        Drawn { kind: self.kind, ops: self.ops.clone(), scan_from: self.scan_from }
    }

    fn attempt_next(&mut self, drawn: Drawn) {
        Drawn { kind: self.kind, ops: self.ops, scan_from: self.scan_from } = drawn;
    }

    /// Those of single tuples.
    fn partition_keys(&self, keys: &mut Vec<u64>) {
        keys.extend(self.ops.iter().filter_map(|op| match *op {
            Op::Read(key) | Op::Update(key, _) | Op::Insert(key, _) | Op::Rmw(key, _) => Some(key),
            Op::Scan(..) => None,
        }));
    }
}
