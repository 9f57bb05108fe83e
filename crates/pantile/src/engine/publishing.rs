//! Writing the statistics page.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use pantile_base::sync::Mutex;
use pantile_media::files::{leads_to, write_all_at};

use crate::types::page::{Page, STATS_FILE, started};

/// Where the page goes, from the first one on.
#[derive(Default)]
pub(crate) struct Publisher(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Unopened,
    Open(Target),
    /// There is no place for it, or the database is closed.
    Off,
}

struct Target {
    file: File,
    path: PathBuf,
    process: u32,
    process_started: u64,
    opened_millis: u64,
}

/// Milliseconds since 1970.
fn now_millis() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Target {
    fn create(data_file: &std::path::Path) -> io::Result<Self> {
        // Without links, and whatever the current directory will be when it is removed.
        let above = data_file.parent().filter(|above| !above.as_os_str().is_empty());
        let path = above.unwrap_or(std::path::Path::new(".")).canonicalize()?.join(STATS_FILE);
        let file = File::options().write(true).create(true).truncate(false).open(&path)?;
        let process = std::process::id();
        let process_started = started(process).unwrap_or(0);
        Ok(Self { file, path, process, process_started, opened_millis: now_millis() })
    }

    /// In one call, so that a reader seldom finds a part of it.
    fn write(&self, page: Page) -> io::Result<()> {
        let page = Page {
            process: self.process,
            process_started: self.process_started,
            opened_millis: self.opened_millis,
            written_millis: now_millis(),
            ..page
        };
        write_all_at(&self.file, &page.encode(), 0)
    }

    /// Removes the file, if it is still in its place. A forked child leaves it to
    /// its parent.
    fn remove(&self) -> io::Result<()> {
        let is_own = leads_to(&self.path, &self.file)? && !self.path.is_symlink();
        if is_own && self.process == std::process::id() { std::fs::remove_file(&self.path) } else { Ok(()) }
    }
}

impl Publisher {
    /// Writes a page beside the data file at this path, if there is one. `make` is
    /// called if there is a place for it. Nothing depends on the page: one that cannot
    /// be written, as on a full disk, is tried again at the next turn.
    pub fn publish(&self, data_file: Option<&std::path::Path>, make: impl FnOnce() -> Page) {
        let mut state = self.0.lock();
        if let State::Unopened = *state {
            match data_file.map(Target::create) {
                Some(Ok(target)) => *state = State::Open(target),
                Some(Err(error)) => tracing::debug!(%error, "the page of statistics was not made"),
                None => *state = State::Off,
            }
        }
        let State::Open(target) = &*state else { return };
        if let Err(error) = target.write(make()) {
            tracing::debug!(%error, "the page of statistics was not written");
        }
    }

    /// Removes the page: nobody has the database open.
    pub fn end(&self) {
        let state = std::mem::replace(&mut *self.0.lock(), State::Off);
        if let State::Open(target) = state {
            // What is left is known by its process.
            let _ = target.remove();
        }
    }
}
