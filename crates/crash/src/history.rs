//! Interprets the lines that working processes write: what was acknowledged,
//! and what was in progress when they ended.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use pantile::Timestamp;

use crate::error::{Error, Result};
use crate::workload::Workload;

/// A kind of change of a definition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Creates a table.
    Make,
    /// Creates its index.
    Index,
    /// Drops its index.
    Unindex,
    /// Drops the table.
    Drop,
}

/// One line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// A process begins, with this workload.
    Run(Workload),
    /// It is about to open or create the database.
    Opening,
    /// It has opened the database and starts to work. Carries what it found.
    Opened(Found),
    /// A change of an extra table begins.
    Begin(Change, String),
    /// The change is acknowledged.
    End(Change, String),
    /// A transaction is acknowledged: client, number, timestamp.
    Commit(u64, u64, Timestamp),
    /// Blocks freed and survivors relocated in this life so far.
    Collected(u64, u64),
    /// All clients have ended, and the process is about to close the database.
    Closing,
    /// The database is closed.
    Closed,
    /// The process has seen something that must not happen.
    Broken(String),
    /// It cannot continue, for example because its disk is gone.
    Failed(String),
}

/// What an opening found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Nothing, or a database without tables.
    Nothing,
    /// A database that was closed.
    Closed,
    /// A database that was not closed.
    Killed,
}

const CHANGES: [(Change, &str); 4] =
    [(Change::Make, "make"), (Change::Index, "index"), (Change::Unindex, "unindex"), (Change::Drop, "drop")];
const FINDS: [(Found, &str); 3] =
    [(Found::Nothing, "nothing"), (Found::Closed, "closed"), (Found::Killed, "killed")];

fn name_of<T: PartialEq + Copy>(names: &[(T, &'static str)], of: T) -> &'static str {
    names.iter().find(|(one, _)| *one == of).expect("every value has a name").1
}

fn by_name<T: Copy>(names: &[(T, &str)], name: &str) -> Option<T> {
    names.iter().find(|(_, known)| *known == name).map(|(one, _)| *one)
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Run(work) => write!(f, "run {} {}", work.seed, work.clients),
            Line::Opening => f.write_str("opening"),
            Line::Opened(found) => write!(f, "opened {}", name_of(&FINDS, *found)),
            Line::Begin(change, table) => write!(f, "begin {} {table}", name_of(&CHANGES, *change)),
            Line::End(change, table) => write!(f, "end {} {table}", name_of(&CHANGES, *change)),
            Line::Commit(client, seq, ts) => write!(f, "commit {client} {seq} {ts}"),
            Line::Collected(freed, moved) => write!(f, "collected {freed} {moved}"),
            Line::Closing => f.write_str("closing"),
            Line::Closed => f.write_str("closed"),
            Line::Broken(what) => write!(f, "broken {what}"),
            Line::Failed(why) => write!(f, "failed {why}"),
        }
    }
}

impl FromStr for Line {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text).ok_or_else(|| Error::Line(text.into()))
    }
}

fn parse(text: &str) -> Option<Line> {
    // Terminals end lines with two bytes.
    let text = text.trim_end_matches('\r');
    if let Some(what) = text.strip_prefix("broken ") {
        return Some(Line::Broken(what.into()));
    }
    if let Some(why) = text.strip_prefix("failed ") {
        return Some(Line::Failed(why.into()));
    }
    let words: Vec<&str> = text.split(' ').collect();
    let number = |n: usize| words[n].parse::<u64>().ok();
    Some(match words[..] {
        ["run", _, _] => {
            Line::Run(Workload { seed: number(1)?, clients: number(2).filter(|clients| *clients > 0)? })
        }
        ["opening"] => Line::Opening,
        ["opened", found] => Line::Opened(by_name(&FINDS, found)?),
        ["begin", change, table] => Line::Begin(by_name(&CHANGES, change)?, table.into()),
        ["end", change, table] => Line::End(by_name(&CHANGES, change)?, table.into()),
        ["commit", _, _, _] => Line::Commit(number(1)?, number(2)?, Timestamp::from_raw(number(3)?)),
        ["collected", _, _] => Line::Collected(number(1)?, number(2)?),
        ["closing"] => Line::Closing,
        ["closed"] => Line::Closed,
        _ => return None,
    })
}

/// What a process is doing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// It has not printed anything yet, or it has ended.
    Outside,
    /// It creates the database.
    Creating,
    /// It opens the database.
    Opening,
    /// It runs transactions.
    Working,
    /// It creates or drops a table or an index, beside its transactions.
    Defining,
    /// It closes the database.
    Closing,
}

impl Phase {
    /// All of them.
    pub const ALL: [Phase; 6] =
        [Phase::Outside, Phase::Creating, Phase::Opening, Phase::Working, Phase::Defining, Phase::Closing];

    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Outside => "outside",
            Phase::Creating => "creating",
            Phase::Opening => "opening",
            Phase::Working => "working",
            Phase::Defining => "defining",
            Phase::Closing => "closing",
        }
    }
}

/// Whether something must exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Is {
    /// It must not exist.
    Absent,
    /// It may exist.
    Either,
    /// It must exist.
    There,
}

impl Is {
    /// Whether this agrees with what was found.
    pub fn agrees(self, there: bool) -> bool {
        self == Is::Either || (self == Is::There) == there
    }
}

/// What is known of an extra table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extra {
    /// The table.
    pub table: Is,
    /// Its index.
    pub index: Is,
}

/// Everything that the lives of a database have reported.
#[derive(Clone, Debug)]
pub struct History {
    /// The workload; `None` before the first life has begun.
    pub workload: Option<Workload>,
    /// The last acknowledged transaction of each client.
    pub lasts: Vec<u64>,
    /// The highest acknowledged timestamp.
    pub highest: Timestamp,
    /// Extra tables that may exist.
    pub extras: BTreeMap<String, Extra>,
    /// Lives since the last verification in which clients worked. In each of
    /// them, each client may have committed one more transaction than it
    /// acknowledged.
    pub lives: u64,
    /// What the current life is doing.
    pub phase: Phase,
    /// Whether the database has ever been opened.
    pub made: bool,
    /// Transactions acknowledged in all lives.
    pub acknowledged: u64,
    /// Blocks freed and survivors relocated in all lives.
    pub collected: (u64, u64),
    /// The same for the current life.
    collected_now: (u64, u64),
    /// What lives have seen that must not happen.
    pub broken: Vec<String>,
    /// Why lives could not continue. Not a fault where the power is cut.
    pub failed: Vec<String>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            workload: None,
            lasts: Vec::new(),
            highest: Timestamp::ZERO,
            extras: BTreeMap::new(),
            lives: 0,
            phase: Phase::Outside,
            made: false,
            acknowledged: 0,
            collected: (0, 0),
            collected_now: (0, 0),
            broken: Vec::new(),
            failed: Vec::new(),
        }
    }
}

impl History {
    /// Reads a whole log. An incomplete last line is ignored.
    ///
    /// # Errors
    /// [`Error::Line`].
    pub fn read(&mut self, log: &str) -> Result<()> {
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        let mut lines = whole.lines().filter(|line| !line.trim().is_empty());
        lines.try_for_each(|line| self.take(&line.parse()?))
    }

    /// Takes the next line of a life.
    ///
    /// # Errors
    /// [`Error::Line`] if the line cannot come from a life of this database.
    pub fn take(&mut self, line: &Line) -> Result<()> {
        let wrong = || Error::Line(line.to_string());
        match line {
            Line::Run(workload) => {
                if self.workload.is_some_and(|known| known != *workload) {
                    return Err(wrong());
                }
                self.workload = Some(*workload);
                self.lasts.resize(workload.clients as usize, 0);
                self.phase = Phase::Outside;
                self.collected_now = (0, 0);
            }
            Line::Opening => self.phase = if self.made { Phase::Opening } else { Phase::Creating },
            Line::Opened(_) => {
                self.phase = Phase::Working;
                self.lives += 1;
                self.made = true;
            }
            Line::Begin(change, table) => {
                self.phase = Phase::Defining;
                let unknown = Extra { table: Is::Absent, index: Is::Absent };
                let extra = self.extras.entry(table.clone()).or_insert(unknown);
                match change {
                    Change::Make | Change::Drop => extra.table = Is::Either,
                    Change::Index | Change::Unindex => extra.index = Is::Either,
                }
            }
            Line::End(change, table) => {
                self.phase = Phase::Working;
                let extra = self.extras.get_mut(table).ok_or_else(wrong)?;
                match change {
                    Change::Make => extra.table = Is::There,
                    Change::Index => extra.index = Is::There,
                    Change::Unindex => extra.index = Is::Absent,
                    Change::Drop => _ = self.extras.remove(table),
                }
            }
            Line::Commit(client, seq, ts) => {
                let last = self.lasts.get_mut(*client as usize).ok_or_else(wrong)?;
                *last = (*last).max(*seq);
                self.highest = self.highest.max(*ts);
                self.acknowledged += 1;
            }
            Line::Collected(freed, moved) => {
                // Several clients count and report, not always in order.
                let (old_freed, old_moved) = self.collected_now;
                self.collected_now = (old_freed.max(*freed), old_moved.max(*moved));
                self.collected.0 += self.collected_now.0 - old_freed;
                self.collected.1 += self.collected_now.1 - old_moved;
            }
            Line::Closing => self.phase = Phase::Closing,
            Line::Closed => self.phase = Phase::Outside,
            Line::Broken(what) => self.broken.push(what.clone()),
            Line::Failed(why) => self.failed.push(why.clone()),
        }
        Ok(())
    }
}
