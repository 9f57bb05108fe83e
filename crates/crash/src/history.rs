//! What the lines tell that working processes write: what was acknowledged,
//! and what was being done when they ended.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use pantile::Timestamp;

use crate::error::{Error, Result};
use crate::workload::Workload;

/// A kind of change of a definition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Makes a table.
    Make,
    /// Makes its index.
    Index,
    /// Drops its index.
    Unindex,
    /// Drops the table.
    Drop,
}

/// One line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// A process begins: whose work it does.
    Run(Workload),
    /// It is about to open the database, or to make it.
    Opening,
    /// It has, and goes to work. Says what it found.
    Opened(Found),
    /// A change of an extra table begins.
    Begin(Change, String),
    /// It is acknowledged.
    End(Change, String),
    /// A transaction is acknowledged: client, number, timestamp.
    Commit(u64, u64, Timestamp),
    /// Blocks freed and survivors moved in this life so far.
    Collected(u64, u64),
    /// All clients have ended, and the database is about to be closed.
    Closing,
    /// It is.
    Closed,
    /// The process has seen something that must not be.
    Broken(String),
    /// It cannot go on, for example since its disk is gone.
    Failed(String),
}

/// What an opening finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Nothing, or a database without tables.
    Nothing,
    /// A database that was closed.
    Closed,
    /// A database that was not.
    Killed,
}

const CHANGES: [(Change, &str); 4] =
    [(Change::Make, "make"), (Change::Index, "index"), (Change::Unindex, "unindex"), (Change::Drop, "drop")];
const FINDS: [(Found, &str); 3] =
    [(Found::Nothing, "nothing"), (Found::Closed, "closed"), (Found::Killed, "killed")];

fn name_of<T: PartialEq + Copy>(names: &[(T, &'static str)], of: T) -> &'static str {
    names.iter().find(|(one, _)| *one == of).expect("every one has a name").1
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
    /// It has not said anything yet, or has ended.
    Outside,
    /// It makes the database.
    Creating,
    /// It opens the database.
    Opening,
    /// It runs transactions.
    Working,
    /// It makes or drops a table or an index, beside its transactions.
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

/// Whether something must be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Is {
    /// It must not.
    Absent,
    /// It may.
    Either,
    /// It must.
    There,
}

impl Is {
    /// Whether that agrees with what was found.
    pub fn agrees(self, there: bool) -> bool {
        self == Is::Either || (self == Is::There) == there
    }
}

/// An extra table, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extra {
    /// The table.
    pub table: Is,
    /// Its index.
    pub index: Is,
}

/// What all lives of a database have told.
#[derive(Clone, Debug)]
pub struct History {
    /// Whose work it is; none before the first life has begun.
    pub workload: Option<Workload>,
    /// The last acknowledged transaction of each client.
    pub lasts: Vec<u64>,
    /// The highest acknowledged timestamp.
    pub highest: Timestamp,
    /// Extra tables that may be there.
    pub extras: BTreeMap<String, Extra>,
    /// Lives since the last verification in which clients were at work: each
    /// client may have committed one transaction more in each.
    pub lives: u64,
    /// What the present life is doing.
    pub phase: Phase,
    /// Whether the database has been opened once.
    pub made: bool,
    /// Transactions acknowledged in all lives.
    pub acknowledged: u64,
    /// Blocks freed in all lives, and survivors moved.
    pub collected: (u64, u64),
    /// Of these in the present life.
    collected_now: (u64, u64),
    /// What lives have seen that must not be.
    pub broken: Vec<String>,
    /// Why lives could not go on. No fault where the power is cut.
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
    /// Takes in a whole log. A last line that was cut off does not count.
    ///
    /// # Errors
    /// [`Error::Line`].
    pub fn read(&mut self, log: &str) -> Result<()> {
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        let mut lines = whole.lines().filter(|line| !line.trim().is_empty());
        lines.try_for_each(|line| self.take(&line.parse()?))
    }

    /// Takes in what a life has told next.
    ///
    /// # Errors
    /// [`Error::Line`] if it cannot come from a life of this database.
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
                // Several clients count and tell, not always in order.
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
