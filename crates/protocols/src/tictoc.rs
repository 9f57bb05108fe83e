//! TicToc: X. Yu et al., "TicToc: Time Traveling Optimistic Concurrency Control", SIGMOD 2016, 3 and 4.
//!
//! Each item has a time at which its version was written and one up to which it has been read. A
//! transaction computes from those of what it has read and written the time at which it commits, and looks
//! only at items that were not yet known to be valid until then. That time has nothing to do with the engine's
//! timestamps, in whose order versions lie on the medium: that order is one of each tuple's versions, and not of
//! transactions.
//!
//! The paper keeps both times in a word of each tuple. Here items share a table of fixed size, so two
//! items may be taken for one, which can refuse a transaction that could commit, nothing worse. Keys of indexes are
//! items like tuples. One that finds an item locked by another commit does not wait long for it.
//!
//! It reads no old version. For the collectors it keeps, by its slot, what it has been handed until it ends: times of
//! items are none of theirs.

use pantile_base::Timestamp;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::sync::hint;
use pantile_cc::{
    Access, Committing, ConcurrencyControl, Item, Protocol, ProtocolDescription, Read, Reads, Refusal, Txn,
};

use crate::by_slot::BySlot;

/// TicToc.
pub const TICTOC: Protocol = Protocol::new(&ProtocolDescription {
    name: "tictoc",
    about: "optimistic: commits at a time computed from what was read and written",
    reads: Reads::Newest,
    orders_by_timestamp: false,
    build: || Box::new(TicToc::default()),
});

/// Number of cells: 6 MB.
const CELLS: usize = 1 << 18;

/// Bits of a ticket for how long the version was valid beyond its beginning.
const VALID_BITS: u32 = 16;

/// How often a commit looks at an item that another commit has locked.
const LOOKS: usize = 1 << 10;

#[derive(Default)]
struct Cell {
    /// The beginning of the transaction that commits a version, zero if none does.
    owner: AtomicU64,
    written: AtomicU64,
    read: AtomicU64,
}

impl Cell {
    /// Whether no other transaction has locked it.
    fn is_free_for(&self, txn: Txn) -> bool {
        let owner = self.owner.load(Ordering::SeqCst);
        owner == 0 || owner == txn.began.get()
    }

    fn try_lock(&self, txn: Txn) -> bool {
        let free =
            || self.owner.compare_exchange(0, txn.began.get(), Ordering::SeqCst, Ordering::SeqCst).is_ok();
        (0..LOOKS).any(|_| {
            free() || {
                hint::spin_loop();
                false
            }
        })
    }

    fn unlock(&self) {
        self.owner.store(0, Ordering::SeqCst);
    }

    fn ticket(&self) -> u64 {
        let written = self.written.load(Ordering::SeqCst);
        let valid = self.read.load(Ordering::SeqCst).saturating_sub(written);
        written << VALID_BITS | valid.min((1 << VALID_BITS) - 1)
    }
}

/// When the version of a ticket was written, and until when it was known to be valid.
fn times(ticket: u64) -> (u64, u64) {
    let written = ticket >> VALID_BITS;
    (written, written + (ticket & ((1 << VALID_BITS) - 1)))
}

/// What a transaction has locked, by the numbers of the cells, and when it commits.
#[derive(Default)]
struct Committed {
    cells: Vec<usize>,
    at: u64,
}

struct TicToc {
    cells: Box<[Cell]>,
    commits: BySlot<Committed>,
}

impl Default for TicToc {
    fn default() -> Self {
        Self { cells: (0..CELLS).map(|_| Cell::default()).collect(), commits: BySlot::default() }
    }
}

impl TicToc {
    fn place(item: Item) -> usize {
        (item.hash() >> (u64::BITS - CELLS.trailing_zeros())) as usize
    }

    fn cell(&self, item: Item) -> &Cell {
        &self.cells[Self::place(item)]
    }

    /// Makes sure that a version is valid at `at`.
    fn extend(&self, txn: Txn, read: &Read, at: u64) -> Result<(), Refusal> {
        let (written, valid) = times(read.ticket);
        if at <= valid {
            return Ok(());
        }
        let cell = self.cell(read.item);
        let is_newest = || cell.is_free_for(txn) && cell.written.load(Ordering::SeqCst) == written;
        if !is_newest() {
            return Err(Refusal::ReadChanged);
        }
        // A writer that locks it later finds this time, and this look finds one that locked it before.
        cell.read.fetch_max(at, Ordering::SeqCst);
        if is_newest() { Ok(()) } else { Err(Refusal::ReadChanged) }
    }
}

impl ConcurrencyControl for TicToc {
    fn read(&self, txn: Txn, item: Item) -> Access {
        let cell = self.cell(item);
        let owner = Timestamp::from_raw(cell.owner.load(Ordering::SeqCst));
        match owner == Timestamp::ZERO || owner == txn.began {
            true => Access::Granted(cell.ticket()),
            false => Access::WaitFor(Txn::of(owner)),
        }
    }

    fn has_read(&self, item: Item, ticket: u64) -> bool {
        let cell = self.cell(item);
        cell.owner.load(Ordering::SeqCst) == 0 && cell.written.load(Ordering::SeqCst) == times(ticket).0
    }

    fn validate(&self, commit: &dyn Committing) -> Result<Timestamp, Refusal> {
        let txn = commit.txn();
        let mut cells: Vec<usize> = commit.writes().iter().map(|item| Self::place(*item)).collect();
        cells.sort_unstable();
        cells.dedup();
        let mut own = self.commits.of(txn);
        for cell in cells {
            if !self.cells[cell].try_lock(txn) {
                return Err(Refusal::Locked);
            }
            own.cells.push(cell);
        }
        let after_reads = own.cells.iter().map(|&cell| self.cells[cell].read.load(Ordering::SeqCst) + 1);
        let after_writes = commit.reads().iter().map(|read| times(read.ticket).0);
        own.at = after_reads.chain(after_writes).max().unwrap_or(0);
        commit.reads().iter().try_for_each(|read| self.extend(txn, read, own.at))?;
        Ok(commit.draw())
    }

    fn end(&self, txn: Txn, has_written: bool) {
        let mut own = self.commits.of(txn);
        let at = own.at;
        for cell in own.cells.drain(..).map(|cell| &self.cells[cell]) {
            if has_written {
                // First what tells readers that their ticket is an old one.
                cell.written.store(at, Ordering::SeqCst);
                cell.read.fetch_max(at, Ordering::SeqCst);
            }
            cell.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use pantile_base::{TableId, TupleId};
    use pantile_cc::Slot;

    use super::*;

    struct Commit {
        txn: Txn,
        reads: Vec<Read>,
        writes: Vec<Item>,
    }

    impl Committing for Commit {
        fn txn(&self) -> Txn {
            self.txn
        }

        fn reads_at(&self) -> Timestamp {
            self.txn.began
        }

        fn reads(&self) -> &[Read] {
            &self.reads
        }

        fn writes(&self) -> &[Item] {
            &self.writes
        }

        fn draw(&self) -> Timestamp {
            self.txn.began
        }

        fn rows_hold(&self, _: Timestamp) -> Result<(), Refusal> {
            Ok(())
        }

        fn ranges_hold(&self, _: Timestamp) -> Result<(), Refusal> {
            Ok(())
        }

        fn marks_hold(&self) -> Result<(), Refusal> {
            Ok(())
        }
    }

    fn commit(tictoc: &TicToc, n: usize, reads: &[Item], writes: &[Item]) -> (Commit, Vec<Read>) {
        let txn = Txn { slot: Slot::from_index(n), began: Timestamp::new(n as u64 + 1, n) };
        let read = |&item: &Item| match tictoc.read(txn, item) {
            Access::Granted(ticket) => Read { item, version: Timestamp::ZERO, ticket },
            other => panic!("{other:?}"),
        };
        let reads: Vec<_> = reads.iter().map(read).collect();
        (Commit { txn, reads: reads.clone(), writes: writes.to_vec() }, reads)
    }

    /// The example of the paper's Figure 1: one has read what another writes before it commits, and
    /// commits all the same, before it.
    #[test]
    fn a_transaction_can_commit_before_one_that_has_committed() {
        let [x, y, z] = [1, 2, 3].map(|n| Item::Tuple(TableId(1), TupleId(n)));
        let tictoc = TicToc::default();
        let (reader, _) = commit(&tictoc, 0, &[x], &[y]);
        let (writer, _) = commit(&tictoc, 1, &[], &[x]);
        assert!(tictoc.cell(y).read.fetch_max(0, Ordering::SeqCst) == 0);
        // What it has read is known to be valid for as long as it needs.
        tictoc.cell(x).read.store(7, Ordering::SeqCst);
        let (early, _) = commit(&tictoc, 2, &[x], &[z]);
        assert!(tictoc.validate(&writer).is_ok());
        assert_eq!(tictoc.read(reader.txn, x), Access::WaitFor(writer.txn));
        tictoc.end(writer.txn, true);
        assert_eq!(times(tictoc.cell(x).ticket()), (8, 8));
        assert!(tictoc.validate(&early).is_ok(), "it commits at 1, when the old version was valid");
        tictoc.end(early.txn, true);
        // This one knows only that it was valid at 0, and has to write y at 1.
        assert_eq!(tictoc.validate(&reader), Err(Refusal::ReadChanged));
        tictoc.end(reader.txn, false);
        assert_eq!(tictoc.cell(y).owner.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn two_that_read_what_the_other_writes_do_not_both_commit() {
        let [x, y] = [1, 2].map(|n| Item::Tuple(TableId(1), TupleId(n)));
        let tictoc = TicToc::default();
        let (one, _) = commit(&tictoc, 0, &[x], &[y]);
        let (other, _) = commit(&tictoc, 1, &[y], &[x]);
        assert!(tictoc.validate(&one).is_ok());
        assert!(tictoc.validate(&other).is_err(), "the first has locked what it has read");
        tictoc.end(other.txn, false);
        tictoc.end(one.txn, true);
    }
}
