use super::*;
use crate::zeros::PIECE_BYTES;
use std::fs;

fn made(bytes: &[u8]) -> (tempfile::TempDir, Arc<DataFile>) {
    let place = tempfile::tempdir().expect("directory");
    let path = place.path().join("data");
    fs::write(&path, bytes).expect("write");
    let file = DataFile::open(&path, false).expect("open");
    (place, file)
}

#[test]
fn a_range_of_any_length_is_overwritten_exactly() {
    let (_place, file) = made(&vec![7; 3 * PIECE_BYTES]);
    let (from, to) = (5, 2 * PIECE_BYTES + 9);
    write_zeros(file.file(), from as u64, (to - from) as u64).expect("zeros");
    let found = fs::read(file.path()).expect("read");
    assert!(found[from..to].iter().all(|&byte| byte == 0));
    assert!(found[..from].iter().chain(&found[to..]).all(|&byte| byte == 7));
    assert_eq!(found.len(), 3 * PIECE_BYTES);
}

/// As in a copy that was made without its zeros.
#[cfg(target_os = "linux")]
#[test]
fn holes_get_space_but_where_it_was_given_back() {
    use std::os::unix::fs::MetadataExt;
    const PART: u64 = 64 << 10;
    let (_place, file) = made(b"some");
    file.file().set_len(16 * PART).expect("longer");
    os::write_all_at(file.file(), &[7; 100], 9 * PART).expect("written");
    let taken = || file.file().metadata().expect("the file").blocks() * 512;
    if !os::keeps_promises(file.file()) {
        return eprintln!("skipped: this file system promises no space");
    }
    assert!(taken() < 8 * PART, "{} bytes", taken());
    let except = [2 * PART..4 * PART, 8 * PART..10 * PART, 15 * PART..16 * PART];
    file.fill_holes(16 * PART, &except).expect("there is space");
    // The part with the written page is whole or not, as the file system likes.
    assert!((11 * PART..=14 * PART).contains(&taken()), "{} bytes", taken());
    let found = fs::read(file.path()).expect("read");
    assert_eq!((&found[..4], found[9 * PART as usize], found.len() as u64), (&b"some"[..], 7, 16 * PART));
}

#[test]
fn what_could_not_be_made_ready_is_discarded_again() {
    let (_place, file) = made(&vec![7; PIECE_BYTES]);
    let prepare = || Err(io::Error::from_raw_os_error(libc::ENOSPC));
    let error = file.restore(0, PIECE_BYTES as u64, prepare).expect_err("full");
    assert!(error.is_full(), "{error}");
    // A file system that cannot take space back leaves the old bytes.
    if file.punch(0, 1).is_ok() {
        assert_eq!(fs::read(file.path()).expect("read"), vec![0; PIECE_BYTES]);
    }
}

#[test]
fn a_refusal_is_reported_unless_it_means_that_there_are_no_holes() {
    for (code, unsupported) in
        [(libc::EOPNOTSUPP, true), (libc::ENOSYS, true), (libc::EINVAL, true), (libc::EIO, false)]
    {
        assert_eq!(os::is_without_holes(&io::Error::from_raw_os_error(code)), unsupported);
    }
    let (_place, file) = made(b"kept");
    let read_only = DataFile::read_only(file.path.clone(), File::open(file.path()).expect("read only"));
    let error = read_only.discard(0, 4).expect_err("not open for writing");
    assert!(matches!(error, MediumError::Io { .. }), "{error}");
    assert_eq!(fs::read(file.path()).expect("read"), b"kept");
}

#[test]
fn a_file_that_was_cut_short_is_not_made_long_again() {
    let (_place, file) = made(&[7; 8192]);
    let len = || fs::metadata(file.path()).expect("file").len();
    let error = file.allocate(8193, 12_288).expect_err("a byte is missing");
    assert!(error.to_string().contains("cut it from at least 8193 bytes to 8192"), "{error}");
    assert_eq!(len(), 8192);
    file.shorten(10_000);
    assert_eq!(len(), 8192);
    file.allocate(8192, 12_288).expect("room");
    assert_eq!(len(), 12_288);
    file.lengthen(8192, 10_000).expect("long enough");
    assert_eq!(len(), 12_288);
}
