//! The definition of the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use pantile::lab::Protocol;
use pantile::{Collector, ExclusiveStage, GcOptions, Pacing};
use pantile_bench::settings::Medium;
use pantile_bench::ycsb::Beside;

use crate::crashtest::{self, CrashtestArgs, VerifyArgs, WorkArgs};
use crate::values::{
    Collectors, DurabilityArg, IsolationArg, Protocols, beside, collectors, gc_epoch, gc_interval, gc_pacing,
    gc_queue, gc_target, gc_theta, number, percent, protocols, theta, tries, workload,
};

/// Pantile, a transactional storage engine: tools for its databases, and its laboratory.
#[derive(Parser, Debug)]
#[command(
    name = "pantile",
    version,
    propagate_version = true,
    subcommand_required = true,
    subcommand_value_name = "VERB",
    arg_required_else_help = false
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Verify a closed database: formats, checksums, space, contents, indexes.
    ///
    /// Lists each damaged place in a line of its own, and never writes. A database that was not
    /// closed is checked in the state that opening it would recover.
    #[command(after_help = crate::check::EXAMPLES)]
    Check(crate::check::CheckArgs),
    /// Show the files of a closed database, damaged or not.
    ///
    /// Shows the superblock, the state records, the tables, the blocks by state and fill, and a
    /// map of the blocks. Recovers nothing and writes nothing.
    #[command(after_help = crate::inspect::EXAMPLES)]
    Inspect(crate::inspect::InspectArgs),
    /// Copy every whole row of a damaged database into a new one.
    ///
    /// Copies all tables with their indexes, and lists what is lost. Believes no content whose
    /// checksum does not fit. A row whose newest version is damaged may be copied in an older
    /// state. Never writes to the damaged database.
    #[command(after_help = crate::salvage::EXAMPLES)]
    Salvage(crate::salvage::SalvageArgs),
    /// Copy a database into a directory, where it is a database of its own.
    ///
    /// Looks at the checksum of every version that it copies. The directory holds a backup only
    /// when the command has ended well: a part of one is refused by every verb, and completed by
    /// the next backup. A program backs up the database that it has open with
    /// Database::backup_to, beside its transactions.
    #[command(after_help = crate::backup::BACKUP_EXAMPLES)]
    Backup(crate::backup::BackupArgs),
    /// Copy a backup to where a database is to be, and check the copy.
    ///
    /// Checks formats, checksums, rows and indexes, as `pantile check` does. A backup that is
    /// damaged or incomplete leaves nothing, and so does one that cannot be copied.
    #[command(after_help = crate::backup::RESTORE_EXAMPLES)]
    Restore(crate::backup::RestoreArgs),
    /// Bring the space that a database takes down to the least that its layout allows.
    ///
    /// Moves what is alive out of every block that has something obsolete in it, and hands empty
    /// space back to the system. The copies take space of their own while it works.
    #[command(after_help = crate::compact::EXAMPLES)]
    Compact(crate::compact::CompactArgs),
    /// Show a database that another process has open, live.
    ///
    /// Transactions, latencies, space by use and by table, the collector, and which transactions
    /// hold garbage back. Reads the page of statistics that the process writes once a second, and
    /// does not touch the database. docs/insight.md says what each figure means.
    #[command(after_help = crate::top::EXAMPLES)]
    Top(crate::top::TopArgs),
    /// Write a database as text: one stream, or CSV or JSON of its tables.
    ///
    /// Writes all tables with their definitions and rows to stdout, as they are at one moment, for
    /// `pantile load`. docs/transfer.md describes the formats.
    #[command(after_help = crate::dump::EXAMPLES)]
    Dump(crate::dump::DumpArgs),
    /// Load what `dump` has written, or CSV or JSON of others.
    ///
    /// Creates the tables of a dump that the database does not have. With --format, reads rows into
    /// a table that exists, by the names of its columns; columns that are not there get their default, or
    /// NULL.
    /// Loads all rows or none.
    #[command(after_help = crate::load::EXAMPLES)]
    Load(crate::load::LoadArgs),
    /// Look at rows and change them, by commands typed or from a script.
    ///
    /// Reads commands from the terminal, with history and completion, from stdin or from -c. `.help`
    /// lists them. Rows and values are printed and entered as in CSV. docs/shell.md describes it.
    #[command(after_help = crate::shell::EXAMPLES)]
    Shell(crate::shell::ShellArgs),
    /// Run a workload and measure it.
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  pantile bench ycsb --tuples 1000000 --updates 50 --theta 0.9"
    )]
    Bench(Bench),
    /// Rerun published experiments at this machine's size and judge their claims.
    ///
    /// Writes index.html, with a plot and a table for each claim, and claims.json to the report's
    /// directory. Needs nothing else; docs/experiments.md describes the method.
    #[command(after_help = crate::paper::EXAMPLES)]
    Paper(crate::paper::PaperArgs),
    /// Measure the space that data takes, and what less of it costs.
    #[command(
        subcommand,
        arg_required_else_help = false,
        after_help = "Example:\n  pantile space price --targets 1.5,2"
    )]
    Space(crate::space::Space),
    /// Kill a process that uses a database, reopen the database and verify that nothing is lost.
    ///
    /// Starts a process that runs transactions and changes tables and indexes. Kills it at random
    /// moments, also while it creates, opens or closes the database. Reopens the database, compares
    /// every row and every index with the acknowledged history, and continues with the same
    /// database. Shows what survives a killed process; with --simulate, what survives a power cut.
    #[command(after_help = crashtest::EXAMPLES)]
    Crashtest(CrashtestArgs),
    /// Run the process of `crashtest` alone: report on stdout what is acknowledged, until killed.
    #[command(hide = true, after_help = crashtest::WORK_EXAMPLE)]
    CrashtestWork(WorkArgs),
    /// Run the process of `bench memory` whose memory is limited.
    #[command(hide = true)]
    MemoryWorker,
    /// Compare a database with what `crashtest-work` has reported.
    #[command(hide = true, after_help = crashtest::VERIFY_EXAMPLE)]
    CrashtestVerify(VerifyArgs),
}

/// The workloads.
#[derive(Subcommand, Debug)]
pub enum Bench {
    /// Run YCSB: reads, updates, inserts and scans of single tuples.
    #[command(after_help = YCSB_EXAMPLES)]
    Ycsb(YcsbArgs),
    /// Run TPC-C: an order-entry business, with all five transactions in their mix.
    ///
    /// Loads the database, runs the transactions, checks the consistency conditions 3.3.2.1 to
    /// 3.3.2.12, reopens the database and checks them once more. With --dir, continues with the
    /// database of an earlier run, whether that run closed it or was killed, after checking it.
    #[command(after_help = TPCC_EXAMPLES)]
    Tpcc(TpccArgs),
    /// Run CH-benCHmark: TPC-C's transactions beside analytical queries.
    ///
    /// Some clients run the transactions of `tpcc`. The others run sixteen queries over the same
    /// tables and three more, in random order, each at a safe snapshot. --rate and throughput
    /// apply to the transactions; queries are counted separately. Checks what `tpcc` checks.
    #[command(after_help = CH_EXAMPLES, mut_arg("threads", |threads| threads.hide(true)))]
    Ch(ChArgs),
    /// Read, update and scan rows that take more than the memory that there may be.
    ///
    /// Limits its memory by a control group, which needs the right to make one, so that the rows
    /// take 1, 2, 4 and 8 times as much. tools/peers measures other stores beside it.
    #[command(after_help = crate::memory::EXAMPLES)]
    Memory(crate::memory::MemoryArgs),
}

const YCSB_EXAMPLES: &str = "Examples:
  pantile bench ycsb --tuples 1000000 --updates 50 --theta 0.9 --threads 2 --medium dram
  pantile bench ycsb --workload B --medium file,nvm:optane --runs 3 --json records.json
  pantile bench ycsb --gc all --theta 0.9 --rate 2000 --seconds 60 --runs 3    (chains at a fixed rate)
  pantile bench ycsb --threads 1 --ops 1 --updates 100    (latency of a durable update of one row)
  pantile bench ycsb --gc all --theta 0.9 --ops 10 --long-share 10 --long-ops 100    (some long transactions)
  pantile bench ycsb --gc all --ops 1 --updates 100 --theta 1    (key-value updates, as skewed as can be)
  pantile bench ycsb --gc all --ops 1 --updates 100 --scan-share 20    (beside scans of the table)
  pantile bench ycsb --tuples 4000000 --tuple-bytes 1000 --beside updates:2000000 --medium dram    (beside updates of 2 GB)";

const TPCC_EXAMPLES: &str = "Examples:
  pantile bench tpcc --warehouses 1 --threads 2 --seconds 10 --medium nvm:optane
  pantile bench tpcc --warehouses 4 --threads 16 --rate 5000 --dir /data/tpcc --json -
  pantile bench tpcc --medium nvm:optane --gc none,tb-collect --runs 5 --long-readers 2
  pantile bench tpcc --rate 1000 --seconds 600 --gc-pacing fixed --gc-queue 0.05    (does space stay put?)";

const CH_EXAMPLES: &str = "Examples:
  pantile bench ch --oltp 1 --olap 1 --seconds 60 --medium dram --gc all
  pantile bench ch --warehouses 4 --oltp 2 --olap 4 --rate 1000 --json -";

/// Settings of YCSB.
#[derive(Args, Debug)]
pub struct YcsbArgs {
    /// Tuples to load.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub tuples: u64,
    /// Bytes of a tuple, including its key of 8 bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(16..=65_000))]
    pub tuple_bytes: u32,
    /// Operations of a transaction.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub ops: u32,
    /// Reads, and changes, of a transaction in one call each, as by a program that knows its keys at the start.
    #[arg(long)]
    pub together: bool,
    /// Percent of the transactions that run --long-ops operations.
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = percent())]
    pub long_share: u32,
    /// Operations of a long transaction.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub long_ops: u32,
    /// Percent of the transactions that scan the table instead, at a safe snapshot.
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = percent())]
    pub scan_share: u32,
    /// Tuples that such a scan reads, starting at a random one [default: all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub scan_tuples: Option<u64>,
    /// One more client runs long transactions, one after the other: scans:N reads N tuples in a row in each, updates:N
    /// updates the last N tuples, which the other clients leave alone. They count as queries.
    #[arg(long, value_name = "KIND:N", value_parser = beside)]
    pub beside: Option<Beside>,
    /// Percent of the operations that overwrite a tuple; the rest read one.
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = percent())]
    pub updates: u32,
    /// Percent of the operations that insert a tuple.
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = percent())]
    pub inserts: u32,
    /// Percent of the operations that scan 1 to 100 tuples.
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = percent())]
    pub scans: u32,
    /// Percent of the operations that read and change a tuple.
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = percent())]
    pub rmw: u32,
    /// Skew of the keys (Zipf), from 0 (uniform) to 1 [default: 0; with --workload 0.99].
    #[arg(long, value_parser = theta)]
    pub theta: Option<f64>,
    /// A standard mix, A to F, instead of percentages.
    #[arg(long, value_name = "A..F", value_parser = workload, conflicts_with_all = ["updates", "inserts", "scans", "rmw"])]
    pub workload: Option<char>,
    /// Send each transaction to a thread of the node that most of its data is mapped to, as Zen+'s soft partition does;
    /// for --medium nvm:optane-40+nodes:local-writes.
    #[arg(long, conflicts_with = "beside")]
    pub by_partition: bool,
    /// What all workloads share.
    #[command(flatten)]
    pub common: Common,
}

/// Settings of TPC-C.
#[derive(Args, Debug)]
pub struct TpccArgs {
    /// Warehouses.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub warehouses: u16,
    /// Read, change and insert the rows of one table in one call where their keys are known.
    #[arg(long)]
    pub together: bool,
    /// Send each transaction to a thread of the node that most of its data is mapped to, as Zen+'s soft partition does;
    /// for --medium nvm:optane-40+nodes:local-writes.
    #[arg(long)]
    pub by_partition: bool,
    /// What all workloads share.
    #[command(flatten)]
    pub common: Common,
}

/// Settings of CH-benCHmark.
#[derive(Args, Debug)]
pub struct ChArgs {
    /// Warehouses.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub warehouses: u16,
    /// Clients that run transactions, each on a thread of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub oltp: u16,
    /// Clients that run queries, each on a thread of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub olap: u16,
    /// What all workloads share.
    #[command(flatten)]
    pub common: Common,
}

/// What all workloads share.
#[derive(Args, Debug)]
pub struct Common {
    /// Clients, each on a thread of its own [default: the cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub threads: Option<u16>,
    /// Seconds to measure.
    #[arg(long, default_value = "10", value_parser = |text: &str| number(text, f64::MIN_POSITIVE))]
    pub seconds: f64,
    /// Seconds to run before measuring.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = |text: &str| number(text, 0.0))]
    pub warmup: f64,
    /// Transactions that all clients together start per second, on a fixed schedule; latencies
    /// count from the scheduled start. 0 for as fast as possible.
    #[arg(long, value_name = "TXN_PER_S", default_value = "0", value_parser = |text: &str| number(text, 0.0))]
    pub rate: f64,
    /// Collectors of old versions, separated by commas, or all: none, hyper, hekaton, hana, deuteronomy,
    /// ermia, steam, steam-watermark, n2db, zen, one-shot, tb-collect-eager, tb-collect-hash, tb-collect.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "tb-collect", value_parser = collectors)]
    pub gc: Vec<Collectors>,
    /// Concurrency controls, separated by commas, or all: pantile (the engine's own), and those of the laboratory:
    /// 2pl-detect, 2pl-wait-die, 2pl-no-wait, occ, silo, tictoc, mvto, hekaton, cicada, h-store. Under those, every
    /// transaction is serializable.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "pantile", value_parser = protocols)]
    pub protocol: Vec<Protocols>,
    /// Share of a block that must be obsolete before it is reclaimed, from 0.5 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = GcOptions::default().theta, value_parser = gc_theta)]
    pub gc_theta: f64,
    /// Share of the data that blocks waiting to be reclaimed may hold, from 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = GcOptions::default().queue_share, value_parser = gc_queue)]
    pub gc_queue: f64,
    /// Bytes taken per live byte that the adaptive pacing keeps to.
    #[arg(long, value_name = "RATIO", default_value_t = GcOptions::default().space_target, value_parser = gc_target)]
    pub gc_space_target: f64,
    /// Length of a collector's epoch in milliseconds, from 0.1 to 10000.
    #[arg(long, value_name = "MS", default_value = "40", value_parser = gc_epoch)]
    pub gc_epoch_ms: Duration,
    /// Milliseconds between two calls of a collector that has a thread of its own (hana, hekaton, zen),
    /// from 0.1 to 60000.
    #[arg(long, value_name = "MS", default_value = "1", value_parser = gc_interval)]
    pub gc_interval_ms: Duration,
    /// Commits per epoch, for collectors that count commits [default: deuteronomy 100, ermia 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub gc_epoch_commits: Option<u64>,
    /// When waiting blocks are reclaimed: fixed (when they hold their share) or adaptive (also
    /// when chains grow, writing is heavy or space is short).
    #[arg(long, value_name = "PACING", default_value = "adaptive", value_parser = gc_pacing)]
    pub gc_pacing: Pacing,
    /// Keep the blocks that a long transaction bypasses until it ends, for comparison.
    #[arg(long)]
    pub gc_no_pass_over: bool,
    /// Read-only transactions that stay open for the whole run, or as long as --long-seconds says; each reads about ten times a
    /// second and checks that nothing it has read changes. Under a protocol that reads only what is newest (2pl-*, occ,
    /// silo, tictoc, h-store) they are safe snapshots, which take no part in the protocol.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub long_readers: u16,
    /// How long each long reader stays open; then another begins in its place.
    #[arg(long, value_name = "SECONDS", requires = "long_readers", value_parser = |text: &str| number(text, f64::MIN_POSITIVE))]
    pub long_seconds: Option<f64>,
    /// Where the data is kept; several, separated by commas, are run in turn: file, dram, dax (persistent memory, with --dir on a
    /// file system mounted with dax=always; dax:eadr where the platform saves the CPU's caches),
    /// nvm:optane (or nvm), nvm:A to nvm:E (shares of this machine's DRAM), nvm:optane-40, nvm:A-40 to nvm:E-40 (each core has what
    /// one of 40 threads has of such memory; any other number of threads as well); nvm:optane-40/64 reads and writes 64 bytes at once; nvm:optane-40+mmdb:4
    /// charges what another design (zen, zen-naive, mmdb, wbl, foedus) would cost where the memory is 4 times the DRAM;
    /// nvm:optane-40+nodes:naive:2.5 (or local, remote, local-writes) is a machine of two nodes, whose remote memory costs
    /// 2.5 times as much (1 to 100).
    #[arg(long, value_delimiter = ',', default_value = "file", value_parser = Medium::by_name)]
    pub medium: Vec<Medium>,
    /// Directory of the database. It is kept, and a database that is already there is continued
    /// [default: a temporary directory, removed afterwards].
    #[arg(long, value_name = "PATH")]
    pub dir: Option<PathBuf>,
    /// How strictly transactions are kept apart; below serializable only under --protocol pantile.
    #[arg(long, value_enum, default_value = "serializable")]
    pub isolation: IsolationArg,
    /// Serializable writers stay at the timestamp at which they began, as in the papers, and readers
    /// wait for them.
    #[arg(long)]
    pub writers_stay: bool,
    /// Rows that a transaction reads and writes in vain, in all attempts, before it is run alone (on the exclusive stage);
    /// for transactions that begin again by themselves: those of --beside updates:N.
    #[arg(long, value_name = "N", default_value_t = ExclusiveStage::default().wasted, value_parser = clap::value_parser!(u64).range(1..))]
    pub exclusive_wasted: u64,
    /// Rows that a transaction reads and writes before it is run alone, in one attempt [default: any number].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub exclusive_accessed: Option<u64>,
    /// Failures after which such a transaction is run alone for a moment, and 10 seconds of failures after which it is run
    /// alone; never leaves both out, as in the paper [default: 8; with --writers-stay never].
    #[arg(long, value_name = "N|never", value_parser = tries)]
    pub exclusive_tries: Option<u32>,
    /// Keep rows that are read often in a cache of this many megabytes, where reads may wait for the medium; not with
    /// collectors that rewrite single slots.
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub row_cache: Option<u64>,
    /// When a commit is acknowledged.
    #[arg(long, value_enum, default_value = "sync")]
    pub durability: DurabilityArg,
    /// Seed of all random numbers.
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub seed: u64,
    /// Runs of each collector and medium, in turn; tables show medians.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub runs: u16,
    /// Write the record (an array if there are several runs) to this file; - for stdout.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a line to this file for everything that happens to a block: opened, sealed, pending,
    /// queued or bypassed, frozen, relocated, released, freed.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Print neither a line for each second nor a progress bar on stderr.
    #[arg(long)]
    pub quiet: bool,
}

impl Common {
    /// The collectors to run, without duplicates.
    pub fn collectors(&self) -> Vec<Collector> {
        let named = self.gc.iter().flat_map(|name| match name {
            Collectors::One(collector) => std::slice::from_ref(collector),
            Collectors::All => pantile_rivals::all(),
        });
        let mut each = Vec::new();
        for &collector in named {
            if !each.contains(&collector) {
                each.push(collector);
            }
        }
        each
    }

    /// The protocols to run under, without duplicates.
    pub fn protocols(&self) -> Vec<Option<Protocol>> {
        let all = || [None].into_iter().chain(pantile_protocols::all().iter().copied().map(Some));
        let mut each = Vec::new();
        for name in &self.protocol {
            let is_named = |protocol: &Option<Protocol>| match name {
                Protocols::One(one) => one == protocol,
                Protocols::All => true,
            };
            let new: Vec<_> =
                all().filter(|protocol| is_named(protocol) && !each.contains(protocol)).collect();
            each.extend(new);
        }
        each
    }

    /// The settings of collectors.
    pub fn gc_options(&self) -> GcOptions {
        GcOptions {
            theta: self.gc_theta,
            queue_share: self.gc_queue,
            space_target: self.gc_space_target,
            epoch: self.gc_epoch_ms,
            pacing: self.gc_pacing,
            bypass: !self.gc_no_pass_over,
            interval: self.gc_interval_ms,
            epoch_commits: self.gc_epoch_commits,
        }
    }
}

/// An error of the argument parser in one line: what is wrong, and the tip if there is one.
pub fn one_line(error: &str) -> String {
    let mut paragraphs = error.split("\n\n").map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "));
    let what = paragraphs.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(&what).to_owned();
    match paragraphs.find(|paragraph| paragraph.starts_with("tip: ")) {
        Some(tip) => format!("{what} ({})", &tip["tip: ".len()..]),
        None => what,
    }
}

#[cfg(test)]
#[path = "args_test.rs"]
mod tests;
