//! `pantile bench`: from arguments to runs, from records to tables and JSON.

use std::fs::File;
use std::io::{ErrorKind, LineWriter, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pantile_bench::ch::Ch;
use pantile_bench::experiment::run_all;
use pantile_bench::load::Context;
use pantile_bench::record::{Record, to_json};
use pantile_bench::runner::Pace;
use pantile_bench::settings::{Settings, Variant};
use pantile_bench::tpcc::{Scale, Tpcc};
use pantile_bench::workload::Workload;
use pantile_bench::ycsb::{Mix, STANDARD_THETA, Ycsb};
use pantile_bench::{Error, machine};

use crate::args::{ChArgs, Common, TpccArgs, YcsbArgs};
use crate::progress::Bars;
use crate::table;

/// Why a verb did not do what it was asked to, in one line.
#[derive(Debug)]
pub enum Failure {
    /// It was asked for something that makes no sense.
    Misuse(String),
    /// It did not work.
    Failed(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let line = one_line(&error.to_string());
        if matches!(error, Error::Setting(_)) { Failure::Misuse(line) } else { Failure::Failed(line) }
    }
}

/// A message without its line ends.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs `pantile bench ycsb`.
pub fn ycsb(args: &YcsbArgs, stop: &AtomicBool) -> Result<(), Failure> {
    let standard = args.workload.and_then(Ycsb::standard);
    let asked = Mix { updates: args.updates, inserts: args.inserts, scans: args.scans, rmw: args.rmw };
    let (mix, latest) = standard.unwrap_or((asked, false));
    let usual_theta = if standard.is_some() { STANDARD_THETA } else { 0.0 };
    let workload = Ycsb {
        tuples: args.tuples,
        tuple_bytes: args.tuple_bytes,
        ops: args.ops,
        long_share: args.long_share,
        long_ops: args.long_ops,
        scan_share: args.scan_share,
        scan_tuples: args.scan_tuples,
        mix,
        theta: args.theta.unwrap_or(usual_theta),
        latest,
        seed: args.common.seed,
    };
    workload.validate()?;
    run(&workload, &args.common, threads(&args.common), stop)
}

/// Runs `pantile bench tpcc`.
pub fn tpcc(args: &TpccArgs, stop: &AtomicBool) -> Result<(), Failure> {
    let workload = Tpcc { scale: Scale::full(args.warehouses), seed: args.common.seed };
    run(&workload, &args.common, threads(&args.common), stop)
}

/// Runs `pantile bench ch`.
pub fn ch(args: &ChArgs, stop: &AtomicBool) -> Result<(), Failure> {
    if args.common.threads.is_some() {
        return Err(Failure::Misuse("ch has no --threads; give --oltp and --olap instead".into()));
    }
    let tpcc = Tpcc { scale: Scale::full(args.warehouses), seed: args.common.seed };
    let workload = Ch { tpcc, oltp: args.oltp.into(), olap: args.olap.into() };
    run(&workload, &args.common, workload.threads(), stop)
}

/// Clients of a workload in which all do the same.
fn threads(common: &Common) -> usize {
    common.threads.map_or_else(machine::cores, usize::from)
}

/// Clients and long readers that the engine has room for together.
const MOST_TRANSACTIONS: usize = 1000;

fn settings(common: &Common, threads: usize) -> Result<Settings, Failure> {
    let long_readers = common.long_readers.into();
    if threads + long_readers > MOST_TRANSACTIONS {
        return Err(Failure::Misuse(format!(
            "clients and --long-readers are {} together; {MOST_TRANSACTIONS} are possible",
            threads + long_readers
        )));
    }
    let variants = common
        .medium
        .iter()
        .flat_map(|&medium| common.collectors().into_iter().map(move |gc| Variant { medium, gc }))
        .collect();
    Ok(Settings {
        variants,
        runs: common.runs.into(),
        gc: common.gc_options(),
        threads,
        long_readers,
        pace: Pace {
            warmup: Duration::from_secs_f64(common.warmup),
            measure: Duration::from_secs_f64(common.seconds),
            rate: common.rate,
        },
        isolation: common.isolation.into(),
        durability: common.durability.into(),
        seed: common.seed,
        dir: common.dir.clone(),
    })
}

fn run<W: Workload>(workload: &W, common: &Common, threads: usize, stop: &AtomicBool) -> Result<(), Failure> {
    let settings = settings(common, threads)?;
    let mut output = Output::open(common.json.as_deref())?;
    if let Some(path) = &common.trace {
        trace_to(path)?;
    }
    let bars = Bars::new(common.quiet);
    let context = Context { threads: machine::cores().max(settings.threads.min(8)), stop, observer: &bars };
    let mut records: Vec<Record> = Vec::new();
    let done = run_all(workload, &settings, &context, |record| records.push(record));
    if !records.is_empty() {
        output.write(&records)?;
    }
    done?;
    match records.iter().filter_map(|record| record.consistency.as_ref()).find(|c| c.failed > 0) {
        None => Ok(()),
        Some(found) => Err(Failure::Failed(format!(
            "{} of {} consistency conditions do not hold: {}",
            found.failed,
            found.checked,
            found.failures.first().map_or("", String::as_str)
        ))),
    }
}

/// Has the life of every block written to a file.
fn trace_to(path: &Path) -> Result<(), Failure> {
    let file = File::create(path).map_err(|e| cannot_write(path, &e))?;
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_level(false)
        .with_writer(Mutex::new(LineWriter::new(file)))
        .finish();
    tracing::subscriber::set_global_default(subscriber).map_err(|e| Failure::Failed(e.to_string()))
}

/// Where records go.
enum Output {
    /// The table only, on stdout.
    Table,
    /// The table on stdout, the records in a file.
    File(File, PathBuf),
    /// The records on stdout, where scripts read them; the table on stderr.
    Stdout,
}

impl Output {
    /// Opens the file now: a long run must not end with a file that cannot be written.
    fn open(json: Option<&Path>) -> Result<Self, Failure> {
        match json {
            None => Ok(Output::Table),
            Some(path) if path == Path::new("-") => Ok(Output::Stdout),
            Some(path) => File::create(path)
                .map(|file| Output::File(file, path.to_owned()))
                .map_err(|e| cannot_write(path, &e)),
        }
    }

    fn write(&mut self, records: &[Record]) -> Result<(), Failure> {
        let (table, json) = (table::render(records), to_json(records) + "\n");
        match self {
            Output::Table => print(&mut stdout(), &table),
            Output::Stdout => print(&mut stderr(), &table).and_then(|()| print(&mut stdout(), &json)),
            Output::File(file, path) => {
                let shown = print(&mut stdout(), &table);
                file.write_all(json.as_bytes()).map_err(|e| cannot_write(path, &e)).and(shown)
            }
        }
    }
}

/// A file that cannot be written.
pub fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("cannot write {}: {error}", path.display()))
}

/// Prints for whoever still reads.
pub fn print(to: &mut dyn Write, text: &str) -> Result<(), Failure> {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        // Whoever read it has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::Failed(format!("cannot print: {error}"))),
        Ok(()) => Ok(()),
    }
}
