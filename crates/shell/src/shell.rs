//! The shell: what a line does.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pantile::Database;

use crate::error::Error;
use crate::print::Mode;
use crate::session::Session;
use crate::words::{self, Word};
use crate::{definitions, explain, help, prepared, rows};

/// Scripts that a script may run, one within the other.
const DEEPEST: usize = 16;

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// With the next line.
    Continue,
    /// `.quit` was given.
    Quit,
}

/// A database, and what commands have set.
///
/// A transaction that is open when the shell is dropped is rolled back.
pub struct Shell<'s> {
    pub(crate) session: Session<'s>,
    timing: bool,
    depth: usize,
}

impl std::fmt::Debug for Shell<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shell").field("mode", &self.session.mode).finish_non_exhaustive()
    }
}

impl<'s> Shell<'s> {
    /// A shell for this database. A command that prints rows stops when `stop` is raised.
    pub fn new(db: &'s Database, stop: &'s AtomicBool) -> Self {
        let session = Session { db, txn: None, mode: Mode::Table, stop };
        Self { session, timing: false, depth: 0 }
    }

    /// Sets how rows are printed.
    pub fn set_mode(&mut self, mode: Mode) {
        self.session.mode = mode;
    }

    /// Whether a transaction has begun and not ended.
    pub fn is_in_transaction(&self) -> bool {
        self.session.txn.is_some()
    }

    /// Runs one command. An empty line and one that begins with `#` do nothing.
    ///
    /// # Errors
    /// Every [`Error`]. The shell can go on; a transaction that is open stays open.
    pub fn run(&mut self, line: &str, out: &mut dyn Write) -> Result<Flow, Error> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(Flow::Continue);
        }
        self.session.check_stop()?;
        let began = Instant::now();
        let flow = self.command(line, out)?;
        if self.timing {
            writeln!(out, "{:.3} s", began.elapsed().as_secs_f64())?;
        }
        out.flush()?;
        Ok(flow)
    }

    /// Runs the commands of a script until one fails.
    ///
    /// # Errors
    /// [`Error::Script`] with the line, or [`Error::Read`].
    pub fn script(&mut self, name: &str, from: impl BufRead, out: &mut dyn Write) -> Result<Flow, Error> {
        for (line, at) in from.lines().zip(1..) {
            let line = line.map_err(|source| Error::Read { from: name.to_owned(), source })?;
            let failed = |cause| Error::Script { file: name.to_owned(), line: at, cause: Box::new(cause) };
            if self.run(&line, out).map_err(failed)? == Flow::Quit {
                return Ok(Flow::Quit);
            }
        }
        Ok(Flow::Continue)
    }

    fn command(&mut self, line: &str, out: &mut dyn Write) -> Result<Flow, Error> {
        if let Some(definition) = definitions::of_new_table(line) {
            definitions::create_table(&self.session, definition, out)?;
            return Ok(Flow::Continue);
        }
        let words = words::split(line)?;
        let (verb, rest) = (words[0].text.to_ascii_lowercase(), &words[1..]);
        match verb.as_str() {
            ".quit" | ".exit" => return Ok(Flow::Quit),
            ".help" => help::print(rest, out)?,
            ".mode" => self.set_mode_by_name(rest)?,
            ".timing" => self.timing = is_on(rest)?,
            ".read" => return self.read(rest, out),
            "tables" | "schema" | "create" | "alter" | "drop" => {
                definitions::run(&self.session, &verb, rest, out)?
            }
            "get" | "scan" | "count" | "insert" | "upsert" | "update" | "delete" => {
                rows::run(&mut self.session, &verb, rest, out)?;
            }
            "prepared" => prepared::list(&self.session, rest, out)?,
            "commit" | "rollback" if rest.first().is_some_and(|word| word.is("prepared")) => {
                prepared::decide(&self.session, &verb, &rest[1..], out)?;
            }
            "begin" | "commit" | "rollback" => self.transaction(&verb, rest, out)?,
            "explain" | "stats" | "transactions" => explain::run(&self.session, &verb, rest, out)?,
            "dump" => rows::dump(&self.session, rest, out)?,
            "load" => rows::load(&self.session, rest, out)?,
            "select" | "with" | "show" => {
                return Err(Error::command(
                    "there is no SQL here; `get`, `scan` and `count` read rows, `pantile-sql` queries",
                ));
            }
            _ => {
                return Err(Error::command(format!("there is no command {verb:?}; `.help` lists them")));
            }
        }
        Ok(Flow::Continue)
    }

    fn set_mode_by_name(&mut self, words: &[Word]) -> Result<(), Error> {
        let mode = words.first().and_then(|word| Mode::by_name(&word.text));
        self.session.mode = mode.ok_or_else(|| Error::command("the modes are table, csv and jsonl"))?;
        Ok(())
    }

    fn read(&mut self, words: &[Word], out: &mut dyn Write) -> Result<Flow, Error> {
        let [file] = words else { return Err(Error::command("which file? `.read FILE`")) };
        if self.depth == DEEPEST {
            let deepest = format!("{DEEPEST} scripts run each other, as many as can; does one run itself?");
            return Err(Error::Command(deepest));
        }
        let from = file.text.clone();
        let script = File::open(&from).map_err(|source| Error::Read { from: from.clone(), source })?;
        self.depth += 1;
        let done = self.script(&from, BufReader::new(script), out);
        self.depth -= 1;
        done
    }

    fn transaction(&mut self, verb: &str, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
        if verb == "begin" {
            if self.session.txn.is_some() {
                return Err(Error::command("a transaction is open; end it by `commit` or `rollback`"));
            }
            self.session.txn = Some(match words {
                [] => self.session.db.begin()?,
                [word] if word.is("read") => self.session.db.begin_read()?,
                [word] if word.is("snapshot") => self.session.db.begin_safe_snapshot()?,
                _ => return Err(Error::command("`begin`, `begin read` or `begin snapshot`")),
            });
            return Ok(writeln!(out, "begun")?);
        }
        if !words.is_empty() {
            return Err(Error::command(format!("`{verb}` stands alone; nothing was changed")));
        }
        let none = || Error::command("no transaction is open; `begin` opens one");
        let txn = self.session.txn.take().ok_or_else(none)?;
        if verb == "rollback" {
            txn.rollback();
            return Ok(writeln!(out, "rolled back")?);
        }
        txn.commit()?;
        Ok(writeln!(out, "committed")?)
    }
}

fn is_on(words: &[Word]) -> Result<bool, Error> {
    match words {
        [word] if word.is("on") => Ok(true),
        [word] if word.is("off") => Ok(false),
        _ => Err(Error::command("`.timing on` or `.timing off`")),
    }
}
