//! One case: a few consecutive lives of a database. Each is cut at many
//! boundaries, and some recoveries are cut as well. A seed determines all of
//! it.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use pantile::Collector;
use pantile_base::limits::GROWTH_BYTES;
use pantile_testkit::cut::{Broken, CutKind, Image, Keep, Log, Replay};

use crate::client::Mood;
use crate::found::{Opened, found};
use crate::life::{Ending, Life, Plan, Step};
use crate::state::{State, apply};
use pantile_testkit::{Random, mix};

/// Boundaries to try in each life of a large case.
const SAMPLED: usize = 150;
/// One cut in this many loses a sector of descriptors as well.
const LOST_LINES: u64 = 16;
/// Bits to flip, one at a time, in each database that was closed.
const FLIPS: u64 = 20;
/// One recovery in this many is cut.
const AGAIN: u64 = 8;

/// Where the power is cut in a life, and what remains then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The number of events before the cut.
    pub boundary: usize,
    /// What remains of the data that was not durable.
    pub keep: Keep,
    /// Determines which part remains, where that is not all.
    pub choice: u64,
}

/// A cut of a case, and optionally a cut of the recovery from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CutOfCase {
    /// The number of the life.
    pub life: u32,
    /// The cut of the life.
    pub cut: Cut,
    /// The cut of the recovery.
    pub again: Option<Cut>,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.boundary, self.keep.name(), self.choice)
    }
}

impl fmt::Display for CutOfCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.life, self.cut)?;
        self.again.map_or(Ok(()), |again| write!(f, ":{again}"))
    }
}

/// Parses the output of `Display`: LIFE:BOUNDARY:KEEP:CHOICE, then optionally
/// BOUNDARY:KEEP:CHOICE for the recovery.
impl FromStr for CutOfCase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is not LIFE:BOUNDARY:KEEP:CHOICE[:BOUNDARY:KEEP:CHOICE]");
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let cut = |parts: &[&str]| -> Result<Cut, String> {
            let [boundary, keep, choice] = parts else { return Err(wrong()) };
            Ok(Cut {
                boundary: number(boundary)? as usize,
                keep: Keep::by_name(keep).ok_or_else(wrong)?,
                choice: number(choice)?,
            })
        };
        let parts: Vec<&str> = text.split(':').collect();
        let life = number(parts[0])? as u32;
        match parts.len() {
            4 => Ok(Self { life, cut: cut(&parts[1..])?, again: None }),
            7 => Ok(Self { life, cut: cut(&parts[1..4])?, again: Some(cut(&parts[4..])?) }),
            _ => Err(wrong()),
        }
    }
}

/// A case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Determines everything except the other fields.
    pub seed: u64,
    /// The medium.
    pub kind: CutKind,
    /// The collector.
    pub collector: Collector,
    /// A promise that the medium breaks.
    pub broken: Option<Broken>,
    /// Only lives that keep the collector busy with a few rows.
    pub is_busy: bool,
}

/// How much was done.
#[derive(Clone, Copy, Default, Debug)]
pub struct Totals {
    /// Cases.
    pub cases: u64,
    /// Lives of databases.
    pub lives: u64,
    /// Commits acknowledged.
    pub commits: u64,
    /// Commits that found no space.
    pub refused: u64,
    /// Events between which the power could have been cut.
    pub events: u64,
    /// Power cuts. Each is followed by a recovery and a comparison.
    pub cuts: u64,
    /// How many of these cut a recovery.
    pub cuts_of_recovery: u64,
    /// Blocks that collectors reclaimed.
    pub blocks_reclaimed: u64,
    /// How many of these were bypassed by a transaction that began before them.
    pub blocks_bypassed: u64,
    /// Versions whose space collectors freed, with their blocks or one by one.
    pub versions_reclaimed: u64,
    /// Versions that collectors relocated.
    pub survivors_relocated: u64,
    /// Tombstones that collectors dropped.
    pub tombstones_dropped: u64,
    /// Bits flipped. Each flip is followed by an attempt to open.
    pub flips: u64,
    /// Sectors of descriptors lost together with the power.
    pub sectors_lost: u64,
    /// How many of these were reported.
    pub flips_reported: u64,
}

impl Totals {
    /// Adds other totals.
    pub fn add(&mut self, other: &Totals) {
        self.cases += other.cases;
        self.lives += other.lives;
        self.commits += other.commits;
        self.refused += other.refused;
        self.events += other.events;
        self.cuts += other.cuts;
        self.cuts_of_recovery += other.cuts_of_recovery;
        self.blocks_reclaimed += other.blocks_reclaimed;
        self.blocks_bypassed += other.blocks_bypassed;
        self.versions_reclaimed += other.versions_reclaimed;
        self.survivors_relocated += other.survivors_relocated;
        self.tombstones_dropped += other.tombstones_dropped;
        self.flips += other.flips;
        self.sectors_lost += other.sectors_lost;
        self.flips_reported += other.flips_reported;
    }
}

/// A fault that a case has found.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The case.
    pub case: Case,
    /// Where the power was cut; `None` if the fault appeared before a cut.
    pub cut: Option<CutOfCase>,
    /// A description of the fault.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { seed, kind, collector, .. } = self.case;
        match &self.cut {
            Some(cut) => write!(f, "after a power cut at {cut}")?,
            None => f.write_str("while running")?,
        }
        write!(f, " on simulated {} with {} (seed {seed}): {}", kind.name(), collector.name(), self.what)
    }
}

impl Failure {
    /// The arguments of `pantile crashtest` that reproduce it.
    pub fn replay(&self) -> String {
        let Case { seed, kind, collector, .. } = self.case;
        let cut = self.cut.map(|cut| format!(" --cut {cut}")).unwrap_or_default();
        let medium = match kind {
            CutKind::Memory => "dax",
            CutKind::File => "file",
        };
        format!("--simulate --seed {seed} --medium {medium} --gc {}{cut}", collector.name())
    }
}

impl Case {
    /// Runs the case, or only the given cut of it.
    ///
    /// # Errors
    /// The fault found.
    pub fn run(self, only: Option<CutOfCase>, totals: &mut Totals) -> Result<(), Failure> {
        let mut run = Run { case: self, only, at: None, totals };
        let outcome = catch_unwind(AssertUnwindSafe(|| run.run()));
        let what = match outcome {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(what)) => what,
            Err(panic) => format!("it panicked: {}", words(&*panic)),
        };
        Err(Failure { case: self, cut: run.at, what })
    }

    /// Runs the first life of the case and returns its log.
    ///
    /// # Errors
    /// A description, if the database answered wrongly.
    pub fn log(self) -> Result<Log, String> {
        let mut random = Random::new(mix(self.seed), 0);
        let plan = self.plan(&mut random, Size::Busy);
        plan.live_alone(&Image::default(), &State::new(), 0).map(|life| life.log)
    }

    fn plan(self, random: &mut Random, size: Size) -> Plan {
        let Case { kind, collector, broken, .. } = self;
        let seed = random.word();
        let clients = if random.one_in(6) { 1 } else { 2 + random.below(4) as u8 };
        let calls = match size {
            Size::Small => 30 + random.below(30),
            Size::Varied => 150 + random.below(500),
            Size::Wide => 300 + random.below(500),
            Size::Busy => 3_000 + random.below(12_000),
        };
        let mood = match size {
            Size::Busy if random.one_in(4) => Mood::Deleting,
            Size::Busy => Mood::Churning,
            _ => *random.pick(&[Mood::Varied, Mood::Churning]),
        };
        let hot = *random.pick(&[2, 12]);
        let pace = *random.pick(&[4, 40, 250]);
        // Little space makes transactions fail and hurries the collector.
        let is_tight = size == Size::Busy && random.one_in(2);
        let limit = is_tight.then(|| (8 + random.below(64)) * GROWTH_BYTES);
        let tables = if size == Size::Wide { 130 + random.below(100) as usize } else { 3 };
        let floods = size == Size::Wide || !self.is_busy && random.one_in(4);
        // A refused commit leaves a timestamp that no clock has reached.
        let skews: &[u64] = if is_tight { &[0, 2_000, 200_000, 200_000] } else { &[0, 0, 2_000, 200_000] };
        let skew = Duration::from_nanos(*random.pick(skews));
        let ending = *random.pick(ENDINGS);
        Plan {
            seed,
            kind,
            collector,
            broken,
            clients,
            calls,
            pace,
            mood,
            hot,
            limit,
            tables,
            floods,
            skew,
            ending,
        }
    }
}

/// Flips a bit of one of the files beside a medium, and returns which.
fn flip_beside(image: &mut Image, random: &mut Random) -> u64 {
    let mut files = image.beside().to_vec();
    let one = random.below(files.len() as u64) as usize;
    let bytes = Arc::make_mut(&mut files[one]);
    let bit = random.below(bytes.len().max(1) as u64 * 8);
    if let Some(byte) = bytes.get_mut(bit as usize / 8) {
        *byte ^= 1 << (bit % 8);
    }
    image.set_beside(files);
    bit
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// How much a life does.
#[derive(Clone, Copy, PartialEq)]
enum Size {
    /// Little enough to cut everywhere.
    Small,
    Varied,
    /// Many tables, so that a state record outgrows its place.
    Wide,
    /// The same few rows again and again, which keeps the collector busy.
    Busy,
}

/// One of them is drawn.
const SIZES: &[Size] = &[
    Size::Small,
    Size::Small,
    Size::Varied,
    Size::Varied,
    Size::Wide,
    Size::Busy,
    Size::Busy,
    Size::Busy,
    Size::Busy,
];

/// One of them is drawn.
const ENDINGS: &[Ending] =
    &[Ending::Abrupt, Ending::Abrupt, Ending::Abrupt, Ending::Closed, Ending::ClosedBeside, Ending::Emptied];

/// What a cut leaves for the next life.
struct Left {
    image: Image,
    state: State,
    floor: u64,
    /// Whether everything in it had been acknowledged. What a transaction has written
    /// that had not may lie in a block whose descriptor is at one of its two places, and
    /// is promised only when the next opening has made them two again (I-29).
    is_promised: bool,
}

struct Run<'r> {
    case: Case,
    only: Option<CutOfCase>,
    at: Option<CutOfCase>,
    totals: &'r mut Totals,
}

impl Run<'_> {
    fn run(&mut self) -> Result<(), String> {
        let mut random = Random::new(mix(self.case.seed), 0);
        let size = if self.case.is_busy { Size::Busy } else { *random.pick(SIZES) };
        let lives = 1 + random.below(3) as u32;
        self.totals.cases += 1;
        let (mut image, mut state, mut floor) = (Image::default(), State::new(), 0);
        let mut is_promised = true;
        for number in 0..lives {
            let plan = self.case.plan(&mut random, size);
            self.at = None;
            let life = plan.live_alone(&image, &state, floor)?;
            self.totals.lives += 1;
            self.totals.commits += life.steps.len() as u64;
            self.totals.refused += life.refused;
            self.totals.events += life.log.boundaries() as u64;
            self.totals.blocks_reclaimed += life.collected.blocks_reclaimed;
            self.totals.blocks_bypassed += life.collected.blocks_bypassed;
            self.totals.versions_reclaimed += life.collected.versions_reclaimed;
            self.totals.survivors_relocated += life.collected.survivors_relocated;
            self.totals.tombstones_dropped += life.collected.tombstones_dropped;
            let last = life.log.boundaries() - 1;
            // The cut that the next life starts from.
            let ending = match life.was_closed {
                true => last,
                false => last / 2 + random.below((last - last / 2) as u64 + 1) as usize,
            };
            let ending = self.choose(ending, &mut random);
            // Chosen even if they are not tried: the next life must be the same.
            let mut cuts = match size {
                Size::Small => self.everywhere(&life, &mut random),
                _ => self.sampled(&life, &mut random),
            };
            match self.only {
                Some(only) if only.life == number => {
                    return self.cut_life(number, life, is_promised, vec![only.cut], only.cut).map(drop);
                }
                Some(_) => cuts.clear(),
                None => {}
            }
            cuts.sort_unstable_by_key(|cut| cut.boundary);
            let at = cuts.partition_point(|cut| cut.boundary <= ending.boundary);
            cuts.insert(at, ending);
            let left = self.cut_life(number, life, is_promised, cuts, ending)?;
            Left { image, state, floor, is_promised } = left.ok_or("the last cut was not tried")?;
        }
        Ok(())
    }

    fn choose(&self, boundary: usize, random: &mut Random) -> Cut {
        Cut { boundary, keep: *random.pick(Keep::of(self.case.kind)), choice: random.word() >> 32 }
    }

    /// Every boundary; after a fence or sync, everything that can remain.
    fn everywhere(&self, life: &Life, random: &mut Random) -> Vec<Cut> {
        let mut cuts = Vec::new();
        for boundary in 0..life.log.boundaries() {
            let keeps = Keep::of(self.case.kind);
            let is_persist = |n: usize| life.log.is_persist(n);
            if boundary == 0 || is_persist(boundary - 1) || is_persist(boundary) {
                cuts.extend(keeps.iter().map(|&keep| Cut { boundary, keep, choice: random.word() >> 32 }));
            } else if !life.log.is_long_run(boundary) || random.one_in(40) {
                cuts.push(self.choose(boundary, random));
            }
        }
        cuts
    }

    /// Some boundaries, many of them near a block's change of state, or where a
    /// commit and one on which it depends are in flight.
    fn sampled(&self, life: &Life, random: &mut Random) -> Vec<Cut> {
        let turns = life.log.changes_of_blocks();
        let rests = life.steps.iter().filter(|step| !step.needs.is_empty() && step.ended > step.published);
        let dependent: Vec<usize> = rests.map(|step| step.published).collect();
        let boundary = |random: &mut Random| match turns.len() as u64 {
            _ if !dependent.is_empty() && random.one_in(4) => *random.pick(&dependent),
            turning @ 1.. if random.one_in(2) => {
                turns[random.below(turning) as usize] + random.below(3) as usize
            }
            _ => random.below(life.log.boundaries() as u64) as usize,
        };
        (0..SAMPLED)
            .map(|_| {
                let boundary = boundary(random);
                self.choose(boundary.min(life.log.boundaries() - 1), random)
            })
            .collect()
    }

    /// Cuts a life at the given boundaries, in order; `is_promised` is of the cut that
    /// it began with. Returns what remains after `ending`, one of the cuts.
    fn cut_life(
        &mut self,
        number: u32,
        life: Life,
        is_promised: bool,
        cuts: Vec<Cut>,
        ending: Cut,
    ) -> Result<Option<Left>, String> {
        let mut replay = Replay::new(&life.start, &life.log, self.case.kind);
        let (mut state, mut floor) = (life.state.clone(), life.floor);
        let mut rest = &life.steps[..];
        let mut left = None;
        let at_rest = life.was_closed.then_some(life.log.boundaries() - 1);
        for cut in cuts {
            self.at = Some(CutOfCase { life: number, cut, again: None });
            replay.advance_to(cut.boundary);
            while let Some((step, others)) = rest.split_first().filter(|(step, _)| step.ended <= cut.boundary)
            {
                // A step that has written nothing has not left a timestamp either.
                if step.changes.iter().any(|change| change.is_written(&state)) {
                    floor = floor.max(step.ts);
                }
                apply(&mut state, &step.changes);
                rest = others;
            }
            let first = life.steps.len() - rest.len();
            let begun = &rest[..rest.partition_point(|step| step.began < cut.boundary)];
            let possible = Possible { state: &state, first, begun, boundary: cut.boundary };
            let image = replay.image(cut.keep, cut.choice);
            let is_closed = at_rest == Some(cut.boundary);
            let Opened { state: is, log, was_closed } = found(&image, self.case.kind, floor, is_closed)?;
            self.totals.cuts += 1;
            possible.check(&is)?;
            self.cut_recovery(&image, &log, &is, floor, cut)?;
            if !was_closed && (is_promised || cut.boundary >= life.opened) {
                self.lose_lines(&image, &possible, floor, cut)?;
            }
            if is_closed && self.only.is_none() {
                self.flip_bits(&image, &is, cut.choice)?;
            }
            if cut == ending {
                let is_promised = is == state;
                left = Some(Left { image, state: is, floor, is_promised });
            }
        }
        Ok(left)
    }

    /// Now and then loses a sector of descriptors as well. Nothing else may be
    /// missing then (I-29).
    fn lose_lines(
        &mut self,
        image: &Image,
        possible: &Possible<'_>,
        floor: u64,
        cut: Cut,
    ) -> Result<(), String> {
        let mut random = Random::new(mix(cut.choice ^ LOST_LINES), 0);
        let mut image = image.clone();
        if !random.one_in(LOST_LINES) {
            return Ok(());
        }
        let Some(offset) = image.lose_lines(&mut random) else { return Ok(()) };
        self.totals.sectors_lost += 1;
        let is_possible =
            found(&image, self.case.kind, floor, false).and_then(|is| possible.check(&is.state));
        is_possible.map_err(|what| format!("the sector at {offset} was lost as well, and {what}"))
    }

    /// Flips bits of a closed database. Each flip must be reported or do no
    /// harm.
    fn flip_bits(&mut self, image: &Image, expected: &State, choice: u64) -> Result<(), String> {
        let mut random = Random::new(mix(choice), 0);
        for _ in 0..FLIPS {
            let mut image = image.clone();
            let bit = match !image.beside().is_empty() && random.one_in(4) {
                true => flip_beside(&mut image, &mut random),
                false => image.flip(&mut random),
            };
            self.totals.flips += 1;
            match found(&image, self.case.kind, 0, false) {
                Ok(is) if is.state == *expected => {}
                Ok(is) => {
                    let what = difference(&is.state, expected, None);
                    return Err(format!("bit {bit} was flipped and {what}"));
                }
                Err(_) => self.totals.flips_reported += 1,
            }
        }
        Ok(())
    }

    /// Now and then cuts the recovery as well. The next recovery must find the
    /// same state.
    fn cut_recovery(
        &mut self,
        image: &Image,
        log: &Log,
        expected: &State,
        floor: u64,
        first: Cut,
    ) -> Result<(), String> {
        let mut random = Random::new(mix(first.choice) ^ first.boundary as u64, 0);
        let is_due = random.one_in(AGAIN);
        let boundary = random.below(log.boundaries() as u64) as usize;
        let drawn = self.choose(boundary, &mut random);
        let again = match self.only {
            Some(only) => only.again.filter(|_| self.at.is_some_and(|at| at.life == only.life)),
            None => is_due.then_some(drawn),
        };
        let Some(again) = again else { return Ok(()) };
        self.at = self.at.map(|at| CutOfCase { again: Some(again), ..at });
        let mut replay = Replay::new(image, log, self.case.kind);
        replay.advance_to(again.boundary.min(log.boundaries() - 1));
        let is = found(&replay.image(again.keep, again.choice), self.case.kind, floor, false)?.state;
        self.totals.cuts += 1;
        self.totals.cuts_of_recovery += 1;
        if is == *expected { Ok(()) } else { Err(difference(&is, expected, None)) }
    }
}

/// The states that a power cut may leave.
struct Possible<'p> {
    /// After the steps before all others.
    state: &'p State,
    /// The number of the first of the others.
    first: usize,
    /// Steps that had begun, in order.
    begun: &'p [Step],
    boundary: usize,
}

impl Possible<'_> {
    /// Any steps that were not acknowledged may be lost, but none without those
    /// that depend on it.
    fn check(&self, is: &State) -> Result<(), String> {
        if self.begun.is_empty() {
            return if is == self.state { Ok(()) } else { Err(difference(is, self.state, None)) };
        }
        let open: Vec<usize> = (0..self.begun.len()).filter(|&n| !self.is_over(n)).collect();
        let mut whole = None;
        for lost in 0..1u32 << open.len() {
            let is_lost =
                |n: usize| open.iter().position(|&o| o == n).is_some_and(|bit| lost >> bit & 1 == 1);
            let stands = |n: usize| {
                is_lost(n) || !self.begun[n].needs.iter().any(|&u| u >= self.first && is_lost(u - self.first))
            };
            if !(0..self.begun.len()).all(stands) {
                continue;
            }
            let mut state = self.state.clone();
            let kept = (0..self.begun.len()).filter(|&n| !is_lost(n));
            kept.for_each(|n| apply(&mut state, &self.begun[n].changes));
            if state == *is {
                return Ok(());
            }
            whole.get_or_insert(state);
        }
        Err(difference(is, self.state, whole.as_ref()))
    }

    fn is_over(&self, n: usize) -> bool {
        self.begun[n].ended <= self.boundary
    }
}

/// Describes how the state differs from what is acceptable.
fn difference(is: &State, least: &State, most: Option<&State>) -> String {
    let mut lines = Vec::new();
    let names: std::collections::BTreeSet<&String> = is.keys().chain(least.keys()).collect();
    for name in names {
        match (is.get(name), least.get(name)) {
            (Some(is), Some(least)) => {
                let keys: std::collections::BTreeSet<&u64> =
                    is.rows.keys().chain(least.rows.keys()).collect();
                for key in keys {
                    let (found, expected) = (is.rows.get(key), least.rows.get(key));
                    if found != expected {
                        lines.push(format!(
                            "{name} {key} is {}, but {} was acknowledged",
                            brief(found),
                            brief(expected)
                        ));
                    }
                }
                if is.is_indexed != least.is_indexed {
                    lines.push(format!(
                        "{name} has an index: {}; acknowledged: {}",
                        is.is_indexed, least.is_indexed
                    ));
                }
            }
            (Some(_), None) => lines.push(format!("table {name} exists")),
            _ => lines.push(format!("table {name} is lost")),
        }
    }
    let also = if most.is_some() {
        "; a transaction was committing, and the state does not match that either"
    } else {
        ""
    };
    format!("{}{also}", lines.join("; "))
}

fn brief(row: Option<&crate::state::Row>) -> String {
    match row {
        Some((value, data)) => format!("({value}, {} x {})", data.len(), data.first().unwrap_or(&0)),
        None => "none".into(),
    }
}
