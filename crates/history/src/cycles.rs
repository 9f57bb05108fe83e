//! Finds cycles of the graph, by class, with short witnesses.

use std::collections::HashSet;

use crate::graph::{ANTI, Components, DEPENDENCY, FLOW, Graph, Link, NONE};
use crate::graph::{PREDICATE_RW, RW, WW, ranks};
use crate::report::AnomalyKind;
use crate::search::{Path, Search};

/// How many links of a component are tried as the start of a witness.
const TRIES: u32 = 64;

/// A cycle, and the anomaly that it shows.
pub(crate) type Found = (AnomalyKind, Vec<Link>);

/// The shortest witness of each component so far.
pub(crate) struct Best {
    cycles: Vec<Option<Vec<Link>>>,
    tries: Vec<u32>,
}

impl Best {
    pub(crate) fn new(components: &Components) -> Self {
        Self { cycles: vec![None; components.count()], tries: vec![0; components.count()] }
    }

    /// The most links that the rest of a better cycle may have. Returns `None`
    /// if the search can stop.
    fn room(&mut self, component: u32) -> Option<u32> {
        let tries = &mut self.tries[component as usize];
        *tries += 1;
        match &self.cycles[component as usize] {
            None => (*tries <= TRIES).then_some(NONE),
            Some(cycle) if cycle.len() > 2 && *tries <= TRIES => Some(cycle.len() as u32 - 2),
            Some(_) => None,
        }
    }

    fn offer(&mut self, component: u32, seed: Link, rest: Vec<Link>) {
        let best = &mut self.cycles[component as usize];
        if best.as_ref().is_none_or(|old| rest.len() + 1 < old.len()) {
            let mut cycle = vec![seed];
            cycle.extend(rest);
            *best = Some(cycle);
        }
    }

    pub(crate) fn cycles(self) -> impl Iterator<Item = Vec<Link>> {
        self.cycles.into_iter().flatten()
    }

    /// Tries every link that `seed` admits as the start of a cycle over links
    /// in the mask. `components` are the components of the graph of these
    /// links.
    pub(crate) fn search(
        &mut self,
        graph: &Graph,
        search: &mut Search,
        components: &Components,
        mask: u8,
        seed: impl Fn(usize, &Link) -> bool,
    ) {
        for (index, link) in graph.links().iter().enumerate() {
            if !components.holds(link) || !seed(index, link) {
                continue;
            }
            let component = components.of(link.from);
            let Some(longest) = self.room(component) else {
                continue;
            };
            let inside = |node: u32| components.of(node) == component;
            let ends = (link.to, link.from);
            if let Path::Found(rest) = search.path(graph, ends, mask, longest, false, inside) {
                self.offer(component, *link, rest);
            }
        }
    }
}

/// The anomaly that a cycle of dependencies shows.
pub(crate) fn kind_of(cycle: &[Link]) -> AnomalyKind {
    let count = |mask: u8| cycle.iter().filter(|link| link.label & mask != 0).count();
    match (count(ANTI), count(PREDICATE_RW)) {
        (0, _) if count(WW) == cycle.len() => AnomalyKind::G0,
        (0, _) => AnomalyKind::G1c,
        (1, _) => AnomalyKind::GSingle,
        (_, 0) => AnomalyKind::G2Item,
        _ => AnomalyKind::G2,
    }
}

/// Finds witnesses of every class. `priority` orders the transactions roughly
/// as they should be serialized. `lost` contains the transactions and keys of
/// lost updates, which have already been reported.
pub(crate) fn find(
    graph: &Graph,
    priority: &[u64],
    lost: &HashSet<(u32, u32)>,
    search: &mut Search,
    complete: &mut bool,
) -> Vec<Found> {
    let all = Components::new(graph, DEPENDENCY);
    if !all.any_cycle() {
        return Vec::new();
    }
    let mut found: Vec<Found> = Vec::new();
    let mut add = |best: Best| found.extend(best.cycles().map(|cycle| (kind_of(&cycle), cycle)));

    let writes = Components::new(graph, WW);
    let mut best = Best::new(&writes);
    best.search(graph, search, &writes, WW, |_, link| link.label == WW);
    add(best);

    let flow = Components::new(graph, FLOW);
    let mut best = Best::new(&flow);
    best.search(graph, search, &flow, FLOW, |_, link| link.label & FLOW & !WW != 0);
    add(best);

    let (best, single) = singles(graph, priority, lost, search, complete, &all, &flow);
    add(best);

    // Every other anti-dependency is only on cycles with another one.
    let items = Components::new(graph, FLOW | RW);
    let mut best = Best::new(&items);
    best.search(graph, search, &items, FLOW | RW, |index, link| link.label == RW && !single[index]);
    add(best);

    let mut best = Best::new(&all);
    best.search(graph, search, &all, DEPENDENCY, |index, link| {
        !single[index] && (link.label == PREDICATE_RW || link.label == RW && !items.holds(link))
    });
    add(best);
    found.sort_by_key(|(kind, cycle)| (*kind, cycle.len()));
    found
}

/// Finds the anti-dependencies that close a cycle with information flow alone,
/// and the shortest such cycles.
fn singles(
    graph: &Graph,
    priority: &[u64],
    lost: &HashSet<(u32, u32)>,
    search: &mut Search,
    complete: &mut bool,
    all: &Components,
    flow: &Components,
) -> (Best, Vec<bool>) {
    let mut best = Best::new(all);
    let mut single = vec![false; graph.links().len()];
    let rank = ranks(graph, FLOW, flow, priority);
    for (index, link) in graph.links().iter().enumerate() {
        if link.label & ANTI == 0 || !all.holds(link) {
            continue;
        }
        if link.label == RW && lost.contains(&(link.from, link.key)) {
            single[index] = true;
            continue;
        }
        let (low, high) = (rank[link.to as usize], rank[link.from as usize]);
        if low > high {
            continue;
        }
        let component = all.of(link.from);
        let known = low == high;
        let longest = match (known, best.room(component)) {
            (true, None) => {
                single[index] = true;
                continue;
            }
            (true, Some(longest)) => longest,
            (false, _) => NONE,
        };
        let allow = |node: u32| rank[node as usize] <= high && all.of(node) == component;
        match search.path(graph, (link.to, link.from), FLOW, longest, !known, allow) {
            Path::Found(rest) => {
                single[index] = true;
                best.offer(component, *link, rest);
            }
            Path::Absent => single[index] = known,
            Path::Exhausted => *complete = false,
        }
    }
    (best, single)
}
