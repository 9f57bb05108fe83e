//! `pantile crashtest`, and its two halves for machines whose power is cut:
//! `crashtest-work` and `crashtest-verify`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use pantile::Collector;
use pantile::lab::Protocol;
use pantile_bench::load::Observer;
use pantile_bench::settings::Medium;
use pantile_crash::campaign::{ACKNOWLEDGED, Campaign, DATABASE, ERRORS, FOUND, Limit};
use pantile_crash::history::History;
use pantile_crash::report::{Failure as Found, Report};
use pantile_crash::settings::Settings;
use pantile_crash::verify as compare;
use pantile_crash::work::{Life, Sabotage};

use crate::exit::{Failure, one_line};
use crate::output::{Output, cannot_write, print};
use crate::progress::Bars;
use crate::simulate::{self, SimulateArgs};
use crate::values::{DurabilityArg, no_protocol, number};

pub const EXAMPLES: &str = "Examples:
  pantile crashtest --rounds 50 --seed 7
  pantile crashtest --seconds 600 --durability group --gc tb-collect-eager --json crashes.json
  pantile crashtest --rounds 20 --dir /mnt/pmem/crash --medium dax
  pantile crashtest --simulate --seconds 60 --seed 1

The seed determines the transactions and the plan of kills; what a kill interrupts depends on the machine.";

pub const WORK_EXAMPLE: &str = "Example:
  pantile crashtest-work /mnt/disk/db --seed 7 >acknowledged";

pub const VERIFY_EXAMPLE: &str = "Example:
  pantile crashtest-verify /mnt/disk/db --acks acknowledged";

/// Rounds by default.
const ROUNDS: u64 = 20;
/// Clients by default.
const CLIENTS: u64 = 4;

/// Settings of `crashtest`.
#[derive(Args, Debug)]
pub struct CrashtestArgs {
    /// Whether and how the crashes are simulated.
    #[command(flatten)]
    simulate: SimulateArgs,
    /// How much.
    #[command(flatten)]
    extent: Extent,
    /// What is crashed.
    #[command(flatten)]
    database: DatabaseArgs,
    /// Directory for the databases, which are removed if nothing is lost [default: a temporary directory].
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
    /// Write the record to this file; - for stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// How much is done.
#[derive(Args, Debug)]
struct Extent {
    /// Rounds: in each the process is killed one to four times, and the database verified [default: 20].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "seconds")]
    rounds: Option<u64>,
    /// Seconds after which no new round begins.
    #[arg(long, value_parser = |text: &str| number(text, f64::MIN_POSITIVE))]
    seconds: Option<f64>,
}

impl Extent {
    fn limit(&self) -> Limit {
        match self.seconds {
            Some(seconds) => Limit::Time(Duration::from_secs_f64(seconds)),
            None => Limit::Rounds(self.rounds.unwrap_or(ROUNDS)),
        }
    }
}

/// What is crashed.
#[derive(Args, Debug)]
struct DatabaseArgs {
    /// Seed of the transactions, of the moments of kills, and of the options of each opening.
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,
    /// Clients, each on a thread of its own [default: 4]; simulated, cases at a time [default: cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
    /// Where the data is kept: file, nvm:optane (or nvm), nvm:optane-40, nvm:A to nvm:E, nvm:A-40 to nvm:E-40, or dax
    /// [default: file]; simulated, file or dax [default: both].
    #[arg(long, value_name = "MEDIUM", value_parser = medium)]
    medium: Option<Medium>,
    /// When a commit is acknowledged [default: sync]; not simulated.
    #[arg(long, value_enum)]
    durability: Option<DurabilityArg>,
    /// Collector of old versions, as in `pantile bench --gc` [default: tb-collect;
    /// simulated, all].
    #[arg(long, value_name = "NAME", value_parser = collector)]
    gc: Option<Collector>,
    /// Concurrency control of the laboratory that keeps transactions apart, as in `pantile bench --protocol`
    /// [default: the engine's own]; not simulated.
    #[arg(long, value_name = "NAME", value_parser = protocol)]
    protocol: Option<Protocol>,
    /// Inject a fault, which the test must find.
    #[arg(long, value_name = "FAULT", hide = true, value_parser = sabotage)]
    sabotage: Option<Sabotage>,
}

/// Settings of `crashtest-work`.
#[derive(Args, Debug)]
pub struct WorkArgs {
    /// The database's directory.
    dir: PathBuf,
    /// What is crashed.
    #[command(flatten)]
    database: DatabaseArgs,
    /// The number of this run of the database; each run opens it with other options.
    #[arg(long, value_name = "N", default_value_t = 1)]
    life: u64,
    /// Seconds after which the process closes the database and ends [default: never].
    #[arg(long, value_name = "SECONDS", value_parser = |text: &str| number(text, 0.0))]
    close_after: Option<f64>,
    /// Report to this file instead of stdout, for example to a serial line.
    #[arg(long, value_name = "FILE")]
    acks: Option<PathBuf>,
}

/// Settings of `crashtest-verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The database's directory.
    dir: PathBuf,
    /// The reports of all runs, in order.
    #[arg(long, value_name = "FILE", required = true)]
    acks: Vec<PathBuf>,
    /// Where the data is kept.
    #[arg(long, value_name = "MEDIUM", default_value = "file", value_parser = medium)]
    medium: Medium,
}

fn medium(name: &str) -> Result<Medium, String> {
    match Medium::by_name(name)? {
        volatile if volatile.is_volatile() => Err("memory does not outlive the process".into()),
        medium => Ok(medium),
    }
}

fn collector(name: &str) -> Result<Collector, String> {
    pantile_rivals::by_name(name).ok_or_else(|| {
        let known: Vec<_> = pantile_rivals::all().iter().map(|collector| collector.name()).collect();
        format!("there is no collector of this name; there are {}", known.join(", "))
    })
}

fn protocol(name: &str) -> Result<Protocol, String> {
    pantile_protocols::by_name(name).ok_or_else(|| no_protocol(&[]))
}

fn sabotage(name: &str) -> Result<Sabotage, String> {
    Sabotage::by_name(name).ok_or_else(|| "there is no such fault".into())
}

impl DatabaseArgs {
    fn settings(&self) -> Settings {
        Settings {
            seed: self.seed,
            clients: self.threads.map_or(CLIENTS, u64::from),
            medium: self.medium.unwrap_or(Medium::File),
            durability: self.durability.unwrap_or(DurabilityArg::Sync).into(),
            gc: self.gc.unwrap_or_default(),
            protocol: self.protocol,
        }
    }

    /// The arguments that say the same.
    fn of(settings: &Settings, sabotage: Option<Sabotage>) -> Vec<OsString> {
        let mut words = vec![
            ("--seed", settings.seed.to_string()),
            ("--threads", settings.clients.to_string()),
            ("--medium", settings.medium.to_string()),
            ("--durability", settings.durability_name().into()),
            ("--gc", settings.gc.name().into()),
        ];
        words.extend(settings.protocol.map(|protocol| ("--protocol", protocol.name().into())));
        words.extend(sabotage.map(|fault| ("--sabotage", fault.name().into())));
        words.into_iter().flat_map(|(name, value)| [name.into(), value.into()]).collect()
    }
}

/// Runs `pantile crashtest`.
pub fn run(args: &CrashtestArgs, stop: &AtomicBool) -> Result<(), Failure> {
    if args.simulate.simulate {
        let not_simulated = [
            (args.database.protocol.is_some(), "--protocol: it simulates the engine's own"),
            (args.database.durability.is_some(), "--durability, which is for processes that are killed"),
            (args.database.sabotage.is_some(), "--sabotage: its faults are those of --controls"),
            (args.dir.is_some(), "--dir: its media are in memory"),
        ];
        if let Some((_, why)) = not_simulated.iter().find(|(is_given, _)| *is_given) {
            return Err(Failure::misuse(format!("--simulate has no {why}")));
        }
        let DatabaseArgs { seed, medium, gc, threads, .. } = args.database;
        let Extent { rounds, seconds } = args.extent;
        let json = args.json.clone();
        let settings = simulate::Settings { seed, medium, gc, threads, rounds, seconds, json };
        return simulate::run(&args.simulate, &settings, stop);
    }
    let (settings, limit) = (args.database.settings(), args.extent.limit());
    let mut output = Output::open(args.json.as_deref())?;
    let place = DatabasesDir::new(args.dir.as_deref())?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("cannot find this program to start it again: {error}")))?;
    let campaign = Campaign {
        settings,
        limit,
        sabotage: args.database.sabotage,
        dir: place.path.clone(),
        command: &|life, dir| command(&program, life, dir),
        stop,
    };
    let report = follow(&campaign)?;
    let mut text = String::new();
    if let Some(found) = &report.failure {
        place.keep();
        text = tell(found, &campaign);
    }
    output.write(&format!("{text}{}\n", report.line()), &report.record(&settings))?;
    match &report.failure {
        None => Ok(()),
        Some(found) => Err(Failure::failed(format!(
            "round {} with seed {}: {}; the database stays in {}",
            found.round,
            settings.seed,
            found.problems[0],
            found.kept.display()
        ))),
    }
}

/// Runs a campaign and shows its progress.
fn follow(campaign: &Campaign<'_>) -> Result<Report, Failure> {
    let bars = Bars::new(false);
    let steps = match campaign.limit {
        Limit::Rounds(rounds) => rounds,
        Limit::Time(time) => time.as_secs().max(1),
    };
    bars.begin("killing and verifying", steps);
    let mut shown = 0;
    let report = campaign.run(&mut |report| {
        let now = match campaign.limit {
            Limit::Rounds(_) => report.rounds,
            Limit::Time(_) => report.seconds as u64,
        };
        bars.advance(now.min(steps) - shown);
        shown = now.min(steps);
    });
    bars.end();
    Ok(report?)
}

/// What was found, and how to reproduce it.
fn tell(found: &Found, campaign: &Campaign<'_>) -> String {
    let mut text = format!("round {} with seed {}:\n", found.round, campaign.settings.seed);
    for problem in &found.problems {
        text += &format!("  {}\n", one_line(problem));
    }
    let kept = found.kept.display();
    text += &format!(
        "kept in {kept}: {FOUND} (the database as the kill left it), {DATABASE} (opened since), {ACKNOWLEDGED}, {ERRORS}\n"
    );
    let words = DatabaseArgs::of(&campaign.settings, campaign.sabotage);
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    text + &format!("again: pantile crashtest --rounds {} {}\n", found.round, words.join(" "))
}

/// The process that works on the database until it is killed.
fn command(program: &Path, life: &Life, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("crashtest-work").arg(dir).args(DatabaseArgs::of(&life.settings, life.sabotage));
    command.args(["--life", &life.number.to_string()]);
    if let Some(after) = life.close_after {
        command.args(["--close-after", &after.as_secs_f64().to_string()]);
    }
    // Ctrl-C is meant for the process that kills.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

/// Where the databases are.
struct DatabasesDir {
    path: PathBuf,
    temporary: Option<tempfile::TempDir>,
}

impl DatabasesDir {
    fn new(chosen: Option<&Path>) -> Result<Self, Failure> {
        let cannot = |error| Failure::failed(format!("cannot make a directory for the databases: {error}"));
        match chosen {
            Some(path) => {
                fs::create_dir_all(path).map_err(cannot)?;
                Ok(Self { path: path.to_owned(), temporary: None })
            }
            None => {
                let temporary =
                    tempfile::Builder::new().prefix("pantile-crash-").tempdir().map_err(cannot)?;
                Ok(Self { path: temporary.path().to_owned(), temporary: Some(temporary) })
            }
        }
    }

    /// Keeps the directory.
    fn keep(self) {
        if let Some(temporary) = self.temporary {
            let _ = temporary.keep();
        }
    }
}

/// Where a process reports what was acknowledged. On a serial line a report
/// counts once it has been sent: what is still buffered is lost with the machine.
struct Told(File);

impl Write for Told {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.0.is_terminal() {
            rustix::termios::tcdrain(&self.0)?;
        }
        self.0.flush()
    }
}

/// Runs `pantile crashtest-work`.
pub fn work(args: &WorkArgs) -> Result<(), Failure> {
    let life = Life {
        settings: args.database.settings(),
        number: args.life,
        close_after: args.close_after.map(Duration::from_secs_f64),
        sabotage: args.database.sabotage,
    };
    let done = match &args.acks {
        Some(path) => {
            let file = File::options().append(true).create(true).open(path);
            let told = Told(file.map_err(|error| cannot_write(path, &error))?);
            pantile_crash::work::work(&life, &args.dir, told)
        }
        None => pantile_crash::work::work(&life, &args.dir, stdout()),
    };
    Ok(done?)
}

/// Runs `pantile crashtest-verify`.
pub fn verify(args: &VerifyArgs) -> Result<(), Failure> {
    let mut history = History::default();
    for path in &args.acks {
        let log = fs::read(path)
            .map_err(|error| Failure::failed(format!("cannot read {}: {error}", path.display())))?;
        // Only the last line can end in the middle of a character, and it does not count.
        history.read(&String::from_utf8_lossy(&log))?;
    }
    let Some(workload) = history.workload else {
        return Err(Failure::misuse("no life has begun in what was acknowledged"));
    };
    let settings = Settings {
        seed: workload.seed,
        clients: workload.clients,
        medium: args.medium,
        durability: pantile::Durability::Sync,
        gc: Collector::default(),
        protocol: None,
    };
    let db = settings.open(&args.dir)?;
    let problems = compare::verify(&db, &mut history)?;
    db.close()?;
    for problem in &problems {
        print(&format!("{}\n", one_line(problem)))?;
    }
    match problems.len() {
        0 => {
            let n = history.acknowledged;
            print(&format!("{n} transactions acknowledged, 0 losses\n"))
        }
        n => Err(Failure::failed(format!("{n} losses: {}", problems[0]))),
    }
}
