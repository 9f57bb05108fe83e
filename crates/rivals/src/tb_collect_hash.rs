//! TB-Collect with OneShotGC's hash index in place of kept tiles (TB-Collect
//! 5.5, "TB-Collect-hash").

use pantile_reclaim::{Collector, Description, TbCollect};

use crate::link_index::LinkIndex;

/// TB-Collect with OneShotGC's hash index for long transactions.
pub const TB_COLLECT_HASH: Collector = Collector::new(&Description {
    name: "tb-collect-hash",
    about: "tb-collect with a hash index for the chains of long transactions",
    build: |options, shards| Box::new(TbCollect::keeping_links(options, shards, LinkIndex::of)),
});
