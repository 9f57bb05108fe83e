//! The result of a crash test.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pantile::lab::Protocol;
use pantile_bench::machine;
use pantile_bench::settings::OWN_PROTOCOL;
use serde::Serialize;

use crate::history::Phase;
use crate::settings::Settings;

/// What was done, and what was found.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// Rounds whose database was verified after at least one kill.
    pub rounds: u64,
    /// Databases created.
    pub databases: u64,
    /// Kills by the phase that they hit.
    pub kills: BTreeMap<Phase, u64>,
    /// Lives that closed the database before the kill. They do not count.
    pub discarded: u64,
    /// Transactions acknowledged.
    pub acknowledged: u64,
    /// Blocks freed and survivors relocated by the collector, as far as
    /// reported.
    pub collected: (u64, u64),
    /// The duration in seconds.
    pub seconds: f64,
    /// What is wrong, if anything.
    pub failure: Option<Failure>,
    /// Whether it was asked to stop.
    pub interrupted: bool,
}

/// What is wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The round that found it, from 1.
    pub round: u64,
    /// What is missing or incomplete.
    pub problems: Vec<String>,
    /// Where the database and its other files are.
    pub kept: PathBuf,
}

#[derive(Serialize)]
struct Record<'a> {
    workload: &'a str,
    engine: &'a str,
    gc: &'a str,
    protocol: &'a str,
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
    /// The total number of kills.
    pub fn all_kills(&self) -> u64 {
        self.kills.values().sum()
    }

    /// What is wrong.
    pub fn problems(&self) -> &[String] {
        self.failure.as_ref().map_or(&[], |failure| &failure.problems)
    }

    /// A summary in one line.
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
            protocol: settings.protocol.map_or(OWN_PROTOCOL, Protocol::name),
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
