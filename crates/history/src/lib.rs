//! Checks recorded concurrent histories for transactional anomalies.
//!
//! Client threads record what their transactions read and wrote (see
//! [`Recorder`]). The records are merged into a [`History`]. [`check`] builds
//! the direct serialization graph of the history and reports every class of
//! anomaly that it finds, each with a witness that a person can follow.
//!
//! ```
//! use pantile_history::{AnomalyKind, History, Recorder, check};
//!
//! let (mut writer, mut reader) = (Recorder::simulated(1), Recorder::simulated(2));
//! writer.begin();
//! let (first, second) = (writer.fresh(), writer.fresh());
//! writer.write(1, first);
//! writer.write(2, second);
//! writer.commit(5);
//! reader.begin();
//! reader.read(1, Some(first));
//! reader.read(2, None); // half of what the writer wrote
//! reader.commit(6);
//!
//! let report = check(&History::merge([writer.finish(), reader.finish()]));
//! assert_eq!(report.kinds(), [AnomalyKind::GSingle].into(), "{report}");
//! ```
//!
//! # Sources
//!
//! * The anomalies and the graph: A. Adya, "Weak Consistency: A Generalized
//!   Theory and Optimistic Implementations for Distributed Transactions", PhD
//!   thesis, MIT, 1999; A. Adya, B. Liskov, P. O'Neil, "Generalized Isolation
//!   Level Definitions", ICDE 2000.
//! * Checking without search, which works because every written value is unique
//!   and the order of versions is known: K. Kingsbury, P. Alvaro, "Elle:
//!   Inferring Isolation Anomalies from Experimental Observations", VLDB 2020.
//! * Components: R. Tarjan, "Depth-First Search and Linear Graph Algorithms",
//!   SIAM Journal on Computing 1(2), 1972.
//!
//! # The order of versions
//!
//! The versions of a key are ordered by the timestamps of the committed
//! transactions that wrote them. The initial (absent) version is first. Data
//! loaded beforehand is recorded as an ordinary transaction. Because a
//! transaction has one timestamp, write-write edges then never form a cycle. To
//! look for G0, the order in which versions were really installed must be
//! given, by [`Check::version_order`].
//!
//! # Reads of absent keys
//!
//! A read that found nothing saw the initial version or some tombstone, and it
//! is not known which. Consecutive tombstones form one *run* of absence. A read
//! with one possible run is placed there. A read with several runs first gets
//! only the edges that hold wherever it is placed: it came before the version
//! that ends the last run. If placing all such reads by timestamp closes no
//! cycle, the history has a serial order, and nothing more is reported. If it
//! closes one, runs that would themselves close a cycle are eliminated, one
//! read at a time, until nothing changes. The edges of what remains are certain
//! again. A cycle found in this way is named by the mildest kind that every
//! placement is known to show, so nothing is reported that did not happen. But
//! where several such reads depend on one another, a cycle can be missed. No
//! read shows which tombstone it saw, so a tombstone that was aborted, or
//! overwritten by its own transaction, cannot be recognised. Hence G1a and G1b
//! concern values only.
//!
//! # Transactions of unknown outcome
//!
//! If a committed transaction saw a value that such a transaction wrote last,
//! then that transaction committed, with an unknown timestamp. It takes part
//! with its reads, and its versions have no place in the order. Otherwise it is
//! ignored. Ignoring it can hide an anomaly, but never invent one.

mod check;
mod cycles;
mod edges;
mod graph;
mod history;
mod observe;
mod place;
mod realtime;
mod recorder;
mod render;
mod report;
mod search;
mod versions;

pub use check::{Check, check};
pub use history::{History, Op, Outcome, Txn};
pub use recorder::Recorder;
pub use report::{Anomaly, AnomalyKind, Dependency, Edge, Report};
