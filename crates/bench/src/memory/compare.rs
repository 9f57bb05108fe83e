//! Stores side by side, each in a process and a control group of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command as Program, Stdio};

use serde::Serialize;

use super::engine::{Engine, VALUE_BYTES};
use super::group::MemoryGroup;
use super::load::{Load, Operation};
use super::usage::Usage;
use super::worker::{Answer, Command, WORKER};
use crate::error::{Error, Result};
use crate::place::DatabaseDir;
use crate::ycsb::keys::THETA;

/// The settings of a comparison.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "args", derive(clap::Args))]
pub struct Settings {
    /// Rows.
    #[cfg_attr(feature = "args", arg(long, value_name = "N", default_value_t = 2_000_000,
        value_parser = clap::value_parser!(u64).range(1000..)))]
    pub rows: u64,
    /// Bytes of each row's value.
    #[cfg_attr(feature = "args", arg(long, value_name = "BYTES", default_value_t = VALUE_BYTES,
        value_parser = clap::value_parser!(u16).range(16..=i64::from(VALUE_BYTES))))]
    pub value_bytes: u16,
    /// Bytes of the values in units of the memory, separated by commas.
    #[cfg_attr(
        feature = "args",
        arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "1,2,4,8")
    )]
    pub times: Vec<f64>,
    /// Rows that a transaction reads or updates, separated by commas.
    #[cfg_attr(feature = "args", arg(long, value_name = "N", value_delimiter = ',', default_value = "1"))]
    pub ops: Vec<usize>,
    /// Skews of the keys (Zipf), from 0 (uniform) to 1, separated by commas.
    #[cfg_attr(
        feature = "args",
        arg(long, value_name = "THETA", value_delimiter = ',', default_value = "0,0.9")
    )]
    pub theta: Vec<f64>,
    /// Seconds to run before each load is measured.
    #[cfg_attr(feature = "args", arg(long, value_name = "SECONDS", default_value_t = 5.0))]
    pub warmup: f64,
    /// Seconds of a measurement.
    #[cfg_attr(feature = "args", arg(long, value_name = "SECONDS", default_value_t = 5.0))]
    pub seconds: f64,
    /// Measurements of each load; the stores take turns.
    #[cfg_attr(feature = "args", arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..)))]
    pub rounds: u32,
    /// Seed of all random numbers.
    #[cfg_attr(feature = "args", arg(long, value_name = "N", default_value_t = 42))]
    pub seed: u64,
    /// Directory for the databases, on the device that is to be measured. They are removed
    /// afterwards [default: the directory for temporary files].
    #[cfg_attr(feature = "args", arg(long, value_name = "PATH"))]
    #[serde(skip)]
    pub dir: Option<PathBuf>,
}

/// Seconds of a measurement that a machine can count.
const SECONDS: std::ops::RangeInclusive<f64> = 0.0..=1e6;

impl Settings {
    /// What is measured.
    pub fn loads(&self) -> Vec<Load> {
        let of = |operation, rows| self.theta.iter().map(move |&theta| Load { operation, rows, theta });
        let each = |&rows: &usize| of(Operation::Read, rows).chain(of(Operation::Update, rows));
        let scan = Load { operation: Operation::Scan, rows: 1, theta: 0.0 };
        self.ops.iter().flat_map(each).chain([scan]).collect()
    }

    fn validate(&self) -> Result<()> {
        let is_sound = self.times.iter().all(|times| *times > 0.0)
            && self.theta.iter().all(|theta| THETA.contains(theta))
            && (16..=VALUE_BYTES).contains(&self.value_bytes)
            && !self.ops.contains(&0)
            && [self.warmup, self.seconds].iter().all(|seconds| SECONDS.contains(seconds));
        match is_sound {
            true => Ok(()),
            false => Err(Error::Setting(
                "sizes and rows are above 0, skews from 0 to 1, values from 16 to 1024 bytes, seconds from 0 to a million"
                    .into(),
            )),
        }
    }
}

/// What was measured of a store under a load.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Bytes of the rows' values in units of the memory.
    pub times: f64,
    /// Bytes of memory.
    pub memory: u64,
    /// The load.
    pub load: Load,
    /// The store.
    pub engine: String,
    /// Rows read or written a second, in each round.
    pub rates: Vec<f64>,
    /// Rows read or written in all rounds.
    pub rows: u64,
    /// What that used.
    pub usage: Usage,
}

impl Measured {
    /// The median of the rounds.
    pub fn rate(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or_default()
    }
}

/// Why a store was not measured at a size: it failed there.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped {
    /// Bytes of the rows' values in units of the memory.
    pub times: f64,
    /// The store.
    pub engine: String,
    /// What it said.
    pub why: String,
}

/// What a comparison found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// By size, load and store.
    pub measured: Vec<Measured>,
    /// Stores that failed.
    pub skipped: Vec<Skipped>,
}

/// Loads and measures the stores. The running program must serve [`worker`](super::worker()) when its
/// first argument is [`WORKER`]. `note` gets a line for each step.
///
/// # Errors
/// [`Error::Io`], also where this process cannot limit memory. A store that
/// fails is left out from there on.
pub fn compare(settings: &Settings, engines: &[&dyn Engine], note: &dyn Fn(&str)) -> Result<Report> {
    settings.validate()?;
    let place = DatabaseDir::temporary_in(settings.dir.as_deref())?;
    let bytes = settings.rows * u64::from(settings.value_bytes);
    let mut report = Report::default();
    let mut stores = Vec::new();
    let load = Command::Load { rows: settings.rows, value_bytes: settings.value_bytes.into() };
    for engine in engines {
        let store = Store::new(engine.name(), place.path())?;
        // As much as there is data, so that loading is the same for each size.
        let loaded = store.start(bytes).and_then(|mut running| running.ask(&load));
        match loaded {
            Ok(answer) => {
                note(&format!("{}: {:.0} rows/s loaded", store.name, answer.rows as f64 / answer.seconds));
                stores.push(store);
            }
            Err(why) => report.skip(0.0, store.name, why, note),
        }
    }
    for &times in &settings.times {
        let memory = (bytes as f64 / times) as u64;
        measure_at((times, memory), settings, &stores, &mut report, note)?;
    }
    Ok(report)
}

fn measure_at(
    (times, memory): (f64, u64),
    settings: &Settings,
    stores: &[Store],
    report: &mut Report,
    note: &dyn Fn(&str),
) -> Result<()> {
    let mut running = Vec::new();
    for store in stores.iter() {
        match store.start(memory) {
            Ok(opened) => {
                note(&format!("{times}x, {} opened in {:.2} s", store.name, opened.opened));
                running.push(opened);
            }
            Err(why) => report.skip(times, store.name, why, note),
        }
    }
    for load in settings.loads() {
        let mut all: Vec<Measured> =
            running.iter().map(|opened| nothing_yet((times, memory), load, opened.name)).collect();
        for round in 0..=settings.rounds {
            for (opened, measured) in running.iter_mut().zip(&mut all) {
                let seconds = if round == 0 { settings.warmup } else { settings.seconds };
                let seed = settings.seed + u64::from(round);
                let command = Command::Run { load, rows: settings.rows, seconds, seed };
                match opened.ask(&command) {
                    Ok(answer) if round > 0 => measured.add(&answer),
                    Ok(_) => {}
                    Err(why) => {
                        opened.has_failed = true;
                        report.skip(times, opened.name, why, note);
                    }
                }
            }
            let mut kept = running.iter().map(|opened| !opened.has_failed);
            all.retain(|_| kept.next().unwrap_or_default());
            running.retain(|opened| !opened.has_failed);
        }
        all.iter().for_each(|measured| note(&measured.line()));
        report.measured.extend(all);
    }
    Ok(())
}

fn nothing_yet((times, memory): (f64, u64), load: Load, engine: &str) -> Measured {
    let (rates, usage) = (Vec::new(), Usage::default());
    Measured { times, memory, load, engine: engine.into(), rates, rows: 0, usage }
}

impl Measured {
    fn add(&mut self, answer: &Answer) {
        self.rates.push(answer.rows as f64 / answer.seconds);
        self.rows += answer.rows;
        self.usage = self.usage.plus(answer.usage);
    }

    fn line(&self) -> String {
        let each = |count: u64| count as f64 / self.rows.max(1) as f64;
        format!(
            "{}x, {}, {}: {:.0}/s; {:.2} faults, {:.1} KB read, {:.1} KB written, {:.1} us of processor each",
            self.times,
            self.load.name(),
            self.engine,
            self.rate(),
            each(self.usage.faults),
            each(self.usage.bytes_read) / 1e3,
            each(self.usage.bytes_written) / 1e3,
            each(self.usage.ticks) * 1e4,
        )
    }
}

impl Report {
    /// The rates as text: a line for each size and load, a column for each store.
    pub fn table(&self) -> String {
        let mut engines: Vec<&str> = Vec::new();
        for measured in &self.measured {
            if !engines.contains(&measured.engine.as_str()) {
                engines.push(&measured.engine);
            }
        }
        let mut lines: Vec<(f64, Load)> = Vec::new();
        for Measured { times, load, .. } in &self.measured {
            if !lines.contains(&(*times, *load)) {
                lines.push((*times, *load));
            }
        }
        let cell = |line: &(f64, Load), engine: &str| {
            let is_meant = |m: &&Measured| (m.times, m.load) == *line && m.engine == engine;
            self.measured.iter().find(is_meant).map_or("-".into(), |m| format!("{:.0}", m.rate()))
        };
        let row = |first: &str, cells: &[String]| {
            let cells: String = cells.iter().map(|cell| format!("  {cell:>10}")).collect();
            format!("{first:<32}{cells}\n")
        };
        let head: Vec<String> = engines.iter().map(|engine| (*engine).to_owned()).collect();
        let body = lines.iter().map(|line| {
            let cells: Vec<String> = engines.iter().map(|engine| cell(line, engine)).collect();
            row(&format!("{}x  {}", line.0, line.1.name()), &cells)
        });
        row("rows a second", &head) + &body.collect::<String>()
    }

    fn skip(&mut self, times: f64, engine: &str, why: Error, note: &dyn Fn(&str)) {
        let why = why.to_string();
        note(&format!("skipped: {engine} at {times}x: {why}"));
        self.skipped.push(Skipped { times, engine: engine.into(), why });
    }
}

/// A store's files and its control group.
struct Store {
    name: &'static str,
    dir: PathBuf,
    group: MemoryGroup,
}

/// A store that is open, in its process.
struct Running {
    name: &'static str,
    process: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    /// Seconds that opening took.
    opened: f64,
    has_failed: bool,
}

impl Store {
    fn new(name: &'static str, place: &Path) -> Result<Self> {
        let dir = place.join(name);
        std::fs::create_dir_all(&dir).map_err(|e| Error::io(format!("create {}", dir.display()), e))?;
        Ok(Self { name, dir, group: MemoryGroup::new(name)? })
    }

    /// Opens the store in a process that may use this much memory.
    fn start(&self, memory: u64) -> Result<Running> {
        self.group.limit(memory)?;
        let program = std::env::current_exe().map_err(|error| Error::io("find this program", error))?;
        let mut process = Program::new(program)
            .arg(WORKER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Error::io("start a process for the store", error))?;
        let (to, from) = (process.stdin.take(), process.stdout.take());
        let from = BufReader::new(from.expect("its output is a pipe"));
        let mut running = Running { name: self.name, process, to, from, opened: 0.0, has_failed: false };
        // It has nothing yet, and does nothing before it is told to.
        self.group.add(running.process.id())?;
        let command = Command::Open { engine: self.name.into(), dir: self.dir.clone(), memory };
        running.opened = running.ask(&command)?.seconds;
        Ok(running)
    }
}

impl Running {
    fn ask(&mut self, command: &Command) -> Result<Answer> {
        let ended = |error| Error::io("talk to the store's process, which has ended", error);
        let text = serde_json::to_string(command).expect("a command is JSON") + "\n";
        let to = self.to.as_mut().expect("open until it is dropped");
        to.write_all(text.as_bytes()).map_err(ended)?;
        let mut line = String::new();
        self.from.read_line(&mut line).map_err(ended)?;
        match serde_json::from_str::<std::result::Result<Answer, String>>(&line) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(said)) => Err(Error::Setting(said)),
            Err(_) => Err(ended(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.to = None;
        let _ = self.process.wait();
    }
}
