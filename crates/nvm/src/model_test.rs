use super::*;
use crate::clock::ManualClock;
use crate::config::Speed;
use crate::nodes::{Placement, join_node};

/// 20 and 10 GB/s: a 256 B unit takes DRAM 12.8 and 25.6 ns.
const DRAM: Bandwidth = Bandwidth { read: 20e9, write: 10e9 };

const CORES: usize = 2;

fn model(config: NvmConfig) -> (Model<ManualClock>, ManualClock) {
    let clock = ManualClock::default();
    (Model::new(&config, DRAM, CORES, clock.clone()), clock)
}

fn flush(model: &Model<ManualClock>, offset: u64, len: u64) -> u64 {
    let now = model.now();
    model.with_lane(|lane| model.flush(lane, now, offset, len))
}

fn assert_close(got: u64, expected_ps: f64) {
    let off = (got as f64 / expected_ps - 1.0).abs();
    assert!(off < 0.01, "{got} ps, not {expected_ps}");
}

/// Unit numbers, one after the other or in a scattered order. None occurs twice.
fn streams(units: u64) -> [Vec<u64>; 2] {
    assert!(units.is_power_of_two());
    // An odd factor permutes the numbers below a power of two.
    [(0..units).collect(), (0..units).map(|n| n * 0x9E37_79B1 % units).collect()]
}

const STREAM_UNITS: u64 = 1 << 16;

/// Picoseconds that a stream of whole units takes when it is written, with a
/// fence after every `batch` units.
fn time_of_writes(config: NvmConfig, stream: &[u64], batch: usize) -> u64 {
    let (model, clock) = model(config);
    for batch in stream.chunks(batch) {
        for unit in batch {
            assert_eq!(flush(&model, unit * config.unit_bytes, config.unit_bytes), 1);
        }
        model.fence();
    }
    clock.now()
}

/// Picoseconds that it takes when it is read, the CPU's own loads from DRAM included.
fn time_of_reads(config: NvmConfig, stream: &[u64]) -> u64 {
    let (model, clock) = model(config);
    let load_ps = config.unit_bytes as f64 / DRAM.read * PS_PER_SECOND;
    for unit in stream {
        clock.wait_until(clock.now() + load_ps.round() as u64);
        assert_eq!(model.read(unit * config.unit_bytes, config.unit_bytes).missed, 1);
    }
    clock.now()
}

/// Whether the modelled time is bytes / bandwidth, but for rounding: a picosecond for
/// each unit, and the debt for reads that is not due yet.
fn is_exact(got: u64, config: NvmConfig, bandwidth: f64) -> bool {
    let bytes = (STREAM_UNITS * config.unit_bytes) as f64;
    let wanted = bytes / bandwidth * PS_PER_SECOND;
    (got as f64 - wanted).abs() <= (STREAM_UNITS + READ_DEBT_PS) as f64
}

#[test]
fn streams_take_exactly_their_share_of_the_bandwidth() {
    for config in NvmConfig::ALL {
        let wanted = config.bandwidth(DRAM, CORES);
        for stream in streams(STREAM_UNITS) {
            for batch in [1, 16, STREAM_UNITS as usize] {
                let writes = time_of_writes(config, &stream, batch);
                assert!(is_exact(writes, config, wanted.write), "{config:?}: {writes} ps");
            }
            let reads = time_of_reads(config, &stream);
            assert!(is_exact(reads, config, wanted.read), "{config:?}: {reads} ps");
        }
    }
}

#[test]
fn a_share_that_is_a_hundredth_off_is_noticed() {
    for config in NvmConfig::ALL {
        let wanted = config.bandwidth(DRAM, CORES);
        let less = |rate: f64| rate * 0.99;
        let speed = Speed { read: less(config.speed.read), write: less(config.speed.write) };
        let off = NvmConfig { speed, ..config };
        for stream in streams(STREAM_UNITS) {
            let (writes, reads) = (time_of_writes(off, &stream, 16), time_of_reads(off, &stream));
            assert!(!is_exact(writes, config, wanted.write), "{config:?}: {writes} ps");
            assert!(!is_exact(reads, config, wanted.read), "{config:?}: {reads} ps");
        }
    }
}

#[test]
fn sequential_writes_take_their_share_of_the_bandwidth() {
    for config in NvmConfig::ALL {
        let (model, clock) = model(config);
        let (total, piece) = (1 << 20, 4096);
        let mut units = 0;
        for offset in (0..total).step_by(piece) {
            units += flush(&model, offset, piece as u64);
            model.fence();
        }
        assert_eq!(units, total / config.unit_bytes, "{}", config.name);
        assert_close(clock.now(), total as f64 / config.bandwidth(DRAM, CORES).write * 1e12);
    }
}

#[test]
fn lines_of_one_unit_merge_even_across_fences() {
    let (model, clock) = model(NvmConfig::OPTANE);
    let units: Vec<u64> = (0..8)
        .map(|line| {
            let written = flush(&model, line * 64, 64);
            model.fence();
            written
        })
        .collect();
    assert_eq!(units, [1, 0, 0, 0, 1, 0, 0, 0]);
    assert_close(clock.now(), 2.0 * 25_600.0 / 0.3);
}

#[test]
fn a_unit_that_left_the_buffer_is_written_again() {
    let (model, _) = model(NvmConfig::OPTANE);
    assert_eq!(flush(&model, 0, 64), 1);
    assert_eq!(flush(&model, 1 << 20, 1 << 20), 4096);
    assert_eq!(flush(&model, 64, 64), 1);
}

#[test]
fn bytes_across_a_boundary_touch_both_units() {
    let (model, _) = model(NvmConfig::OPTANE);
    assert_eq!(flush(&model, 255, 2), 2);
    assert_eq!(flush(&model, 512, 256), 1);
}

#[test]
fn flushing_does_not_wait_and_fencing_waits_for_ones_own() {
    let (model, clock) = model(NvmConfig::OPTANE);
    flush(&model, 0, 4096);
    assert_eq!(clock.now(), 0);
    std::thread::scope(|scope| {
        // This thread has flushed nothing and so has nothing to wait for.
        scope.spawn(|| model.fence()).join().expect("thread");
    });
    assert_eq!(clock.now(), 0);
    let waited = model.fence();
    let end = clock.now();
    assert_close(end, 4096.0 / 3e9 * 1e12);
    assert_eq!((waited, model.write_time(16)), (end, end));
    assert_eq!(model.fence(), 0);
    assert_eq!(clock.now(), end, "a second fence has nothing to wait for");
}

#[test]
fn the_device_works_while_the_cpu_does() {
    let (model, clock) = model(NvmConfig::OPTANE);
    flush(&model, 0, 256);
    clock.wait_until(1_000_000);
    assert_eq!(model.fence(), 0);
    assert_eq!(clock.now(), 1_000_000);
}

#[test]
fn two_threads_share_the_device() {
    let (model, clock) = model(NvmConfig::A);
    let bytes = 1u64 << 16;
    let ends: Vec<u64> = std::thread::scope(|scope| {
        let write = |start: u64| {
            flush(&model, start, bytes);
            model.fence();
            clock.now()
        };
        // One after the other, at the same time by the model's clock or later.
        let first = scope.spawn(move || write(0)).join().expect("thread");
        clock.0.store(0, Ordering::SeqCst);
        let second = scope.spawn(move || write(bytes)).join().expect("thread");
        vec![first, second]
    });
    assert_close(ends[0], bytes as f64 / 5e9 * 1e12);
    assert_close(ends[1], 2.0 * bytes as f64 / 5e9 * 1e12);
}

#[test]
fn draining_waits_for_everybody() {
    let (model, clock) = model(NvmConfig::OPTANE);
    std::thread::scope(|scope| {
        scope.spawn(|| flush(&model, 0, 4096));
    });
    assert_eq!(model.drain(), clock.now());
    assert_close(clock.now(), 4096.0 / 3e9 * 1e12);
}

#[test]
fn reads_that_miss_owe_the_difference_to_dram() {
    let (model, clock) = model(NvmConfig::OPTANE);
    let bytes = 4u64 << 20;
    let (mut missed, mut waited) = (0, 0);
    for offset in (0..bytes).step_by(1024) {
        let cost = model.read(offset, 1024);
        missed += cost.missed;
        waited += cost.waited;
    }
    assert_eq!((missed, waited), (bytes / 256, clock.now()));
    assert_close(clock.now(), bytes as f64 / 20e9 * 1e12);
    let paid = clock.now();
    assert_eq!(model.read(0, 4096), ReadCost::default(), "cached now");
    assert_eq!(clock.now(), paid);
}

#[test]
fn what_a_thread_stored_is_cached_for_it_alone() {
    let (model, _) = model(NvmConfig::B);
    model.with_lane(|lane| model.cached(lane, 1000, 100));
    assert_eq!(model.read(1000, 100).missed, 0);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| model.read(1000, 100).missed).join();
        assert_eq!(other.expect("thread"), 2);
    });
}

#[test]
fn a_device_as_fast_as_dram_owes_nothing_on_reads() {
    let (model, clock) = model(NvmConfig::E);
    assert_eq!(model.read(0, 1 << 20), ReadCost { missed: (1 << 20) / 64, ..ReadCost::default() });
    assert_eq!(clock.now(), 0);
}

const REMOTE_COST: f64 = 2.5;

fn on_nodes(placement: Placement) -> NvmConfig {
    NvmConfig { nodes: Some(NodeConfig { placement, remote_cost: REMOTE_COST }), ..NvmConfig::OPTANE }
}

/// Pages of a stream, all of them whole.
const PAGE_UNITS: u64 = 4096 / 256;

#[test]
fn remote_memory_takes_as_many_times_as_long_as_is_configured() {
    join_node(0);
    let [stream, _] = streams(STREAM_UNITS);
    let wanted = NvmConfig::OPTANE.bandwidth(DRAM, CORES);
    let slower = |placement| match placement {
        Placement::Remote => REMOTE_COST,
        // Every other page, or chunk, is remote.
        Placement::Naive | Placement::LocalWrites => (1.0 + REMOTE_COST) / 2.0,
        Placement::Local => 1.0,
    };
    for placement in Placement::ALL {
        let (config, slower) = (on_nodes(placement), slower(placement));
        let reads = time_of_reads(config, &stream);
        assert!(is_exact(reads, config, wanted.read / slower), "{placement:?}: {reads} ps");
        // A fence for each page, so that the queues of the nodes are not worked off side by side.
        let writes = time_of_writes(config, &stream, PAGE_UNITS as usize);
        assert!(is_exact(writes, config, wanted.write / slower), "{placement:?}: {writes} ps");
    }
}

#[test]
fn local_memory_costs_what_memory_costs_without_nodes() {
    for stream in streams(STREAM_UNITS) {
        let local = on_nodes(Placement::Local);
        assert_eq!(time_of_reads(local, &stream), time_of_reads(NvmConfig::OPTANE, &stream));
        assert_eq!(time_of_writes(local, &stream, 16), time_of_writes(NvmConfig::OPTANE, &stream, 16));
    }
}

#[test]
fn each_node_has_a_queue_of_its_own() {
    let unit =
        NvmConfig::OPTANE.unit_bytes as f64 * PS_PER_SECOND / NvmConfig::OPTANE.bandwidth(DRAM, CORES).write;
    let write_on = |model: &_, node, page: u64| {
        join_node(node);
        assert_eq!(flush(model, page * 4096, 256), 1);
    };
    let (model, clock) = model(on_nodes(Placement::Naive));
    (0..2).for_each(|node| write_on(&model, node, node as u64));
    model.drain();
    assert_close(clock.now(), unit);
    [2, 4].into_iter().for_each(|page| write_on(&model, 0, page));
    model.drain();
    assert_close(clock.now(), 3.0 * unit);
}

#[test]
fn the_time_of_the_device_is_that_of_its_work() {
    join_node(0);
    let unit =
        NvmConfig::OPTANE.unit_bytes as f64 * PS_PER_SECOND / NvmConfig::OPTANE.bandwidth(DRAM, CORES).write;
    for (placement, times) in [(Placement::Local, 1.0), (Placement::Remote, REMOTE_COST)] {
        let (model, _) = model(on_nodes(placement));
        assert_eq!(flush(&model, 0, 512), 2);
        assert_close(model.take_work(), 2.0 * times * unit);
        assert_eq!(model.take_work(), 0);
    }
}

#[test]
fn local_memory_is_that_of_one_node() {
    let unit =
        NvmConfig::OPTANE.unit_bytes as f64 * PS_PER_SECOND / NvmConfig::OPTANE.bandwidth(DRAM, CORES).write;
    let (model, clock) = model(on_nodes(Placement::Local));
    for node in 0..2 {
        join_node(node);
        flush(&model, node as u64 * 4096, 256);
    }
    model.drain();
    assert_close(clock.now(), 2.0 * unit);
}
