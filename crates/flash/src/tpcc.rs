//! TPC-C, as a device sees it.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use pantile::lab::medium_of;
use pantile::{Durability, Options};
use pantile_base::{TableId, Timestamp};
use pantile_bench::tpcc::{Scale, Tpcc};
use pantile_bench::{Error, Result};
use pantile_media::Medium;
use pantile_store::{SurveyCalls, Surveyed, survey};

use crate::in_place::{Change, InPlace, InPlaceSettings, Operation};
use crate::request::{MOST_DIRTY, PAGE_BYTES, Request, Totals};
use crate::run::run;
use crate::ssd::{Report, Ssd, SsdSettings};
use crate::text::{Lives, write_requests};
use crate::traced::{Access, Trace, TracedFactory};

/// Bytes of the device for each warehouse and for each transaction: what each layout takes, and
/// half as much again.
const DEVICE_WAREHOUSE: u64 = 200 << 20;
const DEVICE_TRANSACTION: u64 = 5_000;

/// How rows are laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// By the engine with the collector of this name.
    Appended(String),
    /// By an [`InPlace`] store.
    InPlace,
}

/// The name of [`Layout::InPlace`].
pub const IN_PLACE: &str = "in-place";

impl FromStr for Layout {
    type Err = String;

    /// The name of a collector, or `in-place`.
    fn from_str(name: &str) -> std::result::Result<Self, String> {
        match name {
            IN_PLACE => Ok(Self::InPlace),
            name if pantile_rivals::by_name(name).is_some() => Ok(Self::Appended(name.to_owned())),
            name => Err(format!("{name} is neither a collector nor {IN_PLACE}")),
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Appended(collector) => collector,
            Self::InPlace => IN_PLACE,
        })
    }
}

/// Transactions of TPC-C whose writes are recorded and replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experiment {
    /// Warehouses.
    pub warehouses: u16,
    /// Transactions that are measured, after loading.
    pub transactions: u64,
    /// Megabytes of the buffer pool of the store that updates in place, and of the system's cache of pages that others read.
    pub pool: u64,
    /// Whether each commit waits for the device.
    pub is_synced: bool,
    /// The seed of data and transactions.
    pub seed: u64,
}

/// What a layout wrote, and what a device made of it.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Outcome {
    /// Bytes of the rows that transactions have written and the collector has not freed.
    pub changed_bytes: u64,
    /// Requests that write.
    pub writes: u64,
    /// Requests that read.
    pub reads: u64,
    /// With one request under way.
    pub one: Report,
    /// With 32.
    pub many: Report,
}

/// What a layout asked its device for, which can be replayed on any.
#[derive(Debug)]
pub struct Requested {
    written: Written,
    changed_bytes: u64,
    /// Pages of the device, which is as large for each layout.
    device_pages: u64,
}

/// Requests while loading, and while transactions are measured.
#[derive(Debug)]
struct Written {
    load: Vec<Request>,
    measured: Vec<Request>,
    /// Pages of the device that the layout takes at the end.
    pages: u64,
}

/// What transactions do, one after the other.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// They read a row of a table.
    Read(u32, u64),
    /// One commits.
    Commit(Vec<Change>),
}

/// What was done while loading and after.
struct Done {
    steps: [Vec<Step>; 2],
    changed_bytes: u64,
}

impl Experiment {
    /// Runs it with a layout, and replays it on the device that is the default. `stop` is raised to end it early.
    ///
    /// # Errors
    /// Those of the engine; [`Error::Interrupted`].
    pub fn run(&self, layout: &Layout, stop: &AtomicBool) -> Result<Outcome> {
        self.trace(layout, stop).map(|requested| requested.replay(SsdSettings::default()))
    }

    /// Runs it with a layout. `stop` is raised to end it early.
    ///
    /// # Errors
    /// Those of the engine; [`Error::Interrupted`].
    ///
    /// # Panics
    /// If the layout takes more than the device has.
    pub fn trace(&self, layout: &Layout, stop: &AtomicBool) -> Result<Requested> {
        let collector = match layout {
            Layout::Appended(collector) => collector,
            Layout::InPlace => "none",
        };
        let (appended, done) = self.append(collector, stop)?;
        let written = match layout {
            Layout::Appended(_) => appended,
            Layout::InPlace => self.change_in_place(&done.steps),
        };
        let bytes = DEVICE_WAREHOUSE * u64::from(self.warehouses) + DEVICE_TRANSACTION * self.transactions;
        let device_pages = bytes / PAGE_BYTES;
        assert!(written.pages <= device_pages, "{} pages do not fit into {device_pages}", written.pages);
        Ok(Requested { written, changed_bytes: done.changed_bytes, device_pages })
    }

    /// Runs the transactions over a traced medium.
    fn append(&self, collector: &str, stop: &AtomicBool) -> Result<(Written, Done)> {
        let unknown = || Error::Setting(format!("there is no collector {collector}"));
        let trace = Trace::new(MOST_DIRTY, ((self.pool << 20) / PAGE_BYTES) as usize);
        let factory = TracedFactory { trace: Arc::clone(&trace), syncs_at_fences: self.is_synced };
        let options = Options::new()
            .custom_medium(factory)
            .durability(if self.is_synced { Durability::Sync } else { Durability::None })
            .collector(pantile_rivals::by_name(collector).ok_or_else(unknown)?);
        let tpcc = Tpcc { scale: Scale::full(self.warehouses), together: false, seed: self.seed };
        let mut while_loading = (Vec::new(), Vec::new(), Timestamp::ZERO);
        let db = run(&tpcc, options, self.transactions, stop, |db| {
            trace.sync();
            while_loading = (trace.take(), trace.take_accesses(), db.begin()?.timestamp());
            Ok(())
        })?;
        let (load, accesses, loaded) = while_loading;
        trace.sync();
        let (measured, accesses) = (trace.take(), [accesses, trace.take_accesses()]);
        let medium = medium_of(&db);
        let pages = medium.len() / PAGE_BYTES;
        db.close()?;
        Ok((Written { load, measured, pages }, done(&*medium, accesses, loaded)))
    }

    fn change_in_place(&self, steps: &[Vec<Step>; 2]) -> Written {
        let defaults = InPlaceSettings::default();
        let mut store = InPlace::new(InPlaceSettings {
            commits_per_sync: if self.is_synced { 1 } else { u32::MAX },
            pool_pages: ((self.pool << 20) / (defaults.device_pages * PAGE_BYTES)) as usize,
            ..defaults
        });
        let [load, measured] = steps.each_ref().map(|steps| {
            for step in steps {
                match step {
                    Step::Read(table, row) => store.read(*table, *row),
                    Step::Commit(changes) => store.commit(changes),
                }
            }
            store.checkpoint();
            store.take()
        });
        Written { load, measured, pages: store.device_pages() }
    }
}

impl Requested {
    /// Writes the requests as text, one a line. A comment is between loading and what was measured.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Written { load, measured, .. } = &self.written;
        write_requests(out, load, Lives::Unknown)?;
        writeln!(out, "# loaded")?;
        write_requests(out, measured, Lives::Unknown)
    }

    /// What a device makes of it that is like this one, whatever its size.
    pub fn replay(&self, device: SsdSettings) -> Outcome {
        let Totals { writes, reads, .. } = Totals::of(&self.written.measured);
        let device = SsdSettings { pages: self.device_pages, ..device };
        let [one, many] = [1, 32].map(|depth| self.execute(device, depth));
        Outcome { changed_bytes: self.changed_bytes, writes, reads, one, many }
    }

    /// Executes the requests on a device that has been written from end to end before, like one that has been in use.
    fn execute(&self, device: SsdSettings, depth: usize) -> Report {
        let mut ssd = Ssd::new(device, depth);
        ssd.execute(&Request::Write { pages: 0..device.pages, stream: 0 });
        self.written.load.iter().for_each(|request| ssd.execute(request));
        ssd.start_over();
        self.written.measured.iter().for_each(|request| ssd.execute(request));
        ssd.report()
    }
}

/// What transactions have done, from where a closed database has its contents and where it read and wrote. A commit is where
/// its first write was. What a collector has freed or moved is not found, so that the steps are complete without one only.
fn done(medium: &dyn Medium, accesses: [Vec<Access>; 2], loaded: Timestamp) -> Done {
    let found = Mutex::new(HashMap::new());
    let note = |table: TableId, contents: &[Surveyed<'_>]| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.extend(contents.iter().map(|surveyed| {
            let content = surveyed.content;
            let operation = match content.flags().is_tombstone() {
                true => Operation::Delete,
                false => Operation::Put(content.row_len() as u32),
            };
            let change = Change { table: table.0, row: content.tuple().0, operation };
            (surveyed.address.offset(), (content.timestamp(), change))
        }));
    };
    survey(
        medium,
        &SurveyCalls {
            threads: 1,
            contents: &note,
            finding: &|_| {},
            progress: &|_, _| ControlFlow::Continue(()),
        },
    );
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut commits: HashMap<Timestamp, Vec<(u64, Change)>> = HashMap::new();
    let mut changed_bytes = 0;
    for (offset, (timestamp, change)) in &found {
        commits.entry(*timestamp).or_default().push((*offset, *change));
        if let Operation::Put(len) = change.operation
            && *timestamp > loaded
        {
            changed_bytes += u64::from(len);
        }
    }
    let mut step = |access: Access| match access {
        Access::Read(offset) => {
            found.get(&offset).map(|(_, Change { table, row, .. })| Step::Read(*table, *row))
        }
        Access::Write(offset) => {
            let mut changes = commits.remove(&found.get(&offset)?.0)?;
            changes.sort_unstable_by_key(|(offset, _)| *offset);
            Some(Step::Commit(changes.into_iter().map(|(_, change)| change).collect()))
        }
    };
    let steps = accesses.map(|accesses| accesses.into_iter().filter_map(&mut step).collect());
    Done { steps, changed_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SEED;

    #[test]
    fn appending_writes_less_and_the_same_each_time() {
        let experiment =
            Experiment { warehouses: 1, transactions: 300, pool: 1, is_synced: false, seed: SEED };
        let run = |layout: &str| {
            let layout = layout.parse().expect("a layout");
            experiment.run(&layout, &AtomicBool::new(false)).expect("a run")
        };
        let (appended, in_place) = (run("none"), run("in-place"));
        assert_eq!(run("none"), appended);
        assert_eq!(run("tb-collect"), run("tb-collect"));
        assert_eq!(appended.changed_bytes, in_place.changed_bytes);
        let (least, most) = (appended.changed_bytes, 2 * appended.changed_bytes);
        assert!((least..most).contains(&appended.one.host_bytes()), "{appended:?}");
        // All of it was in the cache that keeps what was written, if it is large.
        let roomy = Experiment { pool: 1_000, ..experiment };
        for layout in ["none", IN_PLACE] {
            let roomy =
                roomy.run(&layout.parse().expect("a layout"), &AtomicBool::new(false)).expect("a run");
            assert_eq!((roomy.reads, roomy.one.read_pages), (0, 0), "{layout}");
        }
        for outcome in [appended, in_place] {
            assert!(outcome.reads > 300 && outcome.one.read_pages >= outcome.reads, "{outcome:?}");
        }
        assert!(in_place.one.host_bytes() > 3 * appended.one.host_bytes(), "{in_place:?}");
        let synced = Experiment { is_synced: true, ..experiment };
        let synced = synced.run(&Layout::InPlace, &AtomicBool::new(false)).expect("a run");
        assert!(synced.one.host_pages > in_place.one.host_pages, "{synced:?}");
    }

    /// Neither the trace nor what is written depends on the device, but what cleaning costs does.
    #[test]
    fn a_trace_can_be_replayed_on_other_devices() {
        let experiment =
            Experiment { warehouses: 1, transactions: 300, pool: 1, is_synced: false, seed: SEED };
        let requested = experiment.trace(&Layout::InPlace, &AtomicBool::new(false)).expect("a run");
        let usual = requested.replay(SsdSettings::default());
        assert_eq!(usual, experiment.run(&Layout::InPlace, &AtomicBool::new(false)).expect("a run"));
        let tight = requested.replay(SsdSettings { over_provisioning: 0.01, ..SsdSettings::default() });
        let large = requested.replay(SsdSettings { block_pages: 512, ..SsdSettings::default() });
        for other in [tight, large] {
            assert_eq!((other.writes, other.one.host_pages), (usual.writes, usual.one.host_pages));
            assert_ne!(other.one.copied_pages, usual.one.copied_pages, "{other:?}");
        }
        let mut text = Vec::new();
        requested.write(&mut text).expect("memory takes it");
        let text = String::from_utf8(text).expect("text");
        let (_, measured) = text.split_once("# loaded\n").expect("two parts");
        let bytes = |line: &str| line.strip_prefix("write ")?.split(' ').nth(1)?.parse::<u64>().ok();
        assert_eq!(measured.lines().filter_map(bytes).sum::<u64>(), usual.one.host_bytes());
    }

    #[test]
    fn all_that_is_committed_is_a_step() {
        let experiment =
            Experiment { warehouses: 1, transactions: 300, pool: 1, is_synced: false, seed: SEED };
        let (_, done) = experiment.append("none", &AtomicBool::new(false)).expect("a run");
        let put = |change: &Change| match change.operation {
            Operation::Put(len) => u64::from(len),
            Operation::Delete => 0,
        };
        let bytes = |step: &Step| match step {
            Step::Commit(changes) => changes.iter().map(put).sum(),
            Step::Read(..) => 0,
        };
        assert_eq!(done.steps[1].iter().map(bytes).sum::<u64>(), done.changed_bytes);
        let reads = done.steps[1].iter().filter(|step| matches!(step, Step::Read(..))).count();
        assert!(reads > 300 * 10, "{reads}");
    }

    #[test]
    fn a_run_ends_when_it_is_told_to_and_names_are_checked() {
        let experiment =
            Experiment { warehouses: 1, transactions: 300, pool: 1, is_synced: false, seed: SEED };
        let ended = experiment.run(&Layout::InPlace, &AtomicBool::new(true));
        assert!(matches!(ended, Err(Error::Interrupted { .. })), "{ended:?}");
        let unknown = "no-such".parse::<Layout>().expect_err("no layout");
        assert_eq!(unknown, "no-such is neither a collector nor in-place");
    }
}
