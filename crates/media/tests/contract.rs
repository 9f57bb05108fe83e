//! What every medium owes its users.

// Reading through the base pointer is what users do.
#![allow(unsafe_code)]

use pantile_media::{
    DramMedium, FileMedium, FileOptions, MapOptions, Medium, MediumError, NvmConfig, NvmMedium, NvmOptions,
};
use std::path::Path;
use std::sync::Arc;

const CHUNK: u64 = 2 << 20;

fn media(place: &Path) -> Vec<Arc<dyn Medium>> {
    let nvm = place.join("nvm");
    vec![
        DramMedium::new(MapOptions::default()).expect("dram"),
        FileMedium::open(place.join("file"), FileOptions::default()).expect("file"),
        NvmMedium::anonymous(NvmConfig::E).expect("nvm"),
        NvmMedium::open(nvm, NvmConfig::OPTANE, NvmOptions::default()).expect("nvm file"),
    ]
}

fn for_each(check: impl Fn(&dyn Medium)) {
    let place = tempfile::tempdir().expect("directory");
    media(place.path()).iter().for_each(|medium| check(&**medium));
}

#[test]
fn writes_are_read_back_through_the_base() {
    for_each(|medium| {
        medium.grow(2 * CHUNK).expect("grow");
        medium.write(CHUNK - 3, b"across chunks").expect("write");
        medium.flush(CHUNK - 3, 13);
        medium.fence().expect("fence");
        medium.sync_all().expect("sync");
        let mut out = [0; 13];
        medium.read(CHUNK - 3, &mut out).expect("read");
        assert_eq!(&out, b"across chunks", "{}", medium.name());
        // SAFETY: the byte is below `len` and nobody writes it.
        assert_eq!(unsafe { medium.base().add(CHUNK as usize).read() }, b'o');
    });
}

#[test]
fn growth_is_in_chunks_and_never_shrinks_or_moves() {
    for_each(|medium| {
        let base = medium.base();
        for (ask, get) in [(0, 0), (1, CHUNK), (CHUNK, CHUNK), (5 * CHUNK + 1, 6 * CHUNK), (1, 6 * CHUNK)] {
            medium.grow(ask).expect("grow");
            assert_eq!(medium.len(), get, "{}", medium.name());
        }
        assert_eq!(base, medium.base());
        let full = medium.grow(medium.limit() + 1).expect_err("beyond the limit");
        assert!(full.is_full(), "{full}");
        medium.grow(u64::MAX).expect_err("beyond all limits");
        assert_eq!(medium.len(), 6 * CHUNK);
    });
}

#[test]
fn nothing_is_stored_out_of_range() {
    for_each(|medium| {
        medium.grow(1).expect("grow");
        for offset in [CHUNK, CHUNK - 1, u64::MAX] {
            let error = medium.write(offset, b"xy").expect_err("out of range");
            assert!(matches!(error, MediumError::OutOfRange { .. }), "{error}");
            medium.read(offset, &mut [0; 2]).expect_err("out of range");
        }
        medium.write(CHUNK, b"").expect("nothing at the end is in range");
        assert!(!medium.is_failed());
    });
}

#[test]
fn statistics_only_grow() {
    for_each(|medium| {
        medium.grow(1).expect("grow");
        let before = medium.stats();
        medium.write(0, &[1; 4096]).expect("write");
        medium.fence().expect("fence");
        let delta = medium.stats() - before;
        assert_eq!((delta.bytes_written, delta.fences), (4096, 1), "{}", medium.name());
    });
}

#[test]
fn names_and_promises() {
    let place = tempfile::tempdir().expect("directory");
    let seen: Vec<_> = media(place.path())
        .iter()
        .map(|medium| (medium.name(), medium.survives_exit(), medium.charges_reads()))
        .collect();
    let expected =
        [("dram", false, false), ("file", true, false), ("nvm:E", false, true), ("nvm:optane", true, true)];
    assert_eq!(seen, expected.map(|(name, a, b)| (name.to_owned(), a, b)));
}
