//! The named anomalies, and which isolation level prevents which.
//!
//! Names and scenarios follow Martin Kleppmann's Hermitage tests and A. Adya's
//! thesis ("Weak Consistency", MIT, 1999); the read-only anomaly is by
//! A. Fekete, E. O'Neil and P. O'Neil (SIGMOD Record 33(3), 2004). Each
//! scenario is run in every order in which its transactions can begin, and a
//! level lets an anomaly through if it shows in one of them.
//! `docs/isolation.md` has the table.

mod bench;
mod cleaned;
mod cycles;
mod definitions;
mod many_reads;
mod phantoms;
mod reads;

use crate::support::Beside;
use bench::{Outcome, orders};
use pantile::Isolation;

/// Whether the anomaly shows at a level. Neither the collector must matter, nor
/// whether writers move.
fn shows(transactions: usize, scenario: fn(&bench::Bench) -> Outcome, level: Isolation) -> bool {
    let shows = |beside, moves| shows_beside(beside, moves, transactions, scenario, level);
    let shown = shows(Beside::Any, true);
    assert_eq!(shown, shows(Beside::Any, false), "with writers that stay where they began");
    assert_eq!(shown, shows(Beside::Eager, true), "beside an eager collector");
    shown
}

fn shows_beside(
    beside: Beside,
    writers_move: bool,
    transactions: usize,
    scenario: fn(&bench::Bench) -> Outcome,
    level: Isolation,
) -> bool {
    orders(transactions).into_iter().any(|order| {
        let bench = bench::Bench::new(level, order, beside, writers_move);
        match scenario(&bench) {
            Ok(shown) => shown,
            Err(error) => {
                assert!(crate::support::is_conflict(&error), "{error}");
                false
            }
        }
    })
}

macro_rules! levels {
    ($name:ident, $transactions:literal, $scenario:path, $serializable:ident, $snapshot:ident, $read_committed:ident) => {
        mod $name {
            use super::*;

            #[test]
            fn serializable() {
                $serializable(shows($transactions, $scenario, Isolation::Serializable));
            }

            #[test]
            fn snapshot() {
                $snapshot(shows($transactions, $scenario, Isolation::Snapshot));
            }

            #[test]
            fn read_committed() {
                $read_committed(shows($transactions, $scenario, Isolation::ReadCommitted));
            }
        }
    };
}

#[track_caller]
fn prevented(shown: bool) {
    assert!(!shown, "the level prevents the anomaly");
}

#[track_caller]
fn possible(shown: bool) {
    assert!(shown, "the level lets the anomaly through");
}

levels!(g0_dirty_write, 2, reads::g0, prevented, prevented, prevented);
levels!(g1a_aborted_read, 2, reads::g1a, prevented, prevented, prevented);
levels!(g1b_intermediate_read, 2, reads::g1b, prevented, prevented, prevented);
levels!(g1c_circular_information_flow, 2, reads::g1c, prevented, prevented, prevented);
levels!(otv_observed_transaction_vanishes, 3, reads::otv, prevented, prevented, prevented);
levels!(pmp_predicate_many_preceders, 2, reads::pmp, prevented, prevented, possible);
levels!(pmp_for_write_predicates, 2, reads::pmp_write, prevented, prevented, possible);
levels!(p4_lost_update, 2, cycles::p4, prevented, prevented, possible);
levels!(g_single_read_skew, 2, cycles::g_single, prevented, prevented, possible);
levels!(g_single_with_predicate, 2, cycles::g_single_predicate, prevented, prevented, possible);
levels!(g_single_with_write, 2, cycles::g_single_write, prevented, prevented, possible);
levels!(g2_item_write_skew, 2, cycles::g2_item, prevented, possible, possible);
levels!(g2_item_with_deletions, 2, cycles::g2_item_deletions, prevented, possible, possible);
levels!(read_only_anomaly, 3, cycles::read_only, prevented, possible, possible);
levels!(g2_phantom_in_primary_range, 2, phantoms::primary_range, prevented, possible, possible);
levels!(g2_phantom_in_secondary_range, 2, phantoms::secondary_range, prevented, possible, possible);
levels!(g2_phantom_by_update, 2, phantoms::moved_rows, prevented, possible, possible);
levels!(g2_phantom_of_absent_key, 2, phantoms::absent_key, prevented, possible, possible);
levels!(g2_phantom_of_absent_index_key, 2, phantoms::absent_index_key, prevented, possible, possible);
levels!(g2_phantom_of_deleted_key, 2, phantoms::deleted_key, prevented, possible, possible);
levels!(g2_phantom_behind_a_limit, 2, phantoms::limit, prevented, possible, possible);
levels!(g2_three_transactions, 3, phantoms::three, prevented, possible, possible);
