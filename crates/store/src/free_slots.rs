//! Lists of blocks with slots that can be written again.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicU64, Ordering};

use crate::block::BlockId;

/// Blocks with free slots, by class; each is in one list once.
#[derive(Debug, Default)]
pub(crate) struct Vacancies(pub HashMap<u64, Vec<BlockId>, FixedState>);

/// As many lists as there are streams, so that threads seldom meet.
#[derive(Debug)]
pub(crate) struct FreeSlots {
    pub shards: Box<[Mutex<Vacancies>]>,
    /// Free slots, roughly: nobody looks where there are none.
    pub count: AtomicU64,
}

impl FreeSlots {
    pub fn new(shards: usize) -> Self {
        Self { shards: (0..shards).map(|_| Mutex::default()).collect(), count: AtomicU64::new(0) }
    }

    pub fn shard(&self, id: BlockId) -> &Mutex<Vacancies> {
        &self.shards[(id.chunk.wrapping_mul(61).wrapping_add(id.index)) as usize % self.shards.len()]
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}
