//! Small syncs that write few bytes.
//!
//! A sync of the data file writes each page that has changed: 4 KB for a row of 100 bytes, and one page at least for
//! each table of a commit. Where that is much more than what was written, the same bytes go to the end of the
//! journal, a file beside the data file, and only the journal is synced. The data file has the bytes in the page
//! cache, and its next sync takes them to the device, each page once. Then the journal begins anew. After a crash,
//! opening writes to the data file what the journal has (I-38).
//!
//! The bytes are described in docs/format.md.

use crate::MediumError;
use crate::data_file::DataFile;
use crate::files::{create_like, leads_to, sync_path};
use crate::group_sync::SyncCall;
use crate::limits::check_file_size;
use crate::os::{self, Lifetime};
use crate::place::{Place, belonging};
use crate::stats::{Count, Counters};
use pantile_base::control::{Control, is_removed};
use pantile_base::limits::{GROWTH_BYTES, STATE_COPY_BYTES, STATE_RECORDS, SUPERBLOCK_COPY};
use parking_lot::Mutex;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use twox_hash::XxHash3_64;

/// The file in which small syncs put what they make durable, beside a data file of the usual name.
pub const JOURNAL_FILE: &str = "pantile.journal";

const MAGIC: u64 = u64::from_le_bytes(*b"PANJOURN");

/// Bytes of the file. When they are used up, the data file is synced. Few in tests, so that this happens.
const JOURNAL_BYTES: u64 = if cfg!(test) { 16 << 10 } else { 512 << 10 };

/// Most bytes of a record. Where commits write more, pages fill up.
const MOST_BYTES: usize = 32 << 10;

/// Bytes of a record before its writes: eight words.
const HEADER_BYTES: usize = 64;

/// Bytes before those of a write: where they belong, and how many they are.
const WRITE_BYTES: usize = 12;

/// The unit in which the system writes a file to its device.
const PAGE_BYTES: u64 = 4096;

/// Most pages that are counted. Above, the data file is synced.
const MOST_PAGES: usize = 256;

/// Memory and places of unbuffered writes are multiples of this, on any device.
const ALIGNMENT: usize = 4096;

/// The unit of unbuffered writes on most devices.
const SECTOR_BYTES: usize = 512;

/// The journal is begun to be used if it takes this many times fewer bytes than the pages, and is used as long as it
/// takes the second number of times fewer. With less to win, a second write for each sync costs more than it saves.
const FEWER: [u64; 2] = [4, 3];

/// Syncs over which that is looked at: those that go to the data file after others cost one more wait.
const SYNCS: u64 = 16;

/// Syncs for which the journal would have been better, before it is made. A process that makes a few commits needs
/// none.
const WISHES: u32 = if cfg!(test) { 4 } else { 64 };

/// The names are looked at no more often than this. Asking for the times of a file makes the system change them
/// at its next write, and its inode with them, which slows syncs.
const BETWEEN: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 50 });

/// The state of the data file that a record belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    /// A hash of the superblock, which tells databases apart.
    database: u64,
    /// The sequence number of the state record.
    sequence: u64,
}

/// The sequence numbers in both copies of both state records, as far as they can be read.
fn sequences(data: &File) -> [[Option<u64>; 2]; 2] {
    STATE_RECORDS.map(|place| {
        [place, place + STATE_COPY_BYTES].map(|at| {
            let mut word = [0; 8];
            os::read_exact_at(data, &mut word, at).is_ok().then(|| u64::from_le_bytes(word))
        })
    })
}

/// The hash of the superblock at a place; none if there is none yet, or it cannot be read.
fn database(data: &File, at: u64) -> Option<u64> {
    let mut superblock = [0; 64];
    os::read_exact_at(data, &mut superblock, at).ok()?;
    superblock.iter().any(|byte| *byte != 0).then(|| hash(&superblock))
}

fn hash(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(MAGIC, bytes)
}

impl Stamp {
    /// That of a file whose bytes are about to be synced.
    fn of(data: &File) -> Option<Self> {
        // A flipped bit does not make both copies of a record larger.
        let of_place = |copies: [Option<u64>; 2]| copies.into_iter().flatten().min();
        let sequence = sequences(data).into_iter().filter_map(of_place).max()?;
        Some(Self { database: database(data, 0)?, sequence })
    }

    /// Whether the file can be in the state that a crash leaves. A state record may have been written since the
    /// stamp was taken, but no second one: the data file is synced after each.
    fn fits(self, data: &File) -> bool {
        let is_next = |found: u64| found == self.sequence || found == self.sequence.wrapping_add(1);
        let places = sequences(data);
        // Where the copies differ, the crash came while a record was written, or one copy is damaged: any may be
        // that in force.
        let are_whole = places.iter().all(|[one, other]| one.is_some() && one == other);
        let mut found = places.into_iter().flatten().flatten();
        let is_near = if are_whole { found.max().is_some_and(is_next) } else { found.any(is_next) };
        is_near && [0, SUPERBLOCK_COPY].iter().any(|at| database(data, *at) == Some(self.database))
    }
}

/// A record in memory: room for the header, then the writes.
struct Record {
    bytes: Vec<u8>,
    /// Where the record begins, aligned as unbuffered writes need it.
    start: usize,
    len: usize,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}

impl Record {
    fn new() -> Self {
        let bytes = vec![0; MOST_BYTES + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Self { bytes, start, len: HEADER_BYTES }
    }

    fn all(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..MOST_BYTES]
    }

    /// Adds a write. Returns false if there is no room.
    fn add(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let (from, to) = (self.len, self.len + WRITE_BYTES + bytes.len());
        if to > MOST_BYTES {
            return false;
        }
        let room = &mut self.all()[from..to];
        room[..8].copy_from_slice(&offset.to_le_bytes());
        room[8..WRITE_BYTES].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        room[WRITE_BYTES..].copy_from_slice(bytes);
        self.len = to;
        true
    }

    /// The record as it is written, in whole blocks.
    fn seal(&mut self, epoch: u64, number: u64, stamp: Stamp, block: usize) -> &[u8] {
        let (len, whole) = (self.len, self.len.next_multiple_of(block));
        let body = (len - HEADER_BYTES) as u64;
        let words = [MAGIC, epoch, number, body, stamp.database, stamp.sequence, block as u64];
        let all = self.all();
        all[len..whole].fill(0);
        for (n, word) in words.into_iter().enumerate() {
            all[8 * (n + 1)..][..8].copy_from_slice(&word.to_le_bytes());
        }
        let sum = hash(&all[8..len]);
        all[..8].copy_from_slice(&sum.to_le_bytes());
        &all[..whole]
    }
}

/// What was written since the last sync began.
#[derive(Debug)]
struct Pending {
    record: Record,
    /// The pages of the data file that were written to.
    pages: Vec<u64>,
    /// Only a sync of the data file makes it durable.
    needs_data: bool,
}

impl Pending {
    fn new() -> Self {
        Self { record: Record::new(), pages: Vec::new(), needs_data: false }
    }

    fn add(&mut self, offset: u64, bytes: &[u8]) {
        if self.needs_data || bytes.is_empty() {
            return;
        }
        if !self.record.add(offset, bytes) {
            self.needs_data = true;
            return;
        }
        let last = offset + bytes.len() as u64 - 1;
        for page in offset / PAGE_BYTES..=last / PAGE_BYTES {
            if !self.pages.contains(&page) {
                self.pages.push(page);
            }
        }
        self.needs_data = self.pages.len() > MOST_PAGES;
    }

    fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Bytes that a sync of the data file would write, and those that the journal takes. What is in the journal is
    /// written to the data file as well, later.
    fn costs(&self, block: usize) -> [u64; 2] {
        let journaled = self.record.len.next_multiple_of(block) + self.record.len - HEADER_BYTES;
        [self.pages.len() as u64 * PAGE_BYTES, journaled as u64]
    }

    fn clear(&mut self) {
        self.record.len = HEADER_BYTES;
        self.pages.clear();
        self.needs_data = false;
    }
}

/// The open file.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: File,
    /// The unit of writes.
    block: usize,
    /// Where the next record begins.
    at: u64,
    epoch: u64,
    number: u64,
}

impl Log {
    /// Makes the file, without records. It and its name are durable. What is there already is left alone: another
    /// database may use it.
    fn create(data: &File, path: PathBuf, directory: &Path, stamp: Stamp) -> io::Result<Self> {
        check_file_size(JOURNAL_BYTES)?;
        // It has rows, so nobody else may read it.
        let buffered = create_like(&path, data, Lifetime::Short)?;
        let filled = Self::fill(buffered, path.clone(), stamp);
        let created = filled.and_then(|log| sync_path(directory).map(|()| log));
        if created.is_err() {
            let _ = fs::remove_file(&path);
        }
        created
    }

    fn fill(buffered: File, path: PathBuf, stamp: Stamp) -> io::Result<Self> {
        // Space that was written before needs no change of the file system's records in a sync.
        os::write_all_at(&buffered, &vec![0; JOURNAL_BYTES as usize], 0)?;
        buffered.sync_all()?;
        let direct = os::open_direct(&buffered);
        let mut log = Self { path, file: buffered, block: SECTOR_BYTES, at: 0, epoch: 0, number: 0 };
        let is_direct = direct.is_some_and(|direct| log.becomes_direct(direct, stamp));
        if !is_direct {
            log.begin(stamp)?;
        }
        Ok(log)
    }

    /// Tries to write past the page cache, and so in sectors instead of pages.
    fn becomes_direct(&mut self, direct: File, stamp: Stamp) -> bool {
        let buffered = mem::replace(&mut self.file, direct);
        for block in [SECTOR_BYTES, ALIGNMENT] {
            self.block = block;
            if self.begin(stamp).is_ok() {
                return true;
            }
        }
        (self.file, self.block) = (buffered, SECTOR_BYTES);
        false
    }

    /// Begins anew: what was in the journal means nothing from here on.
    fn begin(&mut self, stamp: Stamp) -> io::Result<()> {
        (self.epoch, self.number, self.at) = (self.epoch + 1, 0, 0);
        self.write(&mut Record::new(), stamp)
    }

    /// Whether the next opener would find it.
    fn is_there(&self) -> bool {
        leads_to(&self.path, &self.file).unwrap_or(false)
    }

    fn has_room(&self, record: &Record) -> bool {
        self.at + record.len.next_multiple_of(self.block) as u64 <= JOURNAL_BYTES
    }

    fn write(&mut self, record: &mut Record, stamp: Stamp) -> io::Result<()> {
        let bytes = record.seal(self.epoch, self.number, stamp, self.block);
        os::write_all_at(&self.file, bytes, self.at)?;
        self.file.sync_data()?;
        self.at += bytes.len() as u64;
        self.number += 1;
        Ok(())
    }
}

/// What the thread that syncs has.
#[derive(Debug)]
struct State {
    /// None before the first sync of the data file.
    stamp: Option<Stamp>,
    log: Option<Log>,
    /// Whether the log has records that the data file may lack on the device.
    has_records: bool,
    wishes: u32,
    /// What the last syncs would have written to the data file, and to the journal.
    costs: [u64; 2],
    /// When its name and that of the data file were last looked at.
    looked: Option<Instant>,
    /// The file cannot be made or written.
    is_off: bool,
    spare: Pending,
}

impl State {
    /// Makes the records mean nothing, durably.
    fn begin_anew(&mut self) -> io::Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        if let Some(stamp) = self.stamp
            && log.begin(stamp).is_ok()
        {
            return Ok(());
        }
        // The device is full, perhaps. An empty file has no records.
        self.is_off = true;
        log.file.set_len(0)?;
        log.file.sync_all()
    }
}

/// The journal of a data file that is open.
#[derive(Debug)]
pub(crate) struct Journal {
    data: Arc<DataFile>,
    place: Arc<Place>,
    counters: Counters,
    pending: Mutex<Pending>,
    state: Mutex<State>,
    /// Whether syncs go to the journal.
    is_used: AtomicBool,
}

impl Journal {
    /// For a data file that may have bytes which are not durable.
    pub(crate) fn of(data: &Arc<DataFile>, place: &Arc<Place>, counters: &Counters) -> Self {
        let state = State {
            stamp: None,
            log: None,
            has_records: false,
            wishes: 0,
            costs: [0; 2],
            looked: None,
            is_off: false,
            spare: Pending::new(),
        };
        let pending = Pending { needs_data: true, ..Pending::new() };
        Self {
            data: Arc::clone(data),
            place: Arc::clone(place),
            counters: counters.clone(),
            pending: Mutex::new(pending),
            state: Mutex::new(state),
            is_used: AtomicBool::new(false),
        }
    }

    /// Whether the data file is synced now and then only.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Notes a write to the data file that has been made.
    pub(crate) fn note(&self, offset: u64, bytes: &[u8]) {
        self.pending.lock().add(offset, bytes);
    }

    /// The next sync has to be one of the data file: something has changed that is no write, or everything is to be
    /// in its place.
    pub(crate) fn need_data(&self) {
        self.pending.lock().needs_data = true;
    }

    /// Makes durable what was noted before. `sync_data` syncs the data file. One thread at a time calls this.
    ///
    /// # Errors
    /// What the system says. It is then not known what is durable.
    pub(crate) fn sync(&self, sync_data: &SyncCall) -> io::Result<()> {
        let mut state = self.state.lock();
        let state = &mut *state;
        mem::swap(&mut *self.pending.lock(), &mut state.spare);
        let is_done = self.append(state);
        state.spare.clear();
        if is_done {
            return Ok(());
        }
        // What is read before the sync is durable after it.
        let stamp = Stamp::of(self.data.file());
        sync_data()?;
        state.stamp = stamp;
        if state.has_records && !is_removed(Control::JournalBeginsAnew) {
            // If that fails, the file stays: it may be needed.
            state.begin_anew()?;
        }
        state.has_records = false;
        Ok(())
    }

    /// Makes pending writes durable without the data file, if that is better.
    fn append(&self, state: &mut State) -> bool {
        let Some(stamp) = state.stamp else { return false };
        let pending = &mut state.spare;
        if state.is_off {
            self.is_used.store(false, Ordering::Relaxed);
            return false;
        }
        if pending.needs_data {
            return false;
        }
        if pending.is_empty() {
            return true;
        }
        let [paged, journaled] = pending.costs(state.log.as_ref().map_or(SECTOR_BYTES, |log| log.block));
        for (sum, cost) in state.costs.iter_mut().zip([paged, journaled]) {
            *sum = *sum - *sum / SYNCS + cost;
        }
        let is_used = self.is_used.load(Ordering::Relaxed);
        let is_better = FEWER[usize::from(is_used)] * state.costs[1] <= state.costs[0];
        if is_better != is_used {
            self.is_used.store(is_better, Ordering::Relaxed);
        }
        if journaled >= paged || !is_better {
            return false;
        }
        if state.log.is_none() {
            state.wishes += 1;
            if state.wishes < WISHES {
                return false;
            }
            // Where it cannot be made, pages are written.
            state.log = self.create(stamp);
            state.is_off = state.log.is_none();
        }
        let Some(log) = state.log.as_mut().filter(|log| log.has_room(&pending.record)) else { return false };
        if state.looked.is_none_or(|looked| looked.elapsed() >= BETWEEN) {
            state.looked = Some(Instant::now());
            // What is written to a file that was removed or renamed would not be found, and neither would the journal
            // of a data file that is opened by another name.
            state.is_off = !log.is_there() || !self.has_one_name();
            if state.is_off {
                return false;
            }
        }
        // Before it is written: what a failed write has left must not count, either.
        state.has_records = true;
        let before = log.at;
        state.is_off = log.write(&mut pending.record, stamp).is_err();
        self.counters.add(Count::BytesJournaled, log.at - before);
        !state.is_off
    }

    fn create(&self, stamp: Stamp) -> Option<Log> {
        let name = fs::canonicalize(self.place.name()).ok()?;
        let (data, directory) = (self.data.file(), name.parent()?);
        let is_ours = leads_to(&name, data).unwrap_or(false);
        // A file that is mounted by itself is elsewhere as well, where the journal would be missing.
        let device = |found: os::Found| found.identity.0;
        let is_of_directory = os::look_at(directory).ok().map(device) == os::look(data).ok().map(device);
        if !is_ours || !is_of_directory || !self.has_one_name() {
            return None;
        }
        Log::create(data, belonging(&name, JOURNAL_FILE), directory, stamp).ok()
    }

    fn has_one_name(&self) -> bool {
        os::look(self.data.file()).is_ok_and(|found| found.links == 1)
    }

    /// Removes the file if it has nothing to say.
    pub(crate) fn remove(&self) {
        let mut state = self.state.lock();
        if state.has_records {
            return;
        }
        if let Some(log) = state.log.take()
            && leads_to(&log.path, &log.file).unwrap_or(false)
        {
            let _ = fs::remove_file(&log.path);
        }
    }
}

/// Writes to a data file of `len` bytes what its journal has, and removes the journal. Returns the file's length.
/// `note_failed_sync` is called if a sync of the data file fails (I-36).
///
/// # Errors
/// [`MediumError::Io`], also if the journal is that of another state of the file. The data file is as it was, or has
/// a part of what the journal has.
pub(crate) fn replay(
    data: &DataFile,
    name: &Path,
    len: u64,
    note_failed_sync: impl FnOnce(),
) -> Result<u64, MediumError> {
    let Some(found) = Found::beside(name)? else { return Ok(len) };
    let failed = |error| MediumError::at("write back what is in", &found.path, error);
    let to = len.max(found.end().next_multiple_of(GROWTH_BYTES));
    if found.has_writes() {
        found.check_fits(data.file())?;
        data.lengthen(len, to).map_err(failed)?;
        found.writes().try_for_each(|(offset, bytes)| data.write(bytes, offset)).map_err(failed)?;
        data.file().sync_all().map_err(|error| {
            note_failed_sync();
            failed(error)
        })?;
    }
    found.remove().map_err(|error| MediumError::at("remove", &found.path, error))?;
    Ok(to)
}

/// A journal that was found beside a data file.
#[derive(Debug)]
pub(crate) struct Found {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where the writes of its records are in `bytes`.
    records: Vec<std::ops::Range<usize>>,
    stamp: Option<Stamp>,
}

/// A record that is whole.
struct Whole {
    epoch: u64,
    number: u64,
    stamp: Stamp,
    block: usize,
    body: std::ops::Range<usize>,
}

impl Whole {
    fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let header = bytes.get(at..at.checked_add(HEADER_BYTES)?)?;
        let word = |n: usize| u64::from_le_bytes(*header[8 * n..].first_chunk().expect("eight words"));
        let from = at + HEADER_BYTES;
        let body = from..from.checked_add(usize::try_from(word(4)).ok()?)?;
        let is_whole = word(1) == MAGIC && hash(bytes.get(at + 8..body.end)?) == word(0);
        let block = usize::try_from(word(7)).ok()?;
        let stamp = Stamp { database: word(5), sequence: word(6) };
        (is_whole && block > 0).then_some(Self { epoch: word(2), number: word(3), stamp, block, body })
    }
}

impl Found {
    /// The journal of the data file of this name, in the directory of the file itself if the name is a link; none if
    /// there is no journal.
    ///
    /// # Errors
    /// [`MediumError::Io`], also if it is damaged.
    pub(crate) fn beside(data: &Path) -> Result<Option<Self>, MediumError> {
        let data = fs::canonicalize(data).map_err(|error| MediumError::at("look at", data, error))?;
        let path = belonging(&data, JOURNAL_FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(MediumError::at("read", path, error)),
        };
        let mut found = Self { path, bytes, records: Vec::new(), stamp: None };
        if found.bytes.iter().take(SECTOR_BYTES).all(|byte| *byte == 0) {
            // It was being made.
            return Ok(Some(found));
        }
        let Some(first) = Whole::at(&found.bytes, 0) else {
            return Err(found.refused("its beginning is damaged"));
        };
        let (mut at, mut number) = (0, first.number);
        while let Some(record) = Whole::at(&found.bytes, at)
            && (record.epoch, record.number) == (first.epoch, number)
        {
            at = record.body.end.next_multiple_of(first.block);
            number += 1;
            if !record.body.is_empty() {
                // The stamp changes when the data file is synced, and then records mean nothing any more.
                if *found.stamp.get_or_insert(record.stamp) != record.stamp {
                    return Err(found.refused("its records are of two states of a data file"));
                }
                found.records.push(record.body);
            }
        }
        // A record is written only once the one before it is durable.
        let is_later = |at| {
            Whole::at(&found.bytes, at).is_some_and(|late| late.epoch == first.epoch && late.number > number)
        };
        if (at..found.bytes.len()).step_by(first.block).any(is_later) {
            return Err(found.refused("a part of it is damaged"));
        }
        Ok(Some(found))
    }

    /// Fails if the records are not of what the data file has now.
    ///
    /// # Errors
    /// [`MediumError::Io`].
    pub(crate) fn check_fits(&self, data: &File) -> Result<(), MediumError> {
        match self.stamp {
            Some(stamp) if !stamp.fits(data) => {
                Err(self.refused("it belongs to another state of the data file beside it"))
            }
            _ => Ok(()),
        }
    }

    fn refused(&self, why: &str) -> MediumError {
        let told = format!(
            "{why}; nothing was changed; if the data file was copied or restored without its journal, remove the \
             journal; otherwise restore both from a copy"
        );
        MediumError::at("use", &self.path, io::Error::new(ErrorKind::InvalidData, told))
    }

    fn has_writes(&self) -> bool {
        !self.records.is_empty()
    }

    /// How long a data file must be that has all of it.
    fn end(&self) -> u64 {
        self.writes().map(|(offset, bytes)| offset + bytes.len() as u64).max().unwrap_or(0)
    }

    /// Removes the file. If a power failure brings it back, it has no records. Without records it may stay, where its
    /// directory is not ours to change: then no journal is used.
    fn remove(&self) -> io::Result<()> {
        let emptied = File::options().write(true).open(&self.path).and_then(|file| {
            os::write_all_at(&file, &[0; SECTOR_BYTES], 0)?;
            file.sync_all()
        });
        if self.has_writes() {
            emptied?;
        }
        let _ = fs::remove_file(&self.path);
        Ok(())
    }

    /// Writes it to a copy of the data file, which may have to become longer.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn write_to(&self, copy: &File) -> io::Result<()> {
        let len = copy.metadata()?.len().max(self.end().next_multiple_of(GROWTH_BYTES));
        check_file_size(len)?;
        copy.set_len(len)?;
        self.writes().try_for_each(|(offset, bytes)| os::write_all_at(copy, bytes, offset))
    }

    /// What was written and where, in order.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.records.iter().flat_map(|body| Writes(&self.bytes[body.clone()]))
    }
}

/// The writes of a record.
struct Writes<'b>(&'b [u8]);

impl<'b> Iterator for Writes<'b> {
    type Item = (u64, &'b [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (offset, rest) = self.0.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        self.0 = rest;
        Some((u64::from_le_bytes(*offset), bytes))
    }
}

#[cfg(all(test, unix))]
#[path = "journal_test.rs"]
mod tests;
