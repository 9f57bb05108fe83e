//! T4: `superseded_bits` on the medium hide nothing. A transaction that set
//! them may not have committed.

use pantile::lab::medium_of;
use pantile_media::unshared::Unshared;
use std::sync::Arc;

use super::rows::{Rows, open, options, settle};
use pantile::{Collector, Medium};
use pantile_testkit::copy_of;

const CHUNK: u64 = 2 << 20;
/// Where the first chunk begins, and the size of header pages.
const HEAD: u64 = 64 << 10;
const PAGE: usize = 12_288;

#[allow(unsafe_code, reason = "media are read through their mapping")]
fn read(medium: &dyn Medium, offset: u64, len: usize) -> Vec<u8> {
    assert!(offset + len as u64 <= medium.len());
    // SAFETY: inside the mapping, and no thread writes.
    unsafe { std::slice::from_raw_parts(medium.facts().base.add(offset as usize), len) }.to_vec()
}

/// Sets every superseded bit in every block header; returns how many blocks
/// there were.
fn forge_headers(medium: &dyn Medium) -> u64 {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|n| bytes[at + n]));
    let mut forged = 0;
    for offset in (0..medium.len()).step_by(CHUNK as usize).map(|start| start.max(HEAD)) {
        let page = read(medium, offset, PAGE);
        if &page[..8] != b"PANCHUNK" && &page[..8] != b"KNUHCNAP" {
            continue;
        }
        let (block_bytes, blocks) = (word(&page, 8), word(&page, 12));
        for index in (0..blocks).filter(|n| page[64 * (*n as usize + 1)..][..8] != [0; 8]) {
            let mut header = [0xff; 256];
            header[248..].fill(0);
            let at = offset + PAGE as u64 + u64::from(index) * u64::from(block_bytes);
            medium.put(at, &header).expect("write");
            forged += 1;
        }
    }
    forged
}

#[test]
fn t4_forged_superseded_bits_hide_no_row() {
    for collector in [Collector::TB_COLLECT, Collector::TB_COLLECT_EAGER] {
        let options = || options().collector(collector);
        let db = open(options());
        let mut rows = Rows::filled(&db, 0..500);
        rows.put((0..500).filter(|key| key % 3 == 0));
        let medium = copy_of(&*medium_of(&db));
        let forged = forge_headers(&*medium);
        assert!(forged > 500 / 16, "{forged} block headers");
        let db = open(options().on_medium(Arc::clone(&medium)));
        let mut found = Rows::new(&db);
        assert_eq!(found.expected, rows.expected);
        // Nor does the collector trust the bits now.
        found.put((0..500).filter(|key| key % 2 == 0));
        settle(&db);
        found.check();
        found.check_after_crash(options());
    }
}

/// As published, a bit goes to the medium with each update. A transaction that
/// is rolled back, or is running when the power fails, leaves no bit that
/// counts.
#[test]
fn t4_updates_that_did_not_commit_hide_nothing() {
    let options = || options().collector(Collector::TB_COLLECT_EAGER);
    let db = open(options());
    let mut rows = Rows::filled(&db, 0..200);
    for round in 0..10u64 {
        let mut open = db.begin().expect("begin");
        for key in 0..200 {
            super::rows::put(&mut open, &rows.table, key, 5000 + round).expect("put");
        }
        rows.check_after_crash(options());
        open.rollback();
        rows.put((0..200).filter(|key| key % 10 == round));
        rows.check_after_crash(options());
    }
    assert!(db.stats().collector.headers_written >= 200);
}
