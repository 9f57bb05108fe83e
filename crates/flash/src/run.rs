//! Running a workload so that the same is written each time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{Database, Isolation, Options};
use pantile_bench::load::{Context, Silent};
use pantile_bench::runner::Client;
use pantile_bench::workload::Workload;
use pantile_bench::{Error, Result};

/// Simulated time between two transactions.
const INTERVAL: Duration = Duration::from_micros(100);

/// The seed of data and transactions where none is chosen.
pub const SEED: u64 = 1;

/// Opens a database, loads a workload into it, and runs transactions of one client in simulated time. `loaded` is called
/// in between. `stop` is raised to end it early.
///
/// # Errors
/// Those of the engine; [`Error::Interrupted`].
pub fn run<W: Workload>(
    workload: &W,
    options: Options,
    transactions: u64,
    stop: &AtomicBool,
    loaded: impl FnOnce(&Database) -> Result<()>,
) -> Result<Database> {
    let time = SimulatedTime::default();
    let db = options.index_image(false).simulated_time(time.clone()).open("simulated")?;
    let data = workload.load(&db, &Context { threads: 1, stop, observer: &Silent })?;
    loaded(&db)?;
    let mut clients = workload.clients(&db, &data, 1, Isolation::Serializable)?;
    for _ in 0..transactions {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted { during: "transactions" });
        }
        clients[0].draw();
        clients[0].attempt()?;
        time.advance(INTERVAL);
    }
    Ok(db)
}
