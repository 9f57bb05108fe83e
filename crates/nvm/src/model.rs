//! How long the emulated device takes. The model is described at the top of the crate.

use super::cache::CacheEstimate;
use super::clock::Clock;
use super::combine::CombiningBuffer;
use super::config::{Bandwidth, NvmConfig};
use super::nodes::{NODES, NodeConfig, node_here};
use super::per_thread::PerThread;
use pantile_base::Padded;
use pantile_media::parts::LINE_BYTES;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

const PS_PER_SECOND: f64 = 1e12;

/// Delay owed for reads is paid once it reaches this: 300 ns, in
/// picoseconds. Shorter waits cannot be told from reading the clock, and
/// every pause stops the CPU's prefetching.
const READ_DEBT_PS: u64 = 300_000;

/// Where the logs of designs with a log are taken to be: beyond all media.
const LOG_AT: u64 = 1 << 56;

/// Where the metadata of slots are taken to be, of designs that keep them.
const SLOTS_AT: u64 = 1 << 57;

/// A thread that makes no fences gives the device this many evicted units at once, more than a commit of a workload has.
const EVICTED_TOGETHER: u64 = 1024;

/// What the device and the CPU keep for one thread.
#[derive(Debug)]
pub(crate) struct Lane {
    buffer: CombiningBuffer,
    cache: CacheEstimate,
    /// When the device ends the last unit flushed since the last fence.
    done_at: Option<u64>,
    /// Delay owed for reads and not yet paid, in picoseconds.
    read_debt: u64,
    /// Bytes last stored past the cache, so that flushing them is accounting only.
    pub(crate) streamed: Range<u64>,
    /// The tuple whose metadata it made durable last, of a design that does.
    pub(crate) metadata_of: Option<u64>,
    /// Bytes that it has logged, of a design with a log.
    logged: u64,
    /// Lines that it has written apart from one another, of a design that keeps metadata of slots.
    apart: u64,
    /// Units that the device has to write, and that nobody waits for.
    evicted: u64,
    /// Picoseconds of writing that the device was given and that are not counted yet.
    work: u64,
}

impl Lane {
    fn new(config: &NvmConfig) -> Self {
        Self {
            buffer: CombiningBuffer::new(config.unit_bytes),
            cache: CacheEstimate::new(config.unit_bytes),
            done_at: None,
            read_debt: 0,
            streamed: 0..0,
            metadata_of: None,
            logged: 0,
            apart: 0,
            evicted: 0,
            work: 0,
        }
    }

    /// Adds to the debt for reads; returns what is to be paid now.
    fn owe(&mut self, debt: u64) -> u64 {
        self.read_debt += debt;
        match self.read_debt {
            READ_DEBT_PS.. => std::mem::take(&mut self.read_debt),
            _ => 0,
        }
    }
}

/// What a read took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadCost {
    /// Units that were not cached.
    pub(crate) missed: u64,
    /// Picoseconds waited for the device, debts of earlier reads included.
    pub(crate) waited: u64,
    /// Units written, and fences made, by a design that does so for a read.
    pub(crate) written: u64,
    pub(crate) fences: u64,
}

/// The device: one queue that all threads share, and a lane for each thread.
#[derive(Debug)]
pub(crate) struct Model<C> {
    unit_shift: u32,
    /// Picoseconds of device time that writing a unit takes.
    write_cost: u64,
    /// Picoseconds that reading a unit takes longer than from DRAM.
    read_extra: u64,
    /// Picoseconds that storing a unit in DRAM takes.
    copy_cost: u64,
    /// The nodes of the machine, if there are two, and picoseconds that reading a unit takes longer
    /// from the other one.
    nodes: Option<(NodeConfig, u64)>,
    /// When the device of each node will have done all it was given. Without nodes there is the first only.
    busy_until: [Padded<AtomicU64>; NODES],
    lanes: PerThread<Lane>,
    clock: C,
}

impl<C: Clock> Model<C> {
    /// A device of this configuration beside DRAM of this bandwidth, on a machine of this
    /// number of cores.
    pub(crate) fn new(config: &NvmConfig, dram: Bandwidth, cores: usize, clock: C) -> Self {
        let wanted = config.bandwidth(dram, cores);
        let unit = config.unit_bytes as f64 * PS_PER_SECOND;
        let extra = unit / wanted.read - unit / dram.read;
        Self {
            unit_shift: config.unit_bytes.trailing_zeros(),
            write_cost: (unit / wanted.write).round() as u64,
            read_extra: extra.round() as u64,
            copy_cost: (unit / dram.write).round() as u64,
            nodes: config.nodes.map(|nodes| {
                let longer = unit / wanted.read * (nodes.remote_cost - 1.0);
                (nodes, longer.round() as u64)
            }),
            busy_until: Default::default(),
            lanes: PerThread::new(|| Lane::new(config)),
            clock,
        }
    }

    /// The same device, of whose extra time for reading a unit this much, in
    /// picoseconds, already goes into the accounting.
    pub(crate) fn with_bookkeeping(mut self, per_unit: u64) -> Self {
        self.read_extra = self.read_extra.saturating_sub(per_unit);
        self
    }

    /// Calls `with` on the calling thread's lane; `with` must not come here again.
    #[inline]
    pub(crate) fn with_lane<R>(&self, with: impl FnOnce(&mut Lane) -> R) -> R {
        // SAFETY: `with` is a few lines of this crate that call nothing back.
        unsafe { self.lanes.with(with) }
    }

    /// The time, to be given to [`Model::flush`].
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Units `first..=last` that bytes `offset..offset + len` lie in; `len > 0`.
    #[inline]
    fn units(&self, offset: u64, len: u64) -> (u64, u64) {
        let last = offset + len - 1;
        (offset >> self.unit_shift, last >> self.unit_shift)
    }

    /// Notes that a store left these bytes in the CPU's cache.
    pub(crate) fn cached(&self, lane: &mut Lane, offset: u64, len: u64) {
        let (first, last) = self.units(offset, len);
        lane.cache.touch(first, last);
    }

    /// Gives flushed bytes to the device at time `now`; returns the units written.
    pub(crate) fn flush(&self, lane: &mut Lane, now: u64, offset: u64, len: u64) -> u64 {
        let written = self.combine(lane, offset, len);
        if written > 0 {
            let (node, longer) = self.way_to(offset);
            let work = (self.write_time(written) as f64 * longer) as u64;
            lane.work += work;
            let done_at = self.occupy(node, now, work);
            lane.done_at = lane.done_at.max(Some(done_at));
        }
        written
    }

    /// Takes what the calling thread has given the device to write since the last call, in picoseconds.
    pub(crate) fn take_work(&self) -> u64 {
        self.with_lane(|lane| std::mem::take(&mut lane.work))
    }

    /// Puts bytes into the buffer; returns the units that were not there.
    #[inline]
    fn combine(&self, lane: &mut Lane, offset: u64, len: u64) -> u64 {
        let (first, last) = self.units(offset, len);
        lane.buffer.insert(first, last)
    }

    /// The same for bytes that reach the device at some time, at the latest behind the thread's next fence, which
    /// does not wait for them. Those of later fences do.
    pub(crate) fn evict(&self, lane: &mut Lane, offset: u64, len: u64) -> u64 {
        let written = self.combine(lane, offset, len);
        lane.evicted += written;
        lane.work += self.write_time(written);
        if lane.evicted >= EVICTED_TOGETHER {
            self.write_evicted(lane);
        }
        written
    }

    fn write_evicted(&self, lane: &mut Lane) {
        let units = std::mem::take(&mut lane.evicted);
        // Most memories have no design, and reading the clock takes its time.
        if units > 0 {
            self.occupy(0, self.now(), self.write_time(units));
        }
    }

    /// Gives the device this many bytes at the end of the thread's log; returns the units written.
    pub(crate) fn log(&self, lane: &mut Lane, now: u64, len: u64) -> u64 {
        let at = LOG_AT + lane.logged;
        lane.logged += len;
        self.flush(lane, now, at, len)
    }

    /// Gives the device a line in a unit of its own at time `now`; returns the units written.
    pub(crate) fn flush_apart(&self, lane: &mut Lane, now: u64) -> u64 {
        let at = SLOTS_AT + (lane.apart << self.unit_shift);
        lane.apart += 1;
        self.flush(lane, now, at, LINE_BYTES)
    }

    /// The device that has a byte, and how many times as long writing takes from here.
    #[inline]
    fn way_to(&self, offset: u64) -> (usize, f64) {
        let Some((nodes, _)) = self.nodes else { return (0, 1.0) };
        let here = node_here();
        let node = nodes.placement.node_of(offset, here);
        // Where all is on one node it has one device, whichever threads use it.
        let device = if nodes.placement.is_of_one_node() { 0 } else { node };
        (device, if node == here { 1.0 } else { nodes.remote_cost })
    }

    /// Picoseconds that reading a unit here takes longer than from DRAM.
    #[inline]
    fn extra_at(&self, offset: u64) -> u64 {
        let Some((nodes, longer)) = self.nodes else { return self.read_extra };
        let here = node_here();
        let is_local = nodes.placement.node_of(offset, here) == here;
        self.read_extra + if is_local { 0 } else { longer }
    }

    /// Queues work for the device of a node and returns when it will be done.
    fn occupy(&self, node: usize, now: u64, work: u64) -> u64 {
        let end = |busy_until: u64| busy_until.max(now) + work;
        let busy = &self.busy_until[node].0;
        let queued = busy.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |busy| Some(end(busy)));
        match queued {
            Ok(before) | Err(before) => end(before),
        }
    }

    /// Picoseconds of device time that writing this many units takes.
    pub(crate) fn write_time(&self, units: u64) -> u64 {
        units * self.write_cost
    }

    /// Waits until the device has done what this thread flushed; gives the
    /// picoseconds that this took.
    pub(crate) fn fence(&self) -> u64 {
        let done_at = self.with_lane(|lane| {
            self.write_evicted(lane);
            lane.done_at.take()
        });
        done_at.map_or(0, |done_at| self.clock.wait_until(done_at))
    }

    /// Waits until the device has done what every thread flushed; gives the
    /// picoseconds that this took.
    pub(crate) fn drain(&self) -> u64 {
        let busy = self.busy_until.iter().map(|busy| busy.0.load(Ordering::Relaxed)).max();
        self.clock.wait_until(busy.unwrap_or(0))
    }

    /// Accounts for a read.
    pub(crate) fn read(&self, offset: u64, len: u64) -> ReadCost {
        let (first, last) = self.units(offset, len);
        let extra = self.extra_at(offset);
        let (missed, due) = self.with_lane(|lane| {
            let missed = lane.cache.touch(first, last);
            (missed, lane.owe(missed * extra))
        });
        ReadCost { missed, waited: self.pay(due), ..ReadCost::default() }
    }

    /// Accounts for a copy in DRAM of this many bytes; gives the picoseconds waited.
    pub(crate) fn copy_to_dram(&self, len: u64) -> u64 {
        let due = self.with_lane(|lane| lane.owe((len * self.copy_cost) >> self.unit_shift));
        self.pay(due)
    }

    fn pay(&self, due: u64) -> u64 {
        if due > 0 { self.clock.wait_until(self.clock.now() + due) } else { 0 }
    }
}

#[cfg(test)]
#[path = "model_test.rs"]
mod tests;
