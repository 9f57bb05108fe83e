//! Notes of tuples with stale entries.

use super::*;

const TABLE: TableId = TableId(1);

#[test]
fn notes_are_given_once_and_in_order() {
    let queue = StaleQueue::default();
    queue.begin_notes();
    [2, 1, 2].into_iter().for_each(|tuple| queue.note(TABLE, TupleId(tuple)));
    let bytes = queue.bytes();
    queue.end_notes(|notes| {
        assert_eq!(notes, Some(&[(TABLE, TupleId(1)), (TABLE, TupleId(2))][..]));
        assert!(queue.notes.tuples.try_lock().is_some(), "nobody waits for the one that uses them");
        assert_eq!(queue.bytes(), bytes);
    });
    assert!(queue.bytes() < bytes);
}

/// The list is full before the last tuple comes, although the others are one.
#[test]
fn too_many_notes_of_a_tuple_are_too_many() {
    let queue = StaleQueue::default();
    queue.begin_notes();
    (0..MOST_NOTES).for_each(|_| queue.note(TABLE, TupleId(1)));
    queue.note(TABLE, TupleId(2));
    queue.end_notes(|notes| assert_eq!(notes, None));
}
