//! The shell on a terminal.

use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::sync::atomic::Ordering;

use pantile::Database;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use crate::complete::complete;
use crate::error::Error;
use crate::shell::{Flow, Shell};

/// What the line editor asks.
struct Names<'n> {
    db: &'n Database,
}

impl Completer for Names<'_> {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete(self.db, &line[..at]))
    }
}

impl Hinter for Names<'_> {
    type Hint = String;
}

impl Highlighter for Names<'_> {}
impl Validator for Names<'_> {}
impl Helper for Names<'_> {}

/// Reads commands from the terminal until `.quit` or Ctrl-D. A command that fails
/// says why, and the shell goes on. Ctrl-C ends what is printed, or gives the line up.
///
/// Keeps the lines in the file `history`, if one is named.
///
/// # Errors
/// [`Error::Read`] if the terminal cannot be read, and [`Error::Write`].
pub fn interact(shell: &mut Shell<'_>, history: Option<&Path>) -> Result<(), Error> {
    let cannot_read = |error: ReadlineError| Error::Read {
        from: "the terminal".into(),
        source: std::io::Error::other(error),
    };
    let config = Config::builder().completion_type(CompletionType::List).auto_add_history(true).build();
    let mut editor: Editor<Names<'_>, FileHistory> = Editor::with_config(config).map_err(cannot_read)?;
    editor.set_helper(Some(Names { db: shell.session.db }));
    if let Some(file) = history {
        // There is none the first time.
        let _ = editor.load_history(file);
    }
    let ended = loop {
        match editor.readline(if shell.is_in_transaction() { "pantile*> " } else { "pantile> " }) {
            Ok(line) if one(shell, &line)? == Flow::Quit => break Ok(()),
            Ok(_) | Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break Ok(()),
            Err(error) => break Err(cannot_read(error)),
        }
    };
    if let Some(file) = history {
        // Best effort: a home that cannot be written to is no failure of the shell.
        let _ = editor.save_history(file);
    }
    ended
}

fn one(shell: &mut Shell<'_>, line: &str) -> Result<Flow, Error> {
    // Of an earlier command that was not interrupted any more.
    shell.session.stop.store(false, Ordering::Relaxed);
    match shell.run(line, &mut stdout().lock()) {
        Err(error) if error.is_broken_pipe() => Err(error),
        Err(error) => {
            writeln!(stderr(), "{error}")?;
            Ok(Flow::Continue)
        }
        flow => flow,
    }
}
