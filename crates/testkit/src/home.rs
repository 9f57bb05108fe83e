//! Homes for databases: where a test's database is, and what is left of it
//! when its process is killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pantile::lab::{Protocol, medium_of};
use pantile::{Collector, Database, Durability, GcOptions, Medium, MediumKind, Options, Pacing, Transaction};
use pantile_media::unshared::Unshared;
use pantile_media::{DramMedium, MapOptions, MediumExt};
use pantile_nvm::NvmConfig;

use crate::Random;

/// An empty directory, removed when this is dropped.
#[derive(Debug)]
pub struct ScratchDir(tempfile::TempDir);

impl ScratchDir {
    /// Among the system's temporary files.
    ///
    /// # Panics
    /// If no directory can be made.
    #[allow(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    /// In a directory.
    ///
    /// # Panics
    /// If no directory can be made there.
    pub fn within(directory: impl AsRef<Path>) -> Self {
        Self(tempfile::tempdir_in(directory).expect("a temporary directory"))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// What a database is on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bed {
    /// Memory.
    Dram,
    /// A file.
    File(Durability),
    /// Emulated persistent memory.
    Nvm,
}

/// A place for one database, which can be closed, killed and opened again.
#[derive(Debug)]
pub struct Home {
    bed: Bed,
    place: ScratchDir,
    medium: Option<Arc<dyn Medium>>,
    collector: Collector,
    eager: Option<u64>,
    /// The collector is not the one that `eager` picks.
    forced: bool,
    writers_move: bool,
    protocol: Option<Protocol>,
    row_cache: Option<u64>,
}

impl Home {
    /// A place where nothing is yet.
    pub fn new(bed: Bed) -> Self {
        Self {
            bed,
            place: ScratchDir::new(),
            medium: None,
            collector: Collector::default(),
            eager: None,
            forced: false,
            writers_move: true,
            protocol: None,
            row_cache: None,
        }
    }

    /// Whether writers move behind later readers.
    #[must_use]
    pub fn writers_move(mut self, move_: bool) -> Self {
        self.writers_move = move_;
        self
    }

    /// Transactions are under a protocol of the laboratory.
    #[must_use]
    pub fn under(mut self, protocol: Protocol) -> Self {
        self.protocol = Some(protocol);
        self
    }

    /// Rows are read through a cache of this many bytes.
    #[must_use]
    pub fn row_cache(mut self, bytes: u64) -> Self {
        self.row_cache = Some(bytes);
        self
    }

    /// The collector is as eager as it can be, in a way that the seed decides.
    #[must_use]
    pub fn eager(mut self, seed: u64) -> Self {
        self.eager = Some(seed);
        self
    }

    /// As [`Home::eager`], with this collector.
    #[must_use]
    pub fn eager_with(mut self, collector: Collector, seed: u64) -> Self {
        (self.collector, self.eager) = (collector, Some(seed));
        self.forced = true;
        self
    }

    /// One of the collectors, a different one for each seed.
    #[must_use]
    pub fn collect_by_seed(mut self, seed: u64) -> Self {
        self.collector = pantile_rivals::all()[seed as usize % pantile_rivals::all().len()];
        self
    }

    /// Where the database is.
    pub fn path(&self) -> PathBuf {
        self.place.path().join("db")
    }

    /// What the database is opened with. Nothing writes between two commits, so
    /// a copy of the files is what a process leaves that is killed.
    pub fn options(&self) -> Options {
        let options = Options::new().collector(self.collector).streams(2).worker(false);
        // A closure that is to succeed in the end does so, however busy the machine is.
        let options = options.retry_for(Duration::from_secs(600));
        let options = options.writers_move(self.writers_move).protocol(self.protocol);
        let options = match self.eager {
            Some(seed) if self.forced => eager(options, seed).collector(self.collector),
            Some(seed) => eager(options, seed),
            None => options,
        };
        let options = match self.row_cache {
            Some(bytes) => options.row_cache(bytes),
            None => options,
        };
        match self.bed {
            Bed::Dram => options.medium(MediumKind::Dram),
            Bed::File(durability) => options.medium(MediumKind::File).durability(durability),
            Bed::Nvm => options.custom_medium(NvmConfig::A),
        }
    }

    /// Opens the database, and makes it if there is none.
    ///
    /// # Panics
    /// If it does not open.
    pub fn open(&mut self) -> Database {
        let mut options = self.options();
        if let Some(medium) = self.medium.take() {
            options = options.on_medium(medium);
        }
        options.open(self.path()).expect("the database opens")
    }

    /// Closes the database, which can then be opened again.
    ///
    /// # Panics
    /// If it does not close.
    pub fn close(&mut self, db: Database) {
        if self.bed == Bed::Dram {
            self.medium = Some(medium_of(&db));
        }
        db.close().expect("the database closes");
    }

    /// Leaves the database as a killed process would, with transactions open:
    /// the next opening finds what is on the medium at this moment.
    ///
    /// # Panics
    /// If the files cannot be copied.
    pub fn kill(&mut self, db: Database, running: Vec<Transaction>) {
        if self.bed == Bed::Dram {
            // Transactions that end after the kill still write to the old medium.
            self.medium = Some(copy_of(&*medium_of(&db)));
            return;
        }
        let copy = ScratchDir::new();
        copy_all(&self.path(), &copy.path().join("db"));
        drop(running);
        drop(db);
        self.place = copy;
    }
}

/// The collector as eager as it can be: blocks of a few contents, epochs in
/// which hardly a transaction fits, and blocks are reclaimed before more of
/// them dies, by committing threads. The seed picks one of many such settings.
pub fn eager(options: Options, seed: u64) -> Options {
    let mut random = Random::new(seed, 0xEA6E);
    let gc = GcOptions {
        theta: 0.5,
        queue_share: 0.0,
        epoch: Duration::from_micros(*random.pick(&[100, 300, 1_000])),
        pacing: *random.pick(Pacing::ALL),
        bypass: random.percent(75),
        space_target: *random.pick(&[1.0, 1.25]),
        ..GcOptions::default()
    };
    let collector = if random.percent(75) { Collector::TB_COLLECT } else { Collector::TB_COLLECT_EAGER };
    let slots = *random.pick(&[2, 4, 8, 16]);
    options.collector(collector).gc(gc).block_slots(slots).streams(1 + random.index(3)).worker(false)
}

/// Memory that never takes more than it was told to, for figures that are the
/// same every time.
///
/// # Panics
/// If no addresses can be reserved.
pub fn exact_memory() -> Arc<dyn Medium> {
    DramMedium::small(MapOptions::default()).expect("addresses")
}

/// A copy of a medium as it is now: what a process that is killed leaves in
/// memory. Nobody may be writing.
///
/// # Panics
/// If there is no memory for it.
#[allow(unsafe_code, reason = "media in memory are read through their mapping")]
pub fn copy_of(medium: &dyn Medium) -> Arc<dyn Medium> {
    let len = medium.len();
    let copy =
        DramMedium::new(MapOptions { reserve_bytes: medium.facts().limit, max_bytes: None }).expect("memory");
    copy.grow(len).expect("memory");
    // SAFETY: nobody writes, and all of `len` is mapped.
    let bytes = unsafe { std::slice::from_raw_parts(medium.base(), len as usize) };
    // Pages of zeros stay untouched. They are most of a chunk that has small blocks.
    for (n, page) in bytes.chunks(4096).enumerate().filter(|(_, page)| page.iter().any(|&b| b != 0)) {
        copy.put(n as u64 * 4096, page).expect("memory");
    }
    copy
}

/// Copies a database as it lies there, also one that is open. What its worker
/// takes away meanwhile is not copied.
pub fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory to copy to");
    for entry in std::fs::read_dir(from).expect("the database's directory") {
        let entry = entry.expect("an entry of it");
        match std::fs::copy(entry.path(), to.join(entry.file_name())) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => _ = copied.expect("a copy of a file"),
        }
    }
}
