//! The checker.

use std::collections::{BTreeMap, HashSet};

use crate::cycles::{self, Found};
use crate::edges::{lost_update, read_links, write_links};
use crate::graph::{Graph, Link};
use crate::history::{History, Outcome};
use crate::observe::{Observation, Observations};
use crate::place::{Level, narrow, suspects};
use crate::realtime;
use crate::render::render;
use crate::report::{AnomalyKind, Collector, Report};
use crate::search::Search;
use crate::versions::{Orders, Versions};

/// The total number of links that searches without another bound may follow.
const BUDGET: u64 = 200_000_000;

/// The most rounds in which reads of absent keys are reconsidered.
const ROUNDS: usize = 8;

/// How to check a history.
#[derive(Clone, Debug)]
pub struct Check {
    real_time: bool,
    limit: usize,
    orders: Orders,
}

impl Default for Check {
    fn default() -> Self {
        Self::new()
    }
}

/// Checks a history for everything except real time.
pub fn check(history: &History) -> Report {
    Check::new().run(history)
}

impl Check {
    /// A check for everything except real time.
    pub fn new() -> Self {
        Self { real_time: false, limit: 20, orders: BTreeMap::new() }
    }

    /// Sets whether transactions must also take effect in an order that agrees
    /// with real time: strict serializability.
    pub fn real_time(mut self, yes: bool) -> Self {
        self.real_time = yes;
        self
    }

    /// Limits the number of anomalies reported of each kind.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the order in which the versions of a key were really installed,
    /// oldest first. It replaces the order by timestamp. Values that are not a
    /// transaction's last write of the key are ignored. Versions not mentioned
    /// have no place in the order.
    pub fn version_order(mut self, key: u64, values: Vec<u64>) -> Self {
        self.orders.insert(key, values);
        self
    }

    /// Checks a history.
    ///
    /// # Panics
    ///
    /// If the history has more than a few thousand million operations.
    pub fn run(&self, history: &History) -> Report {
        let count = history.transactions.len();
        let mut collector = Collector::new(self.limit);
        let versions = Versions::new(history, &self.orders, &mut collector);
        let mut observed = Observations::new(history, &versions, &mut collector);
        let priority: Vec<u64> = history
            .transactions
            .iter()
            .map(|txn| match txn.outcome {
                Outcome::Committed { ts } => ts,
                _ => u64::MAX,
            })
            .collect();

        let mut lost: HashSet<(u32, u32)> = HashSet::new();
        for observation in &observed.list {
            if let Some(cycle) = lost_update(&versions, observation)
                && lost.insert((observation.txn, observation.key))
            {
                collector.add(AnomalyKind::LostUpdate, || render(history, &versions, &cycle, ""));
            }
        }

        let mut links = write_links(&versions);
        links.append(&mut observed.loose);
        for observation in &observed.list {
            links.extend(read_links(&versions, observation));
        }
        let mut search = Search::new(count, BUDGET);
        let mut complete = true;
        let graph = Graph::new(count, count, &links);
        let mut found = cycles::find(&graph, &priority, &lost, &mut search, &mut complete);
        let mut remark = "";
        if found.is_empty() {
            let mut placing = Placing {
                versions: &versions,
                observations: &mut observed.list,
                priority: &priority,
                search: &mut search,
                complete: &mut complete,
            };
            found = placing.find(&mut links);
            remark = " (reads of absent keys were placed by elimination)";
        }
        for (kind, cycle) in found {
            collector.add(kind, || render(history, &versions, &cycle, remark));
        }
        if self.real_time {
            for cycle in realtime::find(history, &observed.committed, &links, BUDGET) {
                collector.add(AnomalyKind::RealTime, || {
                    let otherwise = cycles::kind_of(&cycle);
                    let remark = format!(" ({otherwise}, once real time counts)");
                    render(history, &versions, &cycle, &remark)
                });
            }
        }
        collector.finish(complete)
    }
}

/// The second pass, over reads of absent keys that fit several places.
struct Placing<'a> {
    versions: &'a Versions,
    observations: &'a mut [Observation],
    priority: &'a [u64],
    search: &'a mut Search,
    complete: &'a mut bool,
}

impl Placing<'_> {
    /// Adds the links that become certain, up to the first ones that close a
    /// cycle.
    fn find(&mut self, links: &mut Vec<Link>) -> Vec<Found> {
        let suspects = suspects(self.versions, self.observations, links, self.priority);
        if suspects.is_empty() {
            return Vec::new();
        }
        let certain = links.len();
        for level in [Level::Single, Level::Any] {
            for _ in 0..ROUNDS {
                let before = self.graph(links);
                let more = narrow(
                    self.versions,
                    self.observations,
                    &suspects,
                    &before,
                    self.priority,
                    level,
                    self.search,
                );
                if more.is_empty() {
                    break;
                }
                links.extend(more);
                let found = self.cycles(links);
                if !found.is_empty() {
                    // The links hold only if there is no more severe anomaly.
                    links.truncate(certain);
                    return self.mildest(found, level);
                }
            }
        }
        *self.complete &= self.search.budget > 0;
        Vec::new()
    }

    fn graph(&self, links: &[Link]) -> Graph {
        Graph::new(self.priority.len(), self.priority.len(), links)
    }

    fn cycles(&mut self, links: &[Link]) -> Vec<Found> {
        let graph = self.graph(links);
        let none = HashSet::new();
        cycles::find(&graph, self.priority, &none, self.search, self.complete)
    }

    /// Names cycles by the mildest kind that they may be, given how runs were
    /// ruled out before they were found.
    fn mildest(&self, found: Vec<Found>, level: Level) -> Vec<Found> {
        let floor = match level {
            Level::Single => AnomalyKind::GSingle,
            Level::Any if self.observations.iter().any(|seen| seen.predicate) => AnomalyKind::G2,
            Level::Any => AnomalyKind::G2Item,
        };
        found.into_iter().map(|(kind, cycle)| (kind.max(floor), cycle)).collect()
    }
}
