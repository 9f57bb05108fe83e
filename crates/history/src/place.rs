//! Places reads of absent keys that may have seen one of several runs.

use crate::edges::read_links;
use crate::graph::{ANTI, Components, DEPENDENCY, FLOW, Graph, Link, NONE, ranks};
use crate::observe::{Observation, Seen};
use crate::search::Search;
use crate::versions::Versions;

/// The most passes in which observations are placed again after other
/// observations of their reader.
const PASSES: usize = 4;

/// Which cycles rule out a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// Cycles with at most one anti-dependency.
    Single,
    /// All cycles.
    Any,
}

/// Whether an observation has more than one possible run.
pub(crate) fn ambiguous(observation: &Observation) -> bool {
    matches!(observation.seen, Seen::Absent { first, last } if first < last)
}

/// The number of the last possible run that starts before the given timestamp.
fn by_timestamp(versions: &Versions, observation: &Observation, ts: u64) -> u32 {
    let Seen::Absent { first, last } = observation.seen else {
        return 0;
    };
    let chain = versions.chain(observation.key);
    (first..=last)
        .rev()
        .find(|run| {
            let start = chain.runs[*run as usize].start;
            chain.versions.get(start as usize).is_none_or(|version| version.ts < ts)
        })
        .unwrap_or(first)
}

/// Places the ambiguous observations by timestamp: that of the reader or, if
/// lower, the lowest timestamp of those that overwrote what it saw. Returns the
/// indexes of those that are then on a cycle. If there are none, a serial order
/// exists.
pub(crate) fn suspects(
    versions: &Versions,
    observations: &[Observation],
    certain: &[Link],
    priority: &[u64],
) -> Vec<usize> {
    let mut links = certain.to_vec();
    let choices: Vec<usize> =
        (0..observations.len()).filter(|index| ambiguous(&observations[*index])).collect();
    if choices.is_empty() {
        return choices;
    }
    let mut latest = priority.to_vec();
    for link in certain.iter().filter(|link| link.label & ANTI != 0) {
        let bound = &mut latest[link.from as usize];
        *bound = (*bound).min(priority[link.to as usize]);
    }
    let mut runs = vec![NONE; choices.len()];
    for _ in 0..PASSES {
        let mut changed = false;
        for (index, chosen) in choices.iter().zip(&mut runs) {
            let observation = &observations[*index];
            let bound = &mut latest[observation.txn as usize];
            let run = by_timestamp(versions, observation, *bound);
            changed |= *chosen != run;
            *chosen = run;
            let chain = versions.chain(observation.key);
            let next = chain.writer(chain.runs[run as usize].next);
            if next != NONE && next != observation.txn {
                *bound = (*bound).min(priority[next as usize]);
            }
        }
        if !changed {
            break;
        }
    }
    for (index, run) in choices.iter().zip(runs) {
        let mut placed = observations[*index].clone();
        placed.seen = Seen::Absent { first: run, last: run };
        links.extend(read_links(versions, &placed));
    }
    let graph = Graph::new(priority.len(), priority.len(), &links);
    let components = Components::new(&graph, DEPENDENCY);
    choices.into_iter().filter(|index| components.in_cycle(observations[*index].txn)).collect()
}

/// Eliminates the runs of suspects that would close a cycle in the graph of
/// certain links, which itself has none. An observation without a remaining run
/// is placed by timestamp. Returns the links that became certain, or none if
/// nothing changed.
pub(crate) fn narrow(
    versions: &Versions,
    observations: &mut [Observation],
    suspects: &[usize],
    graph: &Graph,
    priority: &[u64],
    level: Level,
    search: &mut Search,
) -> Vec<Link> {
    let components = Components::new(graph, DEPENDENCY);
    let rank = ranks(graph, DEPENDENCY, &components, priority);
    let reversed = graph.reversed();
    let ranked = |txn: u32| rank[txn as usize];
    let mut links = Vec::new();
    for index in suspects {
        let observation = &mut observations[*index];
        let (Seen::Absent { first, last }, txn) = (observation.seen, observation.txn) else {
            continue;
        };
        if first >= last {
            continue;
        }
        let chain = versions.chain(observation.key);
        let start = |run: u32| chain.writer(chain.runs[run as usize].start);
        let next = |run: u32| chain.writer(chain.runs[run as usize].next);

        // Runs after the first version that must come after the reader.
        let mut end = last + 1;
        if ranked(start(last)) >= ranked(txn) {
            let (mask, most) = (DEPENDENCY, if level == Level::Single { 1 } else { NONE - 1 });
            let bound = ranked(start(last));
            if !search.reach(graph, txn, mask, most, |node| ranked(node) <= bound) {
                break;
            }
            while end > 0 && start(end - 1) != NONE && search.reached(start(end - 1)) {
                end -= 1;
            }
        }
        // Runs before the last version that must come before the reader. Two
        // anti-dependencies close the cycle, unless the path is information
        // flow alone.
        let mut begin = first;
        if ranked(next(first)) <= ranked(txn) {
            let mask = if level == Level::Single { FLOW } else { DEPENDENCY };
            let bound = ranked(next(first));
            if !search.reach(&reversed, txn, mask, NONE - 1, |node| ranked(node) >= bound) {
                break;
            }
            let ruled_out = |run: u32| {
                let writer = next(run);
                writer != NONE && writer != txn && search.reached(writer)
            };
            while begin <= last && ruled_out(begin) {
                begin += 1;
            }
        }
        if (begin, end) == (first, last + 1) {
            continue;
        }
        let seen = if begin < end {
            (begin, end - 1)
        } else {
            let run = by_timestamp(versions, observation, priority[txn as usize]);
            (run, run)
        };
        observation.seen = Seen::Absent { first: seen.0, last: seen.1 };
        links.extend(read_links(versions, observation));
    }
    links
}
