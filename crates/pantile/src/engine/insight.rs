//! What is kept for looking into a running database.

use pantile_base::sync::Mutex;

use crate::engine::history::Rings;
use crate::engine::latencies::Latencies;
use crate::engine::publishing::Publisher;

/// What is known of the past of a database, and how others learn of it.
#[derive(Default)]
pub(crate) struct Insight {
    pub latencies: Latencies,
    pub rings: Mutex<Rings>,
    pub publisher: Publisher,
}

impl Insight {
    /// DRAM used, in bytes.
    pub fn bytes(&self) -> u64 {
        self.latencies.bytes() + self.rings.lock().bytes()
    }
}
