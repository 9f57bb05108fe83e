//! `pantile top`: a database that another process has open, live.

mod render;
mod screen;
mod sparkline;

use std::io::{IsTerminal, stdin, stdout};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use pantile::stats::Page;
use pantile::tools::watch;

use crate::exit::Failure;
use crate::output::{self, Output};
use render::{Sort, View, render};
use screen::Screen;

/// Examples that `--help` shows.
pub const EXAMPLES: &str = "Keys: h sorts holders by what they hold, a by age, n by name; q quits.

Exit status: 0 if there was something to show, 1 if nobody has the database open or its process has died.

Examples:
  pantile top /data/shop
  pantile top /data/shop --once
  pantile top /data/shop --json - | jq '.transactions[].held_bytes'";

/// What of a database is shown.
#[derive(Args, Debug)]
pub struct TopArgs {
    /// Directory of the database. It is not touched, and its process does not notice.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Print one page and end. This is what happens where stdin or stdout is no terminal.
    #[arg(long)]
    once: bool,
    /// Write one page to this file as JSON and end; - for stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Seconds between pages. The database writes one a second.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
    /// What holders of garbage are sorted by.
    #[arg(long, value_enum, default_value = "held")]
    sort: Sort,
}

/// How soon Ctrl-C ends it. A second one would leave the terminal as it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A width for bars that are not for a terminal.
const WIDTH: usize = 120;

/// Runs `pantile top`.
pub fn run(args: &TopArgs, stop: &AtomicBool) -> Result<(), Failure> {
    let page = page(&args.dir)?;
    let view = View { sort: args.sort, width: WIDTH, height: None };
    match &args.json {
        Some(json) => Output::open(Some(json))?.write(&render(&args.dir, &page, &view), &page),
        None if args.once || !stdout().is_terminal() || !stdin().is_terminal() => {
            output::print(&render(&args.dir, &page, &view))
        }
        None => live(args, page, view, stop),
    }
}

/// The page of a process that runs.
fn page(dir: &Path) -> Result<Page, Failure> {
    let page = watch(dir)?;
    if page.is_process_running() {
        return Ok(page);
    }
    let age = humantime::format_duration(Duration::from_secs(page.age().as_secs()));
    Err(Failure::failed(format!(
        "process {}, which had the database in {} open, has ended without closing it, or is not visible from here; \
         its last statistics are {age} old; the next opening recovers the database",
        page.process,
        dir.display(),
    )))
}

fn live(args: &TopArgs, first: Page, mut view: View, stop: &AtomicBool) -> Result<(), Failure> {
    let screen =
        Screen::open().map_err(|error| Failure::failed(format!("cannot use the terminal: {error}")))?;
    let every = Duration::from_secs(args.every);
    let mut shown = first;
    let mut next = Instant::now() + every;
    loop {
        (view.width, view.height) = screen.size();
        screen.show(&render(&args.dir, &shown, &view));
        let key = loop {
            let left = next.saturating_duration_since(Instant::now());
            let key = screen.key(left.min(LOOK_EVERY));
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if key.is_some() || left <= LOOK_EVERY {
                break key;
            }
        };
        match key {
            Some('q') => return Ok(()),
            Some('h') => view.sort = Sort::Held,
            Some('a') => view.sort = Sort::Age,
            Some('n') => view.sort = Sort::Name,
            Some(_) => {}
            None => {
                shown = page(&args.dir)?;
                next = Instant::now() + every;
            }
        }
    }
}
