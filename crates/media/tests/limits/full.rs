//! A device without room: growth fails, and everything stays as it was.

use crate::limit::FileLimit;
use pantile_media::unshared::Unshared;
use pantile_media::{
    DaxMedium, DaxOptions, Durability, FileMedium, FileOptions, FullReason, Medium, MediumError,
};
use std::path::Path;
use std::sync::Arc;

const CHUNK: u64 = 2 << 20;

type Open = dyn Fn(&Path) -> Result<Arc<dyn Medium>, MediumError>;

#[test]
fn a_full_device_changes_nothing_and_is_no_failure() {
    let limit = FileLimit::take();
    let file = |durability| {
        let options = FileOptions { durability, ..FileOptions::default() };
        move |path: &Path| Ok(FileMedium::open(path, options)? as Arc<dyn Medium>)
    };
    let dax = |path: &Path| {
        Ok(DaxMedium::open_without_persistence(path, DaxOptions::default())? as Arc<dyn Medium>)
    };
    let files = [Durability::Sync, Durability::Group, Durability::None].map(file);
    for open in files.iter().map(|open| open as &Open).chain([&dax as &Open]) {
        limit.set(5 * CHUNK);
        let place = tempfile::tempdir().expect("directory");
        let medium = open(place.path()).expect("open");
        medium.grow(2 * CHUNK).expect("grow");
        medium.put(0, b"kept").expect("write");
        let error = medium.grow(9 * CHUNK).expect_err("full");
        let reason = FullReason::FileSize(Some(5 * CHUNK));
        let needed = 9 * CHUNK;
        assert!(
            matches!(error, MediumError::Full { needed: n, reason: r, .. } if (n, r) == (needed, reason)),
            "{error}"
        );
        let text = error.to_string();
        assert!(text.contains("pantile.data is full") && text.contains("`ulimit -f`"), "{text}");
        assert_eq!(medium.len(), 2 * CHUNK);
        medium.put(4, b"more").expect("writes go on");
        medium.fence().expect("fences go on");
        medium.grow(5 * CHUNK).expect("there is room for it");
        drop(medium);
        let medium = open(place.path()).expect("open again");
        assert_eq!(medium.len(), 5 * CHUNK);
        let mut out = [0; 8];
        medium.get(0, &mut out).expect("read");
        assert_eq!(&out, b"keptmore");
        medium.grow(6 * CHUNK).expect_err("full");
        limit.lift();
        medium.grow(6 * CHUNK).expect("it goes on");
    }
}
