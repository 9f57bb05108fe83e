//! What the space target costs: the bytes written for each byte updated are
//! close to the least that any log-structured cleaning needs for the space that
//! is taken (`docs/design.md`, "Space"). Time is simulated, so no result depends
//! on the machine.

use std::sync::atomic::AtomicBool;

use pantile::GcOptions;
use pantile_bench::load::{Context, Silent};
use pantile_bench::space::price::{Load, Price, Settings};
use pantile_bench::space::updates::Updates;

static NEVER: AtomicBool = AtomicBool::new(false);

const HOT: Updates = Updates::Hot { rows: 0.2, updates: 0.8 };

const SETTINGS: Settings = Settings {
    live_bytes: 48 << 20,
    rows_each: 100,
    bytes_per_second: Some(40_000_000),
    warmup: 4.0,
    window: 2.0,
    reader: false,
    seed: 42,
};

/// What bytes cost at most, in units of the optimum.
const MOST: f64 = 1.25;

fn price(updates: Updates, gc: GcOptions) -> Price {
    measured(SETTINGS, updates, gc)
}

fn measured(settings: Settings, updates: Updates, gc: GcOptions) -> Price {
    let context = Context { threads: 1, stop: &NEVER, observer: &Silent };
    settings.measure(Load::Rows(updates), gc, &context).expect("a measurement")
}

fn at_target(space_target: f64) -> GcOptions {
    GcOptions { space_target, ..GcOptions::default() }
}

#[test]
fn updates_all_over_the_data_cost_little_more_than_they_must() {
    for target in [1.5, 2.0] {
        let price = price(Updates::Uniform, at_target(target));
        assert!(price.ratio() < MOST, "{price:#?}");
        assert!(price.ratio_used() < 1.1, "{price:#?}");
    }
}

#[test]
fn skewed_updates_cost_little_more_than_they_must() {
    for target in [1.5, 2.0] {
        let price = price(HOT, at_target(target));
        assert!(price.ratio() < MOST, "{price:#?}");
    }
}

/// What a transaction keeps that stays open comes on top of the promise: newer blocks are not emptied in
/// its place, as soon as little of them is dead.
#[test]
fn updates_beside_a_reader_cost_no_more() {
    for updates in [Updates::Uniform, HOT] {
        let beside = measured(Settings { reader: true, ..SETTINGS }, updates, at_target(2.0));
        let alone = price(updates, at_target(2.0));
        assert!(beside.amplification < 1.5 * alone.amplification, "{beside:#?} and {alone:#?}");
    }
}

/// Negative control: blocks that are emptied as soon as half of them is dead,
/// whatever they hold, cost more than that.
#[test]
fn a_fixed_share_of_dead_versions_costs_more() {
    let half = GcOptions { theta: 0.5, queue_share: 0.0, ..at_target(3.0) };
    let price = price(HOT, half);
    assert!(price.ratio_used() > MOST, "{price:#?}");
}
