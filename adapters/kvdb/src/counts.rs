//! What went through a store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use kvdb::{DBOp, DBTransaction, IoStats, IoStatsKind};

#[derive(Debug, Default)]
struct Now {
    transactions: AtomicU64,
    reads: AtomicU64,
    bytes_read: AtomicU64,
    writes: AtomicU64,
    bytes_written: AtomicU64,
}

#[derive(Debug)]
pub struct Counts {
    now: Now,
    opened: Instant,
    /// What had been counted when it was asked for last.
    previous: Mutex<IoStats>,
}

impl Default for Counts {
    fn default() -> Self {
        Self { now: Now::default(), opened: Instant::now(), previous: Mutex::new(IoStats::empty()) }
    }
}

impl Counts {
    pub fn read(&self, bytes: usize) {
        add(&self.now.reads, 1);
        add(&self.now.bytes_read, bytes);
    }

    /// Deletions count as writes of their keys.
    pub fn written(&self, transaction: &DBTransaction) {
        add(&self.now.transactions, 1);
        add(&self.now.writes, transaction.ops.len());
        add(&self.now.bytes_written, transaction.ops.iter().map(bytes_of).sum());
    }

    pub fn take(&self, kind: IoStatsKind) -> IoStats {
        let IoStatsKind::SincePrevious = kind else { return self.overall() };
        // Before counting: what another thread counts meanwhile and leaves here would be more than this one's.
        let mut previous = self.previous.lock().unwrap_or_else(PoisonError::into_inner);
        let overall = self.overall();
        let started = previous.started + previous.span;
        let since = IoStats {
            transactions: overall.transactions - previous.transactions,
            reads: overall.reads - previous.reads,
            writes: overall.writes - previous.writes,
            bytes_read: overall.bytes_read - previous.bytes_read,
            bytes_written: overall.bytes_written - previous.bytes_written,
            span: started.elapsed(),
            started,
            ..IoStats::empty()
        };
        *previous = overall;
        since
    }

    fn overall(&self) -> IoStats {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        IoStats {
            transactions: of(&self.now.transactions),
            reads: of(&self.now.reads),
            writes: of(&self.now.writes),
            bytes_read: of(&self.now.bytes_read),
            bytes_written: of(&self.now.bytes_written),
            started: self.opened,
            span: self.opened.elapsed(),
            ..IoStats::empty()
        }
    }
}

fn bytes_of(op: &DBOp) -> usize {
    match op {
        DBOp::Insert { key, value, .. } => key.len() + value.len(),
        DBOp::Delete { key, .. } => key.len(),
        DBOp::DeletePrefix { prefix, .. } => prefix.len(),
    }
}

fn add(count: &AtomicU64, more: usize) {
    count.fetch_add(more as u64, Ordering::Relaxed);
}
