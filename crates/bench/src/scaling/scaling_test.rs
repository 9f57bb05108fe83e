use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pantile::{Collector, Durability, ExclusiveStage, GcOptions, Isolation};
use pantile_nvm::NvmConfig;
use pantile_testkit::Patience;

use super::*;
use crate::experiment::run_all;
use crate::load::{Context, Silent};
use crate::record::Record;
use crate::runner::Pace;
use crate::settings::{Medium, Settings, Variant};
use crate::ycsb::{Mix, Ycsb};

const TRANSFER: f64 = 80e-9;

/// Room for the last bits of a sum.
const ROUNDING: f64 = 1.0 + 1e-9;

fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-9 * expected.abs(), "{got}, not {expected}");
}

/// A machine of this many cores that is otherwise like the one measured.
fn cores(cores_per_socket: usize) -> Machine {
    Machine { cores_per_socket, ..Machine::here(TRANSFER) }
}

/// A transaction of 10 us that waits for nobody.
fn alone() -> Costs {
    Costs {
        workload: "ycsb".into(),
        gc: "none".into(),
        medium: Medium::Dram,
        cpu: 10e-6,
        shared_touches: 0.0,
        transfer: TRANSFER,
        aborts: 0.0,
        background: 0.0,
        io: Io::default(),
        spread: 0.0,
    }
}

/// A transaction that writes ten units to emulated memory, of whose 1 us 0.3
/// are over at the fence, and reads twenty.
fn on_optane() -> Costs {
    let io = Io {
        written_bytes: 2560.0,
        device_write: 1e-6,
        write_wait: 0.7e-6,
        units_read: 20.0,
        unit_bytes: 256.0,
        read_wait: 0.2e-6,
    };
    Costs { medium: Medium::Nvm(NvmConfig::OPTANE), io, ..alone() }
}

/// What runs of these costs look like, without queues at the medium.
fn run(costs: &Costs, threads: usize) -> Run {
    let other = threads as f64 - 1.0;
    let transfers = costs.shared_touches * costs.transfer * other / threads as f64;
    let aborts = costs.aborts * other;
    Run {
        threads,
        txn_per_s: 0.0,
        cores_had: threads as f64,
        cpu: (costs.cpu + transfers) * (1.0 + aborts),
        background: costs.background,
        aborts,
        io: costs.io,
    }
}

#[test]
fn calibration_finds_the_costs_that_runs_came_from() {
    let costs = Costs { shared_touches: 7.0, aborts: 0.02, background: 1e-7, ..on_optane() };
    let found =
        calibrate_with("ycsb", "none", costs.medium, &[run(&costs, 1)], &[run(&costs, 2)], TRANSFER).unwrap();
    assert_close(found.cpu, costs.cpu);
    assert!((found.shared_touches - 7.0).abs() < 1e-6);
    assert_eq!(found.spread, 0.0);
    assert_eq!((found.aborts, found.background, found.io), (0.02, 1e-7, costs.io));
}

#[test]
fn of_several_runs_the_middle_counts_and_a_gain_is_no_transfer() {
    let costs = alone();
    let slower = Run { cpu: 15e-6, ..run(&costs, 1) };
    let much_slower = Run { cpu: 50e-6, ..slower };
    let one = [much_slower, run(&costs, 1), slower];
    let found = calibrate_with("ycsb", "none", Medium::Dram, &one, &[run(&costs, 2)], TRANSFER).unwrap();
    assert_close(found.cpu, 15e-6);
    assert_eq!(found.shared_touches, 0.0);
    assert_close(found.spread, 4e-5 / 15e-6);
}

#[test]
fn one_thread_takes_what_it_was_measured_to_take() {
    let machine = cores(2);
    assert_close(predict(&alone(), &machine, 1).txn_per_s, 1e5);
    assert_close(predict(&on_optane(), &machine, 1).txn_per_s, 1.0 / 10.9e-6);
    let shared = Costs { shared_touches: 50.0, aborts: 0.5, ..on_optane() };
    let prediction = predict(&shared, &machine, 1);
    assert_close(prediction.txn_per_s, 1.0 / 10.9e-6);
    assert_close(prediction.least_txn_per_s, 1.0 / 10.9e-6);
}

#[test]
fn two_threads_take_what_was_calibrated_with() {
    let costs = Costs { shared_touches: 25.0, aborts: 0.1, ..alone() };
    // 25 touches, half of them transfers of 80 ns, and every tenth attempt in vain.
    assert_close(predict(&costs, &cores(2), 2).txn_per_s, 2.0 / (11e-6 * 1.1));
}

#[test]
fn threads_without_a_hardware_thread_gain_nothing() {
    for costs in [alone(), on_optane(), Costs { shared_touches: 9.0, ..on_optane() }] {
        let two = predict(&costs, &cores(2), 2);
        for threads in [3, 4, 128] {
            assert_eq!(predict(&costs, &cores(2), threads), two);
        }
    }
    let conflicts = Costs { aborts: 0.01, ..alone() };
    assert!(predict(&conflicts, &cores(2), 4).txn_per_s < predict(&conflicts, &cores(2), 2).txn_per_s);
}

#[test]
fn who_shares_nothing_scales_with_cores_and_then_with_their_threads() {
    let machine = Machine::tb_collect(TRANSFER);
    let times = |threads| predict(&alone(), &machine, threads).txn_per_s / 1e5;
    assert_close(times(10), 10.0);
    assert_close(times(20), 20.0);
    assert_close(times(40), 20.0 * ASSUMED_SMT_YIELD);
    assert_close(times(80), 20.0 * ASSUMED_SMT_YIELD);
}

#[test]
fn more_threads_are_never_worse_without_conflicts() {
    let costs = Costs { shared_touches: 30.0, background: 1e-7, ..on_optane() };
    for machine in [cores(2), cores(64), Machine::tb_collect(TRANSFER)] {
        for threads in 1..128 {
            let (now, next) = (predict(&costs, &machine, threads), predict(&costs, &machine, threads + 1));
            assert!(next.txn_per_s >= now.txn_per_s * (1.0 - 1e-9), "{threads}");
            assert!(now.least_txn_per_s <= now.txn_per_s * (1.0 + 1e-9), "{threads}");
        }
    }
}

#[test]
fn the_emulated_device_is_the_limit() {
    let predicted = |threads| predict(&on_optane(), &cores(128), threads).txn_per_s;
    assert!(predicted(128) <= 1e6 * ROUNDING && predicted(128) > 0.999e6, "{}", predicted(128));
    assert!(predicted(8) < 8.0 / 10.9e-6);
}

#[test]
fn modules_are_the_limit_together() {
    let io = Io { written_bytes: 25_600.0, device_write: 10e-6, write_wait: 9e-6, ..on_optane().io };
    let costs = Costs { io, ..on_optane() };
    let machine = Machine { cores_per_socket: 128, ..Machine::tb_collect(TRANSFER) };
    let bandwidth = 6.0 * 0.3 * 7.67e9;
    let used = predict(&costs, &machine, 128).txn_per_s * 25_600.0;
    assert!(used <= bandwidth * ROUNDING && used > 0.99 * bandwidth, "{used}");
    // One thread uses them one after the other and waits for the latency of reads.
    let alone = 10e-6 + 25_600.0 / (0.3 * 7.67e9) - 1e-6 + 20.0 * (101e-9 + 256.0 / (6.0 * 6.6e9));
    assert!((predict(&costs, &machine, 1).txn_per_s * alone - 1.0).abs() < 1e-6);
    // Memory as fast as DRAM is no faster than its channels either.
    let costs = Costs { medium: Medium::Nvm(NvmConfig::E), ..costs };
    let used = predict(&costs, &machine, 128).txn_per_s * 25_600.0;
    assert!(used > bandwidth && used <= 6.0 * 7.67e9 * ROUNDING, "{used}");
}

#[test]
fn one_line_is_the_limit_if_all_transfers_are_of_it() {
    let costs = Costs { shared_touches: 10.0, ..alone() };
    let prediction = predict(&costs, &cores(128), 128);
    let transfers = 10.0 * TRANSFER * 127.0 / 128.0;
    assert_close(prediction.txn_per_s, 128.0 / (10e-6 + transfers));
    assert!(prediction.least_txn_per_s <= ROUNDING / transfers);
    assert!(prediction.least_txn_per_s > 0.999 / transfers);
}

#[test]
fn the_engines_own_threads_take_cores_when_none_is_free() {
    let costs = Costs { background: 5e-6, ..alone() };
    assert_close(predict(&costs, &cores(4), 2).txn_per_s, 2e5);
    // Two clients and half a core each for the rest: 3 cores' work on 2.
    assert_close(predict(&costs, &cores(2), 2).txn_per_s, 2e5 * 2.0 / 3.0);
}

#[test]
fn slower_cores_and_farther_lines_cost_throughput() {
    let costs = Costs { shared_touches: 10.0, ..alone() };
    let half = Machine { core_speed: 0.5, ..cores(20) };
    assert_close(predict(&alone(), &half, 20).txn_per_s, 1e6);
    let (near, far) = (Machine::tb_collect(TRANSFER), Machine::steam(TRANSFER));
    let rate = |machine| predict(&costs, machine, 40).txn_per_s;
    assert!(rate(&far) < rate(&near));
}

static NEVER: AtomicBool = AtomicBool::new(false);

/// Tiny runs with this many clients.
fn records(medium: Medium, threads: usize) -> Vec<Record> {
    let mix = Mix { updates: 50, ..Mix::default() };
    let workload = Ycsb { tuples: 2000, tuple_bytes: 100, ops: 10, mix, seed: 1, ..Ycsb::default() };
    let settings = Settings {
        variants: vec![Variant::new(medium, Collector::TB_COLLECT)],
        runs: 1,
        gc: GcOptions::default(),
        threads,
        long_readers: 0,
        long_seconds: None,
        pace: Pace { warmup: Duration::from_millis(20), measure: Duration::from_millis(200), rate: 0.0 },
        isolation: Isolation::Serializable,
        writers_move: true,
        stage: ExclusiveStage::default(),
        row_cache: None,
        durability: Durability::Sync,
        seed: 1,
        dir: None,
    };
    let context = Context { threads: 2, stop: &NEVER, observer: &Silent };
    // A machine that is busy with something else may not get to any in time.
    let patience = Patience::new();
    loop {
        patience.check(|| "nothing is done".into());
        let mut records = Vec::new();
        run_all(&workload, &settings, &context, |record| records.push(record)).unwrap();
        if records.iter().all(|record| record.transactions > 0 && record.cpu.user_seconds > 0.0) {
            return records;
        }
    }
}

#[test]
fn runs_become_costs_and_these_a_table() {
    for medium in [Medium::Dram, Medium::Nvm(NvmConfig::OPTANE)] {
        let [one, two, four] = [1, 2, 4].map(|threads| records(medium, threads));
        let costs = calibrate(&one, &two, TRANSFER).unwrap();
        assert!(costs.cpu > 0.0, "{costs:?}");
        let emulated = medium != Medium::Dram;
        assert_eq!(costs.io.device_write > 0.0, emulated, "{costs:?}");
        assert_eq!(costs.io.written_bytes > 0.0, emulated, "{costs:?}");
        let machine = Machine::here(TRANSFER);
        let all: Vec<_> = one.iter().chain(&two).chain(&four).collect();
        let rows = validate(&costs, &machine, all);
        assert_eq!(rows.iter().map(|row| row.threads).collect::<Vec<_>>(), [1, 2, 4]);
        for row in &rows {
            assert!(row.predicted.txn_per_s > 0.0 && row.error_percent().unwrap().is_finite(), "{row}");
            assert!(row.measured.unwrap().undisturbed_txn_per_s > 0.0, "{row}");
        }
        let table = curve(&costs, &Machine::tb_collect(TRANSFER), &[1, 40]);
        assert_eq!(table[1].to_string().matches("40 threads").count(), 1);
        assert!(table[1].predicted.txn_per_s > table[0].predicted.txn_per_s && table[1].measured.is_none());
    }
}

#[test]
fn runs_that_do_not_belong_together_are_refused() {
    let (one, two) = (records(Medium::Dram, 1), records(Medium::Dram, 2));
    let refused = |one: &[Record], two: &[Record]| calibrate(one, two, TRANSFER).unwrap_err().to_string();
    assert!(refused(&[], &two).contains("no run with one client"));
    assert!(refused(&one, &[]).contains("2 client"));
    assert!(refused(&two, &two).contains("1 client"));
    let other = vec![Record { gc: "none".into(), ..two[0].clone() }];
    assert!(refused(&one, &other).contains("ycsb, dram, tb-collect"));
    let file = |record: &Record| vec![Record { medium: "file".into(), ..record.clone() }];
    assert!(refused(&file(&one[0]), &file(&two[0])).contains("and not file"));
    let other = validate(&calibrate(&one, &two, TRANSFER).unwrap(), &Machine::here(TRANSFER), &other);
    assert_eq!(other, []);
}
