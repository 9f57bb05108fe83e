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
}

/// Lines up to one that ends with a semicolon.
#[derive(Default)]
struct Statement(String);

impl Statement {
    /// Adds a line. Returns the statement that it ends.
    fn add(&mut self, line: &str) -> Option<String> {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(line.trim_end());
        self.0.ends_with(';').then(|| std::mem::take(&mut self.0))
    }

    fn ended(&self) -> Ended {
        // Comments and blank lines say nothing.
        let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with("--");
        if self.0.lines().all(is_blank) { Ended::Whole } else { Ended::InStatement }
    }
}

/// Runs the statements of a script, up to the first that fails.
pub fn from_lines(session: &Session, lines: impl BufRead) -> Result<Ended> {
    let mut statement = Statement::default();
    for line in lines.lines() {
        if let Some(whole) = statement.add(&line?) {
            session.run(&whole)?;
        }
    }
    Ok(statement.ended())
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
            ".quit" => return Ok(Ended::Whole),
            ".refresh" => session.refresh(),
            "" => Ok(()),
            _ => statement.add(&line).map_or(Ok(()), |whole| session.run(&whole)),
        };
        match outcome {
            Err(error) if is_broken_pipe(&error) => return Err(error),
            Err(error) => eprintln!("{}", message(&error)),
            Ok(()) => {}
        }
    }
}
