//! Two rows, an index on their values, and transactions that begin in any order.

use std::time::Duration;

use pantile::{Database, Index, IndexDef, Isolation, Range, Result, Table, TableDef, Transaction, Type};
use pantile_testkit::Bed;

use crate::support::{Beside, PULSE, abort_at, let_collect};

/// Whether an anomaly showed, or the conflict that prevented it.
pub type Outcome = Result<bool>;

/// A table `test (id, value)` with the rows (1, 10) and (2, 20).
pub struct Bench {
    pub db: Database,
    pub table: Table,
    pub by_value: Index,
    level: Isolation,
    order: Vec<usize>,
    /// For commits that let an eager collector work before every step.
    pulse: Option<Table>,
}

/// All orders of `n` things.
pub fn orders(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for next in 0..n {
        all = all
            .into_iter()
            .flat_map(|order: Vec<usize>| {
                (0..=order.len()).map(move |at| {
                    let mut longer = order.clone();
                    longer.insert(at, next);
                    longer
                })
            })
            .collect();
    }
    all
}

impl Bench {
    pub fn new(level: Isolation, order: Vec<usize>, beside: Beside, move_: bool) -> Self {
        // Blocks of two contents, and others.
        let db = beside.home(Bed::Dram, order.iter().sum::<usize>() as u64 + order[0] as u64);
        let db = db.writers_move(move_).open();
        let def = TableDef::new("test")
            .column("id", Type::U32)
            .column("value", Type::I64)
            .primary_key(["id"])
            .index(IndexDef::new("by_value", ["value"]));
        let table = db.create_table(def).expect("a table");
        let by_value = table.index("by_value").expect("its index");
        let def = TableDef::new(PULSE).column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
        let pulse = (beside == Beside::Eager).then(|| db.create_table(def).expect("a table"));
        let bench = Self { db, table, by_value, level, order, pulse };
        bench.fill(&[(1, 10), (2, 20)]);
        bench
    }

    fn let_collect(&self) {
        if let Some(pulse) = &self.pulse {
            let_collect(&self.db, pulse, Duration::from_micros(300));
        }
    }

    pub fn fill(&self, rows: &[(u32, i64)]) {
        let fill = |t: &mut Transaction| {
            rows.iter()
                .try_for_each(|(id, v)| t.upsert(&self.table, &[(*id).into(), (*v).into()]).map(|_| ()))
        };
        self.db.run(fill).expect("no other transaction runs");
    }

    /// The transactions of a scenario, begun in the order that is tried.
    pub fn begin<const N: usize>(&self) -> [Actor<'_>; N] {
        let mut actors = self.order.iter().map(|&n| (n, self.actor())).collect::<Vec<_>>();
        actors.sort_by_key(|(n, _)| *n);
        let actors: Vec<Actor<'_>> = actors.into_iter().map(|(_, actor)| actor).collect();
        actors.try_into().ok().expect("as many as the scenario has")
    }

    /// One more transaction, begun now.
    pub fn actor(&self) -> Actor<'_> {
        self.let_collect();
        Actor { bench: self, txn: self.db.begin_with(abort_at(self.level)).expect("a transaction") }
    }

    /// All rows, as committed.
    pub fn rows(&self) -> Vec<(u32, i64)> {
        let txn = self.db.begin().expect("a transaction");
        txn.scan(&self.table, Range::all())
            .and_then(|rows| rows.map(|r| r.and_then(|r| Ok((r.get(0)?, r.get(1)?)))).collect())
            .expect("no conflict")
    }
}

/// A transaction of a scenario.
pub struct Actor<'b> {
    bench: &'b Bench,
    pub txn: Transaction,
}

impl Actor<'_> {
    pub fn read(&self, id: u32) -> Result<Option<i64>> {
        self.bench.let_collect();
        self.txn.get(&self.bench.table, &[id.into()])?.map(|row| row.get(1)).transpose()
    }

    pub fn write(&mut self, id: u32, value: i64) -> Result<bool> {
        self.bench.let_collect();
        self.txn.update(&self.bench.table, &[id.into()], &[(1, value.into())])
    }

    pub fn insert(&mut self, id: u32, value: i64) -> Result<()> {
        self.bench.let_collect();
        self.txn.insert(&self.bench.table, &[id.into(), value.into()])
    }

    pub fn delete(&mut self, id: u32) -> Result<bool> {
        self.bench.let_collect();
        self.txn.delete(&self.bench.table, &[id.into()])
    }

    /// The ids of the rows in a range.
    pub fn ids(&self, range: Range<'_>) -> Result<Vec<u32>> {
        self.bench.let_collect();
        self.txn.scan(&self.bench.table, range)?.map(|row| row?.get(0)).collect()
    }

    /// The ids of the rows with values in a range.
    pub fn by_value(&self, range: Range<'_>) -> Result<Vec<u32>> {
        self.bench.let_collect();
        self.txn.scan_index(&self.bench.by_value, range)?.map(|row| row?.get(0)).collect()
    }

    /// The ids of the rows with this value.
    pub fn with_value(&self, value: i64) -> Result<Vec<u32>> {
        self.by_value(Range::prefix(&[value.into()]))
    }

    /// The values that three divides, found by reading everything.
    pub fn multiples_of_three(&self) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        for row in self.txn.scan(&self.bench.table, Range::all())? {
            let row = row?;
            if row.get::<i64>(1)? % 3 == 0 {
                found.push(row.get(0)?);
            }
        }
        Ok(found)
    }

    pub fn commit(self) -> Result<()> {
        self.bench.let_collect();
        self.txn.commit().map(|_| ())
    }

    pub fn rollback(self) {
        self.txn.rollback();
    }
}
