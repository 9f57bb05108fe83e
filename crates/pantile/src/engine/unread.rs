//! What opening with an index image has not read: its checksums are looked at
//! afterwards, in rounds, at a bounded rate.

use pantile_base::Timestamp;
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicBool, Ordering};
use pantile_store::{Store, UnreadBlocks};

/// The blocks whose contents nobody has looked at.
#[derive(Default)]
pub(crate) struct Unread {
    left: Mutex<Option<Left>>,
    is_left: AtomicBool,
}

struct Left {
    blocks: UnreadBlocks,
    /// Where it begins: elsewhere each time, or a process that is often opened for
    /// moments would always look at the same ones.
    first: usize,
    /// The number of those that have been looked at.
    next: usize,
    /// Bytes that may be read, below zero after a block that was larger.
    credit: i64,
}

impl Unread {
    /// `now` decides where it begins.
    pub fn new(blocks: Option<UnreadBlocks>, now: Timestamp) -> Self {
        let is_left = AtomicBool::new(blocks.is_some());
        let left = blocks.map(|blocks| {
            let spread = now.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            let first = spread as usize % blocks.len().max(1);
            Left { blocks, first, next: 0, credit: 0 }
        });
        Self { left: Mutex::new(left), is_left }
    }

    /// Whether some are left.
    pub fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    /// Number of blocks that are left.
    pub fn left(&self) -> u64 {
        self.left.lock().as_ref().map_or(0, |left| left.blocks.len() - left.next) as u64
    }

    /// Looks at some, on average as many `bytes` with each call. The caller has
    /// pinned its slot.
    pub fn look(&self, store: &Store, bytes: u64) {
        let Some(mut all) = self.left.try_lock() else { return };
        let Some(left) = &mut *all else { return };
        left.credit += bytes as i64;
        while left.credit > 0 && left.next < left.blocks.len() {
            let block = (left.first + left.next) % left.blocks.len();
            left.credit -= store.verify_unread(&left.blocks, block) as i64;
            left.next += 1;
        }
        if left.next == left.blocks.len() {
            *all = None;
            self.is_left.store(false, Ordering::Relaxed);
        }
    }
}
