//! What opening with an index image has not read: its checksums are looked at
//! afterwards, in rounds, at a bounded rate.

use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicBool, Ordering};
use pantile_store::{Store, UnreadBlocks};

/// The blocks whose contents nobody has looked at.
#[derive(Default)]
pub(crate) struct Unread {
    /// With the number of those that have been looked at.
    blocks: Mutex<Option<(UnreadBlocks, usize)>>,
    is_left: AtomicBool,
}

impl Unread {
    pub fn new(blocks: Option<UnreadBlocks>) -> Self {
        let is_left = AtomicBool::new(blocks.is_some());
        Self { blocks: Mutex::new(blocks.map(|blocks| (blocks, 0))), is_left }
    }

    /// Whether some are left.
    pub fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    /// Number of blocks that are left.
    pub fn left(&self) -> u64 {
        self.blocks.lock().as_ref().map_or(0, |(blocks, next)| blocks.len() - next) as u64
    }

    /// Looks at some. The caller has pinned its slot.
    pub fn look(&self, store: &Store, bytes: u64) {
        let Some(mut left) = self.blocks.try_lock() else { return };
        if let Some((blocks, next)) = &mut *left {
            *next = store.verify_unread(blocks, *next, bytes);
            if *next == blocks.len() {
                *left = None;
                self.is_left.store(false, Ordering::Relaxed);
                store.all_is_read();
            }
        }
    }
}
