//! A device without room: growth fails, everything stays as it was.
//!
//! In a process of its own, because the limit on file sizes that stands in
//! for a full device holds for all of it.

mod limit;

use limit::limit_files;
use pantile_media::{Durability, FileMedium, FileOptions, FullReason, Medium, MediumError};

const CHUNK: u64 = 2 << 20;

#[test]
fn a_full_device_changes_nothing_and_is_no_failure() {
    limit_files(5 * CHUNK);
    for durability in [Durability::Sync, Durability::Group, Durability::None] {
        let place = tempfile::tempdir().expect("directory");
        let options = FileOptions { durability, ..FileOptions::default() };
        let medium = FileMedium::open(place.path(), options).expect("open");
        medium.grow(2 * CHUNK).expect("grow");
        medium.write(0, b"kept").expect("write");
        let error = medium.grow(9 * CHUNK).expect_err("full");
        let reason = FullReason::Device;
        let needed = 9 * CHUNK;
        assert!(
            matches!(error, MediumError::Full { needed: n, reason: r } if (n, r) == (needed, reason)),
            "{error}"
        );
        assert_eq!(medium.len(), 2 * CHUNK);
        medium.write(4, b"more").expect("writes go on");
        medium.fence().expect("fences go on");
        medium.grow(5 * CHUNK).expect("what there is room for");
        drop(medium);
        let medium = FileMedium::open(place.path(), options).expect("open again");
        assert_eq!(medium.len(), 5 * CHUNK);
        let mut out = [0; 8];
        medium.read(0, &mut out).expect("read");
        assert_eq!(&out, b"keptmore");
    }
}
