//! A page as text.

use std::cmp::Reverse;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use pantile::stats::{Page, PageReader, PageTransaction, Sample};

use crate::figures::whole;
use crate::output::printable;
use crate::table::Table;
use crate::top::sparkline::sparkline;

/// What holders of garbage are sorted by.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    /// The bytes that they hold back.
    Held,
    /// Their age.
    Age,
    /// Their name.
    Name,
}

/// How a page is shown.
pub struct View {
    pub sort: Sort,
    /// Columns of the terminal, or of the bars where there is none.
    pub width: usize,
    /// Lines of the terminal. Without one, lines are as long as they are.
    pub height: Option<usize>,
}

/// A page of a process that works is at most this old.
const STALE: Duration = Duration::from_secs(10);
/// Columns before a line of bars.
const LABEL: usize = 24;
/// Columns of a place in a source file, whose end says most.
const PLACE: usize = 36;

/// The whole page.
pub fn render(dir: &Path, page: &Page, view: &View) -> String {
    let held = holders(page, view) + &readers(page);
    let parts = [head(dir, page), gauges(page), bars(page, view), held, tables(page)];
    let text = parts.join("\n");
    let Some(height) = view.height else { return text };
    let cut = |line: &str| line.chars().take(view.width).collect::<String>();
    text.lines().take(height).map(cut).collect::<Vec<_>>().join("\n") + "\n"
}

fn head(dir: &Path, page: &Page) -> String {
    let open_for = page.written_millis.saturating_sub(page.opened_millis);
    let age = page.age();
    let state = match page.is_quiet {
        true => "at rest".to_owned(),
        false if age > STALE => format!("STALE: its process writes no pages, the last is {} old", time(age)),
        false => format!("page {} old", time(age)),
    };
    let open_for = time(Duration::from_millis(open_for));
    format!("{}: {} in process {}, open for {open_for}, {state}\n", dir.display(), page.medium, page.process)
}

/// Counters of the last second, per second.
fn rate(page: &Page, of: impl Fn(&Sample) -> u64) -> f64 {
    match &page.history.seconds[..] {
        [.., earlier, last] if !page.is_quiet => per_second(earlier, last, of),
        _ => 0.0,
    }
}

fn per_second(earlier: &Sample, last: &Sample, of: impl Fn(&Sample) -> u64) -> f64 {
    let millis = last.at_millis.saturating_sub(earlier.at_millis).max(1);
    of(last).saturating_sub(of(earlier)) as f64 * 1e3 / millis as f64
}

fn gauges(page: &Page) -> String {
    let f = &page.figures;
    let rate = |of: fn(&Sample) -> u64| whole(Some(rate(page, of)));
    let [commits, aborts, syncs] = [rate(|s| s.commits), rate(|s| s.aborts), rate(|s| s.syncs)];
    let copied = bytes(self::rate(page, |s| s.copied_bytes) as u64);
    let written = bytes(self::rate(page, |s| s.payload_bytes) as u64);
    let [p50, p99, most] = [f.commit_p50_nanos, f.commit_p99_nanos, f.commit_max_nanos].map(nanos);
    let full_in = page
        .full_in_seconds
        .map_or("not growing".into(), |s| format!("full in {}", time(Duration::from_secs(s))));
    let oldest = match f.running {
        0 => String::new(),
        _ => format!(", oldest {}", time(since_it_began(page, f.oldest_micros))),
    };
    let [medium, live, obsolete, pinned, free, room] =
        [f.medium_bytes, f.live_bytes, f.obsolete_bytes, f.pinned_bytes, f.free_bytes, f.room_bytes]
            .map(bytes);
    let lines = [
        format!("transactions  {commits} commits/s, {aborts} aborts/s, {} running{oldest}", f.running),
        format!("commits       p50 {p50}, p99 {p99}, longest {most}, {syncs} syncs/s, {written}/s written"),
        format!(
            "space         {medium} taken: {live} live, {obsolete} obsolete ({pinned} pinned), {free} free"
        ),
        format!("room          {room} of {}, {full_in}", bytes(page.limit_bytes)),
        format!(
            "blocks        {} open, {} sealed, {} frozen, {} free",
            f.open_blocks, f.sealed_blocks, f.frozen_blocks, f.free_blocks
        ),
        format!(
            "collector     {copied}/s copied; {} blocks and {} versions freed so far",
            whole(Some(f.blocks_reclaimed as f64)),
            whole(Some(f.versions_reclaimed as f64))
        ),
        format!("memory        {}, {} in indexes", bytes(f.dram_bytes), bytes(f.index_bytes)),
    ];
    let trouble = [
        (f.pin_warnings, "holders were warned of"),
        (f.pin_ends, "holders were ended"),
        (f.ended_not_dropped, "ended transactions are not dropped yet"),
        (f.damaged_contents, "contents are DAMAGED"),
        (f.upkeep_has_ended, "PANIC has ended the upkeep: open the database again"),
    ];
    let trouble: Vec<_> =
        trouble.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let mut text = lines.join("\n") + "\n";
    if !trouble.is_empty() {
        text += &format!("attention     {}\n", trouble.join(", "));
    }
    text
}

fn bars(page: &Page, view: &View) -> String {
    let seconds = &page.history.seconds;
    let width = view.width.saturating_sub(LABEL + 1);
    let commits: Vec<f64> =
        seconds.windows(2).map(|two| per_second(&two[0], &two[1], |s| s.commits)).collect();
    let of = |value: fn(&Sample) -> u64| seconds.iter().map(|s| value(s) as f64).collect::<Vec<_>>();
    let line = |name: &str, figures: &[f64], most: String| {
        let label = format!("{name} {most}");
        format!("{label:<LABEL$} {}\n", sparkline(figures, width))
    };
    let most = |figures: &[f64]| figures.iter().rev().take(width).copied().fold(0.0, f64::max);
    let (p99, medium, pinned) = (of(|s| s.commit_p99_nanos), of(|s| s.medium_bytes), of(|s| s.pinned_bytes));
    let lines = [
        line("commits/s", &commits, whole(Some(most(&commits)))),
        line("p99", &p99, nanos(most(&p99) as u64)),
        line("taken", &medium, bytes(most(&medium) as u64)),
        line("pinned", &pinned, bytes(most(&pinned) as u64)),
    ];
    lines.concat()
}

fn holders(page: &Page, view: &View) -> String {
    if page.transactions.is_empty() {
        return "no transaction is open\n".into();
    }
    let mut sorted: Vec<_> = page.transactions.iter().collect();
    match view.sort {
        Sort::Held => sorted.sort_by_key(|t| Reverse(t.held_bytes + t.held_dram_bytes)),
        Sort::Age => sorted.sort_by_key(|t| Reverse(t.age_micros)),
        Sort::Name => sorted.sort_by(|a, b| a.name.cmp(&b.name)),
    }
    let mut table =
        Table::new(3, &["holder", "kind", "place", "age", "holds", "blocks", "frees", "memory", "tables"]);
    for t in sorted {
        table.push(holder(page, t));
    }
    let more = if page.more_transactions > 0 {
        format!("and {} more\n", page.more_transactions)
    } else {
        String::new()
    };
    table.render() + &more
}

/// How old what the page lists is by now. A page of a process that works is of its moment, and what it lists may have
/// ended since. At rest, and while no pages are written, everything stays and grows older.
fn since_it_began(page: &Page, micros: u64) -> Duration {
    let since = page.age();
    let stays = page.is_quiet || since > STALE;
    Duration::from_micros(micros) + if stays { since } else { Duration::ZERO }
}

/// The last parts of a path that fit.
fn end_of(path: &str) -> String {
    if path.chars().count() <= PLACE {
        return path.to_owned();
    }
    let starts = path.char_indices().filter(|(_, c)| matches!(c, '/' | '\\')).map(|(at, _)| at);
    let mut ends = starts.map(|at| &path[at..]);
    let end = ends.find(|end| end.chars().count() < PLACE).map(str::to_owned);
    // One name that is longer: its end.
    let cut = || path.chars().skip(path.chars().count() + 1 - PLACE).collect();
    format!("…{}", end.unwrap_or_else(cut))
}

/// Other processes that read. None of the transactions is theirs.
fn readers(page: &Page) -> String {
    let line = |reader: &PageReader| {
        let who = match reader.process {
            0 => "a process from before the opening".into(),
            process => format!("process {process}"),
        };
        let age = match reader.age_micros {
            0 => String::new(),
            age => format!(" for {}", time(since_it_began(page, age))),
        };
        format!("{who} reads{age} and holds {}\n", bytes(reader.held_bytes))
    };
    page.readers.iter().map(line).collect()
}

fn holder(page: &Page, t: &PageTransaction) -> Vec<String> {
    let who = match (t.id, t.name.as_str()) {
        (0, work) => work.to_owned(),
        (id, "") => id.to_string(),
        (id, name) => format!("{id} {name}"),
    };
    let kind = [
        t.isolation.as_str(),
        if t.read_only { "reads" } else { "" },
        if t.ended.is_empty() { "" } else { "ENDED" },
    ];
    let kind = kind.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let tables: Vec<_> =
        t.tables.iter().take(3).map(|held| format!("{} {}", held.table, bytes(held.bytes))).collect();
    vec![
        printable(&who),
        kind,
        printable(&end_of(&t.place)),
        time(since_it_began(page, t.age_micros)),
        bytes(t.held_bytes),
        whole(Some(t.held_blocks as f64)),
        bytes(t.freed_bytes),
        bytes(t.held_dram_bytes + t.buffer_bytes),
        printable(&tables.join(", ")),
    ]
}

fn tables(page: &Page) -> String {
    let mut table = Table::new(1, &["table", "taken", "blocks", "obsolete"]);
    for space in &page.tables {
        let obsolete = bytes(space.obsolete_bytes);
        table.push(vec![
            printable(&space.table),
            bytes(space.bytes),
            whole(Some(space.blocks as f64)),
            obsolete,
        ]);
    }
    table.render()
}

/// In units of a thousand.
fn bytes(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let unit =
        (0..units.len() - 1).find(|&unit| bytes < 1000u64.pow(unit as u32 + 1)).unwrap_or(units.len() - 1);
    let value = bytes as f64 / 1000f64.powi(unit as i32);
    let digits = usize::from(unit > 0 && value < 100.0);
    format!("{value:.digits$} {}", units[unit])
}

fn nanos(nanos: u64) -> String {
    if nanos == 0 { "-".into() } else { time(Duration::from_nanos(nanos)) }
}

/// With two digits or three of the greatest unit.
fn time(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{time:.1?}"),
        seconds @ 1..60 => format!("{:.1}s", seconds as f64 + f64::from(time.subsec_millis()) / 1e3),
        seconds => humantime::format_duration(Duration::from_secs(seconds)).to_string(),
    }
}

#[cfg(test)]
#[path = "render_test.rs"]
mod tests;
