use pantile_base::{Address, Timestamp};

use crate::Reclaimer;

/// No collector: the baseline of every comparison (TB-Collect 5.1, "NoGC").
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGc;

impl Reclaimer for NoGc {
    fn name(&self) -> &'static str {
        "none"
    }

    fn superseded(&self, _old: Address, _at: Timestamp) {}
}
