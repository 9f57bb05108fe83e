//! N2DB: Cai, Chen, Liu, Liu, Wu and Zheng, "Garbage collection and data
//! recovery for N2DB", Tsinghua Science and Technology 27(3), 2021, as
//! described by TB-Collect 2.3.1 and 5.1: timely pruning of the chains that a
//! commit extends, with fewer writes to the medium.
//!
//! A committing transaction cuts off what lies below the watermark in the
//! chains of the tuples that it writes. It writes to the medium which slots are
//! free, for many versions at a time.

use pantile_reclaim::{Collector, Description, LongerChain};

use crate::freeing::Marks;
use crate::version_by_version::{Policy, VersionByVersion, Work};

/// N2DB: pruning at commit, with batched writes to the medium.
pub const N2DB: Collector = Collector::new(&Description {
    name: "n2db",
    about: "pruning at commit, with batched writes to the medium",
    build: |options, _| VersionByVersion::boxed(options, N2db),
});

struct N2db;

impl Policy for N2db {
    const MARKS: Marks = Marks::Batched;

    fn wants_chains(&self) -> bool {
        true
    }

    fn extended(&self, work: &Work<'_>, chains: &[LongerChain]) {
        let watermark = work.cx.registry.watermark();
        for chain in chains {
            work.freeing.prune(work.cx, chain, |end| end < watermark, |_, _| true);
        }
    }
}
