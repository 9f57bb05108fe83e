//! The order of real time, as links.
//!
//! That one transaction ended before another began can hold for nearly all
//! pairs. Helper nodes keep the links few. There is one helper per end of a
//! transaction, linked in order of time. A transaction leads to the helper of
//! its own end, and the helper of the last end before it began leads to it.

use crate::cycles::Best;
use crate::graph::{Components, DEPENDENCY, Graph, Link, NONE, RT};
use crate::history::{History, Outcome};
use crate::search::Search;

/// Finds cycles that need real time. Helpers are left out of them.
pub(crate) fn find(
    history: &History,
    committed: &[bool],
    dependencies: &[Link],
    budget: u64,
) -> Vec<Vec<Link>> {
    let count = history.transactions.len();
    let mut ends: Vec<(u64, u32)> = (0u32..)
        .zip(&history.transactions)
        .filter(|(_, txn)| matches!(txn.outcome, Outcome::Committed { .. }))
        .map(|(index, txn)| (txn.end, index))
        .collect();
    ends.sort_unstable();
    let helper = |place: usize| (count + place) as u32;
    let link = |from: u32, to: u32| Link { from, to, key: NONE, label: RT };
    let mut links = dependencies.to_vec();
    for (place, (_, txn)) in ends.iter().enumerate() {
        links.push(link(*txn, helper(place)));
        if place > 0 {
            links.push(link(helper(place - 1), helper(place)));
        }
    }
    for (index, txn) in (0u32..).zip(&history.transactions) {
        let before = ends.partition_point(|(end, _)| *end < txn.begin);
        if committed[index as usize] && before > 0 {
            links.push(link(helper(before - 1), index));
        }
    }

    let nodes = count + ends.len();
    let graph = Graph::new(nodes, count, &links);
    let components = Components::new(&graph, DEPENDENCY | RT);
    if !components.any_cycle() {
        return Vec::new();
    }
    let mut search = Search::new(nodes, budget);
    let mut best = Best::new(&components);
    best.search(&graph, &mut search, &components, DEPENDENCY | RT, |_, link| {
        link.label == RT && graph.is_real(link.from)
    });
    best.cycles().map(|cycle| condense(&graph, &cycle)).collect()
}

/// Replaces every path through helpers with one link.
fn condense(graph: &Graph, cycle: &[Link]) -> Vec<Link> {
    let mut out: Vec<Link> = Vec::new();
    for link in cycle {
        match out.last_mut() {
            Some(last) if !graph.is_real(last.to) => last.to = link.to,
            _ => out.push(*link),
        }
    }
    out
}
