//! The order of timestamps is a serial order: if the transactions run again in
//! that order, one after another, every read gets the same result.

use std::collections::BTreeMap;

use pantile_history::{Op, Outcome, Txn};

use super::client::Recorded;

/// Checks the reads of serializable transactions and safe snapshots. The writes
/// of other transactions take effect when they commit.
pub fn by_timestamp(recorded: &Recorded) {
    let mut order: Vec<(u64, &Txn)> = recorded
        .history
        .transactions
        .iter()
        .filter_map(|txn| match txn.outcome {
            Outcome::Committed { ts } => Some((ts, txn)),
            _ => None,
        })
        .collect();
    // A safe snapshot may have a writer's timestamp, and then shows what the
    // writer wrote.
    order.sort_by_key(|(ts, txn)| (*ts, recorded.safe.contains(&txn.id)));
    let mut state = BTreeMap::new();
    for (ts, txn) in order {
        let strict = !recorded.late.contains(&txn.id);
        txn.ops.iter().for_each(|op| step(&mut state, op, strict, ts, txn.id));
    }
}

fn step(state: &mut BTreeMap<u64, u64>, op: &Op, strict: bool, ts: u64, id: u64) {
    match op {
        Op::Write { key, value } => {
            state.insert(*key, *value);
        }
        Op::Delete { key, .. } => {
            state.remove(key);
        }
        Op::Read { key, value } if strict => {
            assert_eq!(state.get(key), value.as_ref(), "key {key} of transaction {id:x} at {ts}");
        }
        Op::Scan { low, high, found } if strict => {
            let mut found = found.clone();
            found.sort_unstable();
            let expected: Vec<(u64, u64)> = state.range(low..=high).map(|(k, v)| (*k, *v)).collect();
            assert_eq!(found, expected, "keys {low} to {high} of transaction {id:x} at {ts}");
        }
        Op::Read { .. } | Op::Scan { .. } => {}
    }
}
