//! A program is killed. What it has acknowledged is there, and no batch is there in part.
//!
//! The test starts its own binary again as a child, which writes until it is killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kvdb::KeyValueDB;
use pantile::Database;
use pantile_kvdb::PantileKv;

const PLACE: &str = "PANTILE_KVDB_KILL_PLACE";
const DONE: &str = "done ";

fn open(place: &Path) -> PantileKv {
    PantileKv::new(Database::open(place).expect("open"), 2).expect("a store")
}

/// Does nothing unless it is started as the child. Each batch replaces what the one before has put.
#[test]
fn child() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let store = open(Path::new(&place));
    for n in batches(&store).. {
        let mut batch = store.transaction();
        batch.delete_prefix(0, b"part");
        (0..5u8)
            .for_each(|part| batch.put(0, &[b"part", &n.to_be_bytes()[..], &[part]].concat(), &[part; 3000]));
        batch.put(1, b"batches", &(n + 1).to_be_bytes());
        store.write(batch).expect("a batch");
        println!("{DONE}{n}");
    }
}

fn batches(store: &PantileKv) -> u64 {
    let count = store.get(1, b"batches").expect("get");
    count.map_or(0, |count| u64::from_be_bytes(count.try_into().expect("eight bytes")))
}

fn start_child(place: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "child", "--nocapture"])
        .env(PLACE, place)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child")
}

/// Kills the child when it has acknowledged so many batches; returns the last that it has.
fn killed_after(place: &Path, batches: usize) -> u64 {
    let mut child = start_child(place);
    let output = BufReader::new(child.stdout.take().expect("output"));
    let done = output.lines().map_while(Result::ok);
    let mut done = done.filter_map(|line| line.split_once(DONE)?.1.parse::<u64>().ok());
    let last = done.by_ref().nth(batches - 1).expect("the child goes on");
    child.kill().expect("kill");
    child.wait().expect("wait");
    done.last().unwrap_or(last)
}

#[test]
fn a_killed_program_loses_nothing_and_leaves_nothing_half_done() {
    let place = tempfile::tempdir().expect("a directory");
    for rounds in [1, 60, 25] {
        let last = killed_after(place.path(), rounds);
        let store = open(place.path());
        let batches = batches(&store);
        assert!(batches == last + 1 || batches == last + 2, "{batches} batches after {last}");
        let newest = (batches - 1).to_be_bytes();
        let keys: Vec<_> = store.iter(0).map(|pair| pair.expect("a pair").0.to_vec()).collect();
        let expected = (0..5u8).map(|part| [b"part", &newest[..], &[part]].concat());
        assert_eq!(keys, expected.collect::<Vec<_>>(), "the parts of one batch");
    }
}
