//! Breadth-first searches over a graph, which reuse their memory.

use std::collections::VecDeque;

use crate::graph::{ANTI, Graph, Link, NONE};

/// The result of a search for a path.
pub(crate) enum Path {
    /// The links of a shortest path.
    Found(Vec<Link>),
    /// There is none, or none short enough.
    Absent,
    /// The budget ran out first.
    Exhausted,
}

/// Memory for searches over graphs of up to a given number of nodes.
pub(crate) struct Search {
    epoch: u32,
    stamp: Vec<u32>,
    cost: Vec<u32>,
    via: Vec<u32>,
    queue: VecDeque<(u32, u32)>,
    /// How many links budgeted searches may still follow.
    pub(crate) budget: u64,
}

impl Search {
    pub(crate) fn new(nodes: usize, budget: u64) -> Self {
        Self {
            epoch: 0,
            stamp: vec![0; nodes],
            cost: vec![0; nodes],
            via: vec![NONE; nodes],
            queue: VecDeque::new(),
            budget,
        }
    }

    fn restart(&mut self, source: u32) {
        self.epoch += 1;
        self.queue.clear();
        self.relax(source, 0, NONE, false);
    }

    /// Spends from the budget. If it does not suffice, nothing of it remains.
    fn spend(&mut self, links: usize) -> bool {
        let left = self.budget.checked_sub(links as u64);
        self.budget = left.unwrap_or(0);
        left.is_some()
    }

    /// Records a path to a node if it is the best so far. `free` means that it
    /// costs no more than the path to the previous node.
    fn relax(&mut self, node: u32, cost: u32, via: u32, free: bool) {
        let here = node as usize;
        if self.stamp[here] == self.epoch && self.cost[here] <= cost {
            return;
        }
        self.stamp[here] = self.epoch;
        self.cost[here] = cost;
        self.via[here] = via;
        if free {
            self.queue.push_front((node, cost));
        } else {
            self.queue.push_back((node, cost));
        }
    }

    /// A shortest path of at most `longest` links in the mask, through nodes
    /// that `allow` admits. Links between helpers do not count.
    pub(crate) fn path(
        &mut self,
        graph: &Graph,
        (source, target): (u32, u32),
        mask: u8,
        longest: u32,
        budgeted: bool,
        allow: impl Fn(u32) -> bool,
    ) -> Path {
        self.restart(source);
        while let Some((node, cost)) = self.queue.pop_front() {
            if node == target {
                return Path::Found(self.trace(graph, source, target));
            }
            if cost > self.cost[node as usize] {
                continue;
            }
            let range = graph.range(node);
            if budgeted && !self.spend(range.len()) {
                return Path::Exhausted;
            }
            for index in range {
                let link = graph.links()[index];
                if link.label & mask == 0 || !allow(link.to) {
                    continue;
                }
                let free = !graph.is_real(link.from) && !graph.is_real(link.to);
                let cost = cost + u32::from(!free);
                if cost <= longest {
                    self.relax(link.to, cost, index as u32, free);
                }
            }
        }
        Path::Absent
    }

    fn trace(&self, graph: &Graph, source: u32, target: u32) -> Vec<Link> {
        let mut links = Vec::new();
        let mut node = target;
        while node != source {
            let link = graph.links()[self.via[node as usize] as usize];
            links.push(link);
            node = link.from;
        }
        links.reverse();
        links
    }

    /// Finds every node that is reachable over links in the mask, of which at
    /// most `most_anti` are anti-dependencies, through nodes that `allow`
    /// admits. Returns false if the budget ran out; the result is then
    /// incomplete.
    pub(crate) fn reach(
        &mut self,
        graph: &Graph,
        source: u32,
        mask: u8,
        most_anti: u32,
        allow: impl Fn(u32) -> bool,
    ) -> bool {
        self.restart(source);
        while let Some((node, cost)) = self.queue.pop_front() {
            if cost > self.cost[node as usize] {
                continue;
            }
            let range = graph.range(node);
            if !self.spend(range.len()) {
                return false;
            }
            for index in range {
                let link = graph.links()[index];
                if link.label & mask == 0 || !allow(link.to) {
                    continue;
                }
                let anti = link.label & ANTI != 0;
                let cost = cost + u32::from(anti);
                if cost <= most_anti {
                    self.relax(link.to, cost, index as u32, !anti);
                }
            }
        }
        true
    }

    /// Whether the last search reached the node.
    pub(crate) fn reached(&self, node: u32) -> bool {
        self.stamp[node as usize] == self.epoch
    }
}
