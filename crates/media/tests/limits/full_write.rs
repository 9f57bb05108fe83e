//! Writes that fail in the middle: the medium latches, and readers continue.

use crate::limit::FileLimit;
use pantile_media::unshared::Unshared;
use pantile_media::{
    DATA_FILE, DaxMedium, DaxOptions, Durability, FileMedium, FileOptions, MapOptions, Medium, MediumError,
    MediumExt,
};
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const CHUNK: u64 = 2 << 20;

fn file(path: &Path, durability: Durability) -> Arc<dyn Medium> {
    let options = FileOptions { durability, max_bytes: Some(3 * CHUNK), ..FileOptions::default() };
    FileMedium::open(path, options).expect("file")
}

fn dax(path: &Path) -> Arc<dyn Medium> {
    let map = MapOptions { max_bytes: Some(3 * CHUNK), ..MapOptions::default() };
    DaxMedium::open_without_persistence(path, DaxOptions { map, ..DaxOptions::default() }).expect("dax")
}

fn content(medium: &dyn Medium, offset: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    medium.get(offset, &mut out).expect("readers go on");
    out
}

/// Asserts that only reading still works, and that every error says why.
fn assert_failed(medium: &dyn Medium, cause: &str) {
    for result in [
        medium.put(0, b"x"),
        medium.fence(),
        medium.sync_all(),
        medium.grow(CHUNK),
        medium.give_back(0, CHUNK),
        medium.take_back(0, CHUNK),
    ] {
        let Err(MediumError::Failed { cause: found }) = result else {
            panic!("{}: it goes on after a failure", medium.facts().name);
        };
        assert!(found.contains(cause), "{found}");
    }
    assert!(!medium.is_durable(medium.sync_point()));
}

#[test]
fn a_write_that_fails_stops_writers_for_good_and_no_reader() {
    let limit = FileLimit::take();
    limit.ignore_signal();
    for durability in [Durability::Sync, Durability::Group, Durability::None] {
        let place = tempfile::tempdir().expect("directory");
        let medium = file(place.path(), durability);
        medium.grow(3 * CHUNK).expect("grow");
        medium.put(CHUNK, &[1; 4096]).expect("write");
        medium.sync_all().expect("sync");
        let before = medium.stats();
        // Fewer may be stored through a mapping, which the limit is not for.
        let len = if durability == Durability::None { 9_000 } else { 200 };
        let failed = format!("write of {len} bytes");
        // The system takes the first hundred bytes, and no more.
        limit.set(CHUNK + 100);
        let error = medium.put(CHUNK, &vec![2; len]).expect_err("taken in part").to_string();
        assert!(error.contains(&format!("{failed} at 2097152")), "{error}");
        let found = content(&*medium, CHUNK, 4096);
        assert!(found[..100].iter().all(|&byte| byte == 2) && found[100..].iter().all(|&byte| byte == 1));
        assert_eq!((medium.stats() - before).bytes_written, 0, "what failed is not counted");
        assert_failed(&*medium, &failed);
        limit.lift();
        assert_failed(&*medium, &failed);
        drop(medium);
        let medium = file(place.path(), durability);
        assert_eq!(medium.len(), 3 * CHUNK);
        medium.put(CHUNK, &[3; 200]).expect("opened again it writes");
        medium.fence().expect("and syncs");
    }
}

/// A process that opens more than it may write is told so, and is not ended.
#[test]
fn what_may_not_be_written_is_not_tried() {
    let limit = FileLimit::take();
    for durability in [Durability::Sync, Durability::Group, Durability::None] {
        let place = tempfile::tempdir().expect("directory");
        let medium = file(place.path(), durability);
        medium.grow(3 * CHUNK).expect("grow");
        drop(medium);
        limit.set(2 * CHUNK);
        let medium = file(place.path(), durability);
        medium.put(CHUNK, &[2; 200]).expect("this may be written");
        let error = medium.put(2 * CHUNK - 100, &[2; 200]).expect_err("beyond the limit").to_string();
        assert!(error.contains("write of 200 bytes") && error.contains("beyond 4194304 bytes"), "{error}");
        assert!(content(&*medium, CHUNK + CHUNK - 100, 200).iter().all(|&byte| byte == 0));
        assert_failed(&*medium, "`ulimit -f`");
        limit.lift();
    }
}

/// Runs on a file system with room for two chunks. Does nothing unless it is
/// started there.
#[test]
fn child() {
    let Some(place) = std::env::var_os(PLACE) else {
        return;
    };
    let place = Path::new(&place);
    let holes = |name: &str| {
        let path = place.join(name);
        std::fs::create_dir(&path).expect("directory");
        File::create(path.join(DATA_FILE)).expect("file").set_len(3 * CHUNK).expect("length");
        path
    };
    for name in ["dax", "file"] {
        let open = |path: &Path| match name {
            "dax" => dax(path),
            _ => file(path, Durability::None),
        };
        let path = holes(name);
        let medium = open(&path);
        medium.put(0, b"kept").expect("write");
        medium.put(CHUNK, &[1; CHUNK as usize]).expect("write");
        // Behind this offset, `dax` has no space left, and `file` half a chunk.
        let error = medium.put(2 * CHUNK, &[2; CHUNK as usize]).expect_err("no space").to_string();
        assert!(error.contains("write of 2097152 bytes at 4194304"), "{name}: {error}");
        assert_failed(&*medium, "write of 2097152 bytes");
        assert_eq!(content(&*medium, 0, 4), b"kept");
        assert!(content(&*medium, CHUNK, CHUNK as usize).iter().all(|&byte| byte == 1));
        drop(medium);
        std::fs::remove_dir_all(&path).expect("remove");
        // A growth that finds no space is not a failure.
        let path = place.join("grown");
        let medium = open(&path);
        medium.grow(2 * CHUNK).expect("room");
        let full = medium.grow(3 * CHUNK).expect_err("no room");
        assert!(full.is_full(), "{name}: {full}");
        assert_eq!(medium.len(), 2 * CHUNK);
        medium.put(2 * CHUNK - 4, b"more").expect("it goes on");
        medium.flush(2 * CHUNK - 4, 4);
        medium.sync_all().expect("sync");
        drop(medium);
        assert_eq!(open(&path).len(), 2 * CHUNK, "{name}");
        std::fs::remove_dir_all(&path).expect("remove");
    }
    std::fs::write(place.join("done"), b"").expect("a little room");
    println!("{DONE}");
}

const PLACE: &str = "PANTILE_FULL_PLACE";
const DONE: &str = "all of it was done";

#[test]
fn a_device_that_is_really_full() {
    // A child would inherit the limit of another test.
    let _limit = FileLimit::take();
    let place = tempfile::tempdir().expect("directory");
    let binary = std::env::current_exe().expect("this binary");
    // A mount that only this process sees, as root or as an emulated root.
    let script =
        "mount -t tmpfs -o size=4m tmpfs \"$0\" && exec \"$1\" --exact full_write::child --nocapture";
    let run = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(arguments).args(["sh", "-c", script]).arg(place.path()).arg(&binary);
        command.env(PLACE, place.path()).output()
    };
    for arguments in [&["--mount"][..], &["--map-root-user", "--mount"]] {
        let Ok(output) = run(arguments) else { break };
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if out.contains("running 1 test") {
            assert!(output.status.success() && out.contains(DONE), "{out}{error}");
            return;
        }
        println!("{arguments:?}: {error}");
    }
    println!("skipped: mounting a small file system takes `unshare` and the right to use it");
}
