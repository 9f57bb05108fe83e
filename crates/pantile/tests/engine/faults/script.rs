//! The steps during which a fault happens, and the state that must be there
//! afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{
    Database, GcOptions, IndexDef, Medium, Options, Pacing, Range, Result, Table, TableDef, Transaction,
    Type, Value,
};
use pantile_testkit::cut::{CutKind, CutMedium, Image};

/// A transaction, or a change of definitions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    Create(&'static str),
    Drop(&'static str),
    Index(&'static str),
    DropIndex(&'static str),
    /// Rows by id, number and length, inserted or updated.
    Put(&'static str, Vec<(u32, u8, usize)>),
    Delete(&'static str, Vec<u32>),
    /// This many empty commits, in which the collector continues its work.
    Idle(u32),
}

impl Step {
    pub fn table(&self) -> &'static str {
        match self {
            Step::Create(table) | Step::Drop(table) | Step::Index(table) | Step::DropIndex(table) => table,
            Step::Put(table, _) | Step::Delete(table, _) => table,
            Step::Idle(_) => "t",
        }
    }

    /// Whether it frees space and takes none except for tombstones.
    pub fn is_delete(&self) -> bool {
        matches!(self, Step::Drop(_) | Step::Delete(..))
    }
}

/// What a table holds: the number and the length of each row.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Rows {
    rows: BTreeMap<u32, (u8, usize)>,
    has_index: bool,
}

/// What a database holds.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct State(BTreeMap<&'static str, Rows>);

const INDEX: &str = "by_number";

/// Small blocks, and a collector that is never idle.
pub fn options(medium: Arc<dyn Medium>, time: &SimulatedTime) -> Options {
    let gc = GcOptions {
        theta: 0.5,
        queue_share: 0.0,
        epoch: Duration::from_micros(100),
        pacing: Pacing::Fixed,
        ..GcOptions::default()
    };
    let options = Options::new().on_medium(medium).gc(gc).block_slots(2).streams(1);
    options.recovery_threads(1).simulated_time(time.clone())
}

pub fn open(medium: Arc<dyn Medium>, time: &SimulatedTime) -> Result<Database> {
    options(medium, time).open("unused")
}

/// Rows of many sizes, long ones among them, which take several chunks.
fn of_sizes(sizes: [usize; 8]) -> Vec<Step> {
    (0..).zip(sizes).map(|(id, size)| Step::Put("u", vec![(id, 1, size)])).collect()
}

/// Everything that writes: tables and indexes are created and dropped, rows
/// grow and shrink, values lie out of line, and chunks become empty, are given
/// back to the system and are taken again.
pub fn script() -> Vec<Step> {
    let updates = |from: u8, to: u8| (from..to).map(|n| Step::Put("t", vec![(u32::from(n % 3), n, 20)]));
    let mut steps = vec![Step::Create("t"), Step::Put("t", (0..4).map(|id| (id, 0, 20)).collect())];
    steps.push(Step::Index("t"));
    steps.push(Step::Create("u"));
    steps.extend(of_sizes([100, 200, 400, 800, 12_800, 600_000, 700_000, 800_000]));
    steps.push(Step::Put("t", vec![(7, 1, 70_000), (2, 1, 20)]));
    steps.extend(updates(1, 4));
    steps.push(Step::Delete("t", vec![3, 7]));
    steps.push(Step::Drop("u"));
    steps.extend(updates(4, 60));
    steps.push(Step::Idle(600));
    steps.push(Step::DropIndex("t"));
    steps.push(Step::Create("u"));
    steps.extend(of_sizes([150, 300, 600, 1_200, 19_200, 650_000, 750_000, 850_000]));
    steps.push(Step::Delete("t", vec![0]));
    steps
}

impl State {
    /// Whether a step is possible and would change anything.
    pub fn allows(&self, step: &Step) -> bool {
        let rows = self.0.get(step.table());
        match step {
            Step::Create(_) => rows.is_none(),
            Step::Drop(_) | Step::Put(..) | Step::Idle(_) => rows.is_some(),
            Step::Index(_) => rows.is_some_and(|rows| !rows.has_index),
            Step::DropIndex(_) => rows.is_some_and(|rows| rows.has_index),
            Step::Delete(_, ids) => rows.is_some_and(|rows| ids.iter().any(|id| rows.rows.contains_key(id))),
        }
    }

    /// The state after a step.
    #[must_use]
    pub fn after(&self, step: &Step) -> Self {
        let mut after = self.clone();
        if let Step::Create(table) = step {
            after.0.insert(table, Rows::default());
            return after;
        }
        let rows = after.0.get_mut(step.table()).expect("the table is there");
        match step {
            Step::Create(_) | Step::Idle(_) => {}
            Step::Drop(table) => drop(after.0.remove(table)),
            Step::Index(_) => rows.has_index = true,
            Step::DropIndex(_) => rows.has_index = false,
            Step::Put(_, put) => rows.rows.extend(put.iter().map(|&(id, n, len)| (id, (n, len)))),
            Step::Delete(_, ids) => rows.rows.retain(|id, _| !ids.contains(id)),
        }
        after
    }

    /// Does a step.
    ///
    /// # Errors
    /// Those of the database. The step must then have changed nothing.
    pub fn perform(&self, db: &Database, step: &Step, time: &SimulatedTime) -> Result<()> {
        time.advance(Duration::from_micros(300));
        if let Step::Create(name) = step {
            let def = TableDef::new(*name).column("id", Type::U32).column("number", Type::U8);
            let def = def.column("data", Type::Bytes(1_000_000)).primary_key(["id"]);
            return db.create_table(def).map(|_| ());
        }
        let (rows, table) = (&self.0[step.table()].rows, db.table(step.table())?);
        match step {
            Step::Create(_) => unreachable!("seen to above"),
            Step::Drop(name) => db.drop_table(name),
            Step::Index(_) => db.create_index(&table, IndexDef::new(INDEX, ["number"])).map(|_| ()),
            Step::DropIndex(_) => db.drop_index(&table, INDEX),
            Step::Put(_, put) => db.run(|txn| {
                for &(id, number, len) in put {
                    let data = vec![number; len];
                    let (number, data) = (Value::UInt(number.into()), Value::Bytes(&data));
                    match rows.contains_key(&id) {
                        true => assert!(txn.update(&table, &[id.into()], &[(1, number), (2, data)])?),
                        false => txn.insert(&table, &[id.into(), number, data])?,
                    }
                }
                Ok(())
            }),
            Step::Idle(commits) => (0..*commits).try_for_each(|_| {
                time.advance(Duration::from_micros(50));
                db.run(|txn| {
                    let none = Value::Bytes(&[]);
                    txn.insert(&table, &[u32::MAX.into(), 0u8.into(), none])?;
                    txn.delete(&table, &[u32::MAX.into()]).map(|_| ())
                })
            }),
            Step::Delete(_, ids) => db.run(|txn| {
                for &id in ids {
                    assert_eq!(txn.delete(&table, &[id.into()])?, rows.contains_key(&id));
                }
                Ok(())
            }),
        }
    }

    /// What a database holds, by its tables and by its indexes.
    ///
    /// # Errors
    /// Those of the database.
    pub fn of(db: &Database) -> Result<Self> {
        let names = db.tables();
        let known = ["t", "u"].into_iter().filter(|name| names.iter().any(|n| n == name));
        let state = known.map(|name| Ok((name, rows_of(db, &db.table(name)?)?)));
        let state = Self(state.collect::<Result<_>>()?);
        assert_eq!(names.len(), state.0.len(), "{names:?}");
        Ok(state)
    }
}

/// The number and the length of each row that a transaction sees.
///
/// # Errors
/// Those of the database.
pub fn seen(txn: &Transaction, table: &Table) -> Result<BTreeMap<u32, (u8, usize)>> {
    let mut found = BTreeMap::new();
    for row in txn.scan(table, Range::all())? {
        let row = row?;
        let data = row.get::<Vec<u8>>(2)?;
        let (id, number): (u32, u8) = (row.get(0)?, row.get(1)?);
        assert!(data.iter().all(|byte| *byte == number), "row {id} of {}", table.name());
        found.insert(id, (number, data.len()));
    }
    Ok(found)
}

fn rows_of(db: &Database, table: &Table) -> Result<Rows> {
    let txn = db.begin_read()?;
    let mut found = Rows { rows: seen(&txn, table)?, has_index: false };
    let Ok(index) = table.index(INDEX) else { return Ok(found) };
    found.has_index = true;
    let rows = txn.scan_index(&index, Range::all())?;
    let by_index: Vec<(u8, u32)> =
        rows.map(|row| row.and_then(|row| Ok((row.get(1)?, row.get(0)?)))).collect::<Result<_>>()?;
    let mut numbers: Vec<_> = found.rows.iter().map(|(id, (number, _))| (*number, *id)).collect();
    numbers.sort_unstable();
    let mut ids = by_index.clone();
    ids.sort_unstable();
    assert!(by_index.is_sorted_by_key(|(number, _)| *number), "the index of {}", table.name());
    assert_eq!(ids, numbers, "the index of {}", table.name());
    Ok(found)
}

/// Opens what a medium durably holds. It must be one of these states, in which
/// the database continues and closes.
pub fn reopened(image: &Image, time: &SimulatedTime, allowed: &[&State]) {
    let db = open(CutMedium::new(image, CutKind::Memory, None), time).expect("what is durable opens");
    let found = State::of(&db).expect("readable");
    assert!(allowed.contains(&&found), "found {found:?}, not one of {allowed:?}");
    let after = goes_on(&db, &found, time);
    assert_eq!(State::of(&db).expect("readable"), after);
    db.close().expect("close");
}

/// Commits that need space: a table, and rows of sizes that no other row has.
pub fn goes_on(db: &Database, state: &State, time: &SimulatedTime) -> State {
    let mut state = state.clone();
    let steps = [Step::Create("u"), Step::Put("u", vec![(50, 9, 10_000), (51, 9, 80_000)])];
    for step in steps {
        if !state.allows(&step) {
            continue;
        }
        state.perform(db, &step, time).unwrap_or_else(|error| panic!("{step:?}: {error}"));
        state = state.after(&step);
    }
    state
}
