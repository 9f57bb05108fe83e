//! Why a condition may be refuted here, and the runs that show whether that is so.
//!
//! The same condition is judged once more, by runs that differ from those that refuted it in one
//! point: the supposed cause is not there. If it is held then, that is the cause.

use pantile::ExclusiveStage;
use pantile_bench::settings::NEVER;

use super::Claim;
use super::help::TB;
use crate::measurement::Measurement;
use crate::numbers::Outcome;
use crate::results::Results;
use crate::size::Size;
use crate::spec::RunSpec;
use crate::verdict::{Judgement, Part, Verdict};
use crate::workload::Work;

/// A supposed cause.
#[derive(Debug)]
pub struct Cause {
    /// The claim's id.
    pub claim: &'static str,
    /// Whether it may explain that the condition about this is refuted ([`Part::about`]).
    pub explains: fn(&str) -> bool,
    /// The cause, as a sentence.
    pub because: &'static str,
    /// What is changed, as in "with units of 64 bytes".
    pub change: &'static str,
    /// The run without the cause.
    pub without: fn(&RunSpec) -> RunSpec,
}

/// What the runs without a supposed cause show.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The cause.
    pub cause: &'static Cause,
    /// The condition without the cause.
    pub part: Part,
    /// The runs.
    pub runs: Vec<RunSpec>,
}

impl Explanation {
    /// What follows for the cause.
    pub fn conclusion(&self) -> &'static str {
        match self.part.outcome {
            Outcome::Held => "the condition is held then: that is the cause",
            Outcome::Refuted => {
                "the condition is refuted all the same: that is not the cause, or not all of it"
            }
            Outcome::Undecided => "whether the condition is held then is undecided, and so is the cause",
        }
    }
}

/// All supposed causes.
const CAUSES: &[Cause] = &[
    Cause {
        claim: "TB-8b",
        explains: |about| about.ends_with(" against NoGC"),
        because: "Two clients do not use up the memory's bandwidth, so what collecting costs the processor is not hidden behind it.",
        change: A_TENTH,
        without: on_slow_memory,
    },
    Cause {
        claim: "TB-8b",
        explains: |about| about.starts_with("zen ") && about.ends_with(" against NoGC"),
        because: "What collecting writes besides occupies the memory, which is slower than DRAM.",
        change: "in DRAM",
        without: |run| run.clone().on("dram"),
    },
    Cause {
        claim: "TB-9",
        explains: |about| about == "at theta 0.9 the throughput of tb-collect against NoGC's",
        because: "Of so few tuples the hot ones are in the caches, and the emulated memory does not charge for reading those.",
        change: "with ten times the tuples",
        without: of_more_tuples,
    },
    Cause {
        claim: "TB-10",
        explains: |about| about == "with 1 operations steam against one-shot",
        because: "One-shot also writes what it supersedes, and each such write takes whole units of the memory, of 256 bytes.",
        change: "with units of 64 bytes",
        without: in_small_units,
    },
    Cause {
        claim: "TB-12",
        explains: |about| about.starts_with("the growth of tb-collect"),
        because: EMPTIED_LATE,
        change: AT_HALF,
        without: emptied_at_half,
    },
    Cause {
        claim: "TB-12",
        explains: |about| about.starts_with("the growth of tb-collect"),
        because: "Blocks wait as published, until nine tenths of them are superseded and a queue is full, however much space that takes.",
        change: "with the engine's pacing, which keeps to 1.1 bytes for each live one",
        without: kept_to_a_target,
    },
    Cause {
        claim: "TB-14",
        explains: |about| about == "what tb-collect stores against what one-shot does",
        because: EMPTIED_LATE,
        change: AT_HALF,
        without: emptied_at_half,
    },
    Cause {
        claim: "TB-14",
        explains: |about| about == "what tb-collect stores against what one-shot does",
        because: "A partition of one-shot is what becomes full in 40 ms. The published ones had dozens of gigabytes.",
        change: "with partitions of five seconds",
        without: in_large_partitions,
    },
    Cause {
        claim: "TB-14",
        explains: |about| about == "the accesses of tb-collect against those of zen",
        because: "Zen's thread scans lists and walks no chain, as its own publication has it. TB-Collect's description of it says \
                  that it walks chains.",
        change: "with hana, whose thread in the background walks chains, in zen's place",
        without: |run| run.with_gc(if run.gc == "zen" { "hana" } else { run.gc }),
    },
    Cause {
        claim: "TB-16",
        explains: |about| about.contains(", the growth of tb-collect against that of "),
        because: EMPTIED_LATE,
        change: AT_HALF,
        without: emptied_at_half,
    },
    Cause {
        claim: "ST-2/7",
        explains: |about| about.starts_with("steam's write rate"),
        because: SHORT_QUERIES,
        change: A_READER,
        without: beside_a_reader,
    },
    Cause {
        claim: "ST-T5",
        explains: |about| about.starts_with("steam's throughput"),
        because: SHORT_QUERIES,
        change: A_READER,
        without: beside_a_reader,
    },
    Cause {
        claim: "ZN-8/9/10",
        // Of uniform reads as many find a copy in DRAM with zen as with mmdb, and nobody waits for what mmdb writes.
        explains: |about| {
            about.contains(" 0 % updates")
                && !(about.contains(" 0 % updates, skew 0:") && about.ends_with("mmdb"))
        },
        because: FAST_FOR_READS,
        change: A_TENTH,
        without: on_slow_memory,
    },
    Cause {
        claim: "ZN-8/9/10",
        explains: |about| !about.contains(" 0 % updates"),
        because: FAST_MEMORY,
        change: A_TENTH,
        without: on_slow_memory,
    },
    Cause {
        claim: "ZN-17",
        explains: |about| !about.starts_with("0 % updates"),
        because: FAST_MEMORY,
        change: A_TENTH,
        without: on_slow_memory,
    },
    Cause {
        claim: "ZN-20",
        explains: |_| true,
        because: FAST_MEMORY,
        change: A_TENTH,
        without: on_slow_memory,
    },
    Cause {
        claim: "ZN-23",
        explains: |about| about.ends_with("against on mmdb"),
        because: FAST_MEMORY,
        change: A_TENTH,
        without: on_slow_memory,
    },
    Cause {
        claim: "ZN-24/25/26",
        explains: |about| about == "what is kept beside long updates",
        because: "Transactions keep their timestamps, as published. So a long update meets marks that later readers have left in \
                  cells of several tuples, and gets the exclusive stage, for which all others wait.",
        change: "with writers that move to later timestamps",
        without: |run| RunSpec { writers_move: true, tries: Some(NEVER), ..run.clone() },
    },
    Cause {
        claim: "ZN-24/25/26",
        explains: |about| about == "what is kept beside long updates",
        because: "A long update gets the exclusive stage only by what it has accessed in vain. Until then it fails again and again.",
        change: "with the stage after eight failures, too, as by the engine's own rules",
        without: |run| RunSpec { tries: Some(ExclusiveStage::default().tries), ..run.clone() },
    },
];

const EMPTIED_LATE: &str = "A block waits until nine tenths of it have been superseded.";

const SHORT_QUERIES: &str = "A query takes some tenths of a second. So what is superseded is soon obsolete for everybody, and the others walk short chains.";

const FAST_MEMORY: &str = "Two clients that write once do not use up the memory's bandwidth, since the processor's time takes longer. So those that write \
                           more are hardly slower.";

const FAST_FOR_READS: &str = "Two clients that read do not use up the memory's bandwidth, since the processor's time takes longer. So those that read \
                              or write metadata there are hardly slower.";

fn in_small_units(run: &RunSpec) -> RunSpec {
    run.clone().on("nvm:optane-40/64")
}

const A_TENTH: &str = "with a tenth of the bandwidth";

const A_READER: &str = "beside a reader that stays open for two seconds, again and again";

const AT_HALF: &str = "with blocks that wait for half of it";

/// The memories of runs, and the same with a tenth of the bandwidth.
const SLOWER: [(&str, &str); 14] = [
    ("nvm:optane-40", "nvm:optane-400"),
    ("nvm:optane-40+zen:4", "nvm:optane-400+zen:4"),
    ("nvm:optane-40+zen-naive:4", "nvm:optane-400+zen-naive:4"),
    ("nvm:optane-40+mmdb:4", "nvm:optane-400+mmdb:4"),
    ("nvm:optane-40+wbl:4", "nvm:optane-400+wbl:4"),
    ("nvm:optane-40+foedus:4", "nvm:optane-400+foedus:4"),
    ("nvm:optane-40+zen:8", "nvm:optane-400+zen:8"),
    ("nvm:optane-40+mmdb:8", "nvm:optane-400+mmdb:8"),
    ("nvm:optane-40+wbl:8", "nvm:optane-400+wbl:8"),
    ("nvm:optane-40+foedus:8", "nvm:optane-400+foedus:8"),
    ("nvm:optane-40+zen:16", "nvm:optane-400+zen:16"),
    ("nvm:optane-40+mmdb:16", "nvm:optane-400+mmdb:16"),
    ("nvm:optane-40+wbl:16", "nvm:optane-400+wbl:16"),
    ("nvm:optane-40+foedus:16", "nvm:optane-400+foedus:16"),
];

fn on_slow_memory(run: &RunSpec) -> RunSpec {
    let slower = SLOWER.iter().find(|(memory, _)| *memory == run.medium);
    slower.map_or(run.clone(), |(_, slower)| run.clone().on(slower))
}

fn of_more_tuples(run: &RunSpec) -> RunSpec {
    let work = match run.work {
        Work::Ycsb { tuples, ops, updates, theta } => Work::Ycsb { tuples: 10 * tuples, ops, updates, theta },
        other => other,
    };
    RunSpec { work, ..run.clone() }
}

/// The other collectors have no such threshold.
fn emptied_at_half(run: &RunSpec) -> RunSpec {
    let threshold = if run.gc == TB { Some(0.5) } else { run.threshold };
    RunSpec { threshold, ..run.clone() }
}

/// Epochs of five seconds, for one-shot alone.
fn in_large_partitions(run: &RunSpec) -> RunSpec {
    let epoch = if run.gc == "one-shot" { Some(5000.0) } else { run.epoch };
    RunSpec { epoch, ..run.clone() }
}

/// The other collectors have no target.
fn kept_to_a_target(run: &RunSpec) -> RunSpec {
    let space_target = if run.gc == TB { Some(1.1) } else { run.space_target };
    RunSpec { space_target, ..run.clone() }
}

fn beside_a_reader(run: &RunSpec) -> RunSpec {
    RunSpec { long_readers: 1, long_seconds: Some(2.0), ..run.clone() }
}

impl Claim {
    /// The supposed causes of its conditions being refuted.
    fn causes(&self) -> impl Iterator<Item = &'static Cause> {
        CAUSES.iter().filter(|cause| cause.claim == self.id)
    }

    /// The causes of which the runs are wanted once conditions are refuted, with the conditions.
    pub fn supposed<'j>(
        &self,
        judgement: &'j Judgement,
    ) -> impl Iterator<Item = (&'static Cause, &'j Part)> + use<'j> {
        let parts: &[Part] = if judgement.verdict == Verdict::DoesNotHold { &judgement.parts } else { &[] };
        let refuted = parts.iter().filter(|part| part.outcome == Outcome::Refuted);
        let causes: Vec<_> = self.causes().collect();
        refuted.flat_map(move |part| {
            let of_part = causes.clone().into_iter().filter(move |cause| (cause.explains)(&part.about));
            of_part.map(move |cause| (cause, part))
        })
    }

    /// Each run that a condition follows from, and the same without a cause.
    pub fn without(&self, cause: &Cause, part: &Part, size: &Size) -> Vec<(RunSpec, RunSpec)> {
        let runs = self.runs(size).into_iter().filter(|run| part.runs.contains(&run.key()));
        runs.map(|run| (run.clone(), (cause.without)(&run))).collect()
    }

    /// All runs that a supposed cause may need.
    pub fn runs_of_causes(&self, size: &Size) -> Vec<RunSpec> {
        let parts = self.with_every_figure(size).parts;
        let of_cause = |cause: &'static Cause| {
            let explained = parts.iter().filter(|part| (cause.explains)(&part.about));
            explained.flat_map(|part| self.without(cause, part, size)).collect::<Vec<_>>()
        };
        self.causes().flat_map(of_cause).map(|(_, run)| run).collect()
    }

    /// The judgement on measurements in which every figure is there. It says which runs the conditions
    /// are about.
    pub fn with_every_figure(&self, size: &Size) -> Judgement {
        let mut results = Results::default();
        self.runs(size).iter().for_each(|run| results.add(&run.key(), 1, Measurement::example()));
        self.judge(&results, size).judgement
    }

    /// What is known about why conditions are refuted.
    pub fn explain(&self, judgement: &Judgement, results: &Results, size: &Size) -> Vec<Explanation> {
        let explain = |(cause, part): (&'static Cause, &Part)| {
            let pairs = self.without(cause, part, size);
            let parts = self.judge(&results.seen_as(&pairs), size).judgement.parts;
            let part = parts.into_iter().find(|other| other.about == part.about)?;
            Some(Explanation { cause, part, runs: pairs.into_iter().map(|(_, run)| run).collect() })
        };
        self.supposed(judgement).filter_map(explain).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::all;

    /// Three repetitions of a claim's runs and of those of its causes, at the speeds given.
    fn measured(claim: &Claim, size: &Size, speed: impl Fn(&RunSpec) -> f64) -> Results {
        let mut results = Results::default();
        for run in claim.runs(size).into_iter().chain(claim.runs_of_causes(size)) {
            for (repetition, drift) in [1.0, 1.1, 0.9].into_iter().enumerate() {
                let measurement = Measurement { txn_per_s: speed(&run) * drift, ..Measurement::example() };
                results.add(&run.key(), repetition + 1, measurement);
            }
        }
        results
    }

    #[test]
    fn every_cause_is_of_a_condition_and_changes_its_runs() {
        let size = Size::full(2);
        for cause in CAUSES {
            let claim = all().find(|claim| claim.id == cause.claim).expect("a claim");
            let parts = claim.with_every_figure(&size).parts;
            let explained: Vec<_> = parts.iter().filter(|part| (cause.explains)(&part.about)).collect();
            assert!(!explained.is_empty(), "{}: no condition", cause.claim);
            for part in explained {
                let pairs = claim.without(cause, part, &size);
                assert_eq!(pairs.len(), part.runs.len(), "{}", cause.claim);
                let changed = pairs.iter().filter(|(run, without)| run.key() != without.key());
                assert!(changed.count() > 0, "{}: {}", cause.claim, part.about);
            }
            assert!(cause.because.ends_with('.') && !cause.change.ends_with('.'));
        }
    }

    #[test]
    fn reads_alone_have_a_cause_where_bandwidth_can_matter() {
        let because = |about: &str| {
            let of_claim =
                CAUSES.iter().filter(|cause| cause.claim == "ZN-8/9/10" && (cause.explains)(about));
            of_claim.map(|cause| cause.because).collect::<Vec<_>>()
        };
        assert_eq!(because("1:4, 0 % updates, skew 0: zen against wbl"), [FAST_FOR_READS]);
        assert_eq!(because("1:16, 0 % updates, skew 0.95: zen against mmdb"), [FAST_FOR_READS]);
        assert_eq!(because("1:4, 50 % updates, skew 0: zen against mmdb"), [FAST_MEMORY]);
        assert!(because("1:4, 0 % updates, skew 0: zen against mmdb").is_empty());
    }

    #[test]
    fn a_cause_is_judged_by_the_same_condition() {
        let size = Size::full(2);
        let claim = all().find(|claim| claim.id == "TB-8b").expect("a claim");
        let explained = |without: f64| {
            let speed = |run: &RunSpec| match (run.gc, run.medium) {
                ("none", _) => 1000.0,
                ("n2db", "nvm:optane-40") => 500.0,
                ("n2db", _) => without,
                ("one-shot", _) => 300.0,
                _ => 800.0,
            };
            let results = measured(claim, &size, speed);
            let judgement = claim.judge(&results, &size).judgement;
            assert_eq!(judgement.count(Outcome::Refuted), 1, "{}", judgement.reason);
            let explanations = claim.explain(&judgement, &results, &size);
            let changes: Vec<_> =
                explanations.iter().map(|found| (found.cause.change, found.runs.len())).collect();
            assert_eq!(changes, [(A_TENTH, 2)]);
            explanations[0].part.outcome
        };
        assert_eq!([800.0, 500.0].map(explained), [Outcome::Held, Outcome::Refuted]);
        // Nothing is refuted.
        let results = measured(claim, &size, |run| match run.gc {
            "none" => 1000.0,
            "one-shot" => 300.0,
            _ => 800.0,
        });
        let judgement = claim.judge(&results, &size).judgement;
        assert!(claim.explain(&judgement, &results, &size).is_empty());
    }
}
