//! A database stored by format version 3 is read as it was written, and no
//! flipped bit in it leads to a wrong row (T16).
//!
//! The example `make_format_fixture` made it. `PANTILE_FLIP_SEED` and
//! `PANTILE_FLIPS` try other bits and more of them.

pub mod fixture;
pub mod image_file;

use pantile::lab::medium_of;
use pantile_media::unshared::Unshared;
use std::collections::BTreeMap;
use std::sync::Arc;

use image_file::{ImageFile, decode};
use pantile::{Collector, Database, Error, Medium, Options};
use pantile_media::{DramMedium, MapOptions};
use pantile_nvm::NvmConfig;
use pantile_testkit::cut::{CutKind, CutMedium, Image};
use pantile_testkit::{Random, ScratchDir, from_env};

const STORED: &[u8] = include_bytes!("data/format-3.image");

fn on(medium: Arc<dyn Medium>) -> pantile::Result<Database> {
    Options::new().on_medium(medium).recovery_threads(1).open("unused")
}

/// A medium with the stored bytes, one bit of which is flipped.
fn flipped(stored: &ImageFile, bit: Option<(usize, u8)>) -> Arc<DramMedium> {
    let medium = DramMedium::new(MapOptions { reserve_bytes: 1 << 28, max_bytes: None }).expect("memory");
    medium.grow(stored.bytes.len() as u64).expect("grow");
    for range in &stored.ranges {
        medium.put(range.start as u64, &stored.bytes[range.clone()]).expect("write");
    }
    if let Some((at, bit)) = bit {
        medium.put(at as u64, &[stored.bytes[at] ^ (1 << bit)]).expect("write");
    }
    medium
}

#[test]
fn a_file_without_its_zeros_is_the_same_file() {
    let stored = decode(STORED).bytes;
    assert!(decode(&image_file::encode(&stored)).bytes == stored);
}

#[test]
fn the_stored_database_is_read_as_it_was_written() {
    let stored = decode(STORED);
    for options in [Options::new(), Options::new().custom_medium(NvmConfig::E)] {
        let place = ScratchDir::new();
        std::fs::write(place.path().join("pantile.data"), &stored.bytes).expect("write");
        for _ in 0..2 {
            let db = options.clone().create(false).open(place.path()).expect("open");
            assert!(db.recovery().was_closed);
            assert_eq!(fixture::compare(&db).expect("read"), None);
        }
    }
}

#[test]
fn the_stored_database_can_be_written_on() {
    let db = on(flipped(&decode(STORED), None)).expect("open");
    let counters = db.table("counters").expect("table");
    let before = db.begin_read().expect("begin").timestamp();
    db.run(|txn| txn.update(&counters, &["steady".into()], &[(1, 99i64.into())])).expect("update");
    let medium = medium_of(&db);
    drop((counters, db));
    let db = on(medium).expect("open again");
    assert!(db.begin_read().expect("begin").timestamp() > before);
    assert_eq!(fixture::compare(&db).expect("read"), Some("the counters"));
}

#[test]
fn a_database_of_today_has_the_same_format() {
    let place = ScratchDir::new();
    fixture::make(place.path()).expect("make");
    let options = Options::new().create(false).collector(Collector::NONE).worker(false);
    let db = options.open(place.path()).expect("open");
    assert_eq!(fixture::compare(&db).expect("read"), None);
    drop(db);
    let of_today = std::fs::read(place.path().join("pantile.data")).expect("read");
    let stored = decode(STORED).bytes;
    assert_eq!(of_today[..16], stored[..16], "another version");
    // The format determines which lines are written. What is in them also
    // depends on time and chance. So the stored bytes and today's have the same
    // shape.
    let used = |bytes: &[u8]| -> Vec<usize> {
        let lines = bytes.chunks(64).enumerate().skip((64 << 10) / 64);
        lines.filter(|(_, line)| line.iter().any(|b| *b != 0)).map(|(n, _)| n).collect()
    };
    assert_eq!(used(&of_today), used(&stored));
}

/// The outcome of a flipped bit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    Harmless,
    Refused(&'static str),
}

fn outcome(stored: &ImageFile, at: usize, bit: u8) -> Outcome {
    let read = on(flipped(stored, Some((at, bit)))).and_then(|db| fixture::compare(&db));
    match read {
        Ok(None) => Outcome::Harmless,
        Ok(Some(wrong)) => panic!("bit {bit} of byte {at} changed {wrong}"),
        Err(Error::Damaged { .. }) => Outcome::Refused("damaged"),
        Err(Error::NotADatabase { .. }) => Outcome::Refused("not a database"),
        Err(Error::FormatVersion { .. }) => Outcome::Refused("another version"),
        Err(error) => panic!("bit {bit} of byte {at}: {error}"),
    }
}

#[test]
fn no_flipped_bit_leads_to_a_wrong_row() {
    let stored = decode(STORED);
    let seed = from_env("PANTILE_FLIP_SEED", 5);
    let flips = from_env("PANTILE_FLIPS", 500);
    println!("PANTILE_FLIP_SEED={seed} PANTILE_FLIPS={flips}");
    let mut random = Random::new(seed, 0);
    let mut outcomes = BTreeMap::new();
    let mut try_bit = |at: usize, bit: u8| *outcomes.entry(outcome(&stored, at, bit)).or_insert(0) += 1;
    // The superblock whole, or nearly so: 40 bytes of it are not zero.
    for bit in 0..512 / 4 {
        try_bit(bit / 2, (bit % 2 * 4 + random.below(4) as usize) as u8);
    }
    for _ in 0..flips {
        // Each range with equal chance, so that the long value does not take all.
        let range = &stored.ranges[random.below(stored.ranges.len() as u64) as usize];
        let at = range.start + random.below(range.len() as u64) as usize;
        try_bit(at, random.below(8) as u8);
    }
    println!("{outcomes:?}");
    assert!(outcomes[&Outcome::Refused("damaged")] > 0);
}

/// Sectors that read as zeros, which media return for what they have lost.
#[test]
fn lost_sectors_of_contents_are_noticed() {
    const CHUNK: usize = 2 << 20;
    const HEAD: usize = 64 << 10;
    const PAGE: usize = 12_288;
    let stored = decode(STORED).bytes;
    let image = Image::of_bytes(&stored);
    let is_content = |at: usize| at >= HEAD + PAGE && (at % CHUNK >= PAGE || at < CHUNK);
    let sectors = stored.chunks_exact(512).enumerate().map(|(n, sector)| (n * 512, sector));
    let used = sectors.filter(|(at, sector)| is_content(*at) && sector.iter().any(|byte| *byte != 0));
    for (sector, _) in used.step_by(3) {
        let mut lost = image.clone();
        lost.clear(sector as u64..sector as u64 + 512);
        let opened = on(CutMedium::new(&lost, CutKind::File, None)).and_then(|db| fixture::compare(&db));
        assert!(matches!(opened, Err(Error::Damaged { .. })), "sector {sector}: {opened:?}");
    }
}
