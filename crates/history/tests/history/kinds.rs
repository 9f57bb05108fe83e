//! Every kind of anomaly in a minimal history, with a near miss.

use crate::common::{d, ended, finds, history, kinds, none, r, s, t, timed, w};
use pantile_history::{AnomalyKind, Check, Dependency, Outcome, check};

#[test]
fn nothing_in_nothing() {
    let report = check(&history(&[]));
    assert!(report.is_strictly_serializable() && report.complete);
    assert_eq!(report.to_string(), "no anomalies");
}

#[test]
fn malformed() {
    finds(&[t(1, &[w(1, 10)]), t(2, &[w(2, 10)])], &[AnomalyKind::Malformed]);
    finds(&[t(1, &[]), t(1, &[])], &[AnomalyKind::Malformed]);
    finds(&[timed(1, 20, 10, &[])], &[AnomalyKind::Malformed]);
    finds(&[t(1, &[w(1, 10)]), t(2, &[w(1, 11)])], &[]);
}

#[test]
fn duplicate_timestamp() {
    let at = |id, ops: &[_]| ended(id, Outcome::Committed { ts: 5 }, ops);
    finds(&[at(1, &[w(1, 10)]), at(2, &[w(1, 11)])], &[AnomalyKind::DuplicateTimestamp]);
    finds(&[at(1, &[w(1, 10)]), at(2, &[w(2, 11)])], &[]);
    finds(&[at(1, &[w(1, 10)]), at(2, &[r(1, 10)])], &[]);
}

#[test]
fn unknown_value() {
    finds(&[t(1, &[r(1, 99)])], &[AnomalyKind::UnknownValue]);
    // The value was written, but to another key.
    finds(&[t(1, &[w(2, 99)]), t(2, &[r(1, 99)])], &[AnomalyKind::UnknownValue]);
    // The value identifies a tombstone.
    finds(&[t(1, &[d(1, 99)]), t(2, &[r(1, 99)])], &[AnomalyKind::UnknownValue]);
    finds(&[t(1, &[w(1, 99)]), t(2, &[r(1, 99)])], &[]);
}

#[test]
fn internal() {
    finds(&[t(1, &[w(1, 10), none(1)])], &[AnomalyKind::Internal]);
    finds(&[t(1, &[w(1, 10), s(0, 5, &[])])], &[AnomalyKind::Internal]);
    finds(&[t(1, &[w(1, 10), d(1, 11), r(1, 10)])], &[AnomalyKind::Internal]);
    // The read came before the write.
    finds(&[t(1, &[r(1, 10), w(1, 10)])], &[AnomalyKind::Internal]);
    // Impossible scans.
    finds(&[t(1, &[w(9, 10)]), t(2, &[s(0, 5, &[(9, 10)])])], &[AnomalyKind::Internal]);
    finds(&[t(1, &[w(1, 10)]), t(2, &[s(0, 5, &[(1, 10), (1, 10)])])], &[AnomalyKind::Internal]);
    finds(&[t(1, &[none(1), w(1, 10), r(1, 10), d(1, 11), none(1), s(0, 5, &[])])], &[]);
}

#[test]
fn non_repeatable_read() {
    let writers = [t(1, &[w(1, 10)]), t(2, &[w(1, 11)])];
    let with = |ops: &[_]| [&writers[..], &[t(3, ops)]].concat();
    assert!(kinds(&with(&[r(1, 10), r(1, 11)])).contains(&AnomalyKind::NonRepeatableRead));
    // A phantom between two scans.
    assert!(kinds(&with(&[s(0, 5, &[]), s(1, 1, &[(1, 11)])])).contains(&AnomalyKind::NonRepeatableRead));
    finds(&with(&[r(1, 11), s(0, 5, &[(1, 11)]), r(1, 11)]), &[]);
    // The only anomaly, because no other order is contradicted.
    finds(&[t(1, &[w(1, 10)]), t(2, &[r(1, 10), none(1)])], &[AnomalyKind::NonRepeatableRead]);
}

#[test]
fn g0() {
    let cross = history(&[t(1, &[w(1, 10), w(2, 20)]), t(2, &[w(1, 11), w(2, 21)])]);
    let report = Check::new().version_order(1, vec![10, 11]).version_order(2, vec![21, 20]).run(&cross);
    assert_eq!(report.kinds(), [AnomalyKind::G0].into(), "{report}");
    assert_eq!(report.anomalies[0].cycle.len(), 2);
    let straight = Check::new().version_order(1, vec![11, 10]).version_order(2, vec![21, 20]).run(&cross);
    assert!(straight.is_serializable(), "{straight}");
}

#[test]
fn g1a() {
    let reader = t(2, &[r(1, 10)]);
    finds(&[ended(1, Outcome::Aborted, &[w(1, 10)]), reader.clone()], &[AnomalyKind::G1a]);
    finds(&[t(1, &[w(1, 10)]), reader.clone()], &[]);
    finds(&[ended(1, Outcome::Unknown, &[w(1, 10)]), reader.clone()], &[]);
    // What an aborted transaction read does not matter.
    finds(&[ended(1, Outcome::Aborted, &[w(1, 10)]), ended(2, Outcome::Aborted, &[r(1, 10)])], &[]);
}

#[test]
fn g1b() {
    let writer = t(1, &[w(1, 10), w(1, 11)]);
    finds(&[writer.clone(), t(2, &[r(1, 10)])], &[AnomalyKind::G1b]);
    finds(&[writer, t(2, &[r(1, 11)])], &[]);
    finds(&[t(1, &[w(1, 10), d(1, 11)]), t(2, &[s(0, 3, &[(1, 10)])])], &[AnomalyKind::G1b]);
}

#[test]
fn g1c() {
    finds(&[t(1, &[w(1, 10), r(2, 20)]), t(2, &[w(2, 20), r(1, 10)])], &[AnomalyKind::G1c]);
    finds(&[t(1, &[w(1, 10), none(2)]), t(2, &[w(2, 20), r(1, 10)])], &[]);
    // With a write-write edge.
    finds(&[t(1, &[w(1, 10), r(2, 20)]), t(2, &[w(1, 11), w(2, 20)])], &[AnomalyKind::G1c]);
}

#[test]
fn lost_update() {
    finds(&[t(1, &[none(1), w(1, 10)]), t(2, &[none(1), w(1, 11)])], &[AnomalyKind::LostUpdate]);
    finds(&[t(1, &[none(1), w(1, 10)]), t(2, &[r(1, 10), w(1, 11)])], &[]);
    // A blind write loses nothing.
    finds(&[t(1, &[none(1), w(1, 10)]), t(2, &[w(1, 11)])], &[]);
}

#[test]
fn g_single() {
    let writer = t(1, &[w(1, 10), w(2, 20)]);
    finds(&[writer.clone(), t(2, &[none(1), r(2, 20)])], &[AnomalyKind::GSingle]);
    finds(&[writer.clone(), t(2, &[none(1), none(2)])], &[]);
    finds(&[writer.clone(), t(2, &[r(1, 10), r(2, 20)])], &[]);
    // Through a third transaction.
    finds(
        &[t(1, &[w(1, 10)]), t(2, &[r(1, 10), w(2, 20)]), t(3, &[r(2, 20), none(1)])],
        &[AnomalyKind::GSingle],
    );
    // On a predicate.
    finds(&[writer, t(2, &[s(0, 1, &[]), r(2, 20)])], &[AnomalyKind::GSingle]);
}

#[test]
fn g2_item() {
    finds(&[t(1, &[none(1), w(2, 20)]), t(2, &[none(2), w(1, 10)])], &[AnomalyKind::G2Item]);
    finds(&[t(1, &[none(1), w(2, 20)]), t(2, &[r(2, 20), w(1, 10)])], &[]);
    // Two readers that disagree about the order of two writers.
    finds(
        &[t(1, &[w(1, 10)]), t(2, &[w(2, 20)]), t(3, &[r(1, 10), none(2)]), t(4, &[none(1), r(2, 20)])],
        &[AnomalyKind::G2Item],
    );
}

#[test]
fn g2() {
    finds(&[t(1, &[s(0, 9, &[]), w(1, 10)]), t(2, &[s(0, 9, &[]), w(2, 20)])], &[AnomalyKind::G2]);
    finds(&[t(1, &[s(0, 9, &[]), w(1, 10)]), t(2, &[s(0, 9, &[(1, 10)]), w(2, 20)])], &[]);
    // Outside the range.
    finds(&[t(1, &[s(0, 1, &[]), w(1, 10)]), t(2, &[s(0, 1, &[]), w(2, 20)])], &[]);
    // What a scan found counts as item reads.
    finds(
        &[
            t(1, &[w(1, 10), w(2, 20)]),
            t(2, &[s(0, 9, &[(1, 10), (2, 20)]), w(1, 11)]),
            t(3, &[s(0, 9, &[(1, 10), (2, 20)]), w(2, 21)]),
        ],
        &[AnomalyKind::G2Item],
    );
    // A point read of the same absent key turns it into an item read.
    finds(
        &[t(1, &[s(2, 2, &[]), none(2), w(1, 10)]), t(2, &[none(1), s(1, 1, &[]), w(2, 20)])],
        &[AnomalyKind::G2Item],
    );
}

#[test]
fn real_time() {
    let strict = |txns: &[_]| Check::new().real_time(true).run(&history(txns));
    let stale = [timed(1, 0, 10, &[w(1, 10)]), timed(2, 11, 20, &[none(1)])];
    let report = strict(&stale);
    assert_eq!(report.kinds(), [AnomalyKind::RealTime].into(), "{report}");
    assert!(report.is_serializable() && !report.is_strictly_serializable());
    let cycle = &report.anomalies[0].cycle;
    assert_eq!(cycle.len(), 2, "{report}");
    assert!(cycle.iter().any(|edge| edge.dependency == Dependency::RealTime
        && edge.key.is_none()
        && (edge.from, edge.to) == (1, 2)));
    assert!(check(&history(&stale)).is_strictly_serializable());
    let overlapping = strict(&[timed(1, 0, 10, &[w(1, 10)]), timed(2, 10, 20, &[none(1)])]);
    assert!(overlapping.is_strictly_serializable(), "{overlapping}");
    // Spans several ends; the helpers in between must not show.
    let long = strict(&[
        timed(1, 0, 10, &[w(1, 10)]),
        timed(3, 0, 11, &[]),
        timed(4, 0, 12, &[]),
        timed(5, 13, 14, &[]),
        timed(2, 15, 20, &[none(1)]),
    ]);
    assert_eq!(long.anomalies[0].cycle.len(), 2, "{long}");
}

#[test]
fn witnesses_are_readable() {
    let report = check(&history(&[t(1, &[w(1, 10), w(2, 20)]), t(2, &[none(1), r(2, 20)])]));
    let text = report.to_string();
    for part in ["G-single", "T2 -rw 1-> T1 -wr 2-> T2", "read nothing", "wrote value 20"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn reports_are_limited() {
    let readers: Vec<_> = (1..=50).map(|id| t(id, &[r(1, 99)])).collect();
    let report = Check::new().limit(3).run(&history(&readers));
    assert_eq!((report.anomalies.len(), report.omitted), (3, 47));
}
