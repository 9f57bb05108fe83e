//! `pantile bench`: from arguments to runs, from records to tables and JSON.

use std::io::LineWriter;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pantile::{Collector, Database, ExclusiveStage, Isolation, MediumKind, Options};
use pantile_bench::ch::Ch;
use pantile_bench::experiment::run_all;
use pantile_bench::load::Context;
use pantile_bench::machine;
use pantile_bench::partition::ByPartition;
use pantile_bench::record::{Record, Records};
use pantile_bench::runner::Pace;
use pantile_bench::settings::{OWN_PROTOCOL, Settings, Variant, isolation_name, stage};
use pantile_bench::tpcc::{Scale, Tpcc};
use pantile_bench::workload::Workload;
use pantile_bench::ycsb::{Mix, STANDARD_THETA, Ycsb};

use crate::args::{ChArgs, Common, TpccArgs, YcsbArgs};
use crate::exit::Failure;
use crate::output::{self, Output};
use crate::progress::Bars;
use crate::table;

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
        beside: args.beside,
        mix,
        theta: args.theta.unwrap_or(usual_theta),
        latest,
        together: args.together,
        seed: args.common.seed,
    };
    workload.validate()?;
    let threads = threads(&args.common) + workload.clients_beside();
    match args.by_partition {
        true => run(&ByPartition(workload), &args.common, threads, stop),
        false => run(&workload, &args.common, threads, stop),
    }
}

/// Runs `pantile bench tpcc`.
pub fn tpcc(args: &TpccArgs, stop: &AtomicBool) -> Result<(), Failure> {
    let workload =
        Tpcc { scale: Scale::full(args.warehouses), together: args.together, seed: args.common.seed };
    let threads = threads(&args.common);
    match args.by_partition {
        true => run(&ByPartition(workload), &args.common, threads, stop),
        false => run(&workload, &args.common, threads, stop),
    }
}

/// Runs `pantile bench ch`.
pub fn ch(args: &ChArgs, stop: &AtomicBool) -> Result<(), Failure> {
    if args.common.threads.is_some() {
        return Err(Failure::misuse("ch has no --threads; give --oltp and --olap instead"));
    }
    let tpcc = Tpcc { scale: Scale::full(args.warehouses), together: false, seed: args.common.seed };
    let workload = Ch { tpcc, oltp: args.oltp.into(), olap: args.olap.into() };
    run(&workload, &args.common, workload.threads(), stop)
}

/// Clients of a workload in which all do the same.
fn threads(common: &Common) -> usize {
    common.threads.map_or_else(machine::cores, usize::from)
}

/// Most clients and long readers together: the engine has no room for more transactions.
const MOST_TRANSACTIONS: usize = 1000;

fn settings(common: &Common, threads: usize) -> Result<Settings, Failure> {
    let long_readers = common.long_readers.into();
    if threads + long_readers > MOST_TRANSACTIONS {
        return Err(Failure::misuse(format!(
            "clients and --long-readers are {} together; {MOST_TRANSACTIONS} are possible",
            threads + long_readers
        )));
    }
    let (collectors, protocols) = (common.collectors(), common.protocols());
    let isolation = Isolation::from(common.isolation);
    if let Some(protocol) = protocols.iter().flatten().next()
        && isolation != Isolation::Serializable
    {
        return Err(Failure::misuse(format!(
            "--protocol {protocol} makes every transaction serializable; --isolation {} is for --protocol {OWN_PROTOCOL} alone",
            isolation_name(isolation)
        )));
    }
    let row_cache = common.row_cache.map(|bytes| bytes << 20);
    if let Some(bytes) = row_cache {
        collectors.iter().try_for_each(|&gc| check_row_cache(bytes, gc))?;
    }
    let mut variants = Vec::new();
    for &medium in &common.medium {
        for &gc in &collectors {
            variants.extend(protocols.iter().map(|&protocol| Variant { medium, gc, protocol }));
        }
    }
    Ok(Settings {
        variants,
        runs: common.runs.into(),
        gc: common.gc_options(),
        threads,
        long_readers,
        long_seconds: common.long_seconds,
        pace: Pace {
            warmup: Duration::from_secs_f64(common.warmup),
            measure: Duration::from_secs_f64(common.seconds),
            rate: common.rate,
        },
        isolation,
        writers_move: !common.writers_stay,
        stage: stage_of(common),
        row_cache,
        durability: common.durability.into(),
        seed: common.seed,
        dir: common.dir.clone(),
    })
}

/// When a transaction is run alone.
fn stage_of(common: &Common) -> ExclusiveStage {
    let stage = stage(!common.writers_stay, common.exclusive_tries);
    let accessed = common.exclusive_accessed.unwrap_or(stage.accessed);
    ExclusiveStage { wasted: common.exclusive_wasted, accessed, ..stage }
}

/// Fails if the engine has no cache of rows of this size beside a collector.
fn check_row_cache(bytes: u64, gc: Collector) -> Result<(), Failure> {
    let options = Options::new().medium(MediumKind::Dram).collector(gc).row_cache(bytes);
    options.open("unused").and_then(Database::close).map_err(Failure::misuse)
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
        let of_several = settings.runs * settings.variants.len() > 1;
        output.write(&table::render(&records), &Records { records: &records, of_several })?;
    }
    done?;
    let mut checks = records.iter().filter_map(|record| Some((record, record.consistency.as_ref()?)));
    match checks.find(|(_, found)| found.failed > 0) {
        None => Ok(()),
        Some((record, found)) => Err(Failure::failed(format!(
            "{}: {} of {} consistency conditions do not hold: {}",
            table::variant(record),
            found.failed,
            found.checked,
            found.failures.first().map_or("", String::as_str)
        ))),
    }
}

/// Writes everything that happens to a block to a file.
fn trace_to(path: &Path) -> Result<(), Failure> {
    let file = output::create(path)?;
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_level(false)
        .with_writer(Mutex::new(LineWriter::new(file)))
        .finish();
    tracing::subscriber::set_global_default(subscriber).map_err(Failure::failed)
}
