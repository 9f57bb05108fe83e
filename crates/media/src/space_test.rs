use super::*;
use std::fs;

#[test]
fn a_range_of_any_length_is_overwritten_exactly() {
    let place = tempfile::tempdir().expect("directory");
    let path = place.path().join("data");
    fs::write(&path, vec![7; 3 * PIECE_BYTES]).expect("write");
    let file = File::options().write(true).open(&path).expect("open");
    let (from, to) = (5, 2 * PIECE_BYTES + 9);
    write_zeros(&file, from as u64, (to - from) as u64).expect("zeros");
    let found = fs::read(&path).expect("read");
    assert!(found[from..to].iter().all(|&byte| byte == 0));
    assert!(found[..from].iter().chain(&found[to..]).all(|&byte| byte == 7));
    assert_eq!(found.len(), 3 * PIECE_BYTES);
}

#[test]
fn what_could_not_be_made_ready_is_discarded_again() {
    let place = tempfile::tempdir().expect("directory");
    let path = place.path().join("data");
    fs::write(&path, vec![7; PIECE_BYTES]).expect("write");
    let file = File::options().write(true).open(&path).expect("open");
    let prepare = || Err(io::Error::from_raw_os_error(libc::ENOSPC));
    let error = restore(&file, &path, 0, PIECE_BYTES as u64, prepare).expect_err("full");
    assert!(error.is_full(), "{error}");
    assert_eq!(fs::read(&path).expect("read"), vec![0; PIECE_BYTES]);
}

#[test]
fn a_refusal_is_reported_unless_it_means_that_there_are_no_holes() {
    for (code, unsupported) in
        [(libc::EOPNOTSUPP, true), (libc::ENOSYS, true), (libc::EINVAL, true), (libc::EIO, false)]
    {
        assert_eq!(is_unsupported(&io::Error::from_raw_os_error(code)), unsupported);
    }
    let place = tempfile::tempdir().expect("directory");
    let path = place.path().join("data");
    fs::write(&path, b"kept").expect("write");
    let file = File::open(&path).expect("read only");
    let error = discard(&file, &path, 0, 4).expect_err("not open for writing");
    assert!(matches!(error, MediumError::Io { .. }), "{error}");
    assert_eq!(fs::read(&path).expect("read"), b"kept");
}

#[test]
fn a_file_that_was_cut_short_is_not_made_long_again() {
    let place = tempfile::tempdir().expect("directory");
    let path = place.path().join("data");
    fs::write(&path, vec![7; 8192]).expect("write");
    let file = File::options().write(true).open(&path).expect("open");
    let len = || fs::metadata(&path).expect("file").len();
    let error = allocate(&file, &path, 8193, 12_288).expect_err("a byte is missing");
    assert!(error.to_string().contains("cut it from at least 8193 bytes to 8192"), "{error}");
    assert_eq!(len(), 8192);
    shorten(&file, 10_000);
    assert_eq!(len(), 8192);
    allocate(&file, &path, 8192, 12_288).expect("room");
    assert_eq!(len(), 12_288);
    lengthen(&file, 8192, 10_000).expect("long enough");
    assert_eq!(len(), 12_288);
}
