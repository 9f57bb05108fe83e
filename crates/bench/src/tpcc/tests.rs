//! The five transactions on a tiny database.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pantile::{Database, MediumKind, Options, OwnedValue, Range};
use pantile_testkit::Patience;

use super::*;
use crate::load::Silent;
use crate::partition::ByPartition;
use crate::runner::tests::side_by_side;
use crate::runner::{Client as _, Pace};
use schema::{customer, district, history, new_order as open, order, stock};

const SCALE: Scale = Scale { warehouses: 2, items: 200, customers: 60 };
static NEVER: AtomicBool = AtomicBool::new(false);

fn context() -> Context<'static> {
    Context { threads: 2, stop: &NEVER, observer: &Silent }
}

fn tpcc() -> Tpcc {
    Tpcc { scale: SCALE, together: false, seed: 42 }
}

fn loaded() -> (Database, Data) {
    loaded_under(None)
}

fn loaded_under(protocol: Option<pantile::lab::Protocol>) -> (Database, Data) {
    let db = Options::new().medium(MediumKind::Dram).protocol(protocol).open("unused").unwrap();
    let data = tpcc().load(&db, &context()).unwrap();
    (db, data)
}

fn client(db: &Database, data: &Data) -> Client {
    tpcc().clients(db, data, 1, Isolation::Serializable).unwrap().remove(0)
}

fn assert_consistent(db: &Database, data: &Data) {
    let found = tpcc().check(db, data, &context()).unwrap().unwrap();
    assert_eq!((found.checked, found.failed), (12, 0), "{:?}", found.failures);
}

fn count(db: &Database, table: &pantile::Table) -> usize {
    db.begin_read().unwrap().scan(table, Range::all()).unwrap().count()
}

/// One call for many rows does what a call for each does.
#[test]
fn rows_together_end_up_the_same() {
    let after = [false, true].map(|together| {
        let (db, data) = loaded();
        let tpcc = Tpcc { together, ..tpcc() };
        let mut client = tpcc.clients(&db, &data, 1, Isolation::Serializable).unwrap().remove(0);
        for _ in 0..500 {
            client.draw();
            client.attempt().unwrap();
        }
        assert_consistent(&db, &data);
        let txn = db.begin_read().unwrap();
        let t = &data.tables;
        [&t.warehouse, &t.district, &t.customer, &t.order, &t.new_order, &t.stock, &t.order_line].map(
            |table| {
                let values = |row: pantile::Result<pantile::Row<'_>>| row.unwrap().to_values().unwrap();
                let rows = txn.scan(table, Range::all()).unwrap().map(values);
                // Moments differ.
                let is_moment = |value: &OwnedValue| matches!(value, OwnedValue::Timestamp(_));
                rows.map(|row| row.into_iter().filter(|value| !is_moment(value)).collect::<Vec<_>>())
                    .collect::<Vec<_>>()
            },
        )
    });
    assert_eq!(after[0], after[1]);
}

#[test]
fn loading_gives_the_numbers_of_rows_of_the_specification() {
    let (db, data) = loaded();
    let t = &data.tables;
    assert_eq!(count(&db, &t.warehouse), 2);
    assert_eq!(count(&db, &t.district), 20);
    assert_eq!(count(&db, &t.customer), 20 * 60);
    assert_eq!(count(&db, &t.history), 20 * 60);
    assert_eq!(count(&db, &t.order), 20 * 60);
    assert_eq!(count(&db, &t.new_order), 20 * 18);
    assert_eq!(count(&db, &t.item), 200);
    assert_eq!(count(&db, &t.stock), 400);
    let lines = count(&db, &t.order_line);
    assert!((11_000..13_000).contains(&lines), "{lines}");
    assert_consistent(&db, &data);
}

#[test]
fn loading_gives_the_same_data_on_any_number_of_threads() {
    let dump = |threads| {
        let db = Options::new().medium(MediumKind::Dram).open("unused").unwrap();
        let context = Context { threads, ..context() };
        let data = tpcc().load(&db, &context).unwrap();
        let txn = db.begin_read().unwrap();
        let row = txn.get(&data.tables.stock, &[2u16.into(), 77.into()]).unwrap().unwrap();
        let name = row.get::<&str>(stock::S_DATA).unwrap().to_owned();
        (name, row.get::<i64>(stock::S_QUANTITY).unwrap())
    };
    assert_eq!(dump(1), dump(3));
}

#[test]
fn a_database_is_found_again_only_when_it_is_complete_and_of_this_size() {
    let (db, data) = loaded();
    assert!(matches!(tpcc().find(&db).unwrap(), Found::Complete(_)));
    let larger = Tpcc { scale: Scale { warehouses: 3, ..SCALE }, together: false, seed: 1 };
    let Found::Other(what) = larger.find(&db).unwrap() else { panic!("found") };
    assert!(what.contains("--warehouses 2"), "{what}");
    db.run(|txn| txn.delete(&data.tables.loaded, &[0u8.into()])).unwrap();
    assert!(matches!(tpcc().find(&db).unwrap(), Found::Nothing));
    assert!(db.tables().is_empty());
}

#[test]
fn tables_of_others_are_left_alone() {
    let (db, _) = loaded();
    db.drop_table(loaded::NAME).unwrap();
    assert!(matches!(tpcc().find(&db).unwrap(), Found::Other(_)));
    assert_eq!(db.tables().len(), 9);

    let (db, data) = loaded();
    db.run(|txn| txn.delete(&data.tables.loaded, &[0u8.into()])).unwrap();
    db.create_table(TableDef::new("mine").column("a", pantile::Type::U8).primary_key(["a"])).unwrap();
    assert!(matches!(tpcc().find(&db).unwrap(), Found::Other(_)));
    assert_eq!(db.tables().len(), 11);
}

#[test]
fn every_kind_of_transaction_keeps_the_database_consistent() {
    let (db, data) = loaded();
    let mut client = client(&db, &data);
    let mut kinds = [0; 5];
    for _ in 0..1000 {
        kinds[client.draw()] += 1;
        client.attempt().unwrap();
    }
    assert_eq!(kinds, [450, 430, 40, 40, 40]);
    assert_consistent(&db, &data);
    assert_eq!(count(&db, &data.tables.history), 20 * 60 + 430);
}

#[test]
fn a_new_order_takes_from_stock_and_advances_the_district() {
    let (db, data) = loaded();
    let mut client = client(&db, &data);
    let next = |w: u16, d: u8| {
        let txn = db.begin_read().unwrap();
        let row = txn.get(&data.tables.district, &[w.into(), d.into()]).unwrap().unwrap();
        row.get::<u32>(district::D_NEXT_O_ID).unwrap()
    };
    let orders = |sum: fn(&pantile::Row<'_>) -> i64| {
        let txn = db.begin_read().unwrap();
        let rows = txn.scan(&data.tables.stock, Range::all()).unwrap();
        rows.map(|row| sum(&row.unwrap())).sum::<i64>()
    };
    let districts = || (1..=2).flat_map(|w| (1..=10).map(move |d| (w, d)));
    let before: u32 = districts().map(|(w, d)| next(w, d)).sum();
    let (mut lines, mut done, mut rolled_back) = (0, 0, 0);
    while done < 300 {
        if client.draw() != 0 {
            continue;
        }
        let Input::NewOrder(input) = &client.input else { panic!("another kind") };
        let (expected, count) = (input.rolls_back(SCALE), input.remote_lines().1);
        let outcome = client.attempt().unwrap();
        assert_eq!(outcome == Outcome::RolledBack, expected);
        rolled_back += u32::from(expected);
        done += 1;
        lines += if expected { 0 } else { count as i64 };
    }
    let after: u32 = districts().map(|(w, d)| next(w, d)).sum();
    assert_eq!(after - before, done - rolled_back);
    assert_eq!(orders(|row| row.get(stock::S_ORDER_CNT).unwrap()), lines);
    assert!(orders(|row| i64::from(row.get::<i64>(stock::S_QUANTITY).unwrap() < 0)) == 0);
    assert_eq!(count(&db, &data.tables.new_order), 20 * 18 + (done - rolled_back) as usize);
    assert_consistent(&db, &data);
}

#[test]
fn deliveries_empty_the_list_of_open_orders_and_then_do_nothing() {
    let (db, data) = loaded();
    let mut session = Session::new(&db, &data.tables, Isolation::Serializable, false, 0).unwrap();
    let mut random = Random::new(1, 1);
    for _ in 0..20 {
        delivery::attempt(&mut session, &delivery::Input::draw(&mut random, 2)).unwrap();
    }
    let txn = db.begin_read().unwrap();
    let rows = txn.scan(&data.tables.new_order, Range::all()).unwrap();
    assert!(rows.map(|row| row.unwrap().get::<u16>(open::NO_W_ID).unwrap()).all(|w| w == 1));
    let row = txn.get(&data.tables.order, &[2u16.into(), 1u8.into(), 60.into()]).unwrap().unwrap();
    assert!(row.get::<Option<u8>>(order::O_CARRIER_ID).unwrap().is_some());
    assert_consistent(&db, &data);
}

#[test]
fn the_middle_customer_of_a_name_is_found() {
    let (db, data) = loaded();
    let t = &data.tables;
    let name = random::last_name(7);
    for (c, first) in [(1001u32, "B"), (1002, "A"), (1003, "~")] {
        db.run(|txn| {
            let mut row: Vec<Value<'_>> = vec![0.into(); 21];
            row[..3].copy_from_slice(&[1.into(), 1.into(), c.into()]);
            for text in [customer::C_STREET_1, customer::C_STREET_2, customer::C_CITY, customer::C_DATA] {
                row[text] = "".into();
            }
            for text in [
                customer::C_MIDDLE,
                customer::C_STATE,
                customer::C_ZIP,
                customer::C_PHONE,
                customer::C_CREDIT,
            ] {
                row[text] = "".into();
            }
            row[customer::C_FIRST] = first.into();
            row[customer::C_LAST] = name.as_str().into();
            row[customer::C_SINCE] = Value::Timestamp(0);
            txn.insert(&t.customer, &row)
        })
        .unwrap();
    }
    let txn = db.begin_read().unwrap();
    let mut found = Vec::new();
    let c = session::Who::Name(name).find(&txn, &t.customer_by_name, 1, 1, &mut found).unwrap();
    // With customer 8, whose first name begins with some letter or digit,
    // there are four: the second is in the middle.
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(c, found[1]);
    assert_eq!(found[3], 1003);
}

#[test]
fn payments_go_on_numbering_after_a_break() {
    let (db, data) = loaded();
    for _ in 0..2 {
        let mut client = client(&db, &data);
        for _ in 0..100 {
            client.draw();
            client.attempt().unwrap();
        }
    }
    let stream = [0u32.into()];
    let txn = db.begin_read().unwrap();
    let rows = txn.scan(&data.tables.history, Range::prefix(&stream)).unwrap();
    let numbers: Vec<u32> = rows.map(|row| row.unwrap().get(history::H_NUMBER).unwrap()).collect();
    assert_eq!(numbers, (0..86).collect::<Vec<_>>());
}

#[test]
fn many_clients_keep_the_database_consistent() {
    let own =
        [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted].map(|level| (level, None));
    let optimistic = [pantile_protocols::OCC, pantile_protocols::SILO, pantile_protocols::TICTOC];
    let under = optimistic.map(|protocol| (Isolation::Serializable, Some(protocol)));
    for (isolation, protocol) in own.into_iter().chain(under) {
        let (db, data) = loaded_under(protocol);
        let clients = tpcc().clients(&db, &data, 8, isolation).unwrap();
        side_by_side(clients, KINDS.len(), 60);
        assert_consistent(&db, &data);
    }
}

#[test]
fn shares_of_inputs_are_those_of_the_specification() {
    let mut random = Random::new(3, 3);
    let constants = Constants::for_run(100, &mut random);
    let scale = Scale::full(4);
    let n = 20_000;
    let (mut rolls_back, mut remote_lines, mut lines) = (0, 0, 0);
    let (mut remote, mut by_name) = (0, 0);
    for _ in 0..n {
        let order = new_order::Input::draw(&mut random, &constants, scale, 3);
        rolls_back += usize::from(order.rolls_back(scale));
        remote_lines += order.remote_lines().0;
        lines += order.remote_lines().1;
        let payment = payment::Input::draw(&mut random, &constants, scale, 3);
        remote += usize::from(payment.is_remote());
        by_name += usize::from(payment.is_by_name());
    }
    let percent = |part: usize, of: usize| part as f64 / of as f64 * 100.0;
    assert!((percent(rolls_back, n) - 1.0).abs() < 0.3);
    assert!((percent(remote_lines, lines) - 1.0).abs() < 0.1);
    assert!((percent(lines, n) - 1000.0).abs() < 10.0);
    assert!((percent(remote, n) - 15.0).abs() < 1.0);
    assert!((percent(by_name, n) - 60.0).abs() < 1.5);
}

#[test]
fn every_warehouse_has_a_client_and_every_client_a_warehouse() {
    assert_eq!(homes(0, 1, 3), [1, 2, 3]);
    assert_eq!(homes(1, 2, 5), [2, 4]);
    assert_eq!(homes(4, 8, 3), [2]);
    assert_eq!(homes(0, 16, 1), [1]);
}

fn keys(client: &impl Assign) -> Vec<u64> {
    let mut keys = Vec::new();
    client.partition_keys(&mut keys);
    keys
}

#[test]
fn what_one_client_draws_another_runs() {
    let (db, data) = loaded();
    let mut clients = tpcc().clients(&db, &data, 2, Isolation::Serializable).unwrap();
    let (mut other, mut one) = (clients.remove(1), clients.remove(0));
    one.draw_for_all();
    let mut homes = [0; 2];
    for _ in 0..300 {
        one.draw();
        let drawn = keys(&one);
        homes[drawn[0] as usize - 1] += 1;
        other.attempt_next(one.drawn());
        assert_eq!(keys(&other), drawn);
        other.attempt().unwrap();
    }
    assert!(homes.iter().all(|drawn| *drawn > 50), "{homes:?}");
    assert_consistent(&db, &data);
}

#[test]
fn clients_that_assign_by_partition_leave_the_data_consistent() {
    let (db, data) = loaded();
    let pace = Pace { warmup: Duration::ZERO, measure: Duration::from_millis(300), rate: 0.0 };
    let mut done = 0;
    // A machine that is busy with something else may not get to any in the time.
    let patience = Patience::new();
    while done == 0 {
        patience.check(|| "nothing is done".into());
        let clients = ByPartition(tpcc()).clients(&db, &data, 2, Isolation::Serializable).unwrap();
        done = runner::run(clients, KINDS.len(), pace, || false, |_| {}).unwrap().transactions();
    }
    assert_consistent(&db, &data);
}

/// The engine's own protocol, and those of the laboratory.
fn protocols() -> impl Iterator<Item = Option<pantile::lab::Protocol>> {
    [None].into_iter().chain(pantile_protocols::all().iter().copied().map(Some))
}

fn session(db: &Database, data: &Data, isolation: Isolation, stream: u32) -> Session {
    Session::new(db, &data.tables, isolation, false, stream).unwrap()
}

#[test]
fn a_row_that_is_missing_ends_the_run_under_every_protocol() {
    for protocol in protocols() {
        let (db, data) = loaded_under(protocol);
        let key = [1u16.into(), 1u8.into(), 43.into()];
        assert!(db.run(|txn| txn.delete(&data.tables.order, &key)).unwrap());
        let input = delivery::Input::draw(&mut Random::new(1, 1), 1);
        let mut session = session(&db, &data, Isolation::Serializable, 0);
        let error = delivery::attempt(&mut session, &input).unwrap_err();
        assert!(!error.is_retryable(), "{protocol:?}: {error}");
        assert!(error.to_string().starts_with("the order "), "{protocol:?}: {error}");
        // Nothing of it is there.
        assert_eq!(count(&db, &data.tables.new_order), 20 * 18);
    }
}

/// A transaction that will be refused finds a row missing that it has read.
#[test]
fn what_a_doomed_transaction_misses_is_a_conflict() {
    for protocol in [pantile_protocols::OCC, pantile_protocols::SILO, pantile_protocols::TICTOC] {
        let (db, data) = loaded_under(Some(protocol));
        let open = &data.tables.new_order;
        let mut txn = db.begin().unwrap();
        let before = txn.savepoint();
        let prefix = [1u16.into(), 1u8.into()];
        let oldest = txn.scan(open, Range::prefix(&prefix).limit(1)).unwrap().next().unwrap().unwrap();
        let number: u32 = oldest.get(open::NO_O_ID).unwrap();
        let mut other = session(&db, &data, Isolation::Serializable, 0);
        delivery::attempt(&mut other, &delivery::Input::draw(&mut Random::new(1, 1), 1)).unwrap();
        let key = [prefix[0], prefix[1], number.into()];
        assert!(!txn.delete(open, &key).unwrap());
        let error = session::confirmed(txn, before, session::missing("the open order", &key));
        assert!(error.is_retryable(), "{protocol}: {error}");
    }
}

/// Deliveries of one warehouse that meet: each open order is delivered once.
#[test]
fn deliveries_side_by_side_share_the_open_orders() {
    let levels = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];
    let own = levels.map(|isolation| (None, isolation));
    let under = pantile_protocols::all().iter().map(|&protocol| (Some(protocol), Isolation::Serializable));
    for (protocol, isolation) in own.into_iter().chain(under) {
        let (db, data) = loaded_under(protocol);
        std::thread::scope(|scope| {
            for n in 0..4 {
                let mut session = session(&db, &data, isolation, n);
                scope.spawn(move || {
                    let input = delivery::Input::draw(&mut Random::new(1, n.into()), 1);
                    for _ in 0..6 {
                        while let Err(error) = delivery::attempt(&mut session, &input) {
                            assert!(error.is_retryable(), "{protocol:?}, {isolation:?}: {error}");
                        }
                    }
                });
            }
        });
        assert_eq!(count(&db, &data.tables.new_order), 10 * 18, "{protocol:?}, {isolation:?}");
        assert_consistent(&db, &data);
    }
}
