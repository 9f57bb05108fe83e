//! Reads that fail: one clear message, and then the process ends by SIGBUS as
//! it would anyway.
//!
//! The test starts its own binary again as a child, which dies of the signal.

// These tests read through mappings and take signals.
#![allow(unsafe_code)]

use pantile_media::unshared::Unshared;
use pantile_media::{
    DATA_FILE, DaxMedium, DaxOptions, DirectoryOptions, Durability, FileMedium, FileOptions, MapOptions,
    Medium, MediumError, MediumExt,
};
use pantile_nvm::{NvmConfig, NvmMedium};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

const KIND: &str = "PANTILE_BUS_ERROR_KIND";
const PLACE: &str = "PANTILE_BUS_ERROR_PLACE";
const CHUNK: u64 = 2 << 20;
/// The exit status of the child's own handler.
const OWN_HANDLER: i32 = 42;

/// A limit keeps media from extending the file meanwhile.
fn open(kind: &str, place: &Path, explain_bus_errors: bool) -> Arc<dyn Medium> {
    let max_bytes = Some(3 * CHUNK);
    let map = MapOptions { max_bytes, ..MapOptions::default() };
    match kind {
        "file" | "relaxed" => {
            let durability = if kind == "file" { Durability::Sync } else { Durability::None };
            let options = FileOptions { durability, explain_bus_errors, max_bytes, ..FileOptions::default() };
            FileMedium::open(place, options).expect("file")
        }
        "dax" => {
            let options = DaxOptions { explain_bus_errors, map, ..DaxOptions::default() };
            DaxMedium::open_without_persistence(place, options).expect("dax")
        }
        _ => {
            let options = DirectoryOptions { explain_bus_errors, map, ..DirectoryOptions::default() };
            NvmMedium::open(place, NvmConfig::E, options).expect("nvm")
        }
    }
}

fn cut_short(path: &Path, len: u64) {
    File::options().write(true).open(path).expect("open").set_len(len).expect("length");
}

/// A mapped page of a file that has become too short for it.
fn foreign_page(place: &Path) -> *const u8 {
    let path = place.join("foreign");
    let file = File::create_new(&path).expect("file");
    file.set_len(4096).expect("length");
    let file = File::options().read(true).write(true).open(&path).expect("open");
    // SAFETY: a new mapping at an address of the system's choice.
    let page = unsafe {
        libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    assert_ne!(page, libc::MAP_FAILED);
    cut_short(&path, 0);
    page.cast()
}

extern "C" fn own_handler(_signal: libc::c_int) {
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(OWN_HANDLER) }
}

/// Does nothing unless it is started as the child. The kind is a list of words:
/// a medium, `silent` and `handler` for options, and the action.
#[test]
fn child() {
    let (Ok(kind), Some(place)) = (std::env::var(KIND), std::env::var_os(PLACE)) else {
        return;
    };
    let (words, place): (Vec<_>, _) = (kind.split(' ').collect(), Path::new(&place));
    if words.contains(&"handler") {
        // SAFETY: the handler has the signature of one.
        unsafe { libc::signal(libc::SIGBUS, own_handler as *const () as usize) };
    }
    if words.contains(&"default") {
        // SAFETY: the default action needs no handler.
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    }
    let medium = open(words[0], place, !words.contains(&"silent"));
    medium.grow(3 * CHUNK).expect("grow");
    medium.put(2 * CHUNK, b"there").expect("write");
    let address = match *words.last().expect("a word") {
        "foreign" => foreign_page(place),
        "sent" => {
            // SAFETY: sends this process a signal.
            unsafe { libc::raise(libc::SIGBUS) };
            return;
        }
        "write" => {
            cut_short(&place.join(DATA_FILE), CHUNK);
            let written = medium.put(2 * CHUNK + 8, b"more");
            // Where small writes are calls, this one makes the file longer again.
            println!("written: {written:?}");
            return;
        }
        "threads" => {
            cut_short(&place.join(DATA_FILE), CHUNK);
            let base = medium.base() as usize;
            std::thread::scope(|scope| {
                for n in 0..8 {
                    // SAFETY: the byte is inside the mapping.
                    scope.spawn(move || unsafe {
                        std::ptr::read_volatile((base as u64 + CHUNK + 4096 * n) as *const u8)
                    });
                }
            });
            return;
        }
        _ => {
            cut_short(&place.join(DATA_FILE), CHUNK);
            medium.base().wrapping_add(2 * CHUNK as usize + 8)
        }
    };
    // SAFETY: the byte is mapped. That the file has nothing behind it is the
    // purpose of the test.
    let byte = unsafe { address.read_volatile() };
    println!("read {byte}");
}

fn run(kind: &str) -> (Output, String) {
    let place = tempfile::tempdir().expect("directory");
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["--exact", "bus_error::child", "--nocapture"]).env(KIND, kind).env(PLACE, place.path());
    let output = command.output().expect("child");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!String::from_utf8_lossy(&output.stdout).contains("read "), "{kind}: something was read");
    (output, error)
}

#[test]
fn a_read_that_fails_is_explained_and_ends_the_process() {
    for kind in ["file", "dax", "nvm", "file default", "file threads", "file default threads"] {
        let (output, error) = run(kind);
        assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{kind}: {error}");
        assert_eq!(error.matches("pantile: ").count(), 1, "{kind}: {error}");
        assert!(error.contains(DATA_FILE), "{kind}: {error}");
        assert!(error.contains("it is only 2097152 bytes long now"), "{kind}: {error}");
        assert!(error.contains("pantile check"), "{kind}: {error}");
        if !kind.ends_with("threads") {
            let used = if kind.starts_with("file") { "read" } else { "read or written" };
            assert!(error.contains(&format!("cannot be {used} at byte 4194312")), "{kind}: {error}");
        }
    }
}

#[test]
fn a_store_that_fails_is_explained_like_a_read() {
    let (output, error) = run("relaxed write");
    if String::from_utf8_lossy(&output.stdout).contains("written: Ok") {
        return println!("skipped: on this file system small writes are calls");
    }
    assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{error}");
    assert_eq!(error.matches("pantile: ").count(), 1, "{error}");
    assert!(error.contains("cannot be read or written at byte 4194312"), "{error}");
    assert!(error.contains("it is only 2097152 bytes long now"), "{error}");
}

#[test]
fn the_explanation_can_be_switched_off() {
    let (output, error) = run("file silent");
    assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{error}");
    assert!(!error.contains("pantile: "), "{error}");
}

#[test]
fn signals_about_anything_else_go_where_they_went_before() {
    for kind in ["file foreign", "file default foreign", "file default sent"] {
        let (output, error) = run(kind);
        assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{kind}: {error}");
        assert!(!error.contains("pantile: "), "{kind}: {error}");
    }
    for kind in ["file handler foreign", "file handler sent"] {
        let (output, error) = run(kind);
        assert_eq!(output.status.code(), Some(OWN_HANDLER), "{kind}: {error}");
        assert!(!error.contains("pantile: "), "{kind}: {error}");
    }
}

#[test]
fn a_handler_that_was_there_before_has_the_last_word() {
    let (output, error) = run("file handler");
    assert_eq!(output.status.code(), Some(OWN_HANDLER), "{error}");
    assert_eq!(error.matches("pantile: ").count(), 1, "{error}");
}

#[test]
fn a_caller_that_asks_first_gets_an_error_instead() {
    let place = tempfile::tempdir().expect("directory");
    for kind in ["file", "dax", "nvm"] {
        let place = place.path().join(kind);
        let medium = open(kind, &place, true);
        medium.grow(3 * CHUNK).expect("grow");
        medium.check_readable(0, medium.len()).expect("all there");
        medium.check_readable(5, 0).expect("nothing");
        let beyond = medium.check_readable(medium.len(), 1);
        assert!(matches!(beyond, Err(MediumError::OutOfRange { .. })), "{kind}: {beyond:?}");
        let len = 2 * CHUNK + 8192;
        cut_short(&place.join(DATA_FILE), len);
        medium.check_readable(0, len).expect("what is left");
        let error = medium.check_readable(CHUNK, 2 * CHUNK).expect_err("cut short");
        assert!(matches!(error, MediumError::Unreadable { offset, .. } if offset == len), "{kind}: {error}");
        assert!(error.to_string().contains("cannot be read at byte 4202496"), "{error}");
    }
}
