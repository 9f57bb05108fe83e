//! A store that updates rows in place: the baseline.

use crate::request::{MOST_DIRTY, PAGE_BYTES, Recent, Request, Requests, Touched};
use std::collections::HashMap;
use std::ops::Range;

/// What happens to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It is there afterwards, with this many bytes.
    Put(u32),
    /// It is not there any more.
    Delete,
}

/// A change of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The table.
    pub table: u32,
    /// The row.
    pub row: u64,
    /// What happens to it.
    pub operation: Operation,
}

/// What an [`InPlace`] store is like.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct InPlaceSettings {
    /// Pages of the device in a page of the store: 2 are 8 KB, as in PostgreSQL and in the SIAS paper.
    pub device_pages: u64,
    /// Pages of the store that fit in its buffer pool.
    pub pool_pages: usize,
    /// Bytes of the log, which goes round.
    pub log_bytes: u64,
    /// Commits that share a sync of the log.
    pub commits_per_sync: u32,
    /// All changed pages are written after this many bytes of log.
    pub checkpoint_bytes: u64,
    /// Pages of the device that wait in the system's cache at most before they are written.
    pub most_dirty: u64,
}

impl Default for InPlaceSettings {
    /// Pages of 8 KB, a pool of 32 MB, a log of 64 MB that each commit syncs, and checkpoints every 32 MB of it.
    fn default() -> Self {
        Self {
            device_pages: 2,
            pool_pages: 4096,
            log_bytes: 64 << 20,
            commits_per_sync: 1,
            checkpoint_bytes: 32 << 20,
            most_dirty: MOST_DIRTY,
        }
    }
}

/// Bytes of a log record beside the row, of a commit record, and of a row's header and slot in a page: little,
/// so that what is left out favours this store.
const RECORD_BYTES: u64 = 24;
const COMMIT_BYTES: u64 = 16;
const ROW_BYTES: u32 = 8;

/// Pages in which room for a row is looked for.
const LOOKED_AT: usize = 8;

/// The requests of a store that keeps rows in pages and changes them there, behind a buffer pool that gives up what
/// was not used for longest, with a log of what was changed. What the pool gives up waits in the system's cache, like what
/// other layouts write.
///
/// Left out, in favour of this store: indexes, old versions, torn pages (no page is written twice for their
/// sake), and undo.
#[derive(Debug)]
pub struct InPlace {
    settings: InPlaceSettings,
    /// Where each row is, and its bytes in the page.
    rows: HashMap<(u32, u64), (u64, u32)>,
    /// Bytes that are free in each page.
    free: Vec<u32>,
    /// Pages of each table that have had room; the last are looked at first.
    with_room: HashMap<u32, Vec<u64>>,
    /// Pages in the pool.
    pool: Recent,
    /// Those of them that have changed since they were written, each with the end of the log then.
    changed: HashMap<u64, u64>,
    /// Bytes ever appended to the log, and those synced.
    log: u64,
    log_synced: u64,
    log_at_checkpoint: u64,
    commits_waiting: u32,
    requests: Requests,
}

impl InPlace {
    /// An empty store.
    pub fn new(settings: InPlaceSettings) -> Self {
        Self {
            settings,
            rows: HashMap::new(),
            free: Vec::new(),
            with_room: HashMap::new(),
            pool: Recent::new(settings.pool_pages),
            changed: HashMap::new(),
            log: 0,
            log_synced: 0,
            log_at_checkpoint: 0,
            commits_waiting: 0,
            // What it reads is kept in the pool alone.
            requests: Requests::new(settings.most_dirty, 0),
        }
    }

    /// A transaction that commits.
    pub fn commit(&mut self, changes: &[Change]) {
        for change in changes {
            self.change(*change);
        }
        self.log += COMMIT_BYTES;
        self.commits_waiting += 1;
        if self.commits_waiting >= self.settings.commits_per_sync {
            self.sync_log();
        }
        if self.log - self.log_at_checkpoint >= self.settings.checkpoint_bytes {
            self.checkpoint();
        }
    }

    /// Writes all changed pages.
    pub fn checkpoint(&mut self) {
        self.sync_log();
        let changed = std::mem::take(&mut self.changed);
        self.write_pages(changed.into_keys());
        self.requests.write_back();
        self.requests.flush();
        self.log_at_checkpoint = self.log;
    }

    /// Reads a row, if it is there.
    pub fn read(&mut self, table: u32, row: u64) {
        if let Some(&(page, _)) = self.rows.get(&(table, row)) {
            self.bring(page, Page::Written);
        }
    }

    /// Writes pages of the store through the system's cache.
    fn write_pages(&mut self, pages: impl IntoIterator<Item = u64>) {
        let (begin, size) = (self.log_pages(), self.settings.device_pages);
        self.requests.write(pages.into_iter().flat_map(|page| of_device(begin, size, page)), 0);
    }

    /// The requests so far, which are forgotten.
    pub fn take(&mut self) -> Vec<Request> {
        self.requests.take()
    }

    /// Pages of the device that it takes.
    pub fn device_pages(&self) -> u64 {
        self.log_pages() + self.free.len() as u64 * self.settings.device_pages
    }

    fn log_pages(&self) -> u64 {
        self.settings.log_bytes / PAGE_BYTES
    }

    fn change(&mut self, Change { table, row, operation }: Change) {
        let key = (table, row);
        let (old, new) = (
            self.rows.get(&key).copied(),
            match operation {
                Operation::Put(len) => Some(len + ROW_BYTES),
                Operation::Delete => None,
            },
        );
        self.log += RECORD_BYTES + new.map_or(0, |len| u64::from(len - ROW_BYTES));
        if let (Some((page, was)), Some(len)) = (old, new)
            && len <= was + self.free[page as usize]
        {
            self.free[page as usize] = self.free[page as usize] + was - len;
            self.rows.insert(key, (page, len));
            self.write(page, Page::Written);
            return;
        }
        if let Some((page, was)) = old {
            self.rows.remove(&key);
            self.free[page as usize] += was;
            self.note_room(table, page);
            self.write(page, Page::Written);
        }
        if let Some(len) = new {
            let (page, is) = self.page_with_room(table, len);
            self.free[page as usize] -= len;
            self.rows.insert(key, (page, len));
            self.write(page, is);
        }
    }

    /// Notes that a page has room again.
    fn note_room(&mut self, table: u32, page: u64) {
        let pages = self.with_room.entry(table).or_default();
        let looked_at = pages.len().saturating_sub(LOOKED_AT);
        if !pages[looked_at..].contains(&page) {
            pages.push(page);
        }
    }

    /// A page of a table with so much room, of the few that had some last; a longer row has
    /// one of its own.
    fn page_with_room(&mut self, table: u32, len: u32) -> (u64, Page) {
        let size = (self.settings.device_pages * PAGE_BYTES) as u32;
        let (pages, free) = (self.with_room.entry(table).or_default(), &self.free);
        while pages.last().is_some_and(|page| free[*page as usize] < size / 32) {
            pages.pop();
        }
        let found = pages.iter().rev().take(LOOKED_AT).find(|page| free[**page as usize] >= len);
        if let Some(&page) = found {
            return (page, Page::Written);
        }
        let page = self.free.len() as u64;
        self.free.push(size.max(len));
        pages.push(page);
        (page, Page::New)
    }

    /// Changes a page in the pool. What the log says of the change is there already.
    fn write(&mut self, page: u64, is: Page) {
        self.bring(page, is);
        self.changed.insert(page, self.log);
    }

    /// Brings a page into the pool, which gives up another one if it is full.
    fn bring(&mut self, page: u64, is: Page) {
        let Touched { is_missing, given_up } = self.pool.touch(page);
        if is_missing && is == Page::Written {
            self.requests.read(of_device(self.log_pages(), self.settings.device_pages, page));
        }
        if let Some(oldest) = given_up
            && let Some(changed) = self.changed.remove(&oldest)
        {
            // What a page has must be in the log before it is in its place.
            if changed > self.log_synced {
                self.sync_log();
            }
            self.write_pages([oldest]);
        }
    }

    /// Writes the log up to its end. Its last page is written again with the next commit.
    fn sync_log(&mut self) {
        self.commits_waiting = 0;
        if self.log == self.log_synced {
            return;
        }
        let (from, to) = (self.log_synced / PAGE_BYTES, self.log.div_ceil(PAGE_BYTES));
        let round = self.log_pages();
        self.requests.write_now((from..to).map(|page| page % round), 0);
        self.requests.flush();
        self.log_synced = self.log;
    }
}

/// What a page is that is brought into the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    /// It has nothing yet.
    New,
    /// It has rows, and is read unless the pool has it.
    Written,
}

/// The pages of the device in a page of a store that begins at `begin` and whose pages have `size` of them.
fn of_device(begin: u64, size: u64, page: u64) -> Range<u64> {
    begin + page * size..begin + (page + 1) * size
}

#[cfg(test)]
#[path = "in_place_test.rs"]
mod tests;
