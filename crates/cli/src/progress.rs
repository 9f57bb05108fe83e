//! Progress on stderr: a bar on a terminal and none in a pipe, and a line for each second measured in both.

use std::io::{IsTerminal, stderr};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pantile::tools::{CheckOptions, CheckStep};
use pantile_bench::load::Observer;
use pantile_bench::record::Second;
use pantile_transfer::Progress;

use crate::live;
use crate::output;

/// How bars look whose steps take about equally long.
pub const STEADY: &str = "{msg} [{bar:40}] {percent}%, {eta} left";

/// A bar in the style of a template, or `None` where stderr is not a terminal.
pub fn bar(template: &str, steps: Option<u64>) -> Option<ProgressBar> {
    stderr().is_terminal().then(|| {
        let style = ProgressStyle::with_template(template)
            .expect("templates are constants that are well-formed")
            .progress_chars("=> ");
        ProgressBar::with_draw_target(steps, ProgressDrawTarget::stderr_with_hz(5)).with_style(style)
    })
}

/// Prints one line on stderr, above the bar if there is one.
pub fn note(bar: Option<&ProgressBar>, line: &str) {
    match bar {
        Some(bar) => bar.suspend(|| output::note(line)),
        None => output::note(line),
    }
}

/// Shows the progress of a long piece of work.
#[derive(Default)]
pub struct Bars {
    quiet: bool,
    bar: Mutex<Option<ProgressBar>>,
    /// What the seconds belong to.
    running: Mutex<String>,
}

impl Bars {
    /// Shows neither bars nor seconds if `quiet`.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, ..Self::default() }
    }

    fn with(&self, action: impl FnOnce(&mut Option<ProgressBar>)) {
        if let Ok(mut bar) = self.bar.lock() {
            action(&mut bar);
        }
    }
}

impl Observer for Bars {
    fn begin(&self, what: &str, steps: u64) {
        if let Ok(mut running) = self.running.lock() {
            what.clone_into(&mut running);
        }
        if self.quiet {
            return;
        }
        let new = bar(STEADY, Some(steps)).inspect(|new| {
            new.set_message(what.to_owned());
            new.enable_steady_tick(Duration::from_millis(500));
        });
        self.with(|bar| *bar = new);
    }

    fn advance(&self, steps: u64) {
        self.with(|bar| bar.iter().for_each(|bar| bar.inc(steps)));
    }

    fn end(&self) {
        self.with(|bar| bar.take().iter().for_each(ProgressBar::finish_and_clear));
    }

    fn note(&self, line: &str) {
        self.with(|bar| note(bar.as_ref(), line));
    }

    fn second(&self, second: &Second) {
        if self.quiet {
            return;
        }
        if second.second == 1
            && let Ok(running) = self.running.lock()
        {
            self.note(&format!("{running}\n{}", live::head(second)));
        }
        self.note(&live::line(second));
    }
}

/// Shows the progress of a check, with a bar for each step. Calls `begun` with each step as well.
pub fn of_check(
    options: CheckOptions,
    quiet: bool,
    begun: impl Fn() + Send + Sync + 'static,
) -> CheckOptions {
    let is_hidden = quiet || !stderr().is_terminal();
    let shown: Mutex<Option<(CheckStep, ProgressBar)>> = Mutex::default();
    options.progress(move |step, done, total| {
        begun();
        let goes_on = ControlFlow::Continue(());
        if is_hidden {
            return goes_on;
        }
        let Ok(mut shown) = shown.lock() else { return goes_on };
        if shown.as_ref().is_none_or(|(now, _)| *now != step) {
            if let Some((_, bar)) = shown.take() {
                bar.finish_and_clear();
            }
            *shown = bar(STEADY, None).map(|bar| (step, bar.with_message(step_name(step))));
        }
        if let Some((_, bar)) = shown.as_ref() {
            bar.set_length(total);
            bar.set_position(done);
            if done >= total {
                bar.finish_and_clear();
            }
        }
        goes_on
    })
}

/// What shows how many rows of a table have been copied.
pub fn of_copy(quiet: bool) -> impl Fn(&str, u64) -> ControlFlow<()> {
    let bar = if quiet { None } else { bar("{msg}: {pos} rows copied, {elapsed}", None) };
    move |table, rows| {
        if let Some(bar) = &bar {
            bar.set_message(table.to_owned());
            bar.set_position(rows);
        }
        ControlFlow::Continue(())
    }
}

/// What shows how much of a dump has been written or loaded, and ends it when `stop` is raised.
pub fn of_transfer(
    quiet: bool,
    done: &'static str,
    stop: &AtomicBool,
) -> impl Fn(&Progress<'_>) -> ControlFlow<()> {
    let bar = if quiet { None } else { bar("{msg}, {elapsed}", None) };
    move |progress| {
        if let Some(bar) = &bar {
            let Progress { table, rows, bytes } = progress;
            bar.set_message(format!("{table}: {rows} rows, {:.1} MB {done}", *bytes as f64 / 1e6));
        }
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn step_name(step: CheckStep) -> &'static str {
    match step {
        CheckStep::Read => "reading",
        CheckStep::Survey => "formats and checksums",
        CheckStep::Recover => "recovering in memory",
        CheckStep::Contents => "contents",
        CheckStep::Tables => "rows and indexes",
        _ => "checking",
    }
}
