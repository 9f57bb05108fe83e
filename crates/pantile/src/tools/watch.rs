//! Reading the statistics page of a database that another process has open.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use pantile_base::sync::thread;
use pantile_media::{User, user_of};

use crate::types::error::{Error, Result};
use crate::types::page::{Page, STATS_FILE, Unusable};

/// A page that is being written is read again after this time, and this often.
const PAUSE: Duration = Duration::from_millis(2);
const TRIES: u32 = 50;

/// Reads the statistics of a database that another process has open.
///
/// That process publishes them once a second, in the database's directory
/// ([`Options::publish_stats`](crate::Options::publish_stats)). The call does not touch the
/// database, and the process does not notice it.
///
/// [`Page::is_process_running`] returns whether the process that wrote them still
/// runs: one that was killed leaves its last page.
///
/// # Errors
/// [`Error::NoStatistics`] with the reason: nobody has the database open, its process publishes
/// nothing, or what is there cannot be shown. [`Error::Io`] if the file cannot be read.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use pantile::{Database, tools::watch};
/// let db = Database::open(dir.path())?;
/// db.begin()?.commit()?;
/// # while watch(dir.path()).is_err() {}
/// // In another process:
/// let page = watch(dir.path())?;
/// assert!(page.is_process_running());
/// println!("{} commits", page.figures.commits);
/// # Ok::<(), pantile::Error>(())
/// ```
pub fn watch(dir: impl AsRef<Path>) -> Result<Page> {
    let dir = dir.as_ref();
    let path = dir.join(STATS_FILE);
    for _ in 0..TRIES {
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(none(dir, missing(dir))),
            Err(source) => return Err(Error::Io { operation: format!("read {}", path.display()), source }),
        };
        match Page::decode(&bytes) {
            Ok(page) => return Ok(page),
            Err(Unusable::Torn) => thread::sleep(PAUSE),
            // A file that has just been made.
            Err(Unusable::Foreign) if bytes.is_empty() => thread::sleep(PAUSE),
            Err(Unusable::Foreign) => {
                return Err(none(dir, format!("{STATS_FILE} is not a statistics page")));
            }
            Err(Unusable::Version(found)) => {
                let detail = format!("{STATS_FILE} has version {found}, of another version of Pantile");
                return Err(none(dir, detail));
            }
        }
    }
    Err(none(dir, format!("{STATS_FILE} is damaged: its checksum does not fit")))
}

fn none(dir: &Path, detail: String) -> Error {
    Error::NoStatistics { path: dir.to_owned(), detail }
}

/// Why there is no page.
fn missing(dir: &Path) -> String {
    match user_of(dir) {
        Some(process) => {
            format!(
                "the database is open {}, which publishes none (Options::publish_stats)",
                User(Some(process))
            )
        }
        None => "nobody has the database open".into(),
    }
}
