//! `pantile space written`: what loads and commits write.

use clap::Args;
use pantile::Durability;
use pantile_bench::space::patterns::Settings;
use pantile_bench::space::written::{Bar, Cost, measure};
use serde_json::json;

use super::patterns::OnFiles;
use crate::exit::Failure;
use crate::figures::whole;
use crate::output::Output;
use crate::table::Table;

/// Examples that `--help` shows.
pub const EXAMPLES: &str = "Columns: medium, bytes that the engine wrote per byte of row; process, bytes given to system calls that write,
zeros ahead of use included; writes and syncs, system calls per commit, from /proc/self/io and the medium's
counter. Each includes what the database wrote beside the commits. Without syncs, small writes are stores on ext4 and
tmpfs, which are no system calls.

Example:
  pantile space written --dir /data";

/// Settings of `space written`.
#[derive(Args, Debug)]
pub struct WrittenArgs {
    /// What all measurements of files share.
    #[command(flatten)]
    on: OnFiles,
}

/// Runs `pantile space written`.
pub fn written(args: &WrittenArgs) -> Result<(), Failure> {
    let mut output = Output::open(args.on.json.as_deref())?;
    let settings = Settings {
        durability: Durability::None,
        scale: args.on.scale,
        reader_seconds: 0.0,
        seed: args.on.seed,
    };
    let costs = measure(&settings, args.on.dir.as_deref())?;
    output.write(&table(&costs), &json!({ "settings": settings, "written": costs }))?;
    match costs.iter().find(|cost| !cost.is_within()) {
        None => Ok(()),
        Some(cost) => Err(Failure::failed(format!("more was written than its bar: {}", cost.what))),
    }
}

fn table(costs: &[Cost]) -> String {
    let head = ["what", "commits", "medium", "process", "writes", "syncs", "bar", ""];
    let mut table = Table::new(1, &head);
    for cost in costs {
        let figures =
            [cost.medium, cost.process, cost.calls, cost.syncs].map(|figure| format!("{figure:.2}"));
        let (bar, kept) = match cost.bar {
            None => (String::new(), ""),
            Some(Bar::Bytes(most)) => (format!("{most} bytes"), verdict(cost)),
            Some(Bar::Calls(most)) => (format!("{most} call"), verdict(cost)),
        };
        let first = [cost.what.clone(), whole(Some(cost.commits as f64))];
        table.push(first.into_iter().chain(figures).chain([bar, kept.into()]).collect());
    }
    table.render()
}

fn verdict(cost: &Cost) -> &'static str {
    if cost.is_within() { "kept" } else { "MISSED" }
}
