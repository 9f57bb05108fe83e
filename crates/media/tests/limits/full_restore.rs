//! A device without room for chunks that should come back. They stay away, and
//! nothing else changes.

use crate::limit::FileLimit;
use pantile_media::unshared::Unshared;
use pantile_media::{Durability, FileMedium, FileOptions, FullReason, Medium, MediumError, MediumExt};
use pantile_testkit::SpaceGauge;

const CHUNK: u64 = 2 << 20;

#[test]
fn a_full_device_leaves_the_chunks_discarded_and_is_no_failure() {
    let limit = FileLimit::take();
    // Without syncs nothing is written, so the limit affects nothing else.
    for durability in [Durability::Sync, Durability::Group] {
        let place = tempfile::tempdir().expect("directory");
        let options = FileOptions { durability, max_bytes: Some(3 * CHUNK), ..FileOptions::default() };
        let medium = FileMedium::open(place.path(), options).expect("open");
        medium.grow(3 * CHUNK).expect("grow");
        medium.put(0, &vec![7; 3 * CHUNK as usize]).expect("write");
        medium.give_back(CHUNK, 2 * CHUNK).expect("discard");
        medium.fence().expect("fence");
        let gauge = SpaceGauge::of(place.path());
        gauge.assert_chunks(medium.data_path(), 1);
        limit.set(2 * CHUNK);
        let error = medium.take_back(CHUNK, 2 * CHUNK).expect_err("full");
        let reason = FullReason::FileSize(Some(2 * CHUNK));
        assert!(matches!(error, MediumError::Full { reason: r, .. } if r == reason), "{error}");
        // What was already found is given back.
        gauge.assert_chunks(medium.data_path(), 1);
        assert_eq!(medium.stats().bytes_restored, 0);
        medium.put(0, b"goes on").expect("write");
        medium.fence().expect("fence");
        medium.take_back(CHUNK, CHUNK).expect("there is room for it");
        limit.lift();
        medium.take_back(2 * CHUNK, CHUNK).expect("room again");
        medium.put(3 * CHUNK - 4, b"back").expect("write");
        medium.fence().expect("fence");
    }
}
