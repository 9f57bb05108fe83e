use super::*;

use crate::unshared::Unshared;
use crate::{FileMedium, FileOptions};
use pantile_base::limits::CHUNK_BYTES;

fn made() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("directory");
    let medium = FileMedium::open(dir.path(), FileOptions::default()).expect("make");
    medium.grow(CHUNK_BYTES).expect("grow");
    medium.put(5, b"contents").expect("write");
    dir
}

fn read(medium: &dyn Medium, at: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    medium.get(at, &mut bytes).expect("read");
    bytes
}

#[test]
fn what_is_written_to_a_view_never_reaches_the_file() {
    let dir = made();
    let path = dir.path().join(DATA_FILE);
    let (bytes, time) = (std::fs::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap());
    let view = ViewMedium::open(dir.path(), &|_, _| ControlFlow::Continue(())).expect("view");
    assert_eq!(read(&*view, 5, 8), b"contents");
    view.put(5, b"changed!").expect("write");
    view.grow(view.len() + 1).expect("grow");
    view.put(view.len() - 4, b"more").expect("write");
    assert_eq!(read(&*view, 5, 8), b"changed!");
    view.give_back(0, CHUNK_BYTES).expect("discard");
    assert_eq!(read(&*view, 0, 64), [0; 64]);
    drop(view);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(path.metadata().unwrap().modified().unwrap(), time);
}

#[test]
fn a_view_and_an_opener_exclude_each_other() {
    let dir = made();
    let view = ViewMedium::open(dir.path(), &|_, _| ControlFlow::Continue(())).expect("view");
    let opened = FileMedium::open(dir.path(), FileOptions::default());
    assert!(matches!(opened, Err(MediumError::Locked { .. })), "{opened:?}");
    drop(view);
    let _medium = FileMedium::open(dir.path(), FileOptions::default()).expect("open");
    let viewed = ViewMedium::open(dir.path(), &|_, _| ControlFlow::Continue(()));
    assert!(matches!(viewed, Err(MediumError::Locked { .. })), "{viewed:?}");
}

/// On tmpfs a load from a hole takes memory, and ends the process when there is none.
#[cfg(target_os = "linux")]
#[test]
fn viewing_puts_nothing_into_the_holes_of_a_file_in_memory() {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { return println!("skipped: no /dev/shm") };
    let path = dir.path().join(DATA_FILE);
    let mut file = File::create(&path).expect("file");
    file.write_all(&[1; 5000]).expect("write");
    let len = CHUNK_BYTES + 9;
    file.set_len(len).expect("lengthen");
    let before = file.metadata().expect("look").blocks();
    let view = ViewMedium::open(dir.path(), &|_, _| ControlFlow::Continue(())).expect("view");
    let all = read(&*view, 0, view.len() as usize);
    assert!(all[..5000].iter().all(|byte| *byte == 1) && all[5000..].iter().all(|byte| *byte == 0));
    assert_eq!(file.metadata().expect("look").blocks(), before);
    view.put(len - 1, b"changed").expect("write");
    assert_eq!(read(&*view, len - 1, 7), b"changed");
}

#[test]
fn files_of_any_length_can_be_viewed() {
    let dir = made();
    for len in [0, 1, 4095, 4096, 4097, CHUNK_BYTES - 1, CHUNK_BYTES + 9] {
        let bytes: Vec<u8> = (0..len).map(|n| (n % 251) as u8 + 1).collect();
        std::fs::write(dir.path().join(DATA_FILE), &bytes).expect("write");
        let view = ViewMedium::open(dir.path(), &|_, _| ControlFlow::Continue(())).expect("view");
        assert_eq!((view.file_len(), view.len()), (len, round_up(len)));
        let mut all = read(&*view, 0, view.len() as usize);
        assert!(all.split_off(len as usize).iter().all(|b| *b == 0));
        assert!(all == bytes, "{len}");
    }
}

#[test]
fn what_is_not_a_database_is_told() {
    let dir = tempfile::tempdir().expect("directory");
    let open = |path: &Path| ViewMedium::open(path, &|_, _| ControlFlow::Continue(()));
    assert!(matches!(open(dir.path()), Err(MediumError::Missing { .. })));
    assert!(matches!(open(&dir.path().join("none")), Err(MediumError::Missing { .. })));
    std::fs::create_dir(dir.path().join(DATA_FILE)).expect("directory");
    assert!(matches!(open(dir.path()), Err(MediumError::NotAFile { .. })));
    let file = dir.path().join("file");
    std::fs::write(&file, "x").expect("write");
    assert!(matches!(open(&file), Err(MediumError::NotADirectory { .. })));
}
