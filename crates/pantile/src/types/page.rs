//! The statistics page: what a database publishes beside its data file for other
//! processes (docs/format.md, "Statistics page").
//!
//! It is a cache of what is in memory, and nothing depends on it: a page that is
//! torn, old or of another version is said to be so and not shown.

use std::time::{Duration, SystemTime};

use pantile_base::control::{Control, is_removed};
use twox_hash::XxHash3_64;

use crate::types::figures::{Figures, History, Sample};
use crate::types::stats::{HeldOfTable, TableSpace};

/// The name of the file in the database's directory.
pub(crate) const STATS_FILE: &str = "pantile.stats";

const MAGIC: [u8; 8] = *b"PTILSTAT";
const VERSION: u32 = 3;
/// Magic, version, length of the payload, checksum of the payload.
const HEADER: usize = 24;
/// A page is never longer.
const LONGEST: usize = 1 << 20;

/// A transaction on a [`Page`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PageTransaction {
    /// The number of its [`TransactionId`](crate::TransactionId); 0 for work of the database itself.
    pub id: u64,
    /// What the program calls it; empty if it has no name.
    pub name: String,
    /// Where the program began it, as file, line and column.
    pub place: String,
    /// Its isolation; empty for work of the database itself.
    pub isolation: String,
    /// Whether it is read-only.
    pub read_only: bool,
    /// How old it was when the page was written, in microseconds.
    pub age_micros: u64,
    /// The thread that began it.
    pub thread: String,
    /// The system's number of that thread.
    pub thread_id: u64,
    /// What has ended it, if it is not dropped yet; else empty.
    pub ended: String,
    /// Superseded bytes on the medium that it holds back.
    pub held_bytes: u64,
    /// Their blocks.
    pub held_blocks: u64,
    /// The part of `held_bytes` that its end would free.
    pub freed_bytes: u64,
    /// Memory that it holds back, in bytes.
    pub held_dram_bytes: u64,
    /// The part of `held_dram_bytes` that its end would free.
    pub freed_dram_bytes: u64,
    /// Memory of its own writes, in bytes.
    pub buffer_bytes: u64,
    /// What it holds back, by table.
    pub tables: Vec<HeldOfTable>,
}

/// Another process that reads the database, on a [`Page`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PageReader {
    /// Its process id; 0 if it was reading before the database was opened.
    pub process: u32,
    /// For how long it had read when the page was written, in microseconds; 0 if that
    /// is not known.
    pub age_micros: u64,
    /// Superseded bytes on the medium that it holds back. Others may hold them, too.
    pub held_bytes: u64,
}

/// The statistics that a database publishes once a second for other processes;
/// [`watch`](crate::tools::watch) reads them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Page {
    /// The process that has the database open.
    pub process: u32,
    /// When that process was started, in clock ticks of the system since it booted.
    /// With `process` it names one process.
    pub process_started: u64,
    /// When the database was opened, in milliseconds since 1970.
    pub opened_millis: u64,
    /// When the page was written, in milliseconds since 1970.
    pub written_millis: u64,
    /// Whether nothing had begun or ended for a second when the page was written. If so, nothing
    /// has since, and the page is up to date, however old it is.
    pub is_quiet: bool,
    /// The medium's name, as in "file".
    pub medium: String,
    /// Most bytes that the medium may take.
    pub limit_bytes: u64,
    /// In how many seconds the medium is full, at the rate of the last minute. `None` if its used
    /// part does not grow.
    pub full_in_seconds: Option<u64>,
    /// Counters and gauges.
    pub figures: Figures,
    /// The largest tables.
    pub tables: Vec<TableSpace>,
    /// Tables that are not in `tables`.
    pub more_tables: u64,
    /// The transactions that hold back most.
    pub transactions: Vec<PageTransaction>,
    /// Transactions that are not in `transactions`.
    pub more_transactions: u64,
    /// Other processes that read the database.
    pub readers: Vec<PageReader>,
    /// The newest part of the history.
    pub history: History,
}

impl Page {
    /// How long ago the page was written.
    pub fn age(&self) -> Duration {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(Duration::from_millis(self.written_millis))
    }

    /// Whether the process that wrote it still runs, as far as this process can see:
    /// on macOS and Windows it cannot, and the answer is no.
    pub fn is_process_running(&self) -> bool {
        started(self.process) == Some(self.process_started)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer(vec![0; HEADER]);
        out.page(self);
        let mut bytes = out.0;
        let payload = bytes.len() - HEADER;
        let sum = XxHash3_64::oneshot_with_seed(u64::from(VERSION), &bytes[HEADER..]);
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(payload as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Unusable> {
        let header = bytes.get(..HEADER).ok_or(Unusable::Foreign)?;
        if header[..8] != MAGIC {
            return Err(Unusable::Foreign);
        }
        let number =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if number(8) != VERSION {
            return Err(Unusable::Version(number(8)));
        }
        let length = number(12) as usize;
        let payload =
            bytes.get(HEADER..HEADER + length).filter(|_| length <= LONGEST).ok_or(Unusable::Torn)?;
        let sum = XxHash3_64::oneshot_with_seed(u64::from(VERSION), payload).to_le_bytes();
        if header[16..24] != sum && !is_removed(Control::PageChecksum) {
            return Err(Unusable::Torn);
        }
        Reader(payload).page().ok_or(Unusable::Foreign)
    }
}

/// When a process was started, if it runs.
pub(crate) fn started(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name comes second, in parentheses, and may hold anything.
    let mut rest = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let is_over = matches!(rest.next()?, "Z" | "X");
    rest.nth(18)?.parse().ok().filter(|_| !is_over)
}

/// Why a page cannot be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unusable {
    /// It is no page.
    Foreign,
    /// It has another version.
    Version(u32),
    /// It was being written, or is damaged.
    Torn,
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn numbers(&mut self, numbers: &[u64]) {
        self.number(numbers.len() as u64);
        numbers.iter().for_each(|&number| self.number(number));
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], put: impl Fn(&mut Self, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|item| put(self, item));
    }

    fn page(&mut self, page: &Page) {
        let head = [u64::from(page.process), page.process_started, page.opened_millis, page.written_millis];
        self.numbers(&head);
        let full_in = page.full_in_seconds.map_or([0, 0], |seconds| [1, seconds]);
        self.numbers(&[u64::from(page.is_quiet), page.limit_bytes, full_in[0], full_in[1]]);
        self.text(&page.medium);
        self.numbers(&page.figures.values());
        self.list(&page.tables, |out, table| out.table(table));
        self.list(&page.transactions, |out, transaction| out.transaction(transaction));
        self.numbers(&[page.more_tables, page.more_transactions]);
        self.list(&page.readers, |out, reader| {
            out.numbers(&[reader.process.into(), reader.age_micros, reader.held_bytes]);
        });
        self.list(&page.history.seconds, |out, sample| out.numbers(&sample.values()));
        self.list(&page.history.minutes, |out, sample| out.numbers(&sample.values()));
    }

    fn table(&mut self, t: &TableSpace) {
        self.text(&t.table);
        self.numbers(&[t.blocks, t.open_blocks, t.bytes, t.contents, t.obsolete, t.obsolete_bytes]);
    }

    fn transaction(&mut self, t: &PageTransaction) {
        [&t.name, &t.place, &t.isolation, &t.thread, &t.ended].into_iter().for_each(|text| self.text(text));
        let who = [t.id, u64::from(t.read_only), t.age_micros, t.thread_id];
        let medium = [t.held_bytes, t.held_blocks, t.freed_bytes];
        self.numbers(&[who.as_slice(), &medium].concat());
        self.numbers(&[t.held_dram_bytes, t.freed_dram_bytes, t.buffer_bytes]);
        self.list(&t.tables, |out, table| {
            out.text(&table.table);
            out.numbers(&[table.bytes, table.blocks]);
        });
    }
}

struct Reader<'p>(&'p [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn numbers(&mut self) -> Option<Vec<u64>> {
        self.list(Self::number)
    }

    fn array<const N: usize>(&mut self) -> Option<[u64; N]> {
        self.numbers()?.try_into().ok()
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn list<T>(&mut self, mut take: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.number()?;
        // Each item takes at least a number.
        let fits = length <= self.0.len() as u64 / 8;
        if fits { (0..length).map(|_| take(self)).collect() } else { None }
    }

    fn page(mut self) -> Option<Page> {
        let [process, process_started, opened_millis, written_millis] = self.array()?;
        let [is_quiet, limit_bytes, is_known, seconds] = self.array()?;
        let medium = self.text()?;
        let figures = Figures::from_values(&self.numbers()?)?;
        let tables = self.list(Self::table)?;
        let transactions = self.list(Self::transaction)?;
        let [more_tables, more_transactions] = self.array()?;
        let readers = self.list(|from| {
            let [process, age_micros, held_bytes] = from.array()?;
            Some(PageReader { process: u32::try_from(process).ok()?, age_micros, held_bytes })
        })?;
        let mut samples = || self.list(|from| Sample::from_values(&from.numbers()?));
        let history = History { seconds: samples()?, minutes: samples()? };
        Some(Page {
            process: u32::try_from(process).ok()?,
            process_started,
            opened_millis,
            written_millis,
            is_quiet: is_quiet != 0,
            medium,
            limit_bytes,
            full_in_seconds: (is_known != 0).then_some(seconds),
            figures,
            tables,
            more_tables,
            transactions,
            more_transactions,
            readers,
            history,
        })
    }

    fn table(&mut self) -> Option<TableSpace> {
        let table = self.text()?;
        let [blocks, open_blocks, bytes, contents, obsolete, obsolete_bytes] = self.array()?;
        Some(TableSpace { table, blocks, open_blocks, bytes, contents, obsolete, obsolete_bytes })
    }

    fn transaction(&mut self) -> Option<PageTransaction> {
        let [name, place, isolation, thread, ended] =
            [self.text()?, self.text()?, self.text()?, self.text()?, self.text()?];
        let [id, read_only, age_micros, thread_id, held_bytes, held_blocks, freed_bytes] = self.array()?;
        let [held_dram_bytes, freed_dram_bytes, buffer_bytes] = self.array()?;
        let tables = self.list(|from| {
            let table = from.text()?;
            let [bytes, blocks] = from.array()?;
            Some(HeldOfTable { table, bytes, blocks })
        })?;
        Some(PageTransaction {
            id,
            name,
            place,
            isolation,
            read_only: read_only != 0,
            age_micros,
            thread,
            thread_id,
            ended,
            held_bytes,
            held_blocks,
            freed_bytes,
            held_dram_bytes,
            freed_dram_bytes,
            buffer_bytes,
            tables,
        })
    }
}

#[cfg(test)]
#[path = "page_test.rs"]
mod tests;
