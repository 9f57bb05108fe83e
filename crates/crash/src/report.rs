//! What came of a crash test.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pantile_bench::machine;
use serde::Serialize;

use crate::history::Phase;
use crate::settings::Settings;

/// What was done, and what was found.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// Rounds whose database was verified after at least one kill.
    pub rounds: u64,
    /// Databases made.
    pub databases: u64,
    /// Kills by what they hit.
    pub kills: BTreeMap<Phase, u64>,
    /// Lives that had closed the database before the kill came: these do not count.
    pub discarded: u64,
    /// Transactions acknowledged.
    pub acknowledged: u64,
    /// Blocks freed by the collector, as far as it was told, and survivors moved.
    pub collected: (u64, u64),
    /// Seconds it took.
    pub seconds: f64,
    /// What is wrong, if anything is.
    pub failure: Option<Failure>,
    /// Whether it was told to stop.
    pub interrupted: bool,
}

/// What is wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The round that found it, from 1.
    pub round: u64,
    /// What is missing, or there in part.
    pub problems: Vec<String>,
    /// Where the database is, with all that belongs to it.
    pub kept: PathBuf,
}

#[derive(Serialize)]
struct Record<'a> {
    workload: &'a str,
    engine: &'a str,
    gc: &'a str,
    medium: String,
    durability: &'a str,
    threads: u64,
    seed: u64,
    seconds: f64,
    commit: &'a str,
    machine: String,
    rounds: u64,
    databases: u64,
    transactions_acknowledged: u64,
    losses: usize,
    problems: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_round: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
    kills: BTreeMap<&'a str, u64>,
    lives_discarded: u64,
    collector: Collector,
    interrupted: bool,
    debug_build: bool,
}

#[derive(Serialize)]
struct Collector {
    blocks_reclaimed: u64,
    survivors_relocated: u64,
}

impl Report {
    /// Kills in all.
    pub fn all_kills(&self) -> u64 {
        self.kills.values().sum()
    }

    /// What is wrong.
    pub fn problems(&self) -> &[String] {
        self.failure.as_ref().map_or(&[], |failure| &failure.problems)
    }

    /// In one line.
    pub fn line(&self) -> String {
        let kills: Vec<_> = self.kills.iter().map(|(phase, n)| format!("{n} {}", phase.name())).collect();
        let rounds = if self.rounds == 1 { "round" } else { "rounds" };
        format!(
            "{} {rounds} in {:.1} s: {} transactions acknowledged, {} losses; {} kills ({}); {} lives had ended \
             before the kill and do not count; {} blocks reclaimed{}",
            self.rounds,
            self.seconds,
            self.acknowledged,
            self.problems().len(),
            self.all_kills(),
            kills.join(", "),
            self.discarded,
            self.collected.0,
            if self.interrupted { "; interrupted" } else { "" }
        )
    }

    /// The record, to be serialised.
    pub fn record(&self, settings: &Settings) -> impl Serialize {
        Record {
            workload: "crashtest",
            engine: "pantile",
            gc: settings.gc.name(),
            medium: settings.medium.to_string(),
            durability: settings.durability_name(),
            threads: settings.clients,
            seed: settings.seed,
            seconds: self.seconds,
            commit: machine::commit(),
            machine: machine::describe(),
            rounds: self.rounds,
            databases: self.databases,
            transactions_acknowledged: self.acknowledged,
            losses: self.problems().len(),
            problems: self.problems(),
            failed_round: self.failure.as_ref().map(|failure| failure.round),
            kept: self.failure.as_ref().map(|failure| failure.kept.display().to_string()),
            kills: self.kills.iter().map(|(phase, n)| (phase.name(), *n)).collect(),
            lives_discarded: self.discarded,
            collector: Collector {
                blocks_reclaimed: self.collected.0,
                survivors_relocated: self.collected.1,
            },
            interrupted: self.interrupted,
            debug_build: cfg!(debug_assertions),
        }
    }
}
