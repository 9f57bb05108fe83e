//! Where verbs that look at a database print to.

use std::fs;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::path::Path;
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pantile::{CheckOptions, CheckStep};
use serde::Serialize;

use crate::bench::Failure;

/// Text for people on stdout, and the record where `--json` wants it; if that
/// is stdout, where scripts read it, the text goes to stderr.
pub fn print(text: &str, record: &impl Serialize, json: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = json else { return put(&mut stdout(), text) };
    let record = serde_json::to_string_pretty(record).map_err(|e| Failure::Failed(e.to_string()))? + "\n";
    if path == Path::new("-") {
        return put(&mut stderr(), text).and_then(|()| put(&mut stdout(), &record));
    }
    let written = fs::write(path, record);
    put(&mut stdout(), text)?;
    written.map_err(|e| Failure::Failed(format!("cannot write {}: {e}", path.display())))
}

fn put(to: &mut dyn Write, text: &str) -> Result<(), Failure> {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        // Whoever read it has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::Failed(format!("cannot print: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Shows how far a check is, with a bar for each step on a terminal.
pub fn with_bars(options: CheckOptions, quiet: bool) -> CheckOptions {
    if quiet || !stderr().is_terminal() {
        return options;
    }
    let shown: Mutex<Option<(CheckStep, ProgressBar)>> = Mutex::default();
    options.progress(move |step, done, total| {
        let Ok(mut shown) = shown.lock() else { return };
        if shown.as_ref().is_none_or(|(now, _)| *now != step) {
            if let Some((_, bar)) = shown.take() {
                bar.finish_and_clear();
            }
            *shown = Some((step, bar(step)));
        }
        if let Some((_, bar)) = shown.as_ref() {
            bar.set_length(total);
            bar.set_position(done);
            if done >= total {
                bar.finish_and_clear();
            }
        }
    })
}

fn bar(step: CheckStep) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {percent}%, {eta} left")
        .expect("the template is a constant that is well-formed")
        .progress_chars("=> ");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5)).with_style(style);
    bar.set_message(match step {
        CheckStep::Read => "reading",
        CheckStep::Survey => "formats and checksums",
        CheckStep::Recover => "recovering in memory",
        CheckStep::Contents => "contents",
        CheckStep::Tables => "rows and indexes",
    });
    bar
}
