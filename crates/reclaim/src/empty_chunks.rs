use pantile_base::Timestamp;
use pantile_cc::Grace;
use pantile_store::{RetiredChunk, StoreError};

use crate::Context;

/// Chunks that nothing is in any more, on their way to serving other tables
/// and size classes, or back to the system.
#[derive(Default)]
pub(crate) struct EmptyChunks {
    /// Taken apart; threads may be looking at their descriptions.
    retired: Vec<(Grace, RetiredChunk)>,
}

impl EmptyChunks {
    /// Takes apart one more if it is time, all that there are if `all`, and
    /// sends on those that nobody is looking at. `is_over` tells of a time
    /// whether all that ran then has ended.
    pub fn advance(
        &mut self,
        cx: &Context<'_>,
        all: bool,
        is_over: impl Fn(Timestamp) -> bool,
    ) -> Result<(), StoreError> {
        if let Some(chunk) = cx.store.retire_chunk(all, || cx.registry.now(), is_over) {
            self.retired.push((cx.registry.grace(), chunk));
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
