use super::*;
use crate::clock::ManualClock;
use crate::config::{Bandwidth, NvmConfig};

const DRAM: Bandwidth = Bandwidth { read: 20e9, write: 10e9 };

/// 100 MB of a memory that reads and writes 256 B in 25.6 and 85.3 ns.
const BYTES: u64 = 100 << 20;

struct Bench {
    model: Model<ManualClock>,
    clock: ManualClock,
    design: AtWork,
}

impl Bench {
    fn new(kind: Kind, ratio: u32) -> Self {
        let (clock, config) = (ManualClock::default(), NvmConfig::OPTANE);
        let design = AtWork::new(Design { kind, ratio }, config.unit_bytes);
        design.make_room_for(BYTES);
        Self { model: Model::new(&config, DRAM, 2, clock.clone()), clock, design }
    }

    fn read(&self, offset: u64, len: u64) -> ReadCost {
        self.design.read(&self.model, offset, len)
    }

    /// A commit of one tuple; returns the units written and the picoseconds it took.
    fn write(&self, offset: u64, len: u64) -> (u64, u64) {
        let before = self.clock.now();
        self.design.written(offset, len);
        let units = self.model.with_lane(|lane| self.design.flush(&self.model, lane, before, offset, len));
        self.model.fence();
        (units, self.clock.now() - before)
    }
}

/// The first byte of tuples of 1 KB that are far from each other.
fn tuples(n: u64) -> impl Iterator<Item = u64> {
    (0..n).map(|n| n * 7919 % (BYTES / 4096) * 4096)
}

#[test]
fn zen_reads_a_tuple_once_and_writes_it_once() {
    let bench = Bench::new(Kind::Zen, 4);
    let first = bench.read(8192, 1024);
    assert_eq!((first.missed, first.fences, first.written), (4, 0, 0));
    assert_eq!(bench.read(8192, 1024), ReadCost::default());
    let (units, took) = bench.write(1 << 20, 1024);
    assert_eq!(units, 4);
    assert_eq!(took, bench.model.write_time(4));
    assert_eq!(bench.read(1 << 20, 1024), ReadCost::default(), "what was written is in DRAM");
}

#[test]
fn the_naive_design_waits_for_the_metadata_of_each_slot() {
    let bench = Bench::new(Kind::ZenNaive, 4);
    assert!(bench.design.persists_slots());
    let one = bench.model.write_time(1);
    assert_eq!(bench.design.persist_slots(&bench.model, 3), (3, 3 * one), "a unit each, one after the other");
    assert_eq!(bench.clock.now(), 3 * one);
    assert_eq!(bench.write(0, 1024), (4, 4 * one), "tuples are written as by zen");
    assert_eq!(bench.design.persist_slots(&bench.model, 1), (1, one), "none shares a unit");
    let first = bench.read(8192, 1024);
    assert_eq!((first.missed, first.fences, first.written), (4, 0, 0));
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::ZenNaive) {
        assert!(!Bench::new(kind, 4).design.persists_slots(), "{}", kind.name());
    }
}

#[test]
fn mmdb_writes_what_it_reads_and_what_it_writes_twice_beyond_dram() {
    let bench = Bench::new(Kind::Mmdb, 4);
    let reads: Vec<_> = tuples(4000).map(|offset| bench.read(offset, 1024)).collect();
    let slow = reads.iter().filter(|read| read.missed > 0).count();
    assert!((2800..3200).contains(&slow), "three of four are beyond DRAM: {slow}");
    assert!(reads.iter().all(|read| read.written == u64::from(read.missed > 0) && read.fences == 0));
    let fresh = Bench::new(Kind::Mmdb, 4);
    let writes: Vec<_> = tuples(4000).map(|offset| fresh.write(offset, 1024).0).collect();
    let twice = writes.iter().filter(|&&units| units == 8).count();
    assert!((2800..3200).contains(&twice), "{twice}");
    assert!(
        writes.iter().all(|&units| units == 4 || units == 8),
        "a log record, and the tuple if it is not in DRAM"
    );
}

#[test]
fn nobody_waits_for_what_is_evicted_but_the_next() {
    let bench = Bench::new(Kind::Foedus, 4);
    let one = bench.model.write_time(4);
    assert_eq!(bench.write(0, 1024), (8, one), "the log");
    let (_, second) = bench.write(1 << 20, 1024);
    assert_eq!(second, 2 * one, "the snapshot of the first, and the log");
    // Nor does a commit of several parts wait for its own.
    let of_parts = Bench::new(Kind::Foedus, 4);
    of_parts.model.with_lane(|lane| {
        for offset in [0, 1 << 20, 2 << 20] {
            of_parts.design.flush(&of_parts.model, lane, 0, offset, 1024);
        }
    });
    of_parts.model.fence();
    assert_eq!(of_parts.clock.now(), 3 * one);
}

#[test]
fn wbl_makes_metadata_durable_at_each_read() {
    let bench = Bench::new(Kind::Wbl, 4);
    let first = bench.read(8192, 1024);
    assert_eq!((first.missed, first.fences, first.written), (4, 1, 1));
    assert_eq!(bench.read(8192, 1024), ReadCost::default(), "the same look");
    let _ = bench.read(1 << 20, 1024);
    let again = bench.read(8192, 1024);
    assert_eq!((again.missed, again.fences), (0, 1), "its copy is in DRAM, its metadata are not");
    assert_eq!(bench.write(2 << 20, 1024).0, 4);
    assert_eq!(bench.read(3 << 20, HEADER_BYTES).fences, 0, "the engine's own look");
    assert_eq!(bench.read((4 << 20) + 248, 1024).written, 1, "a line, wherever the tuple begins");
}

#[test]
fn foedus_reads_pages() {
    let bench = Bench::new(Kind::Foedus, 4);
    assert_eq!(bench.read(4096 + 100, 100).missed, PAGE_BYTES / 256);
    assert_eq!(bench.read(8000, 192), ReadCost::default(), "the same page");
    assert_eq!(bench.read(8000, 193).missed, PAGE_BYTES / 256, "the next one");
}
