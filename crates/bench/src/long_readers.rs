//! Transactions that stay open for long and read now and then: the
//! readers that every collector has to keep old versions for, and that notice
//! when it does not.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::thread;
use std::time::{Duration, Instant};

use pantile::lab::{Protocol, Reads};
use pantile::{Database, Row, Table, Transaction, Value};

use crate::error::{Error, Result};
use crate::workload::{LoadedRow, Workload};
use pantile_testkit::Random;

/// Rows that each reads before clients write.
const FIRST_ROWS: usize = 64;

/// Between two reads of one reader.
const INTERVAL: Duration = Duration::from_millis(100);

/// How often it is looked whether the readers are to end.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// Bytes or characters of a value that a message shows.
const SHOWN_BYTES: usize = 8;

/// Sets the readers' random numbers apart from those of clients and of loading.
const STREAM: u64 = 1 << 48;

/// Several transactions that only read.
pub struct LongReaders<'d, W: Workload> {
    workload: &'d W,
    data: &'d W::Data,
    begin: &'d (dyn Fn() -> Result<Transaction> + Sync),
    /// How long each stays open before the next begins in its place; until the end if there is none.
    life: Option<Duration>,
    readers: Vec<Reader<'d>>,
}

struct Reader<'d> {
    txn: Transaction,
    began: Instant,
    random: Random,
    rows: Vec<Seen<'d>>,
}

/// A row that was read, with a hash of each of its columns; none if it was not there.
struct Seen<'d> {
    row: LoadedRow<'d>,
    columns: Option<Vec<u64>>,
}

impl<'d, W: Workload> LongReaders<'d, W> {
    /// Begins this many transactions, each of which reads a few rows.
    ///
    /// # Errors
    /// Those of the engine; [`Error::Missing`] for a row that was loaded and is not there.
    pub fn begin(
        workload: &'d W,
        data: &'d W::Data,
        begin: &'d (dyn Fn() -> Result<Transaction> + Sync),
        life: Option<Duration>,
        (count, seed): (usize, u64),
    ) -> Result<Self> {
        let randoms = (0..count).map(|n| Random::new(seed, STREAM + n as u64));
        let readers = randoms.map(|random| Reader::begin(workload, data, begin()?, random));
        Ok(Self { workload, data, begin, life, readers: readers.collect::<Result<_>>()? })
    }

    /// Reads about ten times a second until it is told that it is `over`. Each transaction reads what it has read first
    /// once more before it ends.
    ///
    /// # Errors
    /// Those of the engine; [`Error::Changed`] for a row that was something
    /// else before, [`Error::Missing`] for one that is not there.
    pub fn run(mut self, over: impl Fn() -> bool) -> Result<()> {
        let mut again = false;
        let mut next = Instant::now();
        while !self.readers.is_empty() && !over() {
            let now = Instant::now();
            if now < next {
                thread::sleep((next - now).min(LONGEST_SLEEP));
                continue;
            }
            for reader in &mut self.readers {
                match again {
                    true => {
                        let nth = reader.random.below(reader.rows.len() as u64) as usize;
                        reader.read_again(nth)?;
                    }
                    false => reader.read_another(self.workload, self.data)?,
                }
            }
            self.replace_the_old()?;
            again = !again;
            next = now + INTERVAL;
        }
        self.readers.into_iter().try_for_each(|reader| reader.end().map(drop))
    }

    /// Ends those that have been open for as long as they are to be, and begins others.
    fn replace_the_old(&mut self) -> Result<()> {
        let Some(life) = self.life else { return Ok(()) };
        for reader in std::mem::take(&mut self.readers) {
            self.readers.push(match reader.began.elapsed() < life {
                true => reader,
                false => Reader::begin(self.workload, self.data, (self.begin)()?, reader.end()?)?,
            });
        }
        Ok(())
    }
}

/// Begins a transaction that sees one state for as long as it is open. Where a protocol reads what is newest, a reader
/// that took part in it would see rows change, or keep all writers out, so a safe snapshot stands in for it.
///
/// # Errors
/// Those of the engine.
pub fn begin(db: &Database, protocol: Option<Protocol>) -> pantile::Result<Transaction> {
    match protocol.map(Protocol::reads) {
        Some(Reads::Newest | Reads::UnderLocks) => db.begin_safe_snapshot(),
        Some(Reads::AtBegin | Reads::InOrder { .. }) | None => db.begin_read(),
    }
}

impl<'d> Reader<'d> {
    /// A transaction that has begun reads a few rows.
    fn begin<W: Workload>(workload: &W, data: &'d W::Data, txn: Transaction, random: Random) -> Result<Self> {
        let mut reader = Self { txn, began: Instant::now(), random, rows: Vec::new() };
        (0..FIRST_ROWS).try_for_each(|_| reader.read_another(workload, data))?;
        Ok(reader)
    }

    /// Reads them once more, and ends the transaction. Gives back the random numbers.
    fn end(self) -> Result<Random> {
        (0..FIRST_ROWS).try_for_each(|nth| self.read_again(nth))?;
        self.txn.commit()?;
        Ok(self.random)
    }

    fn read_another<W: Workload>(&mut self, workload: &W, data: &'d W::Data) -> Result<()> {
        let row = workload.random_row(data, &mut self.random);
        let columns = self.txn.get(row.table, &row.key)?.map(|row| hashes(&row)).transpose()?;
        if columns.is_none() && !row.is_deleted {
            return Err(Error::Missing { what: "a loaded row of a long reader,", key: name(&row) });
        }
        self.rows.push(Seen { row, columns });
        Ok(())
    }

    fn read_again(&self, nth: usize) -> Result<()> {
        let Seen { row, columns } = &self.rows[nth];
        let found = self.txn.get(row.table, &row.key)?;
        let now = found.as_ref().map(hashes).transpose()?;
        if now == *columns {
            return Ok(());
        }
        Err(Error::Changed {
            row: name(row),
            how: difference(row.table, columns.as_deref(), now.as_deref().zip(found)),
            after: self.began.elapsed(),
        })
    }
}

fn name(row: &LoadedRow<'_>) -> String {
    format!("{} {:?}", row.table.name(), row.key)
}

fn hashes(row: &Row<'_>) -> Result<Vec<u64>> {
    let hash = |value: &Value<'_>| {
        let mut hasher = DefaultHasher::new();
        format!("{value:?}").hash(&mut hasher);
        hasher.finish()
    };
    Ok(row.values()?.iter().map(hash).collect())
}

/// What is different, with the columns as they are now.
fn difference(table: &Table, before: Option<&[u64]>, now: Option<(&[u64], Row<'_>)>) -> String {
    let Some((hashes, row)) = now else { return "it is gone".into() };
    let Some(before) = before else { return format!("it was not there before: {row:?}") };
    let columns = table.definition().columns;
    let changed = (0..hashes.len()).filter(|&n| before.get(n) != Some(&hashes[n]));
    let told = changed.map(|n| match row.get::<Value<'_>>(n) {
        Ok(value) => format!("{} is {} now", columns[n].name, short(&value)),
        Err(error) => format!("{} cannot be read: {error}", columns[n].name),
    });
    told.collect::<Vec<_>>().join(", ")
}

/// A value as a message shows it: of long bytes or text, the beginning and the length.
fn short(value: &Value<'_>) -> String {
    match value {
        Value::Bytes(bytes) => {
            let hex: String = bytes.iter().take(SHOWN_BYTES).map(|byte| format!("{byte:02x}")).collect();
            let more = if bytes.len() > SHOWN_BYTES { "..." } else { "" };
            format!("0x{hex}{more} ({} bytes)", bytes.len())
        }
        Value::Str(text) if text.chars().count() > SHOWN_BYTES => {
            let start: String = text.chars().take(SHOWN_BYTES).collect();
            format!("{start:?}... ({} bytes)", text.len())
        }
        value => format!("{value:?}"),
    }
}

#[cfg(test)]
#[path = "long_readers_test.rs"]
mod tests;
