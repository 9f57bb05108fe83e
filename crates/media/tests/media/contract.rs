//! What every medium guarantees.

// Users read through the base pointer.
#![allow(unsafe_code)]

use pantile_media::unshared::Unshared;
use pantile_media::{
    DaxMedium, DaxOptions, DirectoryOptions, DramMedium, FileMedium, FileOptions, MapOptions, Medium,
    MediumError, MediumExt,
};
use pantile_nvm::{NvmConfig, NvmMedium};
use std::path::Path;
use std::sync::Arc;

/// What media grow by.
const STEP: u64 = 64 << 10;
const CHUNK: u64 = 2 << 20;

fn media(place: &Path) -> Vec<Arc<dyn Medium>> {
    let nvm = place.join("nvm");
    let persistent = DaxOptions { persistent_caches: true, ..DaxOptions::default() };
    let mut media: Vec<Arc<dyn Medium>> = vec![
        DramMedium::new(MapOptions::default()).expect("dram"),
        FileMedium::open(place.join("file"), FileOptions::default()).expect("file"),
        NvmMedium::anonymous(NvmConfig::E).expect("nvm"),
        NvmMedium::open(nvm, NvmConfig::OPTANE, DirectoryOptions::default()).expect("nvm file"),
        DaxMedium::open_without_persistence(place.join("dax"), DaxOptions::default()).expect("dax"),
        DaxMedium::open_without_persistence(place.join("eadr"), persistent).expect("dax"),
    ];
    // Real persistent memory, where there is some.
    if let Some(dir) = std::env::var_os("PANTILE_DAX_DIR") {
        let name = place.file_name().expect("a name");
        let dir = Path::new(&dir).join(name);
        media.push(
            DaxMedium::open(&dir, DaxOptions::default()).expect("PANTILE_DAX_DIR is on a DAX file system"),
        );
    }
    media
}

fn for_each(check: impl Fn(&dyn Medium)) {
    let place = tempfile::tempdir().expect("directory");
    media(place.path()).iter().for_each(|medium| check(&**medium));
    if let Some(dir) = std::env::var_os("PANTILE_DAX_DIR") {
        let name = place.path().file_name().expect("a name").display().to_string();
        std::fs::remove_dir_all(Path::new(&dir).join(name)).expect("the test's own directory");
    }
}

#[test]
fn writes_are_read_back_through_the_base() {
    for_each(|medium| {
        medium.grow(2 * CHUNK).expect("grow");
        medium.put(CHUNK - 3, b"across chunks").expect("write");
        medium.flush(CHUNK - 3, 13);
        medium.fence().expect("fence");
        medium.sync_all().expect("sync");
        let mut out = [0; 13];
        medium.get(CHUNK - 3, &mut out).expect("read");
        assert_eq!(&out, b"across chunks", "{}", medium.facts().name);
        // SAFETY: the byte is below `len` and no thread writes it.
        assert_eq!(unsafe { medium.base().add(CHUNK as usize).read() }, b'o');
    });
}

#[test]
fn growth_is_in_steps_and_never_shrinks_or_moves() {
    for_each(|medium| {
        let base = medium.base();
        let most = 5 * CHUNK + STEP;
        for (ask, get) in [(0, 0), (1, STEP), (CHUNK, CHUNK), (5 * CHUNK + 1, most), (1, most)] {
            medium.grow(ask).expect("grow");
            assert_eq!(medium.len(), get, "{}", medium.facts().name);
        }
        assert_eq!(base, medium.base());
        let full = medium.grow(medium.facts().limit + 1).expect_err("beyond the limit");
        assert!(full.is_full(), "{full}");
        medium.grow(u64::MAX).expect_err("beyond all limits");
        assert_eq!(medium.len(), most);
    });
}

#[test]
fn nothing_is_stored_out_of_range() {
    for_each(|medium| {
        medium.grow(CHUNK).expect("grow");
        for offset in [CHUNK, CHUNK - 1, u64::MAX] {
            let error = medium.put(offset, b"xy").expect_err("out of range");
            assert!(matches!(error, MediumError::OutOfRange { .. }), "{error}");
            medium.get(offset, &mut [0; 2]).expect_err("out of range");
        }
        medium.put(CHUNK, b"").expect("nothing at the end is in range");
        assert!(!medium.is_failed());
    });
}

#[test]
fn discarded_chunks_read_as_zero_and_can_be_written_once_restored() {
    for_each(|medium| {
        medium.grow(4 * CHUNK).expect("grow");
        let before = medium.stats();
        medium.put(0, &vec![7; 4 * CHUNK as usize]).expect("write");
        medium.give_back(CHUNK, 2 * CHUNK).expect("discard");
        medium.give_back(CHUNK, 0).expect("nothing");
        let mut out = vec![1; 4 * CHUNK as usize];
        medium.get(0, &mut out).expect("read");
        let discarded = CHUNK as usize..3 * CHUNK as usize;
        assert!(out[discarded.clone()].iter().all(|&byte| byte == 0), "{}", medium.facts().name);
        let around = out[..discarded.start].iter().chain(&out[discarded.end..]);
        assert!(around.clone().all(|&byte| byte == 7), "{}", medium.facts().name);
        assert_eq!(medium.len(), 4 * CHUNK);
        medium.take_back(CHUNK, CHUNK).expect("restore");
        medium.take_back(CHUNK, 0).expect("nothing");
        medium.put(2 * CHUNK - 4, b"back").expect("write");
        medium.flush(2 * CHUNK - 4, 4);
        medium.fence().expect("fence");
        let mut out = [1; 9];
        medium.get(2 * CHUNK - 5, &mut out).expect("read");
        assert_eq!(&out, b"\0back\0\0\0\0", "{}", medium.facts().name);
        let delta = medium.stats() - before;
        assert_eq!((delta.bytes_discarded, delta.bytes_restored), (2 * CHUNK, CHUNK));
    });
}

#[test]
fn only_chunks_that_are_there_are_discarded_and_restored() {
    for_each(|medium| {
        medium.grow(2 * CHUNK).expect("grow");
        medium.put(CHUNK, b"kept").expect("write");
        for (offset, len) in [(CHUNK, 2 * CHUNK), (3 * CHUNK, CHUNK), (u64::MAX - CHUNK + 1, CHUNK)] {
            for result in [medium.give_back(offset, len), medium.take_back(offset, len)] {
                assert!(matches!(result, Err(MediumError::OutOfRange { .. })), "{result:?}");
            }
        }
        let refused = |call: &dyn Fn() -> Result<(), MediumError>| {
            let call = std::panic::AssertUnwindSafe(call);
            std::panic::catch_unwind(move || (*call)()).expect_err("not multiples of the step");
        };
        for (offset, len) in [(4096, CHUNK), (0, CHUNK + 4096)] {
            refused(&|| medium.give_back(offset, len));
            refused(&|| medium.take_back(offset, len));
        }
        let mut out = [0; 4];
        medium.get(CHUNK, &mut out).expect("read");
        assert_eq!(&out, b"kept");
        assert!(!medium.is_failed());
    });
}

#[test]
fn a_point_is_durable_once_a_fence_followed_it() {
    for_each(|medium| {
        medium.grow(1).expect("grow");
        medium.put(0, &[1; 64]).expect("write");
        medium.flush(0, 64);
        let point = medium.sync_point();
        std::thread::scope(|scope| {
            let fence = scope.spawn(|| medium.fence().expect("fence"));
            fence.join().expect("another thread");
        });
        assert!(medium.is_durable(point), "{}", medium.facts().name);
    });
}

#[test]
fn statistics_only_grow() {
    for_each(|medium| {
        medium.grow(1).expect("grow");
        let before = medium.stats();
        medium.put(0, &[1; 4096]).expect("write");
        medium.fence().expect("fence");
        let delta = medium.stats() - before;
        assert_eq!((delta.bytes_written, delta.fences), (4096, 1), "{}", medium.facts().name);
    });
}

#[test]
fn names_and_promises() {
    let place = tempfile::tempdir().expect("directory");
    let seen: Vec<_> = media(place.path())
        .iter()
        .map(|medium| {
            (medium.facts().name.clone(), medium.facts().survives_exit, medium.facts().charges.is_some())
        })
        .collect();
    let expected = [
        ("dram", false, false),
        ("file", true, false),
        ("nvm:E", false, true),
        ("nvm:optane", true, true),
        ("dax", true, false),
        ("dax", true, false),
    ];
    assert_eq!(seen[..expected.len()], expected.map(|(name, a, b)| (name.to_owned(), a, b)));
}
