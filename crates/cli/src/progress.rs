//! Progress: a bar on a terminal and none in a pipe, and a line for each second measured in both.

use std::io::{IsTerminal, stderr};
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pantile_bench::load::Observer;
use pantile_bench::record::Second;

use crate::live;

/// Shows on stderr how far things are.
pub struct Bars {
    /// Whether there are bars.
    visible: bool,
    quiet: bool,
    bar: Mutex<ProgressBar>,
    /// What the seconds belong to.
    running: Mutex<String>,
}

impl Bars {
    /// Bars where stderr is a terminal; neither bars nor seconds if `quiet`.
    pub fn new(quiet: bool) -> Self {
        Self {
            visible: !quiet && stderr().is_terminal(),
            quiet,
            bar: Mutex::new(ProgressBar::hidden()),
            running: Mutex::default(),
        }
    }

    fn with(&self, action: impl FnOnce(&mut ProgressBar)) {
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
        if !self.visible {
            return;
        }
        let style = ProgressStyle::with_template("{msg} [{bar:40}] {percent}%, {eta} left")
            .expect("the template is a constant that is well-formed")
            .progress_chars("=> ");
        let target = ProgressDrawTarget::stderr_with_hz(5);
        let new = ProgressBar::with_draw_target(Some(steps), target).with_style(style);
        new.set_message(what.to_owned());
        new.enable_steady_tick(Duration::from_millis(500));
        self.with(|bar| *bar = new);
    }

    fn advance(&self, steps: u64) {
        self.with(|bar| bar.inc(steps));
    }

    fn end(&self) {
        self.with(|bar| bar.finish_and_clear());
    }

    fn note(&self, line: &str) {
        self.with(|bar| bar.suspend(|| eprintln!("{line}")));
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
