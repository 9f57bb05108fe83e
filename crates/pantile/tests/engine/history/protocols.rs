//! Histories under the protocols of the laboratory, and under ones that forget something.

use std::collections::BTreeSet;
use std::time::Duration;

use pantile::lab::Protocol;
use pantile::{
    Conflict, ConflictPolicy, Database, Durability, Error, IndexDef, MediumKind, Options, Range, Table,
    TableDef, Type,
};
use pantile_cc::{Committing, ConcurrencyControl, ProtocolDescription, Reads, Refusal};
use pantile_history::{AnomalyKind, Check, History};
use pantile_testkit::{Bed, Patience, ScratchDir};

use super::client::{Load, Recorded};
use super::{FULL, SMALL, is_strictly_serializable, runs_beside};
use crate::support::Beside;

const UNDER: Load = Load { under_protocol: true, ..FULL };

fn judge(protocol: Protocol, recorded: Recorded) {
    if protocol.orders_by_timestamp() {
        return is_strictly_serializable(recorded);
    }
    // Safe snapshots do not take part in the protocol.
    let commits = recorded.commits();
    assert!(commits > recorded.history.transactions.len() / 10, "{commits} commits are too few to judge");
    let report = Check::new().run(&recorded.without_safe());
    assert!(report.is_serializable() && report.complete, "{protocol}: {report}");
}

fn serializable_under(protocol: Protocol) {
    let run = |bed, load, seed, count| {
        runs_beside(Beside::Under(protocol), bed, load, seed, count, |recorded| judge(protocol, recorded));
    };
    run(Bed::Dram, UNDER, 2001, 3);
    let small = Load { under_protocol: true, ..SMALL };
    run(Bed::File(Durability::Sync), small, 2101, 1);
    run(Bed::File(Durability::None), small, 2201, 1);
    run(Bed::Nvm, small, 2301, 1);
}

macro_rules! serializable {
    ($($test:ident: $protocol:ident),*) => {
        $(
            #[test]
            fn $test() {
                serializable_under(pantile_protocols::$protocol);
            }
        )*

        #[test]
        fn every_protocol_is_tested() {
            assert_eq!(pantile_protocols::all(), &[$(pantile_protocols::$protocol),*]);
        }
    };
}

serializable! {
    serializable_under_deadlock_detection: DEADLOCK_DETECTION,
    serializable_under_wait_die: WAIT_DIE,
    serializable_under_no_wait: NO_WAIT,
    serializable_under_occ: OCC,
    serializable_under_silo: SILO,
    serializable_under_tictoc: TICTOC,
    serializable_under_mvto: MVTO,
    serializable_under_hekaton: HEKATON,
    serializable_under_cicada: CICADA,
    serializable_under_h_store: H_STORE
}

/// Reads and writes as under one of the protocols, and lets everything commit.
struct Forgets;

impl ConcurrencyControl for Forgets {
    fn validate(&self, commit: &dyn Committing) -> Result<pantile::Timestamp, Refusal> {
        Ok(commit.draw())
    }
}

/// Looks again at rows, and not at ranges.
struct ForgetsRanges;

impl ConcurrencyControl for ForgetsRanges {
    fn validate(&self, commit: &dyn Committing) -> Result<pantile::Timestamp, Refusal> {
        let to = commit.draw();
        commit.rows_hold(to)?;
        Ok(to)
    }
}

const fn forgetful(
    name: &'static str,
    reads: Reads,
    build: fn() -> Box<dyn ConcurrencyControl>,
) -> ProtocolDescription {
    ProtocolDescription { name, about: "a protocol that forgets", reads, orders_by_timestamp: true, build }
}

static WITHOUT_LOCKS: ProtocolDescription =
    forgetful("without locks", Reads::UnderLocks, || Box::new(Forgets));
static WITHOUT_CHECKS: ProtocolDescription = forgetful("without checks", Reads::Newest, || Box::new(Forgets));
static WITHOUT_END: ProtocolDescription = forgetful("without an end", Reads::AtBegin, || Box::new(Forgets));
static WITHOUT_MARKS: ProtocolDescription =
    forgetful("without marks", Reads::InOrder { marks: false }, || Box::new(Forgets));
static WITHOUT_RANGES: ProtocolDescription =
    forgetful("without ranges", Reads::Newest, || Box::new(ForgetsRanges));

fn kinds(history: &History) -> BTreeSet<AnomalyKind> {
    Check::new().run(history).kinds()
}

/// If a protocol leaves out what it adds to the engine's own isolation, that shows.
#[test]
fn protocols_that_forget_are_found_out() {
    let skew = AnomalyKind::G2Item;
    let forgetful = [
        (&WITHOUT_LOCKS, skew),
        (&WITHOUT_CHECKS, skew),
        (&WITHOUT_END, skew),
        (&WITHOUT_MARKS, skew),
        (&WITHOUT_RANGES, AnomalyKind::G2),
    ];
    for (description, expected) in forgetful {
        let protocol = Protocol::new(description);
        let (mut found, patience) = (BTreeSet::new(), Patience::new());
        for round in 0.. {
            let judge = |recorded: Recorded| found.extend(kinds(&recorded.without_safe()));
            runs_beside(Beside::Under(protocol), Bed::Dram, UNDER, 3001 + round, 1, judge);
            if found.contains(&expected) {
                break;
            }
            // How often clients meet is up to the machine.
            patience.check(|| format!("{protocol}: {found:?}"));
        }
        println!("{protocol}: {found:?}");
    }
}

/// A table with a row, and an index.
fn things(options: Options) -> (Database, Table) {
    let options = options.medium(MediumKind::Dram).conflict(ConflictPolicy::Abort);
    let db = options.retry_for(Duration::from_millis(50)).open("unused").expect("open");
    let def = TableDef::new("things").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
    let things = db.create_table(def.index(IndexDef::new("by_n", ["n"]))).expect("a table");
    db.run(|txn| txn.insert(&things, &[0u64.into(), 0u64.into()])).expect("a row");
    (db, things)
}

/// One has found a key free, and has taken its own row with it back. Another one adds the key, and has not seen what
/// the first one writes.
#[test]
fn what_an_insert_has_told_that_was_taken_back_counts() {
    for &protocol in pantile_protocols::all() {
        let (db, things) = things(Options::new().protocol(protocol));
        let mut first = db.begin().expect("begin");
        let before = first.savepoint();
        first.insert(&things, &[1u64.into(), 1u64.into()]).expect("the key is free");
        first.rollback_to(before).expect("the savepoint");
        let mut second = db.begin().expect("begin");
        let second = second
            .get(&things, &[0u64.into()])
            .map(drop)
            .and_then(|()| second.insert(&things, &[1u64.into(), 2u64.into()]))
            .and_then(|()| second.commit());
        let first = first.update(&things, &[0u64.into()], &[("n", 5u64.into())]).and_then(|_| first.commit());
        assert!(first.is_err() || second.is_err(), "{protocol}");
        assert!(first.is_ok() || second.is_ok(), "{protocol}: one of them can");
    }
}

/// What has been read was dropped, and others have not asked for it since.
#[test]
fn what_was_dropped_is_not_what_was_read() {
    let drops: [fn(&Database, &Table) -> pantile::Result<()>; 2] =
        [|db, things| db.drop_index(things, "by_n"), |db, _| db.drop_table("things")];
    for &protocol in pantile_protocols::all().iter().filter(|p| !matches!(p.reads(), Reads::InOrder { .. })) {
        for drop in drops {
            let (db, things) = things(Options::new().protocol(protocol));
            let other = TableDef::new("other").column("id", Type::U64).primary_key(["id"]);
            let other = db.create_table(other).expect("a table");
            let mut txn = db.begin().expect("begin");
            let by_n = things.index("by_n").expect("the index");
            assert_eq!(txn.scan_index(&by_n, Range::all()).expect("a scan").count(), 1);
            if drop(&db, &things).is_err() {
                // The catalog may be in a partition that the transaction has.
                assert_eq!(protocol, pantile_protocols::H_STORE);
                continue;
            }
            txn.insert(&other, &[1u64.into()]).expect("a row");
            assert!(txn.commit().is_err(), "{protocol}");
        }
    }
}

/// A commit that looks again meets the lock of an older writer, which has to give way.
#[test]
fn a_commit_does_not_wait_for_one_that_is_idle() {
    let (db, things) = things(Options::new().protocol(pantile_protocols::CICADA));
    let mut writer = db.begin().expect("begin");
    let reader = db.begin_read().expect("begin");
    assert!(reader.get(&things, &[0u64.into()]).expect("no conflict").is_some());
    assert!(writer.update(&things, &[0u64.into()], &[("n", 5u64.into())]).expect("no mark yet"));
    reader.commit().expect("it comes after the writer, and has seen nothing of it");
    let conflict = writer.commit();
    assert!(matches!(conflict, Err(Error::Conflict { conflict: Conflict::ReadByLater, .. })), "{conflict:?}");
}

/// Of several versions it would still read the same one.
#[test]
fn a_commit_in_order_does_not_mind_later_writers() {
    for protocol in [pantile_protocols::CICADA, pantile_protocols::MVTO] {
        let (db, things) = things(Options::new().protocol(protocol));
        let reader = db.begin_read().expect("begin");
        assert!(reader.get(&things, &[0u64.into()]).expect("no conflict").is_some());
        db.run(|txn| txn.update(&things, &[0u64.into()], &[("n", 5u64.into())])).expect("a later writer");
        reader.commit().expect("it comes before the writer");
    }
}

#[test]
fn prepared_transactions_and_protocols_keep_apart() {
    let place = ScratchDir::new();
    let open = |protocol: Option<Protocol>| {
        Options::new().durability(Durability::None).protocol(protocol).open(place.path().join("db"))
    };
    let db = open(None).expect("open");
    let def = TableDef::new("things").column("id", Type::U64).primary_key(["id"]);
    let things = db.create_table(def).expect("a table");
    let mut txn = db.begin().expect("begin");
    txn.insert(&things, &[1u64.into()]).expect("a row");
    drop(db.prepare(txn, b"one").expect("it can be prepared"));
    db.close().expect("closed");
    let refused = open(Some(pantile_protocols::SILO));
    assert!(
        matches!(&refused, Err(Error::InvalidOption(why)) if why.contains("Options::protocol")),
        "{refused:?}"
    );
    let db = open(None).expect("it opens without");
    db.take_prepared(b"one").expect("it is there").commit().expect("it commits");
    db.close().expect("closed");
    let db = open(Some(pantile_protocols::SILO)).expect("nothing is prepared any more");
    let refused = db.prepare(db.begin().expect("begin"), b"two");
    assert!(matches!(refused, Err(Error::InvalidOption(_))), "{refused:?}");
}
