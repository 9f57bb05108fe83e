//! The queues of a shard, and what they record about blocks (TB-Collect 4.3 and
//! 4.4).

use std::collections::VecDeque;

use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::sync::{Mutex, MutexGuard};
use pantile_base::{Address, Timestamp};
use pantile_cc::{Epoch, Grace, Sight};
use pantile_media::SyncPoint;
use pantile_store::{BlockEvent, BlockInfo, BlockRef, emit};

use crate::CollectorStats;

/// One shard: its queues, and when there is work to do.
#[derive(Default)]
pub(super) struct Shard {
    due: AtomicU64,
    /// The durable watermark up to which its blocks have been examined.
    durable: AtomicU64,
    /// Blocks on their way to `gc_pending_queue`. Its lock is never held for
    /// long, so commits do not wait for a thread that works on the queues.
    incoming: Mutex<Vec<(BlockRef, Timestamp)>>,
    queues: Mutex<Queues>,
}

impl Shard {
    /// A state record makes work, too: empty blocks wait for it.
    #[inline]
    pub fn is_due(&self, now: Timestamp, durable: Timestamp) -> bool {
        self.due.load(Ordering::Relaxed) <= now.get() || self.durable.load(Ordering::Relaxed) < durable.get()
    }

    pub fn push(&self, block: BlockRef, at: Timestamp) {
        self.incoming.lock().push((block, at));
        self.set_due(Timestamp::ZERO);
    }

    /// The queues, with what has come in.
    pub fn lock(&self) -> MutexGuard<'_, Queues> {
        self.with_incoming(self.queues.lock())
    }

    /// The same, unless another thread works on them.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, Queues>> {
        self.queues.try_lock().map(|queues| self.with_incoming(queues))
    }

    fn with_incoming<'s>(&self, mut queues: MutexGuard<'s, Queues>) -> MutexGuard<'s, Queues> {
        queues.pending.extend(self.incoming.lock().drain(..));
        queues
    }

    pub fn set_due(&self, at: Timestamp) {
        self.due.store(at.get(), Ordering::Relaxed);
    }

    /// Notes when the next turn is due, after one at these queues.
    pub fn set_next(&self, at: Timestamp, queues: &Queues) {
        self.set_due(at);
        self.durable.store(queues.durable.get(), Ordering::Relaxed);
    }
}

/// Blocks that wait until the queue is full (`local_gc_queue`, `long_tx_gc_queue`).
#[derive(Default)]
pub(super) struct Waiting {
    pub blocks: VecDeque<(BlockRef, u64)>,
    pub bytes: u64,
    /// The number of blocks that the queue had when it was last full, and that
    /// are being passed on.
    pub full: usize,
}

impl Waiting {
    pub fn push(&mut self, block: BlockRef, bytes: u64) {
        self.blocks.push_back((block, bytes));
        self.bytes += bytes;
    }

    pub fn pop(&mut self) -> Option<BlockRef> {
        let (block, bytes) = self.blocks.pop_front()?;
        self.bytes -= bytes;
        self.full = self.full.saturating_sub(1);
        Some(block)
    }

    fn retain(&mut self, keep: impl Fn(BlockRef) -> bool) {
        self.blocks.retain(|&(block, _)| keep(block));
        self.bytes = self.blocks.iter().map(|(_, bytes)| bytes).sum();
        self.full = self.full.min(self.blocks.len());
    }
}

/// A block whose survivors are being moved.
pub(super) struct Emptying {
    pub block: BlockRef,
    /// The slot to continue at; `None` if this pass over the block has not
    /// begun.
    pub slot: Option<u32>,
    pub is_frozen: bool,
    /// Whether this pass has left survivors behind.
    pub left_behind: bool,
    /// Whether it has versions that cannot be copied.
    pub is_damaged: bool,
    pub copies: Option<SyncPoint>,
    /// The versions that have been moved out of it.
    pub moved: Vec<Address>,
    /// When it was decided to empty the block.
    pub since: Timestamp,
}

impl Emptying {
    pub fn new(block: BlockRef, since: Timestamp) -> Self {
        Self {
            block,
            slot: None,
            is_frozen: false,
            left_behind: false,
            is_damaged: false,
            copies: None,
            moved: Vec::new(),
            since,
        }
    }

    /// Whether some of it has been moved.
    pub fn is_begun(&self) -> bool {
        self.slot.is_some()
    }
}

/// A block that is empty.
pub(super) struct Leaving {
    pub block: BlockRef,
    pub copies: Option<SyncPoint>,
    /// The versions that have been moved out of it.
    pub moved: Vec<Address>,
    pub since: Timestamp,
}

/// An empty block that no transaction can see into, and the threads that may be
/// looking at it.
pub(super) struct Parting {
    pub leaving: Leaving,
    pub grace: Grace,
    pub sight: Sight,
}

/// A released block; the medium will have forgotten it at a sync point.
pub(super) struct Released {
    pub block: BlockRef,
    pub forgotten: SyncPoint,
    pub since: Timestamp,
}

/// The queues.
#[derive(Default)]
pub(super) struct Queues {
    /// `gc_pending_queue`: theta of the block had been superseded by this time.
    pub pending: VecDeque<(BlockRef, Timestamp)>,
    /// `local_gc_queue`: no transaction can see what has been superseded.
    pub local: Waiting,
    /// `long_tx_gc_queue`: the same, while a long transaction bypasses the block.
    pub long_tx: Waiting,
    /// `local_gc_queue_frozen`: being emptied.
    pub frozen: VecDeque<Emptying>,
    /// Like `frozen`, with survivors that could not be moved in this epoch.
    pub held_up: VecDeque<Emptying>,
    /// Empty; waiting until no transaction can see into them.
    pub leaving: VecDeque<Leaving>,
    /// Empty; waiting until no thread is looking at them.
    pub parting: VecDeque<Parting>,
    /// Released; waiting until that is durable.
    pub released: VecDeque<Released>,
    /// When blocks were last examined.
    pub judged: Epoch,
    /// The durable watermark then.
    pub durable: Timestamp,
    /// How many of the pending blocks are not full.
    pub pending_open: usize,
}

impl Queues {
    /// Keeps the blocks for which `keep` is true.
    pub fn retain(&mut self, keep: impl Fn(BlockRef) -> bool) {
        self.pending.retain(|&(b, _)| keep(b));
        self.local.retain(&keep);
        self.long_tx.retain(&keep);
        self.frozen.retain(|e| keep(e.block));
        self.held_up.retain(|e| keep(e.block));
        self.leaving.retain(|l| keep(l.block));
        self.parting.retain(|p| keep(p.leaving.block));
    }

    /// Calls `each` with every block that will be emptied or freed, and whether
    /// it is in the first queue.
    pub fn for_each(&self, mut each: impl FnMut(BlockRef, bool)) {
        self.pending.iter().for_each(|&(block, _)| each(block, true));
        let waiting = self.local.blocks.iter().chain(&self.long_tx.blocks).map(|&(block, _)| block);
        let emptying = self.frozen.iter().chain(&self.held_up).map(|e| e.block);
        let leaving = self.leaving.iter().chain(self.parting.iter().map(|p| &p.leaving)).map(|l| l.block);
        let released = self.released.iter().map(|r| r.block);
        waiting.chain(emptying).chain(leaving).chain(released).for_each(|block| each(block, false));
    }

    /// Whether blocks are being emptied or freed.
    pub fn is_emptying(&self) -> bool {
        let emptying = !self.frozen.is_empty() || !self.held_up.is_empty();
        emptying || !self.leaving.is_empty() || !self.parting.is_empty() || !self.released.is_empty()
    }

    pub fn add_to(&self, stats: &mut CollectorStats) {
        stats.pending_blocks += self.pending.len() as u64;
        stats.queued_blocks += self.local.blocks.len() as u64;
        stats.long_tx_blocks += self.long_tx.blocks.len() as u64;
        let emptying = self.frozen.len() + self.held_up.len();
        stats.frozen_blocks +=
            (emptying + self.leaving.len() + self.parting.len() + self.released.len()) as u64;
    }

    pub fn queue(&mut self, block: BlockRef, info: &BlockInfo, sight: Sight) {
        let (queue, event) = match sight {
            Sight::Bypassed => (&mut self.long_tx, BlockEvent::Bypassed),
            Sight::Obsolete | Sight::InUse => (&mut self.local, BlockEvent::Queued),
        };
        queue.push(block, info.bytes);
        emit(event, block, info.table);
    }

    pub fn of(&mut self, sight: Sight) -> &mut Waiting {
        if sight == Sight::Bypassed { &mut self.long_tx } else { &mut self.local }
    }
}
