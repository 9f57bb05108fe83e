//! Checks the number of contents of each transaction. Each content states how many contents its
//! transaction wrote (I-8).

use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::sync::Mutex;
use pantile_store::Surveyed;

use crate::tools::findings::{Findings, Location};

const SHARDS: usize = 64;

/// For each transaction, how many of its contents there are, and how many it wrote.
type Counts = HashMap<u64, (u32, u32), FixedState>;

/// Counts contents by transaction. Copies do not count.
pub(super) struct Evidence {
    shards: [Mutex<Counts>; SHARDS],
}

impl Evidence {
    pub fn new() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()) }
    }

    pub fn count(&self, found: &[Surveyed<'_>], findings: &Findings) {
        for one in found.iter().filter(|one| !one.content.flags().is_relocated()) {
            let timestamp = one.content.timestamp();
            let written = one.content.transaction_contents() as u32;
            let mut shard = self.shards[timestamp.tick() as usize % SHARDS].lock();
            let (counted, first) = shard.entry(timestamp.get()).or_insert((0, written));
            *counted += 1;
            if *first != written {
                let place = Location { offset: Some(one.address.offset()), ..Location::default() };
                let what = format!(
                    "transaction {timestamp} wrote {written} contents, or {first} according to others"
                );
                findings.damage(place, what);
            }
        }
    }

    /// Reports transactions with more contents than they wrote. There are fewer
    /// once some have been collected.
    pub fn finish(self, findings: &Findings) -> u64 {
        let mut transactions = 0;
        for shard in self.shards {
            for (timestamp, (counted, written)) in shard.into_inner() {
                transactions += 1;
                if counted > written {
                    let what =
                        format!("transaction {timestamp} wrote {written} contents, and {counted} are there");
                    findings.damage(Location::default(), what);
                }
            }
        }
        transactions
    }
}
