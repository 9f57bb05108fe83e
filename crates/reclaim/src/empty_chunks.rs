use pantile_base::Timestamp;
use pantile_base::limits::CHUNK_BYTES;
use pantile_cc::Grace;
use pantile_store::{RetiredChunk, StoreError};

use crate::Context;

/// Chunks that hold nothing any more, on their way to other tables and size
/// classes or back to the system.
#[derive(Default)]
pub struct EmptyChunks {
    /// Chunks that have been taken apart. Threads may still be looking at their
    /// descriptions.
    retired: Vec<(Grace, RetiredChunk)>,
}

impl EmptyChunks {
    /// Whether chunks are on their way.
    pub fn is_returning(&self) -> bool {
        !self.retired.is_empty()
    }

    /// Whether chunks are on their way that became empty by this time.
    pub fn is_returning_of(&self, by: Timestamp) -> bool {
        self.retired.iter().any(|(_, chunk)| chunk.emptied() <= by)
    }

    /// Takes apart the chunks that have been empty for some time, except a few
    /// unless `all` are to go, and passes on the chunks that no thread is looking
    /// at. They must have been empty since `before`.
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed.
    pub fn advance(&mut self, cx: &Context<'_>, all: bool, before: Timestamp) -> Result<(), StoreError> {
        cx.store.settle_carved(cx.registry.now());
        let (mut room, limit) = cx.store.room();
        // Not all that are listed are still empty.
        for _ in 0..cx.store.empty_chunks() {
            // A chunk on its way serves nobody.
            if self.is_returning() && room < limit / 2 {
                break;
            }
            if let Some(chunk) = cx.store.retire_chunk(all, before, || cx.registry.now()) {
                self.retired.push((cx.registry.grace(), chunk));
                room = room.saturating_sub(CHUNK_BYTES);
            }
        }
        // Whatever fails, descriptions that threads may be looking at are kept.
        let (mut waiting, mut outcome) = (Vec::new(), Ok(()));
        for (mut grace, mut chunk) in self.retired.drain(..) {
            let may_go = outcome.is_ok() && grace.is_over(cx.registry);
            match if may_go { cx.store.forget_chunk(&mut chunk) } else { Ok(false) } {
                Ok(true) => outcome = cx.store.return_chunk(chunk),
                Ok(false) => waiting.push((grace, chunk)),
                Err(error) => {
                    outcome = Err(error);
                    waiting.push((grace, chunk));
                }
            }
        }
        self.retired = waiting;
        outcome
    }
}
