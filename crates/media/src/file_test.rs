use super::*;
use crate::place::UNSYNCED;
use crate::unshared::Unshared;
use crate::{DATA_FILE, MediumExt};
use pantile_base::limits::{CHUNK_BYTES, GROWTH_BYTES};
use pantile_testkit::{SpaceGauge, await_that};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

fn with(durability: Durability) -> FileOptions {
    FileOptions { durability, ..FileOptions::default() }
}

const ALL: [Durability; 3] = [Durability::Sync, Durability::Group, Durability::None];

/// A medium whose sync counts its calls and fails once told to.
fn failing(path: &Path, durability: Durability) -> (Arc<FileMedium>, Arc<AtomicBool>, Arc<AtomicU64>) {
    let (broken, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (fails, counts) = (broken.clone(), calls.clone());
    let call = move || {
        counts.fetch_add(1, Ordering::SeqCst);
        match fails.load(Ordering::SeqCst) {
            true => Err(io::Error::from_raw_os_error(libc::EIO)),
            false => Ok(()),
        }
    };
    let medium = FileMedium::open_with_sync(path, with(durability), Box::new(call), false).expect("open");
    (medium, broken, calls)
}

#[test]
fn a_failed_sync_stops_writers_for_good_and_no_reader() {
    let place = tempfile::tempdir().expect("directory");
    let (medium, broken, calls) = failing(place.path(), Durability::Sync);
    medium.grow(1).expect("grow");
    medium.put(0, b"good").expect("write");
    medium.fence().expect("fence");
    broken.store(true, Ordering::SeqCst);
    medium.put(4, b"lost").expect("write");
    let error = medium.fence().expect_err("failed sync").to_string();
    assert!(error.contains("os error 5"), "{error}");
    broken.store(false, Ordering::SeqCst);
    let failed = |result: Result<(), MediumError>| {
        assert!(matches!(result, Err(MediumError::Failed { .. })), "{result:?}");
    };
    failed(medium.fence());
    failed(medium.sync_all());
    failed(medium.put(0, b"more"));
    failed(medium.grow(1 << 30));
    failed(medium.grow(0));
    assert_eq!(calls.load(Ordering::SeqCst), 2, "nothing was tried again");
    assert!(medium.is_failed());
    let mut out = [0; 8];
    medium.get(0, &mut out).expect("readers go on");
    assert_eq!(&out, b"goodlost");
}

/// The system takes the pages of a failed sync for written, so that no later sync writes them.
#[test]
fn what_a_failed_sync_has_left_is_written_again() {
    let place = tempfile::tempdir().expect("directory");
    let (data, note) = (place.path().join(DATA_FILE), place.path().join(UNSYNCED));
    let (medium, broken, _) = failing(place.path(), Durability::Sync);
    medium.grow(2 * CHUNK_BYTES).expect("grow");
    medium.put(0, b"good").expect("write");
    medium.fence().expect("fence");
    medium.give_back(CHUNK_BYTES, CHUNK_BYTES).expect("discard");
    assert!(!note.exists());
    broken.store(true, Ordering::SeqCst);
    medium.put(4, b"left").expect("write");
    medium.fence().expect_err("failed sync");
    assert!(note.exists());
    drop(medium);
    let look = || fs::metadata(&data).expect("the file");
    let taken = look().blocks();
    for is_written in [true, false] {
        let file = File::options().write(true).open(&data).expect("open");
        file.set_modified(SystemTime::UNIX_EPOCH).expect("a time");
        let medium = FileMedium::open(place.path(), with(Durability::Sync)).expect("open");
        assert_eq!(look().modified().expect("a time") > SystemTime::UNIX_EPOCH, is_written);
        assert!(!note.exists());
        let mut out = [0; 8];
        medium.get(0, &mut out).expect("read");
        assert_eq!(&out, b"goodleft");
        assert!(look().blocks() <= taken, "holes stay holes");
    }
}

/// Whatever name the next opening comes by.
#[test]
fn the_note_of_a_failed_sync_lies_beside_the_file_to_which_a_link_leads() {
    let (place, other) = (tempfile::tempdir().expect("directory"), tempfile::tempdir().expect("directory"));
    drop(FileMedium::open(place.path(), with(Durability::Sync)).expect("open"));
    for name in [DATA_FILE, "rows"] {
        let (data, link) = (place.path().join(name), other.path().join(DATA_FILE));
        if name != DATA_FILE {
            fs::rename(place.path().join(DATA_FILE), &data).expect("renamed");
            fs::remove_file(&link).expect("removed");
        }
        std::os::unix::fs::symlink(&data, &link).expect("a link");
        let (medium, broken, _) = failing(other.path(), Durability::Sync);
        medium.grow(1).expect("grow");
        broken.store(true, Ordering::SeqCst);
        medium.put(0, b"left").expect("write");
        medium.fence().expect_err("failed sync");
        drop(medium);
        let notes = |of: &Path| {
            let names = fs::read_dir(of).expect("names").map(|entry| entry.expect("a name").file_name());
            names.filter(|name| name.to_string_lossy().ends_with("unsynced")).count()
        };
        assert_eq!((notes(place.path()), notes(other.path())), (1, 1));
        // Another link leads to it.
        let third = tempfile::tempdir().expect("directory");
        std::os::unix::fs::symlink(&data, third.path().join(DATA_FILE)).expect("a link");
        drop(FileMedium::open(third.path(), with(Durability::Sync)).expect("open"));
        assert_eq!(notes(place.path()), 0);
        drop(FileMedium::open(other.path(), with(Durability::Sync)).expect("open"));
        assert_eq!(notes(other.path()), 0);
    }
}

#[test]
fn without_durability_only_sync_all_syncs() {
    let place = tempfile::tempdir().expect("directory");
    let (medium, broken, calls) = failing(place.path(), Durability::None);
    medium.grow(1).expect("grow");
    medium.fence().expect("fence");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    medium.sync_all().expect("sync");
    assert_eq!((medium.stats().fences, medium.stats().syncs), (1, 1));
    broken.store(true, Ordering::SeqCst);
    medium.sync_all().expect_err("failed sync");
    medium.fence().expect_err("latched");
}

#[test]
fn a_fence_of_a_lone_thread_is_one_sync() {
    for durability in [Durability::Sync, Durability::Group] {
        let place = tempfile::tempdir().expect("directory");
        let (medium, _, calls) = failing(place.path(), durability);
        (0..5).for_each(|_| medium.fence().expect("fence"));
        assert_eq!(calls.load(Ordering::SeqCst), 5);
        assert_eq!((medium.stats().fences, medium.stats().syncs), (5, 5));
    }
}

#[test]
fn contents_are_found_again_and_new_space_is_zero() {
    for durability in ALL {
        let place = tempfile::tempdir().expect("directory");
        let medium = FileMedium::open(place.path(), with(durability)).expect("open");
        assert!(medium.is_empty());
        medium.grow(3 * CHUNK_BYTES).expect("grow");
        let base = medium.base();
        medium.put(CHUNK_BYTES - 2, b"across").expect("write");
        medium.fence().expect("fence");
        medium.grow(9 * CHUNK_BYTES).expect("grow");
        assert_eq!(base, medium.base());
        drop(medium);
        let medium = FileMedium::open(place.path(), with(durability)).expect("open again");
        assert!(medium.len() >= 9 * CHUNK_BYTES);
        // All of it: nothing lies beyond the end of the file.
        assert_eq!(ahead(&medium), 0);
        let mut found = vec![0; medium.len() as usize];
        medium.get(0, &mut found).expect("read");
        let at = CHUNK_BYTES as usize - 2;
        assert_eq!(&found[at..at + 6], b"across");
        assert!(found[..at].iter().chain(&found[at + 6..]).all(|&byte| byte == 0));
    }
}

#[test]
fn many_threads_grow_and_write_at_once() {
    for durability in ALL {
        let place = tempfile::tempdir().expect("directory");
        let medium = FileMedium::open(place.path(), with(durability)).expect("open");
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let medium = &medium;
                scope.spawn(move || {
                    for step in 0..4 {
                        let offset = (step * 4 + thread) * CHUNK_BYTES;
                        medium.grow(offset + CHUNK_BYTES).expect("grow");
                        medium.put(offset + 5, &[thread as u8 + 1]).expect("write");
                        medium.fence().expect("fence");
                    }
                });
            }
        });
        for chunk in 0..16 {
            let mut byte = [0];
            medium.get(chunk * CHUNK_BYTES + 5, &mut byte).expect("read");
            assert_eq!(u64::from(byte[0]), chunk % 4 + 1);
        }
    }
}

#[test]
fn the_limit_holds_and_a_full_medium_stays_as_it_was() {
    for durability in ALL {
        let place = tempfile::tempdir().expect("directory");
        let options = FileOptions { max_bytes: Some(2 * CHUNK_BYTES), ..with(durability) };
        let medium = FileMedium::open(place.path(), options).expect("open");
        medium.grow(CHUNK_BYTES).expect("grow");
        assert!(medium.grow(2 * CHUNK_BYTES + 1).expect_err("full").is_full());
        assert_eq!(medium.len(), CHUNK_BYTES);
        medium.put(0, b"goes on").expect("write");
        medium.grow(2 * CHUNK_BYTES).expect("grow");
        let path = medium.data_path().to_path_buf();
        drop(medium);
        let len = fs::metadata(path).expect("file").len();
        assert_eq!(len, 2 * CHUNK_BYTES, "nothing is prepared beyond the limit");
    }
}

#[test]
fn writes_beyond_the_end_are_refused_and_do_not_latch() {
    let place = tempfile::tempdir().expect("directory");
    let medium = FileMedium::open(place.path(), with(Durability::Sync)).expect("open");
    medium.grow(1).expect("grow");
    let error = medium.put(CHUNK_BYTES - 1, &[1, 2]);
    assert!(matches!(error, Err(MediumError::OutOfRange { .. })));
    assert!(!medium.is_failed());
}

#[test]
fn one_opener_at_a_time() {
    let place = tempfile::tempdir().expect("directory");
    let first = FileMedium::open(place.path(), FileOptions::default()).expect("open");
    let second = FileMedium::open(place.path(), FileOptions::default());
    assert!(matches!(second, Err(MediumError::Locked { .. })), "{second:?}");
    drop(first);
    FileMedium::open(place.path(), FileOptions::default()).expect("free again");
}

#[test]
fn a_truncated_file_is_refused_and_left_alone() {
    let place = tempfile::tempdir().expect("directory");
    let path = place.path().join(DATA_FILE);
    fs::write(&path, b"not ours").expect("write");
    let error = FileMedium::open(place.path(), FileOptions::default()).expect_err("truncated");
    assert!(matches!(error, MediumError::Truncated { len: 8, .. }), "{error}");
    assert_eq!(fs::read(&path).expect("read"), b"not ours");
}

#[test]
fn creation_is_as_asked() {
    let place = tempfile::tempdir().expect("directory");
    let creating = |create| FileOptions { create, ..FileOptions::default() };
    let deep = place.path().join("a/b");
    let missing = FileMedium::open(&deep, creating(Create::MustExist));
    assert!(matches!(missing, Err(MediumError::Missing { .. })));
    assert!(!place.path().join("a").exists());
    let empty = FileMedium::open(place.path(), creating(Create::MustExist));
    assert!(matches!(empty, Err(MediumError::Missing { .. })));
    assert_eq!(fs::read_dir(place.path()).expect("list").count(), 0, "left as it was");
    drop(FileMedium::open(&deep, creating(Create::MustBeNew)).expect("new"));
    drop(FileMedium::open(&deep, creating(Create::MustExist)).expect("there"));
    let again = FileMedium::open(&deep, creating(Create::MustBeNew));
    assert!(matches!(again, Err(MediumError::Exists { .. })));
}

#[test]
fn what_is_not_a_database_directory_is_refused() {
    let place = tempfile::tempdir().expect("directory");
    let file = place.path().join("file");
    fs::write(&file, b"x").expect("write");
    let error = FileMedium::open(&file, FileOptions::default());
    assert!(matches!(error, Err(MediumError::NotADirectory { .. })));
    fs::create_dir(place.path().join(DATA_FILE)).expect("directory");
    let error = FileMedium::open(place.path(), FileOptions::default());
    assert!(matches!(error, Err(MediumError::NotAFile { .. })));
}

#[test]
fn units_are_pages() {
    assert_eq!([pages(0, 0), pages(0, 1), pages(4095, 2), pages(4096, 8192)], [0, 1, 2, 2]);
}

/// A limit that keeps the prefiller from adding to the blocks that are counted.
fn limited(durability: Durability) -> FileOptions {
    FileOptions { max_bytes: Some(4 * CHUNK_BYTES), ..with(durability) }
}

/// Whether each chunk is full of its byte.
fn are_filled(medium: &FileMedium, bytes: [u8; 4]) -> bool {
    let mut found = vec![0; 4 * CHUNK_BYTES as usize];
    medium.get(0, &mut found).expect("read");
    let mut chunks = found.chunks_exact(CHUNK_BYTES as usize).zip(bytes);
    chunks.all(|(chunk, byte)| chunk.iter().all(|&found| found == byte))
}

/// Bytes that the file has beyond what the medium takes: they are written with
/// zeros ahead of their use.
fn ahead(medium: &FileMedium) -> u64 {
    fs::metadata(medium.data_path()).expect("the file is there").len() - medium.len()
}

#[test]
fn zeros_are_written_ahead_of_small_commits_only() {
    for durability in [Durability::Sync, Durability::Group] {
        let place = tempfile::tempdir().expect("directory");
        let medium = FileMedium::open(place.path(), with(durability)).expect("open");
        let mut end = 0;
        let mut grow = || {
            end += CHUNK_BYTES;
            medium.grow(end).expect("grow");
        };
        let commit = |bytes: usize| {
            medium.put(0, &vec![1; bytes]).expect("write");
            medium.fence().expect("fence");
        };
        // Growing without a sync in between, and with large ones.
        (0..20).for_each(|_| grow());
        let beyond = ahead(&medium);
        (0..20).for_each(|_| grow());
        assert!(ahead(&medium) <= beyond, "{beyond} before");
        commit(CHUNK_BYTES as usize);
        grow();
        let rest = ahead(&medium);
        commit(CHUNK_BYTES as usize);
        grow();
        assert_eq!(ahead(&medium), rest.saturating_sub(CHUNK_BYTES));
        // Chunk by chunk beside small ones.
        (0..100).for_each(|_| commit(1000));
        grow();
        await_that("it is written ahead", || ahead(&medium) >= 2 * CHUNK_BYTES);
    }
}

#[test]
fn discarded_chunks_take_no_space_until_they_are_restored() {
    for durability in ALL {
        let place = tempfile::tempdir().expect("directory");
        let medium = FileMedium::open(place.path(), limited(durability)).expect("open");
        let (gauge, data) = (SpaceGauge::of(place.path()), medium.data_path().to_owned());
        medium.grow(4 * CHUNK_BYTES).expect("grow");
        (0..4).for_each(|n| {
            medium.put(n * CHUNK_BYTES, &vec![n as u8 + 1; CHUNK_BYTES as usize]).expect("write")
        });
        medium.sync_all().expect("sync");
        gauge.assert_chunks(&data, 4);
        medium.give_back(CHUNK_BYTES, 2 * CHUNK_BYTES).expect("discard");
        gauge.assert_chunks(&data, 2);
        assert_eq!(medium.len(), 4 * CHUNK_BYTES);
        medium.sync_all().expect("sync");
        drop(medium);
        let medium = FileMedium::open(place.path(), limited(durability)).expect("open again");
        // Before anything is read: on a RAM disk, reading a hole takes memory.
        gauge.assert_chunks(&data, 2);
        medium.take_back(2 * CHUNK_BYTES, CHUNK_BYTES).expect("restore");
        gauge.assert_chunks(&data, 3);
        assert!(are_filled(&medium, [1, 0, 0, 4]));
        medium.put(2 * CHUNK_BYTES, &vec![9; CHUNK_BYTES as usize]).expect("write");
        medium.fence().expect("fence");
        drop(medium);
        let medium = FileMedium::open(place.path(), limited(durability)).expect("open again");
        assert!(are_filled(&medium, [1, 0, 9, 4]));
    }
}

#[test]
fn restored_space_has_been_written_where_fences_sync() {
    for (durability, written) in
        [(Durability::Sync, true), (Durability::Group, true), (Durability::None, false)]
    {
        let place = tempfile::tempdir().expect("directory");
        let medium = FileMedium::open(place.path(), limited(durability)).expect("open");
        let gauge = SpaceGauge::of(place.path());
        medium.grow(CHUNK_BYTES).expect("grow");
        medium.give_back(0, CHUNK_BYTES).expect("discard");
        medium.take_back(0, CHUNK_BYTES).expect("restore");
        let file = File::open(medium.data_path()).expect("open");
        drop(medium);
        gauge.assert_written(&file, written);
    }
}

#[test]
fn a_failed_medium_discards_nothing() {
    let place = tempfile::tempdir().expect("directory");
    let (medium, broken, _) = failing(place.path(), Durability::Sync);
    medium.grow(1).expect("grow");
    medium.put(0, b"kept").expect("write");
    broken.store(true, Ordering::SeqCst);
    medium.fence().expect_err("failed sync");
    for result in [medium.give_back(0, CHUNK_BYTES), medium.take_back(0, CHUNK_BYTES)] {
        assert!(matches!(result, Err(MediumError::Failed { .. })), "{result:?}");
    }
    let mut out = [0; 4];
    medium.get(0, &mut out).expect("read");
    assert_eq!(&out, b"kept");
    let stats = medium.stats();
    assert_eq!((stats.bytes_discarded, stats.bytes_restored), (0, 0));
}

#[test]
fn a_point_becomes_durable_by_anybodys_sync() {
    for durability in ALL {
        let place = tempfile::tempdir().expect("directory");
        let (medium, broken, calls) = failing(place.path(), durability);
        medium.grow(1).expect("grow");
        medium.put(0, b"first").expect("write");
        let first = medium.sync_point();
        assert!(!medium.is_durable(first));
        let promises = durability != Durability::None;
        std::thread::scope(|scope| scope.spawn(|| medium.fence().expect("fence")).join().expect("thread"));
        assert_eq!(medium.is_durable(first), promises, "{durability:?}");
        assert_eq!(calls.load(Ordering::SeqCst), u64::from(promises), "asking causes no sync");
        medium.sync_all().expect("sync");
        assert!(medium.is_durable(first));
        let lost = medium.sync_point();
        broken.store(true, Ordering::SeqCst);
        medium.sync_all().expect_err("failed sync");
        broken.store(false, Ordering::SeqCst);
        medium.sync_all().expect_err("latched");
        assert!(medium.is_durable(first) && !medium.is_durable(lost));
        assert!(!medium.is_durable(medium.sync_point()));
    }
}

#[test]
fn a_sync_that_started_before_a_point_does_not_count_for_it() {
    let place = tempfile::tempdir().expect("directory");
    let steps = Arc::new(Barrier::new(2));
    let inside = Arc::clone(&steps);
    let slow = move || {
        inside.wait();
        inside.wait();
        Ok(())
    };
    let medium = FileMedium::open_with_sync(place.path(), with(Durability::Sync), Box::new(slow), false)
        .expect("open");
    medium.grow(1).expect("grow");
    let point = medium.sync_point();
    let (early, late) = during_a_fence(&medium, &steps, || {
        let early = medium.is_durable(point);
        medium.put(0, b"too late").expect("write");
        (early, medium.sync_point())
    });
    assert!(!early, "the sync had not ended");
    assert!(medium.is_durable(point));
    assert!(!medium.is_durable(late), "written after the sync had started");
    during_a_fence(&medium, &steps, || ());
    assert!(medium.is_durable(late));
}

#[test]
fn a_slow_sync_holds_up_only_those_who_wait_for_it() {
    let place = tempfile::tempdir().expect("directory");
    let steps = Arc::new(Barrier::new(2));
    let inside = Arc::clone(&steps);
    let slow = move || {
        inside.wait();
        inside.wait();
        Ok(())
    };
    let medium = FileMedium::open_with_sync(place.path(), with(Durability::Sync), Box::new(slow), false)
        .expect("open");
    medium.grow(2 * CHUNK_BYTES).expect("grow");
    medium.put(0, b"before").expect("write");
    let other = during_a_fence(&medium, &steps, || {
        let mut out = [0; 6];
        medium.get(0, &mut out).expect("readers go on");
        assert_eq!(&out, b"before");
        medium.put(6, b" during").expect("so do writers until they want to know");
        medium.check_readable(0, CHUNK_BYTES).expect("readable");
        medium.grow(4 * CHUNK_BYTES).expect("growth");
        medium.give_back(CHUNK_BYTES, CHUNK_BYTES).expect("discarding");
        medium.take_back(CHUNK_BYTES, CHUNK_BYTES).expect("restoring");
        assert!(!medium.is_durable(medium.sync_point()));
        // Another fence waits, since the sync under way may have missed its bytes.
        let waits = Arc::clone(&medium);
        let other = std::thread::spawn(move || waits.fence());
        std::thread::sleep(Duration::from_millis(20));
        assert!(!other.is_finished());
        other
    });
    steps.wait();
    steps.wait();
    other.join().expect("thread").expect("the other fence has had its own sync");
    assert_eq!((medium.stats().fences, medium.stats().syncs), (2, 2));
}

/// Calls `during` while another thread's sync is between two `steps`.
fn during_a_fence<R>(medium: &FileMedium, steps: &Barrier, during: impl FnOnce() -> R) -> R {
    std::thread::scope(|scope| {
        let fence = scope.spawn(|| medium.fence().expect("fence"));
        steps.wait();
        let result = during();
        steps.wait();
        fence.join().expect("fence");
        result
    })
}

/// What the system has been told about the mapping of a medium (`VmFlags` in
/// `/proc/self/smaps`).
fn advice(medium: &FileMedium) -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/smaps").expect("the system shows mappings");
    let path = medium.data_path().to_str().expect("a plain path");
    let mut flags = Vec::new();
    let mut is_ours = false;
    for line in maps.lines() {
        if line.contains('/') {
            is_ours = line.ends_with(path);
        }
        if let Some(found) = line.strip_prefix("VmFlags:").filter(|_| is_ours) {
            flags.extend(found.split_whitespace().map(ToOwned::to_owned));
        }
    }
    assert!(!flags.is_empty(), "{path} is mapped");
    flags
}

/// On a device, reading ahead and huge pages would read megabytes for a row.
#[test]
fn the_system_is_told_how_a_file_will_be_read() {
    // Beside the program, since temporary files may be in memory, where none of this is needed.
    let program = std::env::current_exe().expect("a program");
    let place = tempfile::tempdir_in(program.parent().expect("a directory")).expect("directory");
    let medium = FileMedium::open(place.path(), with(Durability::None)).expect("open");
    if medium.facts().cached_in.is_none() {
        return eprintln!("skipped: this program is on a file system in memory");
    }
    let has = |flag: &str| advice(&medium).iter().any(|found| found == flag);
    medium.grow(1).expect("grow");
    assert!(!has("rr"), "{:?}", advice(&medium));
    medium.advise(Reads::AtRandom);
    assert!(has("rr"), "{:?}", advice(&medium));
    medium.grow(9 * CHUNK_BYTES).expect("grow");
    assert_eq!(advice(&medium).iter().filter(|flag| *flag == "rr").count(), 1, "one mapping, one advice");
    assert!(!has("hg"), "{:?}", advice(&medium));
    medium.advise(Reads::Soon { offset: 5, len: u64::MAX });
}

#[test]
fn files_in_memory_have_huge_pages() {
    let Ok(place) = tempfile::tempdir_in("/dev/shm") else {
        return eprintln!("skipped: there is no file system in memory");
    };
    if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        return eprintln!("skipped: this system has no huge pages");
    }
    let medium = FileMedium::open(place.path(), with(Durability::None)).expect("open");
    if medium.facts().cached_in.is_some() {
        return eprintln!("skipped: there is no file system in memory");
    }
    medium.grow(1).expect("grow");
    medium.advise(Reads::AtRandom);
    let advice = advice(&medium);
    assert!(advice.iter().any(|flag| flag == "hg") && !advice.iter().any(|flag| flag == "rr"), "{advice:?}");
    assert_eq!(medium.facts().cached_in, None);
}

#[test]
fn small_writes_are_stored_where_space_is_promised_and_nothing_waits_for_the_device() {
    let place = tempfile::tempdir().expect("directory");
    for durability in ALL {
        let medium = FileMedium::open(place.path(), with(durability)).expect("open");
        let is_stored_to = durability == Durability::None && os::keeps_promises(medium.file.file());
        assert_eq!(medium.stores.is_some(), is_stored_to, "{durability:?}");
    }
}

/// As a copy that left out the zeros: what is stored has space behind it before.
#[test]
fn holes_get_space_before_they_are_stored_to() {
    let place = tempfile::tempdir().expect("directory");
    File::create(place.path().join(DATA_FILE)).expect("file").set_len(4 * CHUNK_BYTES).expect("length");
    let gauge = SpaceGauge::of(place.path());
    let medium = FileMedium::open(place.path(), with(Durability::None)).expect("open");
    let Some(stores) = &medium.stores else {
        return eprintln!("skipped: this file system does not keep promises");
    };
    gauge.assert_chunks(&place.path().join(DATA_FILE), 0);
    for piece in (CHUNK_BYTES..2 * CHUNK_BYTES).step_by(GROWTH_BYTES as usize) {
        medium.put(piece + 5, b"stored").expect("write");
    }
    // All of each piece, not only the page that was stored to.
    gauge.assert_chunks(&place.path().join(DATA_FILE), 1);
    medium.sync_all().expect("sync");
    medium.put(CHUNK_BYTES + 7, b"again").expect("write");
    let mut found = [0; 7];
    medium.get(CHUNK_BYTES + 5, &mut found).expect("read");
    assert_eq!(&found, b"stagain");
    // A file that another medium reads has the same bytes.
    let bytes = fs::read(place.path().join(DATA_FILE)).expect("the file");
    assert_eq!(&bytes[(CHUNK_BYTES + 5) as usize..][..7], b"stagain");
    // What was given back has none, and gets it again.
    medium.give_back(CHUNK_BYTES, CHUNK_BYTES).expect("discard");
    gauge.assert_chunks(&place.path().join(DATA_FILE), 0);
    medium.take_back(CHUNK_BYTES, CHUNK_BYTES).expect("restore");
    gauge.assert_chunks(&place.path().join(DATA_FILE), 1);
    // SAFETY: nobody else has the medium.
    assert!(unsafe { stores.store(CHUNK_BYTES, b"few") });
    // SAFETY: as before.
    assert!(!unsafe { stores.store(CHUNK_BYTES, &[1; (8 << 10) + 1]) }, "many are written");
}

#[test]
fn a_file_that_is_cut_and_grows_again_is_stored_to_where_it_is() {
    let place = tempfile::tempdir().expect("directory");
    let medium = FileMedium::open(place.path(), with(Durability::None)).expect("open");
    medium.grow(4 * CHUNK_BYTES).expect("grow");
    medium.put(3 * CHUNK_BYTES, b"before").expect("write");
    // SAFETY: nobody else has the medium.
    unsafe { medium.shrink(CHUNK_BYTES) }.expect("shrink");
    medium.put(3 * CHUNK_BYTES, b"beyond").expect_err("it is not there");
    medium.grow(4 * CHUNK_BYTES).expect("grow");
    let mut found = [1; 6];
    medium.get(3 * CHUNK_BYTES, &mut found).expect("read");
    assert_eq!(found, [0; 6]);
    medium.put(3 * CHUNK_BYTES, b"behind").expect("write");
    medium.get(3 * CHUNK_BYTES, &mut found).expect("read");
    assert_eq!(&found, b"behind");
}

/// The parent goes on writing where a forked child would.
#[test]
fn a_forked_child_writes_nothing() {
    for durability in ALL {
        let place = tempfile::tempdir().expect("directory");
        let medium = FileMedium::open(place.path(), with(durability)).expect("open");
        medium.grow(1).expect("grow");
        medium.put(0, b"parent").expect("write");
        // SAFETY: the child calls nothing that needs other threads, and ends by itself.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_refused =
                matches!(medium.put(0, b"child!"), Err(MediumError::Failed { .. })) && medium.is_failed();
            // SAFETY: it ends the child and nothing else.
            unsafe { libc::_exit(if is_refused { 0 } else { 1 }) };
        }
        assert!(child > 0, "{}", io::Error::last_os_error());
        let mut status = 0;
        // SAFETY: the child is this process's own, and the call writes to what it is given.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{durability:?}: {status}");
        let mut out = [0; 6];
        medium.get(0, &mut out).expect("read");
        assert_eq!(&out, b"parent");
        medium.put(0, b"again!").expect("the parent goes on");
        medium.fence().expect("fence");
    }
}
