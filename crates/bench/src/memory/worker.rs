//! The process in which a store is measured. It takes commands on its standard
//! input, a line of JSON each, and answers each with a line.

use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::engine::{Engine, Failure, Rows};
use super::load::{Load, value};
use super::usage::Usage;

/// The first argument that makes a program such a process.
pub const WORKER: &str = "memory-worker";

/// Rows that a transaction loads.
const LOADED_AT_ONCE: u64 = 1000;

/// What the process is told to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Command {
    /// Open the database of an engine.
    Open { engine: String, dir: PathBuf, memory: u64 },
    /// Load this many rows.
    Load { rows: u64, value_bytes: usize },
    /// Run transactions on the rows for some time.
    Run { load: Load, rows: u64, seconds: f64, seed: u64 },
}

/// What the process answers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    /// Rows that were read or written.
    pub rows: u64,
    /// What that took.
    pub seconds: f64,
    /// What was used meanwhile.
    pub usage: Usage,
}

/// Serves commands until its standard input ends.
///
/// # Errors
/// What a store fails with, after it has been reported on standard output.
pub fn worker(engines: &[&dyn Engine]) -> Result<(), Failure> {
    let mut rows: Option<Box<dyn Rows>> = None;
    for line in io::stdin().lock().lines() {
        let (began, before) = (Instant::now(), Usage::now());
        let done = obey(serde_json::from_str(&line?)?, engines, &mut rows);
        let answer = done.as_ref().map_err(ToString::to_string).map(|&rows| Answer {
            rows,
            seconds: began.elapsed().as_secs_f64(),
            usage: Usage::now().since(before),
        });
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, &answer)?;
        writeln!(out)?;
        out.flush()?;
        done?;
    }
    Ok(())
}

/// Reads all files below a directory once, as far as they can be read.
fn read_files(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            read_files(&entry.path())?;
        } else if let Ok(mut file) = File::open(entry.path()) {
            io::copy(&mut file, &mut io::sink())?;
        }
    }
    Ok(())
}

fn obey(command: Command, engines: &[&dyn Engine], rows: &mut Option<Box<dyn Rows>>) -> Result<u64, Failure> {
    let open = |rows: &mut Option<Box<dyn Rows>>| rows.take().ok_or("nothing is open");
    match command {
        Command::Open { engine, dir, memory } => {
            let engine = engines.iter().find(|known| known.name() == engine).ok_or("no such engine")?;
            *rows = Some(engine.open(&dir, memory)?);
            // Not every store reads its files when it is opened, and memory is
            // to be full of them for all.
            read_files(&dir)?;
            Ok(0)
        }
        Command::Load { rows: n, value_bytes } => {
            let mut opened = open(rows)?;
            for first in (0..n).step_by(LOADED_AT_ONCE as usize) {
                let keys: Vec<u64> = (first..(first + LOADED_AT_ONCE).min(n)).collect();
                opened.load(&keys, &mut |key| value(key, value_bytes))?;
            }
            *rows = Some(opened);
            Ok(n)
        }
        Command::Run { load, rows: n, seconds, seed } => {
            let mut opened = open(rows)?;
            let done = load.run(&mut *opened, n, (Duration::from_secs_f64(seconds), seed))?;
            *rows = Some(opened);
            Ok(done)
        }
    }
}
