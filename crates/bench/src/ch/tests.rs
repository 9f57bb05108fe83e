//! Queries against an oracle on a tiny database, and the workload as a whole.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pantile::{
    Collector, Durability, ExclusiveStage, GcOptions, MediumKind, Options, Range, Table, Transaction, Value,
};
use pantile_testkit::Patience;

use super::answer::{Answer, Cell};
use super::oracle::Relations;
use super::schema::supplier;
use super::snapshot::Snapshot;
use super::*;
use crate::experiment::run_all;
use crate::load::Silent;
use crate::runner::{Client as _, Pace};
use crate::settings::{Medium, Settings, Variant};
use crate::tpcc::Scale;
use crate::tpcc::schema::{customer, item, loaded, order, order_line};

static NEVER: AtomicBool = AtomicBool::new(false);

fn context() -> Context<'static> {
    Context { threads: 2, stop: &NEVER, observer: &Silent }
}

fn ch() -> Ch {
    let scale = Scale { warehouses: 2, items: 300, customers: 30 };
    Ch { tpcc: Tpcc { scale, together: false, seed: 42 }, oltp: 1, olap: 1 }
}

fn empty() -> Database {
    Options::new().medium(MediumKind::Dram).open("unused").unwrap()
}

fn loaded_data() -> (Database, Data) {
    let db = empty();
    let data = ch().load(&db, &context()).unwrap();
    (db, data)
}

fn count(db: &Database, table: &Table) -> usize {
    db.begin_read().unwrap().scan(table, Range::all()).unwrap().count()
}

/// Microseconds of a day since 1970.
fn day(n: i64) -> Value<'static> {
    Value::Timestamp(n * 86_400_000_000)
}

/// Changes rows so that every condition of every query holds for some of
/// them and not for others, and so that joins find nothing here and there.
fn make_interesting(db: &Database, data: &Data) {
    let t = &data.tpcc.tables;
    db.run(|txn| {
        items(txn, t)?;
        for key in (0..10_000u16).step_by(10) {
            txn.update(&data.tables.supplier, &[key.into()], &[(supplier::SU_COMMENT, "so bad!".into())])?;
        }
        // Germany and Greece, so that many suppliers are of their customers' nations,
        // and an item's other suppliers are not.
        for key in (0..10_000u16).filter(|key| key % 4 < 2) {
            let nation = [b'R', b'P'][usize::from(key % 4)].into();
            txn.update(&data.tables.supplier, &[key.into()], &[(supplier::SU_NATIONKEY, nation)])?;
        }
        customers(txn, t)?;
        orders(txn, t)?;
        // Joins without a partner.
        for item in [5u32, 6, 7] {
            assert!(txn.delete(&t.stock, &[1u8.into(), item.into()])?);
        }
        assert!(txn.delete(&t.item, &[8u32.into()])?);
        assert!(txn.delete(&data.tables.supplier, &[9u16.into()])?);
        assert!(txn.delete(&t.customer, &[1u8.into(), 2u8.into(), 3u8.into()])?);
        Ok::<_, pantile::Error>(())
    })
    .unwrap();
}

fn items(txn: &mut Transaction, t: &tpcc::schema::Tables) -> pantile::Result<()> {
    for i in 1..=300u32 {
        let begin = ["PR", "zz", "co"][i as usize % 3];
        let end = ["a", "b", "c", "BB", "d"][i as usize % 5];
        let data = format!("{begin}{i}{end}");
        txn.update(&t.item, &[i.into()], &[(item::I_DATA, data.as_str().into())])?;
    }
    // One group of Q16 with several items, two of which share a supplier, and one item that costs too little for Q19.
    for i in [101u32, 202, 107] {
        let same = [(item::I_NAME, "same".into()), (item::I_PRICE, 777.into())];
        txn.update(&t.item, &[i.into()], &[same[0], same[1], (item::I_DATA, "same".into())])?;
    }
    assert!(txn.update(&t.item, &[11u32.into()], &[(item::I_PRICE, 99.into())])?);
    Ok(())
}

const BILLION: i64 = 1_000_000_000;

/// Customers with money, and some of them without orders.
fn customers(txn: &mut Transaction, t: &tpcc::schema::Tables) -> pantile::Result<()> {
    for (w, d, state) in [(1u8, 1u8, "AA"), (1, 2, "PP"), (2, 2, "RR")] {
        for c in 1..=30u32 {
            let key = [w.into(), d.into(), c.into()];
            assert!(txn.update(&t.customer, &key, &[(customer::C_STATE, state.into())])?);
        }
    }
    let ordered =
        [(customer::C_BALANCE, (9 * BILLION).into()), (customer::C_PHONE, "1111111111111111".into())];
    assert!(txn.update(&t.customer, &[1u8.into(), 1u8.into(), 1u32.into()], &ordered)?);
    for (n, (phone, balance)) in
        [("1", 9 * BILLION), ("7", 8 * BILLION), ("4", 10), ("8", 9 * BILLION), ("0", 9 * BILLION)]
            .into_iter()
            .enumerate()
    {
        let phone = format!("{phone}{:015}", 0);
        let mut row = vec![Value::UInt(0); 21];
        row[..3].copy_from_slice(&[1.into(), 1.into(), (1000 + n as u32).into()]);
        for text in [
            customer::C_FIRST,
            customer::C_MIDDLE,
            customer::C_LAST,
            customer::C_STREET_1,
            customer::C_STREET_2,
            customer::C_CITY,
            customer::C_ZIP,
            customer::C_CREDIT,
            customer::C_DATA,
        ] {
            row[text] = "".into();
        }
        row[customer::C_STATE] = if n == 0 { "GG" } else { "PA" }.into();
        row[customer::C_PHONE] = phone.as_str().into();
        row[customer::C_SINCE] = Value::Timestamp(0);
        row[customer::C_BALANCE] = balance.into();
        txn.insert(&t.customer, &row)?;
    }
    Ok(())
}

/// Orders and lines of other years, in other quantities, and without each other.
fn orders(txn: &mut Transaction, t: &tpcc::schema::Tables) -> pantile::Result<()> {
    let delivered = [(1u32, 13_514), (2, 13_515), (3, 16_000), (11, 60_000)];
    let open = [(27u32, 60_000), (28, 16_000), (29, 13_514), (30, 13_515)];
    for (o, entered) in delivered.into_iter().chain(open) {
        for d in 1..=10u8 {
            let key = [1u8.into(), d.into(), o.into()];
            assert!(txn.update(&t.order, &key, &[(order::O_ENTRY_D, day(entered))])?);
        }
    }
    for (o, delivered) in [(4u32, 10_591), (5, 10_592), (6, 13_514), (7, 13_515), (8, 50_000)] {
        for d in 1..=10u8 {
            let key = [2u8.into(), d.into(), o.into(), 1u8.into()];
            let change =
                [(order_line::OL_DELIVERY_D, day(delivered)), (order_line::OL_AMOUNT, 12_345.into())];
            assert!(txn.update(&t.order_line, &key, &change)?);
        }
    }
    // What came from another warehouse, for some money, for the most, and too late.
    for (o, amount) in [(2u32, 55), (12, 55), (13, 90_000_000), (11, 66)] {
        for number in 1..=5u8 {
            let key = [1u8.into(), 2u8.into(), o.into(), number.into()];
            let change = [(order_line::OL_SUPPLY_W_ID, 2u8.into()), (order_line::OL_AMOUNT, amount.into())];
            assert!(txn.update(&t.order_line, &key, &change)?);
            let late = [(order_line::OL_DELIVERY_D, day(70_000))];
            assert!(o != 11 || txn.update(&t.order_line, &key, &late)?);
        }
    }
    for (d, quantity) in [(1u8, 0u8), (2, 11), (3, 10), (4, 1)] {
        for number in 1..=5u8 {
            let key = [2u8.into(), d.into(), 9u32.into(), number.into()];
            let change = [(order_line::OL_QUANTITY, quantity.into()), (order_line::OL_AMOUNT, 4_321.into())];
            assert!(txn.update(&t.order_line, &key, &change)?);
        }
    }
    assert!(txn.delete(&t.order, &[2u8.into(), 1u8.into(), 10u32.into()])?);
    let open = [2u8.into(), 2u8.into(), 25u32.into()];
    for number in 1..=15u8 {
        txn.delete(&t.order_line, &[open[0], open[1], open[2], number.into()])?;
    }
    Ok(())
}

/// By which columns each answer is ordered, and which of them from large to small.
const ORDERS: [(&str, &[(usize, bool)]); QUERIES.len()] = [
    ("q1", &[(0, false)]),
    ("q2", &[(2, false), (1, false), (3, false)]),
    ("q3", &[(3, true), (4, false)]),
    ("q4", &[(0, false)]),
    ("q5", &[(1, true)]),
    ("q6", &[]),
    ("q9", &[(0, false), (1, true)]),
    ("q11", &[(1, true)]),
    ("q12", &[(0, false)]),
    ("q13", &[(1, true), (0, true)]),
    ("q14", &[]),
    ("q15", &[(0, false)]),
    ("q16", &[(3, true)]),
    ("q18", &[(5, true), (3, false)]),
    ("q19", &[]),
    ("q22", &[(0, false)]),
];

fn assert_ordered(name: &str, answer: &Answer, by: &[(usize, bool)]) {
    for pair in answer.windows(2) {
        for &(column, down) in by {
            let (first, second) = if down { (&pair[1], &pair[0]) } else { (&pair[0], &pair[1]) };
            assert!(first[column] <= second[column], "{name}: {pair:?}");
            if first[column] < second[column] {
                break;
            }
        }
    }
}

fn sorted(mut answer: Answer) -> Answer {
    answer.sort_by(|a, b| a.partial_cmp(b).unwrap());
    answer
}

#[test]
fn every_query_answers_what_its_oracle_does() {
    let (db, data) = loaded_data();
    let mut client = ch().tpcc.clients(&db, &data.tpcc, 1, Isolation::Serializable).unwrap().remove(0);
    for _ in 0..300 {
        client.draw();
        client.attempt().unwrap();
    }
    make_interesting(&db, &data);
    let relations = Relations::read(&db);
    let txn = db.begin_safe_snapshot().unwrap();
    let snapshot = Snapshot { txn: &txn, tpcc: &data.tpcc.tables, ch: &data.tables };
    for (query, (name, by)) in QUERIES.iter().zip(ORDERS) {
        assert_eq!(query.name, name);
        let (answer, expected) = ((query.run)(&snapshot).unwrap(), relations.answer(name));
        let nothing = |cell: &Cell| matches!(cell, Cell::Number(0)) || *cell == Cell::Real(0.0);
        assert!(expected.iter().any(|row| !row.iter().all(nothing)), "{name} finds nothing");
        assert_ordered(name, &answer, by);
        assert_eq!(sorted(answer), sorted(expected), "{name}");
    }
}

#[test]
fn queries_of_an_empty_database_answer_nothing() {
    let db = empty();
    tpcc::create_all(&db, Ch::definitions()).unwrap();
    let (tpcc, ch) = (tpcc::schema::Tables::open(&db).unwrap(), Tables::open(&db).unwrap());
    let txn = db.begin_safe_snapshot().unwrap();
    for query in QUERIES {
        let answer = (query.run)(&Snapshot { txn: &txn, tpcc: &tpcc, ch: &ch }).unwrap();
        assert!(answer.iter().flatten().all(|cell| matches!(cell, Cell::Number(0) | Cell::Real(0.0))));
    }
}

#[test]
fn suppliers_nations_and_regions_fit_the_other_tables() {
    let (db, data) = loaded_data();
    assert_eq!(count(&db, &data.tables.supplier), 10_000);
    assert_eq!(count(&db, &data.tables.nation), 62);
    assert_eq!(count(&db, &data.tables.region), 5);
    let txn = db.begin_read().unwrap();
    let found = |table, key: u8| txn.get(table, &[key.into()]).unwrap().is_some();
    for row in txn.scan(&data.tables.nation, Range::all()).unwrap() {
        assert!(found(&data.tables.region, row.unwrap().get(schema::nation::N_REGIONKEY).unwrap()));
    }
    for row in txn.scan(&data.tables.supplier, Range::all()).unwrap() {
        assert!(found(&data.tables.nation, row.unwrap().get(supplier::SU_NATIONKEY).unwrap()));
    }
    for row in txn.scan(&data.tpcc.tables.customer, Range::all()).unwrap() {
        let row = row.unwrap();
        assert!(found(&data.tables.nation, row.get::<&str>(customer::C_STATE).unwrap().as_bytes()[0]));
    }
}

#[test]
fn a_database_is_found_again_only_when_it_is_complete() {
    let (db, data) = loaded_data();
    assert!(matches!(ch().find(&db).unwrap(), Found::Complete(_)));
    // What is there for queries does not keep TPC-C from going on.
    assert!(matches!(ch().tpcc.find(&db).unwrap(), Found::Complete(_)));
    db.run(|txn| txn.delete(&data.tpcc.tables.loaded, &[0u8.into()])).unwrap();
    assert_eq!(db.tables().len(), 13);
    assert!(matches!(ch().find(&db).unwrap(), Found::Nothing));
    assert!(db.tables().is_empty());

    ch().tpcc.load(&db, &context()).unwrap();
    let Found::Other(what) = ch().find(&db).unwrap() else { panic!("found") };
    assert!(what.contains("without the tables of CH"), "{what}");
    db.drop_table(loaded::NAME).unwrap();
    assert!(matches!(ch().find(&db).unwrap(), Found::Other(_)));
}

#[test]
fn every_round_of_a_reader_has_every_query_in_an_order_of_its_own() {
    let (db, data) = loaded_data();
    let readers = |seed| {
        let ch = Ch { tpcc: Tpcc { seed, ..ch().tpcc }, olap: 2, ..ch() };
        let clients = ch.clients(&db, &data, 3, Isolation::Serializable).unwrap();
        let analytical: Vec<_> = clients.iter().map(Client::is_analytical).collect();
        assert_eq!(analytical, [false, true, true]);
        clients.into_iter().skip(1)
    };
    let rounds = |seed| {
        let draw = |mut reader: Client| {
            let mut round = || (0..QUERIES.len()).map(|_| reader.draw()).collect::<Vec<_>>();
            [round(), round()]
        };
        readers(seed).flat_map(draw).collect::<Vec<_>>()
    };
    let first = rounds(1);
    assert_eq!(first, rounds(1));
    assert_ne!(first, rounds(2));
    for (n, round) in first.iter().enumerate() {
        assert!(first[..n].iter().all(|other| other != round));
        let mut all = round.clone();
        all.sort_unstable();
        assert_eq!(all, (5..21).collect::<Vec<_>>());
    }
    assert_eq!((KINDS[0], KINDS[5], KINDS[20]), ("new_order", "q1", "q22"));
}

#[test]
fn readers_and_writers_do_not_stand_in_each_others_way() {
    let (db, data) = loaded_data();
    let mut clients = ch().clients(&db, &data, 2, Isolation::Serializable).unwrap();
    let mut writer = db.begin().unwrap();
    let t = &data.tpcc.tables;
    let write = |writer: &mut Transaction, c: u8| {
        let key = [1u8.into(), 1u8.into(), c.into()];
        assert!(writer.update(&t.customer, &key, &[(customer::C_BALANCE, 0.into())]).unwrap());
    };
    // One row is locked while the queries run; the others are written when
    // readers with later timestamps would have marked them.
    write(&mut writer, 1);
    for _ in QUERIES {
        clients[1].draw();
        assert_eq!(clients[1].attempt().unwrap(), Outcome::Committed);
    }
    (2..=30).for_each(|c| write(&mut writer, c));
    writer.commit().unwrap();
}

#[test]
fn the_number_of_threads_is_that_of_the_clients() {
    let (db, data) = loaded_data();
    let error = ch().clients(&db, &data, 3, Isolation::Serializable).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Setting(ref what) if what.contains("must be 2, not 3")), "{error}");
}

#[test]
fn a_record_counts_transactions_and_queries_apart() {
    let settings = Settings {
        variants: vec![Variant::new(Medium::Dram, Collector::TB_COLLECT)],
        runs: 1,
        gc: GcOptions::default(),
        threads: 2,
        long_readers: 0,
        long_seconds: None,
        pace: Pace { warmup: Duration::ZERO, measure: Duration::from_millis(1500), rate: 200.0 },
        isolation: Isolation::Serializable,
        writers_move: true,
        stage: ExclusiveStage::default(),
        row_cache: None,
        durability: Durability::Sync,
        seed: 42,
        dir: None,
    };
    let mut records: Vec<crate::record::Record> = Vec::new();
    // A machine that is busy with something else may not get to a query in time.
    let patience = Patience::new();
    while records
        .iter()
        .all(|record| record.transactions == 0 || record.queries_per_s.is_none_or(|n| n == 0.0))
    {
        patience.check(|| "there are never transactions and queries".into());
        records.clear();
        run_all(&ch(), &settings, &context(), |record| records.push(record)).unwrap();
    }
    let record = serde_json::to_value(&records[0]).unwrap();
    assert_eq!((&record["workload"], &record["threads"]), (&"ch".into(), &2.into()));
    assert_eq!((&record["config"]["oltp"], &record["config"]["olap"]), (&1.into(), &1.into()));
    assert_eq!(record["consistency"], serde_json::json!({ "checked": 12, "failed": 0 }));
    let counted = |queries: bool| {
        let kinds = record["latency_us"].as_object().unwrap().iter();
        let wanted = kinds.filter(|(kind, _)| kind.starts_with('q') == queries);
        wanted.map(|(_, summary)| summary["count"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(record["transactions"], counted(false));
    assert!(counted(false) <= 301, "{}", counted(false));
    let rate = counted(true) as f64 / record["seconds"].as_f64().unwrap();
    assert!(counted(true) > 0 && (record["queries_per_s"].as_f64().unwrap() - rate).abs() < 1e-6);
    let seconds = record["per_second"].as_array().unwrap();
    assert_eq!(seconds.len(), 2);
    let sum = |what: &str| seconds.iter().map(|second| second[what].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("transactions"), sum("queries")), (counted(false), counted(true)));
}
