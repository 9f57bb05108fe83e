//! Sixteen of the 22 queries of CH-benCHmark (R. Cole and others, "The Mixed
//! Workload CH-benCHmark", DBTest 2011), each a plan of its own over one
//! [`Snapshot`].
//!
//! Money is in hundredths, here as in the tables. The latest date that a
//! query asks for is later than in the original, where it has passed.

mod customers;
mod dates;
mod items;
mod lines;
mod orders;
mod stock;

use pantile::Result;

use super::answer::Answer;
use super::snapshot::Snapshot;

/// A query.
pub struct Query {
    /// Its name, with its number in CH-benCHmark.
    pub name: &'static str,
    /// Answers it.
    pub run: fn(&Snapshot<'_>) -> Result<Answer>,
}

/// The queries.
pub const QUERIES: [Query; 16] = [
    Query { name: "q1", run: lines::q1 },
    Query { name: "q2", run: stock::q2 },
    Query { name: "q3", run: customers::q3 },
    Query { name: "q4", run: orders::q4 },
    Query { name: "q5", run: customers::q5 },
    Query { name: "q6", run: lines::q6 },
    Query { name: "q9", run: orders::q9 },
    Query { name: "q11", run: stock::q11 },
    Query { name: "q12", run: orders::q12 },
    Query { name: "q13", run: customers::q13 },
    Query { name: "q14", run: items::q14 },
    Query { name: "q15", run: lines::q15 },
    Query { name: "q16", run: items::q16 },
    Query { name: "q18", run: orders::q18 },
    Query { name: "q19", run: items::q19 },
    Query { name: "q22", run: customers::q22 },
];
