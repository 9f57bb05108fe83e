//! How long visits wait.

use pantile_base::TupleId;
use pantile_cc::SimulatedTime;

use super::*;
use crate::{MediumKind, Options, TableDef, Type};

/// The limit is one of each wait: a visit of many tuples may take longer.
#[test]
fn each_wait_has_the_whole_limit() {
    let time = SimulatedTime::default();
    let options = Options::new().medium(MediumKind::Dram).simulated_time(time.clone());
    let db = options.open("unused").expect("open");
    let table =
        db.create_table(TableDef::new("t").column("id", Type::U64).primary_key(["id"])).expect("create");
    let visitor = db.core.visitor("a test").expect("a slot");
    let wait = |length: Duration| {
        let until = time.now() + length;
        visitor.settled(&table.inner, TupleId(0), |_| (time.now() >= until).then_some(()))
    };
    let began = time.now();
    for _ in 0..3 {
        wait(SETTLE_WAIT / 2).expect("the wait is within the limit");
    }
    assert!(time.now() - began > SETTLE_WAIT);
    assert!(matches!(wait(SETTLE_WAIT * 2), Err(Error::Timeout(SETTLE_WAIT))));
}
