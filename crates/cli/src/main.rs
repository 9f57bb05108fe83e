//! The `pantile` command.

mod args;
mod bench;
mod check;
mod crashtest;
mod figures;
mod inspect;
mod live;
mod output;
mod paper;
mod progress;
mod simulate;
mod table;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;

use args::{Bench, Cli, Verb};

/// Raised by Ctrl-C: runs end cleanly.
static STOP: AtomicBool = AtomicBool::new(false);

/// Exit status of a failure.
const FAILED: u8 = 1;
/// Exit status of a wrong argument.
const MISUSED: u8 = 2;
/// Exit status when Ctrl-C is pressed twice.
const KILLED: i32 = 130;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misuse(&error),
    };
    if cfg!(debug_assertions) && matches!(cli.verb, Verb::Bench(_) | Verb::Paper(_)) {
        eprintln!("warning: this is a debug build; its figures mean nothing (build with --release)");
    }
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(KILLED);
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        eprintln!("warning: Ctrl-C will not end the run cleanly: {error}");
    }
    let done = match cli.verb {
        Verb::Bench(Bench::Ycsb(args)) => bench::ycsb(&args, &STOP),
        Verb::Bench(Bench::Tpcc(args)) => bench::tpcc(&args, &STOP),
        Verb::Bench(Bench::Ch(args)) => bench::ch(&args, &STOP),
        Verb::Paper(args) => paper::run(&args, &STOP),
        Verb::Crashtest(args) => crashtest::run(&args, &STOP),
        Verb::CrashtestWork(args) => crashtest::work(&args),
        Verb::CrashtestVerify(args) => crashtest::verify(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Inspect(args) => inspect::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(bench::Failure::Misuse(line)) => {
            eprintln!("pantile: {line}");
            ExitCode::from(MISUSED)
        }
        Err(bench::Failure::Failed(line)) => {
            eprintln!("pantile: {line}");
            ExitCode::from(FAILED)
        }
    }
}

/// Shows help where it was asked for, and one line where an argument is wrong.
fn misuse(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Nobody is left to tell if this fails.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("pantile: {}", args::one_line(&error.to_string()));
            ExitCode::from(MISUSED)
        }
    }
}
