//! Records the transactions of one client thread.

use std::time::Instant;

use crate::history::{Op, Outcome, Txn};

/// Sequence numbers have this many bits, below the client's number.
const SEQUENCE_BITS: u32 = 40;

/// Records the transactions of one client.
///
/// Each client thread owns one, so recording takes no lock.
/// [`History::merge`](crate::History::merge) combines the transactions of all
/// clients afterwards. Call [`begin`](Self::begin) before the transaction
/// begins in the store, and [`commit`](Self::commit) after the store has
/// answered, so that the recorded span contains the real one.
#[derive(Debug)]
pub struct Recorder {
    client: u64,
    transactions: Vec<Txn>,
    open: bool,
    values: u64,
    clock: Clock,
}

#[derive(Debug)]
enum Clock {
    Since(Instant),
    Manual(u64),
}

impl Recorder {
    /// A recorder for the client with this number, which no other client of the
    /// history has. Times are counted from `origin`, which is the same for all
    /// clients.
    ///
    /// # Panics
    ///
    /// If the number does not fit in 24 bits.
    pub fn new(client: u64, origin: Instant) -> Self {
        Self::with_clock(client, Clock::Since(origin))
    }

    /// A recorder for simulations. Its time is set by
    /// [`set_time`](Self::set_time).
    ///
    /// # Panics
    ///
    /// If the number does not fit in 24 bits.
    pub fn simulated(client: u64) -> Self {
        Self::with_clock(client, Clock::Manual(0))
    }

    fn with_clock(client: u64, clock: Clock) -> Self {
        assert!(client < 1 << (64 - SEQUENCE_BITS), "the client number does not fit in 24 bits");
        Self { client, transactions: Vec::new(), open: false, values: 0, clock }
    }

    /// Sets the time of a simulated recorder, in nanoseconds.
    ///
    /// # Panics
    ///
    /// If the recorder runs on real time.
    pub fn set_time(&mut self, now: u64) {
        match &mut self.clock {
            Clock::Manual(time) => *time = now,
            Clock::Since(_) => panic!("the recorder runs on real time"),
        }
    }

    /// Returns a value that no other call of any client's recorder returns.
    /// Write it to the store and record it with [`write`](Self::write); for a
    /// deletion, only record it.
    pub fn fresh(&mut self) -> u64 {
        self.values += 1;
        self.client << SEQUENCE_BITS | self.values
    }

    /// Starts a transaction, and returns its id.
    ///
    /// # Panics
    ///
    /// If the previous transaction has not ended.
    pub fn begin(&mut self) -> u64 {
        assert!(!self.open, "the previous transaction has not ended");
        self.open = true;
        let id = self.client << SEQUENCE_BITS | self.transactions.len() as u64;
        let begin = self.now();
        self.transactions.push(Txn { id, outcome: Outcome::Unknown, begin, end: u64::MAX, ops: Vec::new() });
        id
    }

    /// Records a read and the value found.
    pub fn read(&mut self, key: u64, value: Option<u64>) {
        self.push(Op::Read { key, value });
    }

    /// Records a write. Call this even if the store then refuses the write,
    /// provided that the transaction is then aborted.
    pub fn write(&mut self, key: u64, value: u64) {
        self.push(Op::Write { key, value });
    }

    /// Records a deletion. The tombstone gets a fresh value.
    pub fn delete(&mut self, key: u64) {
        let value = self.fresh();
        self.push(Op::Delete { key, value });
    }

    /// Records a scan of `low..=high` and the keys found.
    pub fn scan(&mut self, low: u64, high: u64, found: Vec<(u64, u64)>) {
        self.push(Op::Scan { low, high, found });
    }

    /// Ends the transaction as committed at this timestamp.
    pub fn commit(&mut self, ts: u64) {
        self.end(Outcome::Committed { ts });
    }

    /// Ends the transaction as aborted.
    pub fn abort(&mut self) {
        self.end(Outcome::Aborted);
    }

    /// Ends the transaction with an unknown outcome.
    pub fn unknown(&mut self) {
        self.end(Outcome::Unknown);
    }

    /// Returns the recorded transactions. The outcome of one that has not ended
    /// is unknown.
    pub fn finish(self) -> Vec<Txn> {
        self.transactions
    }

    fn now(&self) -> u64 {
        match self.clock {
            Clock::Since(origin) => u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Clock::Manual(time) => time,
        }
    }

    fn current(&mut self) -> &mut Txn {
        assert!(self.open, "no transaction is open");
        self.transactions.last_mut().expect("a transaction is open")
    }

    fn push(&mut self, op: Op) {
        self.current().ops.push(op);
    }

    fn end(&mut self, outcome: Outcome) {
        let end = self.now();
        let txn = self.current();
        txn.outcome = outcome;
        txn.end = end;
        self.open = false;
    }
}
