//! Reads of absent keys that have been deleted, and unknown outcomes.

use crate::common::{d, ended, finds, none, r, s, t, w};
use pantile_history::{AnomalyKind, Outcome};

#[test]
fn absence_fits_before_and_after() {
    let key = [t(1, &[w(1, 10)]), t(2, &[d(1, 11)]), t(3, &[w(1, 12)])];
    let with = |txn| [&key[..], &[txn]].concat();
    finds(&with(t(4, &[none(1)])), &[]);
    finds(&with(t(4, &[none(1), w(2, 20)])), &[]);
}

#[test]
fn absence_must_fit_somewhere() {
    // Absent only before T1 and after T3, but seen together with T2.
    finds(
        &[
            t(1, &[w(1, 10)]),
            t(2, &[w(1, 11), w(2, 20)]),
            t(3, &[d(1, 12), w(2, 21)]),
            t(4, &[none(1), r(2, 20)]),
        ],
        &[AnomalyKind::GSingle],
    );
    finds(
        &[
            t(1, &[w(1, 10)]),
            t(2, &[w(1, 11), w(2, 20)]),
            t(3, &[d(1, 12), w(2, 21)]),
            t(4, &[none(1), r(2, 21)]),
        ],
        &[],
    );
}

#[test]
fn absence_before_the_last_insertion_is_certain() {
    let key = [t(1, &[w(1, 10)]), t(2, &[d(1, 11)])];
    let skew = [t(3, &[none(1), w(2, 20)]), t(4, &[none(2), w(1, 12)])];
    finds(&[&key[..], &skew].concat(), &[AnomalyKind::G2Item]);
    let phantom = [t(3, &[s(1, 1, &[]), w(2, 20)]), t(4, &[s(2, 2, &[]), w(1, 12)])];
    finds(&[&key[..], &phantom].concat(), &[AnomalyKind::G2]);
}

#[test]
fn write_skew_amid_deletions() {
    // T3 saw key 1 absent after T2 or after T6. It must be T2, because T5 comes
    // later.
    let skew = [
        t(1, &[w(1, 10)]),
        t(2, &[d(1, 11), w(3, 30)]),
        t(3, &[r(3, 30), none(1), w(2, 20)]),
        t(4, &[r(3, 30), none(2), w(1, 12)]),
        t(5, &[r(1, 12), w(2, 21)]),
        t(6, &[d(1, 13)]),
    ];
    finds(&skew, &[AnomalyKind::G2Item]);
    let mut fine = skew;
    fine[3] = t(4, &[r(2, 20), w(1, 12)]);
    finds(&fine, &[]);
}

#[test]
fn tombstones_in_a_row_are_one() {
    finds(
        &[
            t(1, &[d(1, 10)]),
            t(2, &[d(1, 11), w(2, 20)]),
            t(3, &[none(1), none(2)]),
            t(4, &[none(1), r(2, 20)]),
        ],
        &[],
    );
}

#[test]
fn a_deletion_may_lose_an_update() {
    finds(
        &[t(1, &[w(1, 10)]), t(2, &[r(1, 10), w(1, 11)]), t(3, &[r(1, 10), d(1, 12)])],
        &[AnomalyKind::LostUpdate],
    );
    finds(
        &[
            t(1, &[w(1, 10)]),
            t(2, &[r(1, 10), w(1, 11)]),
            t(3, &[r(1, 11), d(1, 12)]),
            t(4, &[none(1), w(1, 13)]),
        ],
        &[],
    );
}

#[test]
fn unknown_outcomes_count_once_seen() {
    let unknown = ended(1, Outcome::Unknown, &[w(1, 10), r(2, 20)]);
    // It read from T2, and T2 read from it.
    finds(&[unknown.clone(), t(2, &[w(2, 20), r(1, 10)])], &[AnomalyKind::G1c]);
    finds(&[unknown, t(2, &[w(2, 20), none(1)])], &[]);
    // A value that was never written, read by a transaction that may have
    // aborted.
    let doubtful = ended(1, Outcome::Unknown, &[w(1, 10), r(2, 99)]);
    finds(std::slice::from_ref(&doubtful), &[]);
    finds(&[doubtful, t(2, &[r(1, 10)])], &[AnomalyKind::UnknownValue]);
}

#[test]
fn unknown_deletions_explain_absence() {
    let txns =
        [t(1, &[w(1, 10), w(2, 20)]), ended(2, Outcome::Unknown, &[d(1, 11)]), t(3, &[none(1), r(2, 20)])];
    finds(&txns, &[]);
    finds(&[txns[0].clone(), txns[2].clone()], &[AnomalyKind::GSingle]);
}
