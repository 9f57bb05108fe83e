//! A directed graph with labelled links, its components and a linear order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Stands for no node, key or position.
pub(crate) const NONE: u32 = u32::MAX;

/// The labels of links, as bits, so that a set of labels is a mask.
pub(crate) const WW: u8 = 1;
pub(crate) const WR: u8 = 2;
pub(crate) const PREDICATE_WR: u8 = 4;
pub(crate) const RW: u8 = 8;
pub(crate) const PREDICATE_RW: u8 = 16;
pub(crate) const RT: u8 = 32;

/// Links along which information flows.
pub(crate) const FLOW: u8 = WW | WR | PREDICATE_WR;
/// Anti-dependencies.
pub(crate) const ANTI: u8 = RW | PREDICATE_RW;
/// All links except those of real time.
pub(crate) const DEPENDENCY: u8 = FLOW | ANTI;

/// A link from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Index of the key's chain, or `NONE`.
    pub(crate) key: u32,
    pub(crate) label: u8,
}

/// A graph whose links are grouped by their start node.
pub(crate) struct Graph {
    starts: Vec<u32>,
    links: Vec<Link>,
    /// Nodes below this are transactions; the others are helpers.
    real: u32,
}

impl Graph {
    pub(crate) fn new(nodes: usize, real: usize, links: &[Link]) -> Self {
        assert!(links.len() < NONE as usize && nodes < NONE as usize);
        let mut starts = vec![0u32; nodes + 1];
        for link in links {
            starts[link.from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let blank = Link { from: NONE, to: NONE, key: NONE, label: 0 };
        let mut sorted = vec![blank; links.len()];
        for link in links {
            let place = &mut next[link.from as usize];
            sorted[*place as usize] = *link;
            *place += 1;
        }
        Self { starts, links: sorted, real: real as u32 }
    }

    /// The same graph with every link reversed.
    pub(crate) fn reversed(&self) -> Self {
        let turned: Vec<Link> =
            self.links.iter().map(|link| Link { from: link.to, to: link.from, ..*link }).collect();
        Self::new(self.nodes(), self.real as usize, &turned)
    }

    pub(crate) fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }

    pub(crate) fn is_real(&self, node: u32) -> bool {
        node < self.real
    }

    /// The range of the links that start at a node.
    pub(crate) fn range(&self, node: u32) -> std::ops::Range<usize> {
        self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize
    }

    pub(crate) fn from(&self, node: u32) -> &[Link] {
        &self.links[self.range(node)]
    }
}

/// The strongly connected components of a graph.
pub(crate) struct Components {
    of: Vec<u32>,
    sizes: Vec<u32>,
}

impl Components {
    /// Tarjan's algorithm without recursion, over the links in the mask.
    pub(crate) fn new(graph: &Graph, mask: u8) -> Self {
        let nodes = graph.nodes();
        let mut of = vec![NONE; nodes];
        let mut sizes = Vec::new();
        let mut number = vec![NONE; nodes];
        let mut low = vec![NONE; nodes];
        let mut counter = 0u32;
        let mut stack: Vec<u32> = Vec::new();
        let mut calls: Vec<(u32, usize)> = Vec::new();
        for root in 0..nodes as u32 {
            if number[root as usize] != NONE {
                continue;
            }
            calls.push((root, graph.range(root).start));
            while let Some((node, mut at)) = calls.pop() {
                let here = node as usize;
                if number[here] == NONE {
                    number[here] = counter;
                    low[here] = counter;
                    counter += 1;
                    stack.push(node);
                }
                let end = graph.range(node).end;
                let mut descended = false;
                while at < end {
                    let link = graph.links[at];
                    let there = link.to as usize;
                    at += 1;
                    if link.label & mask == 0 || of[there] != NONE {
                        continue;
                    }
                    if number[there] == NONE {
                        // Return to this link to take the child's low.
                        calls.push((node, at - 1));
                        calls.push((link.to, graph.range(link.to).start));
                        descended = true;
                        break;
                    }
                    low[here] = low[here].min(low[there]);
                }
                if descended || low[here] != number[here] {
                    continue;
                }
                let component = sizes.len() as u32;
                let mut size = 0;
                while let Some(member) = stack.pop() {
                    of[member as usize] = component;
                    size += 1;
                    if member == node {
                        break;
                    }
                }
                sizes.push(size);
            }
        }
        Self { of, sizes }
    }

    pub(crate) fn of(&self, node: u32) -> u32 {
        self.of[node as usize]
    }

    pub(crate) fn count(&self) -> usize {
        self.sizes.len()
    }

    /// Whether some component has more than one node.
    pub(crate) fn any_cycle(&self) -> bool {
        self.sizes.iter().any(|size| *size > 1)
    }

    /// Whether the node shares its component with other nodes.
    pub(crate) fn in_cycle(&self, node: u32) -> bool {
        self.sizes[self.of(node) as usize] > 1
    }

    /// Whether the link lies on a cycle.
    pub(crate) fn holds(&self, link: &Link) -> bool {
        self.of(link.from) == self.of(link.to) && link.from != link.to
    }
}

/// A rank for every node such that links in the mask never lead to a lower
/// rank, and all nodes of a component share one. Where that leaves a choice,
/// ranks follow the priorities, which keeps the span of most links short.
pub(crate) fn ranks(graph: &Graph, mask: u8, components: &Components, priority: &[u64]) -> Vec<u32> {
    let count = components.count();
    let mut waiting = vec![0u32; count];
    let mut urgency = vec![u64::MAX; count];
    let mut first = vec![NONE; count];
    let mut sibling = vec![NONE; graph.nodes()];
    for node in 0..graph.nodes() as u32 {
        let component = components.of(node) as usize;
        sibling[node as usize] = first[component];
        first[component] = node;
        urgency[component] = urgency[component].min(priority[node as usize]);
    }
    let crosses = |link: &Link| link.label & mask != 0 && components.of(link.from) != components.of(link.to);
    for link in graph.links().iter().filter(|link| crosses(link)) {
        waiting[components.of(link.to) as usize] += 1;
    }
    let mut ready: BinaryHeap<Reverse<(u64, u32)>> = (0..count)
        .filter(|component| waiting[*component] == 0)
        .map(|component| Reverse((urgency[component], component as u32)))
        .collect();
    let mut rank = vec![NONE; graph.nodes()];
    let mut next = 0;
    while let Some(Reverse((_, component))) = ready.pop() {
        let mut node = first[component as usize];
        while node != NONE {
            rank[node as usize] = next;
            for link in graph.from(node).iter().filter(|link| crosses(link)) {
                let there = components.of(link.to) as usize;
                waiting[there] -= 1;
                if waiting[there] == 0 {
                    ready.push(Reverse((urgency[there], there as u32)));
                }
            }
            node = sibling[node as usize];
        }
        next += 1;
    }
    rank
}
