//! The `pantile` command.

mod args;
mod backup;
mod bench;
mod check;
mod compact;
mod crashtest;
mod dump;
mod exit;
mod figures;
mod help;
mod inspect;
mod leftover;
mod live;
mod load;
mod losses;
mod memory;
mod output;
mod paper;
mod progress;
mod salvage;
mod shell;
mod signals;
mod simulate;
mod space;
mod table;
mod top;
mod values;

use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::FromArgMatches;
use clap::error::ErrorKind;

use args::{Bench, Cli, Verb};
use exit::{Exit, Failure};
use space::Space;

/// Raised by Ctrl-C: runs end cleanly.
static STOP: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let matches = help::command().try_get_matches();
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return end(help_or_misuse(&error)),
    };
    if cfg!(debug_assertions) && matches!(cli.verb, Verb::Bench(_) | Verb::Paper(_)) {
        output::note("warning: this is a debug build; its figures mean nothing (build with --release)");
    }
    let (ends, says) = (ends_at_once(&cli.verb), says_that_it_stops(&cli.verb));
    // At its prompt nothing waits for the flag.
    let is_typed = matches!(&cli.verb, Verb::Shell(args) if args.is_typed());
    let handler = move || {
        if ends {
            output::note(&format!("pantile: {}", leftover::remove()));
        }
        if ends || STOP.swap(true, Ordering::SeqCst) {
            pantile_bench::place::exit(Exit::Killed as i32);
        }
        shell::stop_input();
        if says {
            output::note("stopping; Ctrl-C again ends it at once");
        }
    };
    if let Err(error) = signals::on_stop(is_typed, handler) {
        output::note(&format!("warning: Ctrl-C will not end the run cleanly: {error}"));
    }
    end(run(cli.verb))
}

/// Whether Ctrl-C ends a verb without more: it only reads, or what it writes counts when it is whole.
fn ends_at_once(verb: &Verb) -> bool {
    let measures = matches!(verb, Verb::Bench(Bench::Memory(_)) | Verb::Space(Space::Written(_)));
    measures || matches!(verb, Verb::Check(_) | Verb::Inspect(_) | Verb::Salvage(_) | Verb::Restore(_))
}

/// Whether a verb may take a while to stop, the opening of the database above all, and shows nothing of it.
fn says_that_it_stops(verb: &Verb) -> bool {
    matches!(verb, Verb::Backup(_) | Verb::Compact(_) | Verb::Dump(_) | Verb::Load(_))
}

fn run(verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Check(args) => check::run(&args),
        Verb::Inspect(args) => inspect::run(&args),
        Verb::Salvage(args) => salvage::run(&args),
        Verb::Backup(args) => backup::run(&args, &STOP),
        Verb::Restore(args) => backup::restore(&args),
        Verb::Compact(args) => compact::run(&args, &STOP),
        Verb::Top(args) => top::run(&args, &STOP),
        Verb::Dump(args) => dump::run(&args, &STOP),
        Verb::Load(args) => load::run(&args, &STOP),
        Verb::Shell(args) => shell::run(&args, &STOP),
        Verb::Bench(Bench::Ycsb(args)) => bench::ycsb(&args, &STOP),
        Verb::Bench(Bench::Tpcc(args)) => bench::tpcc(&args, &STOP),
        Verb::Bench(Bench::Ch(args)) => bench::ch(&args, &STOP),
        Verb::Bench(Bench::Memory(args)) => memory::run(&args),
        Verb::MemoryWorker => memory::worker(),
        Verb::Paper(args) => paper::run(&args, &STOP),
        Verb::Space(Space::Price(args)) => space::price(&args, &STOP),
        Verb::Space(Space::Patterns(args)) => space::patterns(&args, &STOP),
        Verb::Space(Space::Written(args)) => space::written(&args),
        Verb::Crashtest(args) => crashtest::run(&args, &STOP),
        Verb::CrashtestWork(args) => crashtest::work(&args),
        Verb::CrashtestVerify(args) => crashtest::verify(&args),
    }
}

/// Prints the help that was asked for; anything else that the parser reports is a wrong command line.
fn help_or_misuse(error: &clap::Error) -> Result<(), Failure> {
    if error.kind() == ErrorKind::MissingSubcommand {
        // `pantile space` names a verb that has verbs of its own.
        let verb = std::env::args().nth(1).filter(|verb| !verb.starts_with('-')).unwrap_or_default();
        let command = ["pantile", &verb, "--help"].into_iter().filter(|word| !word.is_empty());
        let command = command.collect::<Vec<_>>().join(" ");
        Err(Failure::misuse(format!("name what to do: `{command}` lists the verbs")))
    } else if error.use_stderr() {
        Err(Failure::misuse(args::one_line(&error.to_string())))
    } else {
        let text = error.render();
        output::print(&if stdout().is_terminal() { text.ansi().to_string() } else { text.to_string() })
    }
}

fn end(done: Result<(), Failure>) -> ExitCode {
    match done {
        Ok(()) => Exit::Success.into(),
        Err(failure) => {
            output::note(&format!("pantile: {}", failure.line));
            failure.exit.into()
        }
    }
}
