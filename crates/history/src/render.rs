//! Renders witnesses for people.

use std::fmt::Write;

use crate::graph::{Link, NONE, PREDICATE_RW, PREDICATE_WR, RT, RW, WR, WW};
use crate::history::{History, Op};
use crate::report::{Dependency, Edge};
use crate::versions::Versions;

fn dependency(label: u8) -> Dependency {
    match label {
        WW => Dependency::WriteWrite,
        WR => Dependency::WriteRead,
        PREDICATE_WR => Dependency::PredicateWriteRead,
        RW => Dependency::ReadWrite,
        PREDICATE_RW => Dependency::PredicateReadWrite,
        label => {
            debug_assert_eq!(label, RT);
            Dependency::RealTime
        }
    }
}

/// The edges of a cycle, and a description of the cycle.
pub(crate) fn render(
    history: &History,
    versions: &Versions,
    cycle: &[Link],
    remark: &str,
) -> (Vec<Edge>, String) {
    let id = |txn: u32| history.transactions[txn as usize].id;
    let edges: Vec<Edge> = cycle
        .iter()
        .map(|link| Edge {
            from: id(link.from),
            to: id(link.to),
            dependency: dependency(link.label),
            key: (link.key != NONE).then(|| versions.chain(link.key).key),
        })
        .collect();
    let mut text = String::new();
    if let Some(edge) = edges.first() {
        let _ = write!(text, "T{}", edge.from);
    }
    for edge in &edges {
        let _ = write!(text, " -{}", edge.dependency.name());
        if let Some(key) = edge.key {
            let _ = write!(text, " {key}");
        }
        let _ = write!(text, "-> T{}", edge.to);
    }
    text.push_str(remark);
    for link in cycle {
        let _ = write!(text, "\n    ");
        explain(history, versions, link, &mut text);
    }
    (edges, text)
}

fn explain(history: &History, versions: &Versions, link: &Link, text: &mut String) {
    let from = &history.transactions[link.from as usize];
    let to = &history.transactions[link.to as usize];
    let _ = if link.label == RT {
        write!(text, "T{} ended at {} ns, before T{} began at {} ns", from.id, from.end, to.id, to.begin)
    } else {
        let key = versions.chain(link.key).key;
        let written = |txn: u32| wrote(history, txn, key);
        let seen = |txn: u32| saw(history, txn, key);
        match link.label {
            WW => write!(
                text,
                "T{} {} at key {key}, later T{} {}",
                from.id,
                written(link.from),
                to.id,
                written(link.to)
            ),
            WR | PREDICATE_WR => write!(
                text,
                "T{} {} at key {key}, T{} {} there, written by it or later",
                from.id,
                written(link.from),
                to.id,
                seen(link.to)
            ),
            _ => write!(
                text,
                "T{} {} at key {key}, which is before T{} {}",
                from.id,
                seen(link.from),
                to.id,
                written(link.to)
            ),
        }
    };
}

/// What a transaction left at a key, in words.
fn wrote(history: &History, txn: u32, key: u64) -> String {
    let ops = &history.transactions[txn as usize].ops;
    let last = ops.iter().rev().find_map(|op| match *op {
        Op::Write { key: at, value } if at == key => Some(format!("wrote value {value}")),
        Op::Delete { key: at, value } if at == key => Some(format!("left tombstone {value}")),
        _ => None,
    });
    last.unwrap_or_default()
}

/// What a transaction saw at a key, in words. Prefers a point read to a scan.
fn saw(history: &History, txn: u32, key: u64) -> String {
    let mut scanned = None;
    for op in &history.transactions[txn as usize].ops {
        match op {
            Op::Read { key: at, value } if *at == key => {
                return match value {
                    Some(value) => format!("read value {value}"),
                    None => "read nothing".to_owned(),
                };
            }
            Op::Scan { low, high, found } if scanned.is_none() && (low..=high).contains(&&key) => {
                let value = found.iter().find(|(at, _)| *at == key);
                scanned = Some(match value {
                    Some((_, value)) => format!("scanned {low}..={high} and read value {value}"),
                    None => format!("scanned {low}..={high} and found nothing"),
                });
            }
            _ => {}
        }
    }
    scanned.unwrap_or_default()
}
