//! How many contents a transaction has, and how many each of them says (I-8).

use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::sync::Mutex;
use pantile_store::Surveyed;

use crate::tools::findings::{Findings, Place};

const SHARDS: usize = 64;

/// How many contents of each transaction there are, and how many it wrote.
type Counts = HashMap<u64, (u32, u32), FixedState>;

/// Contents counted by transaction; copies aside, which come on top.
pub(super) struct Evidence {
    shards: [Mutex<Counts>; SHARDS],
}

impl Evidence {
    pub fn new() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()) }
    }

    pub fn count(&self, found: &[Surveyed<'_>], findings: &Findings) {
        for one in found.iter().filter(|one| !one.content.flags().is_relocated()) {
            let txn_id = one.content.txn_id();
            let written = one.content.transaction_contents() as u32;
            let mut shard = self.shards[txn_id.tick() as usize % SHARDS].lock();
            let (counted, first) = shard.entry(txn_id.get()).or_insert((0, written));
            *counted += 1;
            if *first != written {
                let place = Place { offset: Some(one.address.offset()), ..Place::default() };
                let what =
                    format!("transaction {txn_id} wrote {written} contents, and {first} as others say");
                findings.damage(place, what);
            }
        }
    }

    /// More than a transaction wrote can never be there; fewer are, once some
    /// have been collected.
    pub fn finish(self, findings: &Findings) -> u64 {
        let mut transactions = 0;
        for shard in self.shards {
            for (txn_id, (counted, written)) in shard.into_inner() {
                transactions += 1;
                if counted > written {
                    let what =
                        format!("transaction {txn_id} wrote {written} contents, and {counted} are there");
                    findings.damage(Place::default(), what);
                }
            }
        }
        transactions
    }
}
