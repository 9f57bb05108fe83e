//! Finished runs, one line of JSON each, so that an interrupted report can
//! continue.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::measurement::Measurement;

/// The name of the file in the report's directory.
pub const RUNS: &str = "runs.jsonl";

/// A finished run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// The command that repeats it.
    pub key: String,
    /// Its repetition.
    pub repetition: usize,
    /// What was run.
    #[serde(flatten)]
    pub build: Build,
    /// When it ended.
    pub ended: String,
    /// What was measured; nothing if the run failed.
    pub measurement: Option<Measurement>,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// What was run, and where. Measurements of different builds are not compared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Build {
    /// The commit.
    pub commit: String,
    /// The machine.
    pub machine: String,
    /// Whether it was built without optimisation.
    pub debug: bool,
}

impl Build {
    /// This program on this machine.
    pub fn this() -> Self {
        Self {
            commit: pantile_bench::machine::commit().to_owned(),
            machine: pantile_bench::machine::describe(),
            debug: cfg!(debug_assertions),
        }
    }
}

/// The file of finished runs.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    build: Build,
}

impl Store {
    /// Opens the file in `dir`, which is created if missing. Returns the runs
    /// found there. Runs of another build are moved to another file; the last
    /// of the three results is a message about that. `fresh` discards all runs.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(dir: &Path, build: Build, fresh: bool) -> Result<(Self, Vec<Line>, Option<String>)> {
        fs::create_dir_all(dir).map_err(|e| Error::io("create", dir, e))?;
        let path = dir.join(RUNS);
        if fresh {
            remove(&path)?;
        }
        let mut lines = read(&path)?;
        let mut note = None;
        if let Some(other) = lines.iter().find(|line| line.build != build) {
            let aside = dir.join(format!("runs-{}.jsonl", other.build.commit));
            note = Some(format!(
                "{} runs in {} are from commit {} ({}), not from this one, {}: they are kept as {} and not used",
                lines.len(),
                path.display(),
                other.build.commit,
                other.build.machine,
                build.commit,
                aside.display(),
            ));
            fs::rename(&path, &aside).map_err(|e| Error::io("rename", &path, e))?;
            lines.clear();
        }
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(|e| Error::io("open", &path, e))?;
        Ok((Self { path, file, build }, lines, note))
    }

    /// Adds a run: what was measured, or why it failed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn add(
        &mut self,
        key: String,
        repetition: usize,
        outcome: std::result::Result<Measurement, String>,
    ) -> Result<()> {
        let ended = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
        let (measurement, failed) = match outcome {
            Ok(measurement) => (Some(measurement), None),
            Err(why) => (None, Some(why)),
        };
        let line = Line { key, repetition, build: self.build.clone(), ended, measurement, failed };
        let mut text = serde_json::to_string(&line).map_err(|e| Error::io("write", &self.path, e.into()))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(|e| Error::io("write", &self.path, e))
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// The complete lines. The last one may have been cut short.
fn read(path: &Path) -> Result<Vec<Line>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io("read", path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(commit: &str) -> Build {
        Build { commit: commit.into(), machine: "m".into(), debug: false }
    }

    #[test]
    fn runs_are_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("report");
        let (mut store, lines, note) = Store::open(&dir, build("a"), false).unwrap();
        assert!(lines.is_empty() && note.is_none());
        let measurement = Measurement { txn_per_s: 5.0, ..Measurement::default() };
        store.add("k".into(), 2, Ok(measurement.clone())).unwrap();
        store.add("k".into(), 3, Err("it broke".into())).unwrap();
        drop(store);
        let (_, lines, note) = Store::open(&dir, build("a"), false).unwrap();
        assert_eq!((lines.len(), note), (2, None));
        assert_eq!((&*lines[0].key, lines[0].repetition), ("k", 2));
        assert_eq!((&lines[0].measurement, &lines[0].failed), (&Some(measurement), &None));
        assert_eq!((&lines[1].measurement, lines[1].failed.as_deref()), (&None, Some("it broke")));
        let (_, lines, _) = Store::open(&dir, build("a"), true).unwrap();
        assert!(lines.is_empty());
    }

    #[test]
    fn a_line_cut_short_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let (mut store, ..) = Store::open(dir.path(), build("a"), false).unwrap();
        store.add("k".into(), 1, Ok(Measurement::default())).unwrap();
        let path = dir.path().join(RUNS);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}{}", &text[..text.len() / 2])).unwrap();
        assert_eq!(Store::open(dir.path(), build("a"), false).unwrap().1.len(), 1);
    }

    #[test]
    fn runs_of_another_commit_are_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let (mut store, ..) = Store::open(dir.path(), build("a"), false).unwrap();
        store.add("k".into(), 1, Ok(Measurement::default())).unwrap();
        let (_, lines, note) = Store::open(dir.path(), build("b"), false).unwrap();
        assert!(lines.is_empty());
        let note = note.unwrap();
        assert!(note.contains("commit a") && note.contains("runs-a.jsonl"), "{note}");
        assert!(dir.path().join("runs-a.jsonl").exists());
        assert_eq!(Store::open(dir.path(), build("b"), false).unwrap().2, None);
    }
}
