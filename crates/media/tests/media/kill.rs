//! A killed process: its lock is released, and its contents stay.
//!
//! The test starts its own binary again as a child, which writes and then
//! waits to be killed.

use pantile_media::unshared::Unshared;
use pantile_media::{DaxMedium, DaxOptions, DirectoryOptions, FileMedium, FileOptions, Medium, MediumError};
use pantile_nvm::{NvmConfig, NvmMedium};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

const KIND: &str = "PANTILE_MEDIA_KILL_KIND";
const PLACE: &str = "PANTILE_MEDIA_KILL_PLACE";
const READY: &str = "ready to be killed";

fn open(kind: &str, place: &Path) -> Result<Arc<dyn Medium>, MediumError> {
    Ok(match kind {
        "file" => FileMedium::open(place, FileOptions::default())?,
        "dax" => DaxMedium::open_without_persistence(place, DaxOptions::default())?,
        _ => NvmMedium::open(place, NvmConfig::E, DirectoryOptions::default())?,
    })
}

/// Does nothing unless it is started as the child.
#[test]
fn child() {
    let (Ok(kind), Some(place)) = (std::env::var(KIND), std::env::var_os(PLACE)) else {
        return;
    };
    let medium = open(&kind, Path::new(&place)).expect("open");
    medium.grow(8 << 20).expect("grow");
    medium.put(3 << 20, b"survives").expect("write");
    medium.flush(3 << 20, 8);
    medium.fence().expect("fence");
    println!("{READY}");
    loop {
        std::thread::park();
    }
}

fn start_child(kind: &str, place: &Path) -> Child {
    let binary = std::env::current_exe().expect("this binary");
    let mut child = Command::new(binary)
        .args(["--exact", "kill::child", "--nocapture"])
        .env(KIND, kind)
        .env(PLACE, place)
        .stdout(Stdio::piped())
        .spawn()
        .expect("child");
    let output = BufReader::new(child.stdout.take().expect("output"));
    let ready = output.lines().map_while(Result::ok).any(|line| line.contains(READY));
    assert!(ready, "the child ended early");
    child
}

#[test]
fn contents_survive_and_the_lock_does_not() {
    for kind in ["file", "nvm", "dax"] {
        let place = tempfile::tempdir().expect("directory");
        let mut child = start_child(kind, place.path());
        let locked = open(kind, place.path());
        assert!(matches!(locked, Err(MediumError::Locked { .. })), "{locked:?}");
        child.kill().expect("kill");
        child.wait().expect("wait");
        let medium = open(kind, place.path()).expect("open after the kill");
        let mut out = [0; 8];
        medium.get(3 << 20, &mut out).expect("read");
        assert_eq!(&out, b"survives", "{kind}");
    }
}
