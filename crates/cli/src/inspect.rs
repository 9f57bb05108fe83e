//! `pantile inspect`: what a database's files hold, damaged or not.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use pantile::tools::{BlockState, CheckOptions, InspectedBlock, InspectedChunk, Inspection};

use crate::exit::Failure;
use crate::output::{Output, printable};
use crate::progress;
use crate::table::Table;

/// Examples that `--help` shows.
pub const EXAMPLES: &str = "The map has a line for each chunk of 2 MiB and a character for each block:
  .  free      0-9  that many tenths of its slots are filled      #  full
  F  frozen: a collector is emptying it                           !  damaged

Exit status: 0 if it could be shown, also if something is damaged: `pantile check` judges.

Examples:
  pantile inspect /data/shop
  pantile inspect /data/shop --json - | jq '.tables[] | {name, blocks, contents}'";

/// Findings shown here; `check` lists them all.
const SHOWN: usize = 20;

/// Settings of an inspection.
#[derive(Args, Debug)]
pub struct InspectArgs {
    /// Directory of the database. Nothing in it is written to.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Write everything to this file; - for stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print no map of the blocks.
    #[arg(long)]
    no_map: bool,
    /// Show no progress bar.
    #[arg(long)]
    quiet: bool,
}

/// Runs `pantile inspect`.
pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    let mut output = Output::open(args.json.as_deref())?;
    let seen = pantile::inspect(&args.dir, &progress::of_check(CheckOptions::new(), args.quiet, || ()))?;
    let mut text = superblock(&seen);
    if !seen.records.is_empty() {
        text += "\nState records\n";
        text += &records(&seen);
        text += &image(&seen);
    }
    if seen.format_version.is_some() && !seen.chunks.is_empty() {
        text += "\nTables\n";
        text += &tables(&seen);
        text += "\nQueues, as far as the medium knows them\n";
        text += &queues(&seen);
    }
    if !args.no_map && !seen.chunks.is_empty() {
        text += "\nBlocks\n";
        text += &map(&seen.chunks);
    }
    text += &findings(&seen);
    output.write(&text, &seen)
}

fn superblock(seen: &Inspection) -> String {
    let mut text = format!("{} bytes", seen.file_bytes);
    match (seen.format_version, &seen.identity) {
        (Some(version), Some(identity)) => {
            text += &format!(", format version {version}, identity {identity}")
        }
        (Some(version), None) => text += &format!(", format version {version}, which this build cannot read"),
        (None, _) if seen.is_blank => text += ", nothing stored yet",
        (None, _) => text += ", no database to be recognised",
    }
    if let Some(problem) = &seen.superblock_problem {
        text += &format!("\nthe superblock cannot be relied on: {problem}");
    }
    text + "\n"
}

fn records(seen: &Inspection) -> String {
    let head = ["offset", "state", "sequence", "watermark", "undecided", "chunks", "partly filled"];
    let mut table = Table::new(0, &head);
    for record in &seen.records {
        let state = match (record.is_valid, record.is_used) {
            (false, _) => "unreadable",
            (true, false) => "older or copy",
            (true, true) if record.closed => "used, closed",
            (true, true) => "used, not closed",
        };
        let mut line = vec![record.offset.to_string(), state.to_owned()];
        if record.is_valid {
            let undecided = record.undecided.len() as u64;
            let numbers =
                [record.sequence, record.durable_watermark, undecided, record.chunks, record.partly_filled];
            line.extend(numbers.map(|number| number.to_string()));
        } else {
            line.resize(head.len(), String::new());
        }
        table.push(line);
    }
    table.render()
}

fn image(seen: &Inspection) -> String {
    match &seen.image {
        None => "no index image\n".into(),
        Some(image) => {
            let state =
                image.problem.as_deref().map_or("opening uses it".into(), |why| format!("not used: {why}"));
            format!("index image of {} bytes, {state}\n", image.bytes)
        }
    }
}

fn tables(seen: &Inspection) -> String {
    let head = [
        "name",
        "id",
        "blocks",
        "open",
        "frozen",
        "bytes",
        "slots filled",
        "contents",
        "deleted",
        "copies",
        "void",
        "undecided",
        "damaged",
    ];
    let mut table = Table::new(1, &head);
    for one in &seen.tables {
        let name = one.name.as_deref().unwrap_or("(dropped, or its definition is not there)");
        let filled = (one.contents + one.void + one.damaged) as f64 / one.slots.max(1) as f64;
        let filled = format!("{:.1} %", 100.0 * filled);
        let numbers = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>();
        let mut line = vec![printable(name)];
        line.extend(numbers(&[one.id.into(), one.blocks, one.open, one.frozen, one.bytes]));
        line.push(filled);
        line.extend(numbers(&[
            one.contents,
            one.tombstones,
            one.copies,
            one.void,
            one.undecided,
            one.damaged,
        ]));
        table.push(line);
    }
    let mut text = table.render();
    for one in seen.tables.iter().filter(|one| one.id >= 16) {
        let Some(name) = &one.name else { continue };
        text += &printable(&format!("{name}: {}", one.columns.join(", ")));
        text += "\n  indexes: ";
        text += &printable(&one.indexes.join("; "));
        text += "\n";
    }
    text
}

/// What opening rebuilds the streams and queues from.
fn queues(seen: &Inspection) -> String {
    let count = |state: BlockState| {
        seen.chunks.iter().flat_map(|c| &c.blocks).filter(|block| block.state == state).count()
    };
    let used = seen.records.iter().find(|record| record.is_used);
    let listed = used.map_or(0, |record| record.partly_filled);
    let undecided = used.map_or(0, |record| record.undecided.len());
    let above: u64 = seen.tables.iter().map(|table| table.undecided).sum();
    format!(
        "open blocks, for streams to go on with: {} ({listed} in the state record)\n\
         frozen blocks, for the collector to go on with: {}\n\
         contents above the durable watermark or undecided, for opening to decide: {above} ({undecided} transactions listed)\n",
        count(BlockState::Open),
        count(BlockState::Frozen)
    )
}

/// A line for each chunk; repeated lines are counted instead.
fn map(chunks: &[InspectedChunk]) -> String {
    let mut text = String::new();
    let mut last: Option<(String, u32)> = None;
    for chunk in chunks {
        let line = line(chunk);
        match &mut last {
            Some((same, more)) if *same == line => *more += 1,
            _ => {
                end_of_run(&mut text, last.take());
                // Writing to a string does not fail.
                let _ = writeln!(text, "{:>6}  {line}", chunk.number);
                last = Some((line, 0));
            }
        }
    }
    end_of_run(&mut text, last);
    text
}

fn end_of_run(text: &mut String, run: Option<(String, u32)>) {
    if let Some((_, more)) = run.filter(|(_, more)| *more > 0) {
        let _ = writeln!(text, "        and {more} more like it");
    }
}

fn line(chunk: &InspectedChunk) -> String {
    if let Some(problem) = &chunk.problem {
        return format!("! {problem}");
    }
    if chunk.blocks.is_empty() {
        return "not divided".into();
    }
    let used = |b: &&InspectedBlock| b.slots > 0 && b.state != BlockState::Free;
    let tables: BTreeSet<u32> = chunk.blocks.iter().filter(used).map(|b| b.table).collect();
    let tables: Vec<_> = tables.into_iter().map(|table| table.to_string()).collect();
    let blocks: String = chunk.blocks.iter().map(character).collect();
    let of = if tables.is_empty() { "empty".into() } else { format!("of {}", tables.join(", ")) };
    format!("{blocks}  blocks of {} bytes, {of}", chunk.block_bytes)
}

fn character(block: &InspectedBlock) -> char {
    match block.state {
        BlockState::Free => '.',
        BlockState::Sealed => '#',
        BlockState::Frozen => 'F',
        BlockState::Record => 'R',
        BlockState::Damaged => '!',
        BlockState::Open => {
            let tenths = u64::from(block.fill) * 10 / u64::from(block.slots.max(1));
            char::from_digit(tenths.min(9) as u32, 10).unwrap_or('9')
        }
        _ => '?',
    }
}

fn findings(seen: &Inspection) -> String {
    if seen.findings.is_empty() {
        return String::new();
    }
    let mut text = "\nFindings (pantile check lists all of them, and looks at rows and indexes)\n".to_owned();
    for finding in seen.findings.iter().take(SHOWN) {
        text += &format!("{finding}\n");
    }
    let more = seen.findings.len().saturating_sub(SHOWN);
    if more > 0 {
        text += &format!("and {more} more\n");
    }
    text
}
