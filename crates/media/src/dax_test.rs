use super::*;
use crate::unshared::Unshared;
use crate::{DATA_FILE, FileMedium, FileOptions, MediumExt};
use pantile_base::limits::{CHUNK_BYTES, GROWTH_BYTES};
use pantile_testkit::SpaceGauge;
use std::fs::File;

fn open(path: &Path) -> Arc<DaxMedium> {
    DaxMedium::open_without_persistence(path, DaxOptions::default()).expect("open")
}

fn content(medium: &dyn Medium, offset: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    medium.get(offset, &mut out).expect("read");
    out
}

#[test]
fn file_systems_that_cannot_do_it_are_refused_and_stay_as_they_were() {
    let parents = [std::env::temp_dir(), "/dev/shm".into()];
    for parent in parents.iter().filter(|parent| parent.exists()) {
        let place = tempfile::tempdir_in(parent).expect("directory");
        let error = match DaxMedium::open(place.path(), DaxOptions::default()) {
            // Temporary files may be on persistent memory.
            Ok(_) => continue,
            Err(error) => error,
        };
        assert!(matches!(error, MediumError::NoDax { .. }), "{error}");
        let text = error.to_string();
        for part in [DATA_FILE, "nothing was changed", "dax=always", "medium \"file\""] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!place.path().join(DATA_FILE).exists(), "no data file was left");
        // So it is not taken for a database, and a file can be made there.
        let missing = DaxOptions { create: Create::MustExist, ..DaxOptions::default() };
        let error = DaxMedium::open(place.path(), missing).expect_err("nothing there");
        assert!(matches!(error, MediumError::Missing { .. }), "{error}");
        let file = FileMedium::open(place.path(), FileOptions::default()).expect("the way out");
        file.grow(1).expect("grow");
        file.put(5, b"kept").expect("write");
        file.sync_all().expect("sync");
        drop(file);
        let before = std::fs::read(place.path().join(DATA_FILE)).expect("read");
        DaxMedium::open(place.path(), DaxOptions::default()).expect_err("still not");
        assert!(std::fs::read(place.path().join(DATA_FILE)).expect("read") == before);
    }
}

#[test]
fn a_ram_disk_is_refused() {
    // Where there is one.
    if let Ok(place) = tempfile::tempdir_in("/dev/shm") {
        let error = DaxMedium::open(place.path(), DaxOptions::default()).expect_err("tmpfs keeps nothing");
        assert!(matches!(error, MediumError::NoDax { reason: NoDax::FileSystem, .. }), "{error}");
        assert!(error.to_string().contains("MAP_SYNC"), "{error}");
    }
}

#[test]
fn every_length_and_alignment_is_stored_exactly_and_its_lines_are_flushed() {
    let place = tempfile::tempdir().expect("directory");
    let medium = open(place.path());
    medium.grow(1).expect("grow");
    for len in [1, 63, 64, 65, 100, 4096 + 13] {
        for shift in [0, 1, 17, 63, 64] {
            medium.put(0, &[0; 8192]).expect("clear");
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8 + 1).collect();
            let before = medium.stats();
            medium.put(shift, &bytes).expect("write");
            medium.flush(shift, len as u64);
            medium.fence().expect("fence");
            let delta = medium.stats() - before;
            let lines = (shift + len as u64).div_ceil(LINE_BYTES) - shift / LINE_BYTES;
            assert_eq!((delta.flushes, delta.fences, delta.syncs), (lines, 1, 0), "{len} at {shift}");
            let found = content(&*medium, 0, 8192);
            let (before, rest) = found.split_at(shift as usize);
            assert!(before.iter().all(|&byte| byte == 0));
            assert_eq!(rest[..len], bytes[..], "{len} at {shift}");
            assert!(rest[len..].iter().all(|&byte| byte == 0));
        }
    }
    let before = medium.stats();
    medium.flush(medium.len() - 64, 1 << 40);
    medium.flush(u64::MAX, 1);
    medium.flush(0, 0);
    assert_eq!((medium.stats() - before).flushes, 1, "beyond the end nothing is flushed");
}

#[test]
fn persistent_caches_need_fences_only() {
    let place = tempfile::tempdir().expect("directory");
    let options = DaxOptions { persistent_caches: true, ..DaxOptions::default() };
    let medium = DaxMedium::open_without_persistence(place.path(), options).expect("open");
    medium.grow(1).expect("grow");
    medium.put(0, &[1; 4096]).expect("write");
    medium.flush(0, 4096);
    medium.fence().expect("fence");
    assert_eq!((medium.stats().flushes, medium.stats().fences), (0, 1));
}

#[test]
fn contents_and_lengths_are_found_again() {
    let place = tempfile::tempdir().expect("directory");
    let medium = open(place.path());
    medium.grow(3 * CHUNK_BYTES).expect("grow");
    assert!(medium.stats().syncs > 0, "the length is durable");
    medium.put(CHUNK_BYTES - 2, b"across").expect("write");
    medium.flush(CHUNK_BYTES - 2, 6);
    medium.fence().expect("fence");
    assert!(matches!(
        DaxMedium::open_without_persistence(place.path(), DaxOptions::default()),
        Err(MediumError::Locked { .. })
    ));
    drop(medium);
    let medium = open(place.path());
    assert!(medium.len() >= 3 * CHUNK_BYTES);
    assert_eq!(content(&*medium, CHUNK_BYTES - 3, 8), b"\0across\0");
}

/// A file ends where the zeros end that are written ahead, wherever that is. A
/// store beyond the end would end the process.
#[test]
fn all_that_is_found_again_can_be_stored_to() {
    let place = tempfile::tempdir().expect("directory");
    for round in 0..4u8 {
        let medium = open(place.path());
        let (len, found) =
            (medium.len(), std::fs::metadata(place.path().join(DATA_FILE)).expect("a file").len());
        assert_eq!(len, if round == 0 { 0 } else { found });
        if len > 0 {
            medium.put(len - 6, b"at end").expect("write");
            assert_eq!(content(&*medium, len - 6, 6), b"at end");
        }
        medium.grow(len + 9 * CHUNK_BYTES).expect("grow");
        medium.put(medium.len() - 1, &[round]).expect("write");
    }
}

#[test]
fn what_one_medium_writes_the_others_read() {
    let place = tempfile::tempdir().expect("directory");
    let write = |medium: &dyn Medium, turn: u64| {
        medium.grow((turn + 1) * CHUNK_BYTES).expect("grow");
        medium.put(turn * CHUNK_BYTES + 9, &[turn as u8 + 1; 100]).expect("write");
        medium.flush(turn * CHUNK_BYTES + 9, 100);
        medium.fence().expect("fence");
        for before in 0..=turn {
            assert_eq!(content(medium, before * CHUNK_BYTES + 9, 100), [before as u8 + 1; 100]);
        }
    };
    for turn in 0..6 {
        match turn % 2 {
            0 => write(&*FileMedium::open(place.path(), FileOptions::default()).expect("file"), turn),
            _ => write(&*open(place.path()), turn),
        }
    }
}

#[test]
fn holes_have_space_behind_them_before_they_are_stored_to() {
    let place = tempfile::tempdir().expect("directory");
    // As a copy that left out the zeros, or a file whose growth was cut off.
    File::create(place.path().join(DATA_FILE)).expect("file").set_len(4 * CHUNK_BYTES).expect("length");
    let gauge = SpaceGauge::of(place.path());
    let assert_taken = |chunks| gauge.assert_chunks(&place.path().join(DATA_FILE), chunks);
    assert_taken(0);
    let medium = open(place.path());
    assert_eq!(medium.len(), 4 * CHUNK_BYTES);
    medium.grow(2 * CHUNK_BYTES).expect("what is there already");
    // The last bytes asked for have space, others do not.
    assert_taken(0);
    for chunk in 1..4 {
        medium.put(chunk * CHUNK_BYTES, &[0; CHUNK_BYTES as usize]).expect("write");
    }
    medium.put(3 * CHUNK_BYTES - 1, b"ab").expect("write");
    // What was written to has space.
    assert_taken(3);
    medium.give_back(2 * CHUNK_BYTES, CHUNK_BYTES).expect("discard");
    assert_taken(2);
    medium.take_back(2 * CHUNK_BYTES, CHUNK_BYTES).expect("restore");
    assert_taken(3);
    assert_eq!(content(&*medium, 3 * CHUNK_BYTES - 1, 2), b"\0b");
    medium.put(0, b"").expect("nothing");
    assert_taken(3);
}

#[test]
fn a_failed_medium_only_reads() {
    let place = tempfile::tempdir().expect("directory");
    let medium = open(place.path());
    medium.grow(1).expect("grow");
    medium.put(0, b"kept").expect("write");
    medium.flush(0, 4);
    let good = medium.sync_point();
    medium.contents.failure.latch("the device is gone");
    let lost = medium.sync_point();
    assert!(medium.is_durable(good) && !medium.is_durable(lost));
    for result in [
        medium.put(0, b"lost"),
        medium.fence(),
        medium.sync_all(),
        medium.grow(0),
        medium.give_back(0, GROWTH_BYTES),
        medium.take_back(0, GROWTH_BYTES),
    ] {
        assert!(matches!(result, Err(MediumError::Failed { .. })), "{result:?}");
    }
    assert_eq!(content(&*medium, 0, 4), b"kept");
}

#[test]
fn the_limit_holds() {
    let place = tempfile::tempdir().expect("directory");
    let map = MapOptions { max_bytes: Some(2 * CHUNK_BYTES), ..MapOptions::default() };
    let options = DaxOptions { map, ..DaxOptions::default() };
    let medium = DaxMedium::open_without_persistence(place.path(), options).expect("open");
    medium.grow(2 * CHUNK_BYTES).expect("grow");
    assert!(medium.grow(2 * CHUNK_BYTES + 1).expect_err("full").is_full());
    drop(medium);
    let len = std::fs::metadata(place.path().join(DATA_FILE)).expect("file").len();
    assert_eq!(len, 2 * CHUNK_BYTES, "nothing is prepared beyond the limit");
}
