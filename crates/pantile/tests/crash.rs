//! Killed processes: what was acknowledged is there, nothing is there in part,
//! and the same database is opened and killed again and again.
//!
//! The test starts its own binary as a child, in which several clients run
//! transactions and log each acknowledgement with one system call, and kills
//! it at a random moment, also while it recovers.
//!
//! `PANTILE_CRASH_ROUNDS` and `PANTILE_CRASH_SEED` give more rounds and others.

mod crash_support;
mod support;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crash_support::workload::{Acknowledged, CLIENTS, Tables, extra, extra_definition, retired};
use crash_support::{Random, from_env, open_soon};
use pantile::{Database, Durability, IndexDef, MediumKind, NvmConfig, Options, Result, Value};

const KIND: &str = "PANTILE_CRASH_KIND";
const PLACE: &str = "PANTILE_CRASH_PLACE";
/// Ends kinds in which the collector is as eager as it goes.
const EAGER: &str = "+eager";

fn open(kind: &str, place: &Path) -> Result<Database> {
    let options = Options::new().streams(3);
    let (kind, options) = match kind.strip_suffix(EAGER) {
        // Other settings with each opening.
        Some(kind) => {
            (kind, support::eager(options, fs::metadata(log_path(place)).map_or(0, |log| log.len())))
        }
        None => (kind, options),
    };
    let options = match kind {
        "sync" => options,
        "group" => options.durability(Durability::Group),
        "none" => options.durability(Durability::None),
        _ => options.medium(MediumKind::Nvm(NvmConfig::E)),
    };
    open_soon(&options, &place.join("db"))
}

fn log_path(place: &Path) -> PathBuf {
    place.join("acknowledged")
}

/// Does nothing unless it is started as the child.
#[test]
fn child() {
    let (Ok(kind), Some(place)) = (std::env::var(KIND), std::env::var_os(PLACE)) else {
        return;
    };
    let place = Path::new(&place);
    let db = open(&kind, place).expect("open");
    let tables = Tables::open(&db).expect("tables");
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let log = OpenOptions::new().append(true).open(log_path(place)).expect("log");
            let (db, tables) = (&db, &tables);
            scope.spawn(move || {
                if let Err(error) = work(db, tables, client, log) {
                    eprintln!("client {client}: {error}");
                    // The parent notices that the child did not wait for it.
                    std::process::abort();
                }
            });
        }
    });
}

/// Runs until it is killed.
fn work(db: &Database, tables: &Tables, client: u64, mut log: File) -> Result<()> {
    // One call of the system for a line: it is there or not.
    let mut acknowledge = |line: String| log.write_all(line.as_bytes()).expect("log");
    for seq in tables.last_of(db, client)? + 1.. {
        if seq.is_multiple_of(8) {
            let done = db.stats().collector;
            acknowledge(format!("collected {} {}\n", done.blocks_reclaimed, done.survivors_relocated));
        }
        let extra = extra(client, seq);
        if let Some(name) = &extra {
            if !db.tables().contains(name) {
                db.create_table(extra_definition(name))?;
            }
            acknowledge(format!("made {name}\n"));
        }
        let ts = db.run(|txn| {
            tables.transaction(txn, client, seq)?;
            if let Some(name) = &extra {
                let tag = crash_support::workload::tag(client, seq);
                txn.insert(&db.table(name)?, &[seq.into(), Value::Str(&tag)])?;
            }
            Ok(txn.timestamp())
        })?;
        acknowledge(format!("commit {client} {seq} {ts}\n"));
        if let Some(name) = &extra {
            db.create_index(&db.table(name)?, IndexDef::unique("by_tag", ["tag"]))?;
            acknowledge(format!("indexed {name}\n"));
        }
        if let Some(name) = retired(client, seq).filter(|name| db.tables().contains(name)) {
            acknowledge(format!("dropping {name}\n"));
            db.drop_table(&name)?;
            acknowledge(format!("dropped {name}\n"));
        }
    }
    Ok(())
}

fn start_child(kind: &str, place: &Path) -> Child {
    let binary = std::env::current_exe().expect("this binary");
    let mut command = Command::new(binary);
    command.args(["--exact", "child", "--nocapture"]).env(KIND, kind).env(PLACE, place);
    command.stdout(Stdio::null()).spawn().expect("child")
}

fn kill(mut child: Child) {
    if let Some(status) = child.try_wait().expect("wait") {
        panic!("the child ended by itself: {status}");
    }
    child.kill().expect("kill");
    child.wait().expect("wait");
}

/// Lets a child work for a while and kills it.
fn kill_at_work(kind: &str, place: &Path, random: &mut Random) {
    let child = start_child(kind, place);
    let log_bytes = || fs::metadata(log_path(place)).expect("log").len();
    let (before, deadline) = (log_bytes(), Instant::now() + Duration::from_secs(30));
    while log_bytes() == before && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(2));
    }
    thread::sleep(Duration::from_micros(random.below(250_000)));
    kill(child);
}

/// Kills a child that has hardly begun, most likely while it opens.
fn kill_at_opening(kind: &str, place: &Path, random: &mut Random) {
    let child = start_child(kind, place);
    thread::sleep(Duration::from_micros(random.below(80_000)));
    kill(child);
}

fn rounds(kind: &str) {
    let seed = from_env("PANTILE_CRASH_SEED", u64::from(std::process::id()));
    let rounds = from_env("PANTILE_CRASH_ROUNDS", 5);
    println!("{kind}: PANTILE_CRASH_SEED={seed} PANTILE_CRASH_ROUNDS={rounds}");
    let place = tempfile::tempdir().expect("directory");
    let place = place.path();
    File::create(log_path(place)).expect("log");
    let mut random = Random::new(seed);
    let mut acknowledged = Acknowledged::default();
    let mut unclean = 0;
    for round in 0..rounds {
        kill_at_work(kind, place, &mut random);
        let more = random.below(3);
        for _ in 0..more {
            kill_at_opening(kind, place, &mut random);
        }
        acknowledged.read(&fs::read_to_string(log_path(place)).expect("log"));
        let db = open(kind, place).unwrap_or_else(|error| panic!("{kind}, round {round}: {error}"));
        unclean += u64::from(!db.recovery().was_closed);
        acknowledged.verify(&db, 1 + more).unwrap_or_else(|error| panic!("{kind}, round {round}: {error}"));
        if random.below(2) == 0 {
            // The next child finds a database that was closed, or one that recovery has just left.
            db.close().expect("close");
        }
    }
    println!("{kind}: {:?} transactions, {} tables made", acknowledged.last, acknowledged.made.len());
    println!("{kind}: {} blocks freed, {} survivors moved", acknowledged.freed, acknowledged.moved);
    assert!(!kind.ends_with(EAGER) || acknowledged.freed > 0, "nothing was collected");
    assert!(acknowledged.last.iter().all(|&last| last > 0), "{acknowledged:?}");
    assert_eq!(unclean, rounds, "each round ended with a kill");
}

#[test]
fn a_killed_process_loses_nothing_on_a_synced_file() {
    rounds("sync");
}

#[test]
fn a_killed_process_loses_nothing_with_group_commit() {
    rounds("group");
}

#[test]
fn a_killed_process_loses_nothing_even_without_syncs() {
    rounds("none");
}

#[test]
fn a_killed_process_loses_nothing_on_emulated_memory() {
    rounds("nvm");
}

#[test]
fn a_killed_process_loses_nothing_beside_an_eager_collector() {
    for kind in ["group+eager", "none+eager", "nvm+eager"] {
        rounds(kind);
    }
}
