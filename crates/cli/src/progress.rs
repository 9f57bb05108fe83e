//! Progress on a terminal, silence in a pipe.

use std::io::{IsTerminal, stderr};
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pantile_bench::load::Observer;

/// Shows progress bars where stderr is a terminal.
pub struct Bars {
    visible: bool,
    bar: Mutex<ProgressBar>,
}

impl Default for Bars {
    fn default() -> Self {
        Self { visible: stderr().is_terminal(), bar: Mutex::new(ProgressBar::hidden()) }
    }
}

impl Bars {
    fn with(&self, action: impl FnOnce(&mut ProgressBar)) {
        if let Ok(mut bar) = self.bar.lock() {
            action(&mut bar);
        }
    }
}

impl Observer for Bars {
    fn begin(&self, what: &str, steps: u64) {
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
}
