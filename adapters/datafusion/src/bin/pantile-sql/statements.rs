//! Where statements begin and end.

use std::io::BufRead;

use datafusion::error::{DataFusionError, Result};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::Session;
use crate::output::{is_broken_pipe, message};

/// How the input ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// After a statement.
    Whole,
    /// Amid one.
    InStatement,
    /// Nobody reads what is printed any more, and not all statements were run.
    Unread,
}

/// How the input ended with a statement that failed. Whether statements are left is asked only if nobody
/// reads the output any more: more input may be long in coming.
pub fn ended_by(error: DataFusionError, are_left: impl FnOnce() -> bool) -> Result<Ended> {
    if is_broken_pipe(&error) && are_left() { Ok(Ended::Unread) } else { Err(error) }
}

/// What has been read, up to the semicolon of a statement.
#[derive(Default)]
pub struct Statement(String);

impl Statement {
    /// Adds a line. Returns the statements that it ends.
    pub fn add(&mut self, line: &str) -> Vec<String> {
        if !self.0.is_empty() {
            self.0.push('\n');
        } else if line.trim().is_empty() {
            return Vec::new();
        }
        // As it is: it may be amid a string.
        self.0.push_str(line);
        let mut whole = Vec::new();
        while let Some(end) = end_of_first(&self.0) {
            let rest = self.0.split_off(end);
            let statement = std::mem::replace(&mut self.0, rest.trim_start().to_owned());
            if !is_blank(statement.trim_end_matches(';')) {
                whole.push(statement);
            }
        }
        whole
    }

    /// What is left, if that is more than comments.
    pub fn rest(self) -> Option<String> {
        (!is_blank(&self.0)).then_some(self.0)
    }
}

/// Whether there are only comments and blank lines.
fn is_blank(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with("--"))
}

/// Where the first statement ends, behind its semicolon. Those in quotes and comments end nothing.
fn end_of_first(text: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        let (opening, close) = match next {
            ';' => return Some(at + 1),
            '\'' => (1, "'"),
            '"' => (1, "\""),
            '-' if rest.starts_with("--") => (2, "\n"),
            '/' if rest.starts_with("/*") => (2, "*/"),
            _ => {
                at += next.len_utf8();
                continue;
            }
        };
        at += opening + rest[opening..].find(close)? + close.len();
    }
    None
}

/// Runs the statements of a script, up to the first that fails.
pub fn from_lines(session: &Session, lines: impl BufRead) -> Result<Ended> {
    let mut statement = Statement::default();
    let mut lines = lines.lines();
    while let Some(line) = lines.next() {
        let mut whole = statement.add(&line?).into_iter();
        while let Some(one) = whole.next() {
            if let Err(error) = session.run(&one) {
                let is_more = |line: std::io::Result<String>| line.is_ok_and(|line| !is_blank(&line));
                let has_more = || whole.next().is_some() || statement.rest().is_some() || lines.any(is_more);
                return ended_by(error, has_more);
            }
        }
    }
    Ok(if statement.rest().is_some() { Ended::InStatement } else { Ended::Whole })
}

/// Asks for statements on a terminal. One that fails says why, and the next is asked for.
pub fn from_terminal(session: &mut Session) -> Result<Ended> {
    let failed = |error: ReadlineError| DataFusionError::External(Box::new(error));
    let mut editor = DefaultEditor::new().map_err(failed)?;
    let mut statement = Statement::default();
    loop {
        let line = match editor.readline(if statement.0.is_empty() { "sql> " } else { "...> " }) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                statement = Statement::default();
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(Ended::Whole),
            Err(error) => return Err(failed(error)),
        };
        let _ = editor.add_history_entry(&line);
        let outcome = match line.trim() {
            ".quit" if statement.0.is_empty() => return Ok(Ended::Whole),
            ".refresh" if statement.0.is_empty() => session.refresh(),
            _ => statement.add(&line).iter().try_for_each(|whole| session.run(whole)),
        };
        match outcome {
            Err(error) if is_broken_pipe(&error) => return Err(error),
            Err(error) => eprintln!("{}", message(&error)),
            Ok(()) => {}
        }
    }
}
