//! What these tests share.

use pantile::{Collector, Database, Options, Stats};

use crate::collector::rows::{self, collect_until};

/// Every collector that frees anything.
pub fn collectors() -> impl Iterator<Item = Collector> {
    let all = pantile_rivals::all().iter().copied().filter(|collector| *collector != Collector::NONE);
    all.inspect(|collector| println!("{collector}"))
}

/// This collector, as eager as possible.
pub fn options(collector: Collector) -> Options {
    rows::options().collector(collector)
}

/// Lets the collector work until nothing waits. Blocks that are not full wait
/// until they are.
pub fn settle(db: &Database) -> Stats {
    collect_until(db, "nothing waits", |stats| {
        let waits = &stats.collector;
        let open: u64 = db.space_by_table().iter().map(|space| space.open_blocks).sum();
        waits.waiting_versions == 0
            && waits.pending_blocks <= open
            && waits.queued_blocks + waits.long_tx_blocks + waits.frozen_blocks == 0
    })
}
