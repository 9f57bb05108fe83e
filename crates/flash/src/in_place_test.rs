use super::*;
use crate::request::Totals;

fn put(row: u64, len: u32) -> Change {
    Change { table: 1, row, operation: Operation::Put(len) }
}

fn delete(row: u64) -> Change {
    Change { table: 1, row, operation: Operation::Delete }
}

fn small() -> InPlaceSettings {
    InPlaceSettings { pool_pages: 4, log_bytes: 10 * PAGE_BYTES, ..InPlaceSettings::default() }
}

fn write(pages: Range<u64>) -> Request {
    Request::Write { pages, stream: 0 }
}

#[test]
fn a_commit_writes_the_log_and_a_checkpoint_the_pages() {
    let mut store = InPlace::new(small());
    let mut all = Vec::new();
    let mut taken = |store: &mut InPlace| {
        let requests = store.take();
        all.extend(requests.clone());
        requests
    };
    store.commit(&[put(1, 100)]);
    store.commit(&[put(2, 100)]);
    assert_eq!(taken(&mut store), [write(0..1), Request::Flush, write(0..1), Request::Flush]);
    store.checkpoint();
    assert_eq!(taken(&mut store), [write(10..12), Request::Flush]);
    store.checkpoint();
    assert_eq!(taken(&mut store), [Request::Flush], "nothing has changed");
    assert_eq!(store.device_pages(), 12);
    let totals = Totals::of(&all);
    assert_eq!((totals.pages_written, totals.writes, totals.flushes), (4, 3, 4));
}

#[test]
fn commits_share_syncs_of_a_log_that_goes_round() {
    let mut store = InPlace::new(InPlaceSettings { commits_per_sync: 3, ..small() });
    let filling = PAGE_BYTES as u32 * 2;
    for _ in 0..3 {
        store.commit(&[put(1, filling)]);
    }
    let bytes = 3 * (u64::from(filling) + RECORD_BYTES + COMMIT_BYTES);
    assert_eq!(store.take(), [write(0..bytes.div_ceil(PAGE_BYTES)), Request::Flush]);
    for _ in 0..3 {
        store.commit(&[put(1, filling)]);
    }
    assert_eq!(store.take(), [write(6..10), write(0..3), Request::Flush]);
}

#[test]
fn rows_stay_in_their_page_while_they_fit() {
    let mut store = InPlace::new(small());
    store.commit(&[put(1, 4000), put(2, 4000)]);
    assert_eq!(store.free.len(), 1);
    store.commit(&[put(1, 10), put(1, 4000)]);
    assert_eq!(store.rows[&(1, 1)].0, 0);
    // It has grown out of its page, and the next row takes its place.
    store.commit(&[put(1, 5000)]);
    assert_eq!(store.rows[&(1, 1)].0, 1);
    store.commit(&[delete(1), delete(7)]);
    assert_eq!(store.rows.len(), 1);
    store.commit(&[put(3, 3000)]);
    store.commit(&[put(4, 3000), put(5, 3900)]);
    assert_eq!(store.free.len(), 2, "room that was left is used");
    let taken: u32 = store.rows.values().map(|(_, len)| len).sum();
    assert_eq!(taken + store.free.iter().sum::<u32>(), 2 * 8192);
}

/// With a log that does not go round.
fn roomy() -> InPlaceSettings {
    InPlaceSettings { log_bytes: 100 * PAGE_BYTES, ..small() }
}

/// Those of the heap, which begins behind the log, and of the log.
fn apart(requests: Vec<Request>) -> [Vec<Request>; 2] {
    let is_heap = |request: &Request| matches!(request, Request::Write { pages, .. } if pages.start >= 100);
    let (heap, log) = requests.into_iter().partition(is_heap);
    [heap, log]
}

#[test]
fn a_pool_that_is_full_gives_up_what_was_not_used_for_longest() {
    // Nothing waits in the system's cache.
    let mut store = InPlace::new(InPlaceSettings { most_dirty: 0, ..roomy() });
    (0..4).for_each(|row| store.commit(&[put(row, 8000)]));
    store.commit(&[put(0, 8000)]);
    store.take();
    store.commit(&[put(4, 8000)]);
    let [heap, log] = apart(store.take());
    assert_eq!(heap, [write(102..104)], "page 1: page 0 was changed again");
    assert_eq!(log.len(), 2, "the commit alone: what page 1 has was in the log");
    // A page that was written at a checkpoint is given up without another write.
    store.checkpoint();
    store.take();
    store.commit(&[put(5, 8000)]);
    assert_eq!(apart(store.take())[0], []);
}

#[test]
fn the_log_is_written_before_a_page_that_has_changed_since() {
    let settings = InPlaceSettings { most_dirty: 0, commits_per_sync: 100, pool_pages: 1, ..small() };
    let mut store = InPlace::new(settings);
    store.commit(&[put(0, 8000)]);
    assert_eq!(store.take(), []);
    store.commit(&[put(1, 8000)]);
    let requests = store.take();
    assert_eq!(requests.last(), Some(&write(10..12)));
    assert!(requests.contains(&Request::Flush) && requests.len() == 3, "{requests:?}");
}

#[test]
fn pages_that_were_given_up_wait_together() {
    let mut store = InPlace::new(InPlaceSettings { most_dirty: 6, ..roomy() });
    (0..7).for_each(|row| store.commit(&[put(row, 8000)]));
    assert_eq!(apart(store.take())[0], []);
    store.commit(&[put(7, 8000)]);
    assert_eq!(apart(store.take())[0], [write(100..108)]);
}

#[test]
fn pages_that_the_pool_does_not_have_are_read() {
    let mut store = InPlace::new(InPlaceSettings { most_dirty: 0, ..roomy() });
    let reads = |store: &mut InPlace| {
        let requests = store.take().into_iter();
        requests.filter(|request| matches!(request, Request::Read(_))).collect::<Vec<_>>()
    };
    (0..5).for_each(|row| store.commit(&[put(row, 8000)]));
    assert_eq!(reads(&mut store), [], "new pages have nothing");
    store.read(1, 1);
    store.read(1, 99);
    assert_eq!(reads(&mut store), [], "it is in the pool, and the other one is not there");
    store.read(1, 0);
    assert_eq!(reads(&mut store), [Request::Read(100..102)]);
    // Page 2 was not used for longest and has gone. To change it, it is read.
    store.commit(&[put(2, 7000)]);
    assert_eq!(reads(&mut store), [Request::Read(104..106)]);
    store.read(1, 1);
    assert_eq!(reads(&mut store), [], "it was read when others were given up");
}
