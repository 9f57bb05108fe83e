//! The program that runs models.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use crate::explorer::Explorer;

const SEED: &str = "PANTILE_SEED";
const ROUNDS: &str = "PANTILE_ROUNDS";
const SECONDS: &str = "PANTILE_SECONDS";

/// More accesses than any execution takes whose threads make progress.
const MOST_STEPS: usize = 2_000_000;
const STACK_BYTES: usize = 1 << 19;

/// A protocol, in miniature.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The name by which it is selected.
    pub name: &'static str,
    /// The usual number of executions, each in another order.
    pub rounds: u64,
    /// An execution has about 2^`scale` scheduling choices.
    pub scale: u32,
    /// One execution. It panics if an invariant does not hold.
    pub run: fn(),
}

/// Runs the models whose names contain one of the program's arguments, or all
/// if there are no arguments. Each runs from seed 0 on, for its usual number of
/// rounds times `PANTILE_ROUNDS`, or for its share of `PANTILE_SECONDS`. With
/// `PANTILE_SEED` it runs once.
pub fn main(models: &[Model]) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_chosen = |model: &&Model| words.is_empty() || words.iter().any(|word| model.name.contains(word));
    let chosen: Vec<&Model> = models.iter().filter(is_chosen).collect();
    if std::env::args().any(|word| word == "--list") {
        chosen.iter().for_each(|model| println!("{}: test", model.name));
        return ExitCode::SUCCESS;
    }
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(chosen.len());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(model) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !explore(model, chosen.len().div_ceil(cores)) {
                        failed.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    if chosen.is_empty() || failed.into_inner() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|n| n.parse().expect("the environment variable is a number"))
}

/// Runs one of `share` models that share the time.
fn explore(model: &Model, share: usize) -> bool {
    let began = Instant::now();
    let limit = number(SECONDS).map(|s| Duration::from_secs(s) / share as u32);
    let seeds = match number(SEED) {
        Some(seed) => seed..seed + 1,
        None if limit.is_some() => 0..u64::MAX,
        None => 0..model.rounds * number(ROUNDS).unwrap_or(1),
    };
    let mut rounds = 0;
    for seed in seeds {
        if !run_once(model, seed) {
            println!("{}: FAILED in round {}, {:.1?}", model.name, rounds + 1, began.elapsed());
            println!("replay with {SEED}={seed} scripts/interleave {}", model.name);
            return false;
        }
        rounds += 1;
        if limit.is_some_and(|limit| began.elapsed() > limit) {
            break;
        }
    }
    println!("{}: ok, {rounds} rounds, {:.1?}", model.name, began.elapsed());
    true
}

fn run_once(model: &Model, seed: u64) -> bool {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = MaxSteps::FailAfter(MOST_STEPS);
    // The seed is a shorter way to replay the failure.
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    let runner = Runner::new(Explorer::new(seed, model.scale), config);
    let run = model.run;
    catch_unwind(AssertUnwindSafe(|| runner.run(run))).is_ok()
}
