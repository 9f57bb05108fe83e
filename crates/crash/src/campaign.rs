//! Rounds. In each round a database is worked on, killed, opened and verified;
//! the next round continues with it.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pantile_testkit::Random;

use crate::copy::copy;
use crate::error::{Error, Result};
use crate::history::History;
use crate::life::{End, Paces, live};
use crate::plan::Aim;
use crate::report::{Failure, Report};
use crate::settings::Settings;
use crate::verify::verify;
use crate::work::{Life, Sabotage};

/// Rounds after which a new database is created, so that kills hit creation
/// too.
const ROUNDS_PER_DATABASE: u64 = 10;

/// The name of the database in the directory of a round.
pub const DATABASE: &str = "db";
/// A copy of the database as the last kill left it, before it was opened.
pub const FOUND: &str = "found";
/// What was acknowledged.
pub const ACKNOWLEDGED: &str = "acknowledged";
/// What processes print to standard error.
pub const ERRORS: &str = "errors";

/// When to stop.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Limit {
    /// After this many rounds.
    Rounds(u64),
    /// After the first round that ends later than this.
    Time(Duration),
}

/// A crash test.
pub struct Campaign<'a> {
    /// The settings of all databases of the test.
    pub settings: Settings,
    /// When to stop.
    pub limit: Limit,
    /// A fault that verification must find.
    pub sabotage: Option<Sabotage>,
    /// The directory for the databases; each gets a directory of its own.
    pub dir: PathBuf,
    /// Builds the command for a process that works on the database in a
    /// directory, for one life.
    pub command: &'a dyn Fn(&Life, &Path) -> Command,
    /// Raised to stop.
    pub stop: &'a AtomicBool,
}

/// The database of a round, its history, and its other files.
struct Home {
    dir: PathBuf,
    history: History,
    log: File,
    /// Lives so far.
    lives: u64,
}

impl Campaign<'_> {
    /// Runs the test. Calls `told` after each round.
    ///
    /// # Errors
    /// Whatever prevents the test from continuing. What the test finds is in
    /// the report.
    pub fn run(&self, told: &mut dyn FnMut(&Report)) -> Result<Report> {
        let began = Instant::now();
        let mut random = Random::new(self.settings.seed, 0);
        let mut paces = Paces::default();
        let mut report = Report::default();
        let mut home = None;
        while !self.over(&report, began) {
            if report.rounds.is_multiple_of(ROUNDS_PER_DATABASE) {
                self.remove(home.take())?;
            }
            let new = home.is_none();
            let home = match &mut home {
                Some(home) => home,
                None => {
                    report.databases += 1;
                    home.insert(self.new_home(report.databases)?)
                }
            };
            let aims = Aim::round(&mut random, new);
            let problems = self.round(home, &aims, &mut paces, &mut report)?;
            report.seconds = began.elapsed().as_secs_f64();
            if !problems.is_empty() {
                let round = report.rounds + 1;
                report.failure = Some(Failure { round, problems, kept: home.dir.clone() });
                return Ok(report);
            }
            if self.stop.load(Ordering::Relaxed) {
                report.interrupted = true;
            }
            told(&report);
        }
        self.remove(home)?;
        report.interrupted |= self.stop.load(Ordering::Relaxed);
        Ok(report)
    }

    fn over(&self, report: &Report, began: Instant) -> bool {
        let done = match self.limit {
            Limit::Rounds(rounds) => report.rounds >= rounds,
            Limit::Time(time) => began.elapsed() >= time,
        };
        done || self.stop.load(Ordering::Relaxed)
    }

    fn new_home(&self, number: u64) -> Result<Home> {
        let dir = self.dir.join(format!("crash-{number}"));
        fs::create_dir_all(&self.dir)
            .and_then(|()| fs::create_dir(&dir))
            .map_err(Error::io(format!("create the directory {}", dir.display())))?;
        let log = dir.join(ACKNOWLEDGED);
        let log = File::create(&log).map_err(Error::io(format!("write {}", log.display())))?;
        Ok(Home { dir, history: History::default(), log, lives: 0 })
    }

    fn remove(&self, home: Option<Home>) -> Result<()> {
        let Some(Home { dir, .. }) = home else { return Ok(()) };
        fs::remove_dir_all(&dir).map_err(Error::io(format!("remove {}", dir.display())))
    }

    /// Kills as planned and verifies. Returns the problems found.
    fn round(
        &self,
        home: &mut Home,
        aims: &[Aim],
        paces: &mut Paces,
        report: &mut Report,
    ) -> Result<Vec<String>> {
        let before = (home.history.acknowledged, home.history.collected);
        let mut kills = 0;
        let mut problems = Vec::new();
        for &aim in aims {
            match self.kill_one(home, aim, paces)? {
                End::Killed(phase) => {
                    kills += 1;
                    *report.kills.entry(phase).or_default() += 1;
                }
                End::Finished => report.discarded += 1,
                End::Failed(status) => {
                    problems.push(format!("a process ended unexpectedly: {status}"));
                    problems.append(&mut home.history.broken);
                    problems.append(&mut home.history.failed);
                    break;
                }
                End::Stuck => {
                    problems.push("a process printed nothing for ten minutes".into());
                    problems.append(&mut home.history.failed);
                    break;
                }
            }
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        report.acknowledged += home.history.acknowledged - before.0;
        report.collected.0 += home.history.collected.0 - before.1.0;
        report.collected.1 += home.history.collected.1 - before.1.1;
        if problems.is_empty() {
            let (db, found) = (home.dir.join(DATABASE), home.dir.join(FOUND));
            copy(&db, &found).map_err(Error::io(format!("copy {} to {}", db.display(), found.display())))?;
            problems = self.open_and_verify(home);
        }
        if problems.is_empty() && kills > 0 {
            report.rounds += 1;
        }
        Ok(problems)
    }

    fn kill_one(&self, home: &mut Home, aim: Aim, paces: &mut Paces) -> Result<End> {
        home.lives += 1;
        let life = Life {
            settings: self.settings,
            number: home.lives,
            close_after: aim.close_after(),
            sabotage: self.sabotage,
        };
        let mut command = (self.command)(&life, &home.dir.join(DATABASE));
        let errors = home.dir.join(ERRORS);
        let errors = OpenOptions::new().create(true).append(true).open(errors);
        command.stderr(errors.map_err(Error::io("open the file for the errors of processes"))?);
        live(command, aim, &mut home.history, &mut home.log, paces, self.stop)
    }

    fn open_and_verify(&self, home: &mut Home) -> Vec<String> {
        let db = match self.settings.open(&home.dir.join(DATABASE)) {
            Ok(db) => db,
            Err(error) => return vec![format!("the database cannot be opened: {error}")],
        };
        let mut problems = match verify(&db, &mut home.history) {
            Ok(problems) => problems,
            Err(error) => vec![format!("the database cannot be read: {error}")],
        };
        if let Err(error) = db.close() {
            problems.push(format!("the database cannot be closed: {error}"));
        }
        problems
    }
}
