//! The settings of a crash test, and how its databases are opened.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use pantile::lab::Protocol;
use pantile::{Collector, Database, Durability, Error, GcOptions, Options, Pacing};
use pantile_bench::settings::Medium;
use pantile_testkit::Random;

/// What all lives of a database share.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The seed of the clients' work, of the plan of kills, and of the options
    /// of each opening.
    pub seed: u64,
    /// The number of clients; each has its own thread.
    pub clients: u64,
    /// Where the database is stored.
    pub medium: Medium,
    /// When a commit is acknowledged.
    pub durability: Durability,
    /// The collector.
    pub gc: Collector,
    /// What keeps transactions apart; the engine's own protocol if none is given.
    pub protocol: Option<Protocol>,
}

impl Settings {
    /// Opens the database in `dir` to verify it. A process that was just killed
    /// may hold its lock until the system has cleaned up after it.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(&self, dir: &Path) -> pantile::Result<Database> {
        open_soon(&self.options(), dir)
    }

    /// Opens the database in `dir` to work on it, with different options each
    /// time: nearly always with blocks of a few contents, epochs that hardly
    /// fit a transaction, and a collector that waits for nothing.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open_to_work(&self, dir: &Path, life: u64) -> pantile::Result<Database> {
        let mut random = Random::new(self.seed, life.wrapping_mul(2).wrapping_add(1));
        let mut options = self.options().streams(1 + random.below(3) as usize);
        if random.below(8) > 0 {
            let gc = GcOptions {
                theta: 0.5,
                queue_share: 0.0,
                epoch: Duration::from_micros([100, 300, 1_000][random.below(3) as usize]),
                pacing: Pacing::ALL[random.below(Pacing::ALL.len() as u64) as usize],
                bypass: random.percent(75),
                space_target: [1.0, 1.25][random.below(2) as usize],
                ..GcOptions::default()
            };
            options = options.gc(gc).block_slots(2 << random.below(4));
        }
        open_soon(&options, dir)
    }

    /// The name of the durability level on the command line.
    pub fn durability_name(&self) -> &'static str {
        match self.durability {
            Durability::Sync => "sync",
            Durability::Group => "group",
            Durability::None => "none",
        }
    }

    fn options(&self) -> Options {
        let options = self.medium.options().durability(self.durability);
        options.collector(self.gc).protocol(self.protocol)
    }
}

fn open_soon(options: &Options, dir: &Path) -> pantile::Result<Database> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match options.clone().open(dir) {
            Err(Error::AlreadyOpen { .. }) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1));
            }
            outcome => return outcome,
        }
    }
}
