//! Negative controls. Each removes one promise of the medium or one safeguard
//! of the engine, and the simulation must notice.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pantile::Collector;
#[cfg(feature = "controls")]
use pantile_base::control::{self, Control};
use pantile_testkit::cut::{Broken, CutKind};

use crate::campaign::{Campaign, Until};
use crate::case::Failure;

/// What is removed.
#[derive(Clone, Copy, Debug)]
pub enum Removed {
    /// A promise of the medium.
    Promise(Broken),
    /// A safeguard of the engine.
    #[cfg(feature = "controls")]
    Answer(Control),
}

/// One negative control.
#[derive(Clone, Copy, Debug)]
pub struct NegativeControl {
    /// The name on the command line.
    pub name: &'static str,
    /// A description of what is removed, with its trap or invariant.
    pub what: &'static str,
    /// What is removed.
    pub removed: Removed,
    /// The media on which it must be noticed.
    pub kinds: &'static [CutKind],
    /// The collectors with which it must be noticed.
    pub collectors: &'static [Collector],
    /// Whether only a busy collector shows it.
    pub is_busy: bool,
}

/// How it was noticed.
#[derive(Clone, Debug)]
pub struct Caught {
    /// The time it took.
    pub after: Duration,
    /// The number of cases it took.
    pub cases: u64,
    /// The failure that revealed it.
    pub failure: Failure,
}

const fn promise(
    name: &'static str,
    what: &'static str,
    broken: Broken,
    kinds: &'static [CutKind],
) -> NegativeControl {
    NegativeControl {
        name,
        what,
        removed: Removed::Promise(broken),
        kinds,
        collectors: OF_BLOCKS,
        is_busy: false,
    }
}

#[cfg(feature = "controls")]
const fn answer(control: Control, what: &'static str) -> NegativeControl {
    NegativeControl {
        name: control.name(),
        what,
        removed: Removed::Answer(control),
        kinds: &CutKind::ALL,
        collectors: OF_BLOCKS,
        is_busy: false,
    }
}

/// As [`answer`], for a safeguard that only collectors need that free versions
/// one by one.
#[cfg(feature = "controls")]
const fn of_versions(control: Control, what: &'static str) -> NegativeControl {
    NegativeControl { collectors: OF_VERSIONS, ..answer(control, what) }
}

/// For what only media show whose threads share syncs.
#[cfg(feature = "controls")]
const fn on_files(control: NegativeControl) -> NegativeControl {
    NegativeControl { kinds: FILE, ..control }
}

/// For what only a busy collector shows.
const fn of_busy(control: NegativeControl) -> NegativeControl {
    NegativeControl { is_busy: true, ..control }
}

const OF_BLOCKS: &[Collector] = &[Collector::TB_COLLECT, Collector::TB_COLLECT_EAGER];
#[cfg(feature = "controls")]
const OF_VERSIONS: &[Collector] =
    &[pantile_rivals::HYPER, pantile_rivals::STEAM, pantile_rivals::N2DB, pantile_rivals::ZEN];
const MEMORY: &[CutKind] = &[CutKind::Memory];
const FILE: &[CutKind] = &[CutKind::File];

/// Those of the medium, which are always available.
const PROMISES: &[NegativeControl] = &[
    promise("fence-of-memory", "fences do nothing", Broken::Fence, MEMORY),
    promise("sync-of-file", "syncs do nothing", Broken::Sync, FILE),
    promise("sync-of-commits", "syncs of commits do nothing", Broken::Fence, FILE),
    of_busy(promise("sync-point", "data counts as durable before it is (T12)", Broken::SyncPoint, FILE)),
    promise("flush-of-contents", "contents are not flushed", Broken::FlushOfContents, MEMORY),
    promise(
        "flush-of-descriptors",
        "descriptors of blocks are not flushed (I-7)",
        Broken::FlushOfDescriptors,
        MEMORY,
    ),
    promise("flush-of-zeros", "zeroed descriptors are not flushed (I-12; T12)", Broken::FlushOfZeros, MEMORY),
    promise("flush-of-state", "state records are not flushed (I-9)", Broken::FlushOfState, MEMORY),
];

/// Those of the engine that one thread can show. `scripts/controls` shows the
/// others in models and tests.
#[cfg(feature = "controls")]
const ANSWERS: &[NegativeControl] = &[
    answer(Control::LifeInChecksum, "checksums of contents do not cover the generation of their block (T2)"),
    answer(
        Control::TombstonesStay,
        "tombstones are dropped while older versions can be read back (I-14; T3)",
    ),
    answer(Control::HeadersAreHints, "recovery trusts superseded bits (T4)"),
    answer(Control::ClockGoesOn, "timestamps restart after opening (T5)"),
    answer(Control::Marks, "reads of rows are forgotten (T7)"),
    answer(Control::LeafMarks, "reads of ranges and of absent keys are forgotten (T8)"),
    of_busy(answer(
        Control::ForgottenDurable,
        "blocks are written again before their previous generation is durably forgotten (I-12; T12)",
    )),
    answer(Control::TilesKept, "tiles are freed while a reader follows their links (I-13; T13)"),
    answer(Control::ContentChecksum, "checksums of contents are not verified (T16)"),
    answer(Control::LineSeal, "seals of descriptors are not verified (T16)"),
    answer(Control::StateChecksum, "checksums of state records are not verified (T16)"),
    answer(Control::Evidence, "transactions count without all their contents (I-8)"),
    of_versions(
        Control::DurableBeforeRecycle,
        "slots are written again before their last content is durably decided (I-10; T1)",
    ),
    answer(Control::Gate, "calls go on when the database is closed (I-20)"),
    answer(Control::RoomForRecords, "state records that have no room are not written (I-19)"),
    answer(Control::DroppedIndexes, "nobody maintains a dropped index (I-16)"),
    answer(Control::PiecesOfTables, "values out of line stay when their table is dropped (I-18)"),
    answer(Control::PiecesOfRows, "values out of line stay when their row goes (I-18)"),
    answer(Control::ClockAfterBound, "late writers commit just above their bound (I-6)"),
    answer(Control::EmptyBlocks, "recovery keeps blocks that hold nothing"),
    answer(Control::RetryTime, "a transaction is given up after a thousand tries, however soon"),
    answer(Control::ClosingWaits, "closing fails the transactions that it waits for"),
    answer(Control::BuiltEntries, "building an index leaves entries of old versions (I-17)"),
    on_files(answer(Control::Dependencies, "a transaction is kept whose predecessor is lost (I-25)")),
    on_files(answer(Control::ReadsDepend, "a transaction does not depend on what it has met (I-25)")),
    on_files(answer(Control::ReadsAwait, "readers are told what may be lost (I-25)")),
    answer(Control::Copies, "descriptors that are lost are not read from their copies (I-29)"),
    answer(Control::RefusedBlocks, "a commit that found no space keeps the blocks that it opened"),
];

impl NegativeControl {
    /// All of them.
    pub fn all() -> Vec<NegativeControl> {
        #[cfg(feature = "controls")]
        return [PROMISES, ANSWERS].concat();
        #[cfg(not(feature = "controls"))]
        PROMISES.to_vec()
    }

    /// Simulates until the control is noticed, for at most `limit`.
    pub fn run(&self, seed: u64, threads: usize, limit: Duration, stop: &AtomicBool) -> Option<Caught> {
        let broken = match self.removed {
            Removed::Promise(broken) => Some(broken),
            #[cfg(feature = "controls")]
            Removed::Answer(answer) => {
                control::remove(Some(answer));
                None
            }
        };
        let began = Instant::now();
        let campaign = Campaign {
            seed,
            kinds: self.kinds.to_vec(),
            collectors: self.collectors.to_vec(),
            until: Until::Time(limit),
            threads,
            broken,
            is_busy: self.is_busy,
        };
        let outcome = campaign.run(stop, |_| {});
        #[cfg(feature = "controls")]
        control::remove(None);
        let cases = outcome.total().cases;
        outcome.failure.map(|failure| Caught { after: began.elapsed(), cases, failure })
    }
}
