//! Turns observations into links of the direct serialization graph.

use crate::graph::{Link, NONE, PREDICATE_RW, PREDICATE_WR, RW, WR, WW};
use crate::observe::{Observation, Seen};
use crate::versions::Versions;

/// The links between consecutive versions.
///
/// A version without a place may lie between two of them. The link then stands
/// for a path through that version, and means the same for cycles.
pub(crate) fn write_links(versions: &Versions) -> Vec<Link> {
    let mut links = Vec::new();
    for (key, chain) in (0u32..).zip(&versions.chains) {
        links.extend(chain.versions.windows(2).map(|pair| Link {
            from: pair[0].txn,
            to: pair[1].txn,
            key,
            label: WW,
        }));
    }
    links
}

/// The positions of the version observed and of the next version that changes
/// what was observed. A position is `NONE` if there is none or if it is
/// uncertain.
fn neighbours(versions: &Versions, observation: &Observation) -> (u32, u32) {
    let chain = versions.chain(observation.key);
    match observation.seen {
        Seen::Version(position) => {
            let next = position + 1;
            let exists = (next as usize) < chain.versions.len();
            (position, if exists { next } else { NONE })
        }
        Seen::Absent { first, last } => (chain.runs[first as usize].start, chain.runs[last as usize].next),
    }
}

/// The links that hold for an observation wherever in its range it is placed.
pub(crate) fn read_links(
    versions: &Versions,
    observation: &Observation,
) -> impl Iterator<Item = Link> + use<> {
    let chain = versions.chain(observation.key);
    let (at, next) = neighbours(versions, observation);
    let (txn, key) = (observation.txn, observation.key);
    let predicate = observation.predicate;
    let link = move |from: u32, to: u32, label: u8| {
        (from != NONE && to != NONE && from != to).then_some(Link { from, to, key, label })
    };
    let wr = if predicate { PREDICATE_WR } else { WR };
    let rw = if predicate { PREDICATE_RW } else { RW };
    [link(chain.writer(at), txn, wr), link(txn, chain.writer(next), rw)].into_iter().flatten()
}

/// The updates that an observer lost, if it overwrote the key it observed and a
/// version lies between: the links there and back.
pub(crate) fn lost_update(versions: &Versions, observation: &Observation) -> Option<[Link; 2]> {
    let (_, next) = neighbours(versions, observation);
    let own = observation.own;
    if observation.predicate || own == NONE || next == NONE || own <= next {
        return None;
    }
    let other = versions.chain(observation.key).writer(next);
    let link = |from, to, label| Link { from, to, key: observation.key, label };
    Some([link(observation.txn, other, RW), link(other, observation.txn, WW)])
}
