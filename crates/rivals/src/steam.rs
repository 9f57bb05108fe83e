//! Steam: Böttcher, Leis, Neumann and Kemper, "Scalable Garbage Collection for
//! In-Memory MVCC Systems", PVLDB 13(2), 2019, section 4.
//!
//! The old versions of committed transactions wait in thread-local lists until
//! the watermark has passed them (4.2). With eager pruning of obsolete versions
//! (EPO, 4.3), each update first removes from the chain that it extends every
//! version that no running transaction sees.

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::sync::Mutex;
use pantile_cc::{Clock, RunningSet};
use pantile_reclaim::{Collector, Description, LongerChain};

use crate::version_by_version::{Policy, VersionByVersion, Work};

/// Steam: each update prunes the chain that it extends.
pub const STEAM: Collector = Collector::new(&Description {
    name: "steam",
    about: "each update prunes the chain that it extends",
    build: |options, _| {
        let active = (0..SHARDS).map(|_| Mutex::default()).collect();
        VersionByVersion::boxed(options, Steam { active: Some(active) })
    },
});

/// Steam without eager pruning.
pub const STEAM_WATERMARK: Collector = Collector::new(&Description {
    name: "steam-watermark",
    about: "steam without eager pruning",
    build: |options, _| VersionByVersion::boxed(options, Steam { active: None }),
});

/// The greatest age of a thread's list of active timestamps (4.3.1).
const ACTIVE_AGE: Duration = Duration::from_millis(5);
const SHARDS: usize = 64;

/// The transactions that ran, and when that was; none before the first look.
type Active = Mutex<Option<(Timestamp, RunningSet)>>;

struct Steam {
    /// The active timestamps that each slot saw last; empty without EPO.
    active: Option<Box<[Active]>>,
}

impl Steam {
    /// Removes from a chain the versions that no transaction sees, neither one
    /// that ran when `running` was taken nor one that may have begun since
    /// (4.3, for whole rows). Returns how many versions are left.
    fn prune(&self, work: &Work<'_>, chain: &LongerChain, running: &RunningSet) -> usize {
        let is_past = |end| end <= running.min();
        let may_see = |begin, end| running.may_see(begin, end);
        work.freeing.prune(work.cx, chain, is_past, may_see)
    }
}

impl Policy for Steam {
    fn wants_chains(&self) -> bool {
        self.active.is_some()
    }

    fn extended(&self, work: &Work<'_>, chains: &[LongerChain]) {
        let Some(active) = &self.active else { return };
        let registry = work.cx.registry;
        let mut known = active[work.cx.slot.index() % SHARDS].lock();
        for chain in chains {
            let now = registry.now();
            let is_old = |(at, _): &(Timestamp, RunningSet)| {
                Clock::duration(now.tick().saturating_sub(at.tick())) >= ACTIVE_AGE
            };
            if known.as_ref().is_none_or(is_old) {
                *known = registry.running_set().map(|running| (now, running)).or(known.take());
            }
            let Some((at, running)) = &*known else { return };
            let left = self.prune(work, chain, running);
            // One version for each running transaction, the new one and its
            // predecessor. If there are more, they are younger than the list.
            if left > running.readers() + 2
                && *at < now
                && let Some(running) = registry.running_set()
            {
                self.prune(work, chain, &running);
                *known = Some((now, running));
            }
        }
    }
}
