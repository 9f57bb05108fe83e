//! What a verb has made that counts only when it is whole: removed if Ctrl-C ends the verb.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::load::DATA_FILE;

/// How often to try to remove it.
const TRIES: u32 = 10;

static MADE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Notes a directory that the running verb has made.
pub fn note(made: &Path) {
    if let Ok(mut noted) = MADE.lock() {
        *noted = Some(made.to_owned());
    }
}

/// Removes it, best effort, and says what happened to the work.
pub fn remove() -> &'static str {
    let Some(made) = MADE.lock().ok().and_then(|mut noted| noted.take()) else { return "stopped" };
    // What is whole has been put where it belongs.
    let is_part = made.join(DATA_FILE).exists();
    // The verb goes on meanwhile, and may make another file there.
    let is_removed = (0..TRIES).any(|_| fs::remove_dir_all(&made).is_ok());
    match (is_part, is_removed) {
        (false, _) => "stopped",
        (true, true) => "stopped; what it had made is removed",
        (true, false) => "stopped; what it had made could not be removed",
    }
}
