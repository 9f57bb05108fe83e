//! Memory that is found before it is used.
//!
//! The first store to a page of memory makes the system find and clear it,
//! which takes longer than many commits. So once a medium in memory is more
//! than a few chunks long, a background thread attaches and touches the next
//! chunks while the last ones are being used up.

use crate::MediumError;
use crate::contents::{Contents, attach};
use crate::data_file::DataFile;
use crate::map::Map;
use crate::os::populate;
use pantile_base::limits::CHUNK_BYTES;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// A medium smaller than this grows as it is asked to.
const SMALL_BYTES: u64 = 8 * CHUNK_BYTES;

/// Least and most bytes kept ahead.
const AHEAD_BYTES: (u64, u64) = (4 * CHUNK_BYTES, 32 * CHUNK_BYTES);

/// The length that a map should have when `len` bytes of it are in use.
fn goal_for(len: u64, limit: u64) -> u64 {
    if len < SMALL_BYTES {
        return len;
    }
    len.saturating_add((len / 8).clamp(AHEAD_BYTES.0, AHEAD_BYTES.1)).min(limit)
}

#[derive(Debug, Default)]
struct Wish {
    goal: u64,
    /// What was in use at the last growth, or was left.
    used: u64,
    stop: bool,
}

#[derive(Debug)]
struct Shared {
    map: Arc<Map>,
    file: Option<Arc<DataFile>>,
    wish: Mutex<Wish>,
    changed: Condvar,
}

/// Grows contents, and continues in the background. Dropping it ends its
/// thread.
#[derive(Debug)]
pub struct Ahead {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Ahead {
    /// No thread runs until the map is large.
    pub fn of(contents: &Contents) -> Self {
        let (map, file) = (Arc::clone(&contents.map), contents.file().cloned());
        let shared = Shared { map, file, wish: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared), thread: Mutex::new(None) }
    }

    /// Makes the map at least `len` bytes long. The first `len` bytes count
    /// as in use.
    ///
    /// # Errors
    /// Those of [`Medium::grow`](crate::Medium::grow).
    pub fn grow(&self, len: u64) -> Result<(), MediumError> {
        let shared = &self.shared;
        shared.map.grow(len, |from, to| attach(&shared.map, shared.file.as_ref(), from, to))?;
        let goal = goal_for(len, shared.map.limit());
        // Half of what is ahead may be used up before more is asked for.
        if shared.map.len().saturating_sub(len) < (goal - len) / 2 {
            let mut wish = shared.wish.lock();
            // What is as long as it was need not grow soon.
            if len > std::mem::replace(&mut wish.used, len) {
                wish.goal = goal;
                shared.changed.notify_all();
                drop(wish);
                self.start_thread();
            }
        }
        Ok(())
    }

    /// What is not in use yet need not be found ahead: only these bytes are.
    pub(crate) fn rest(&self, used: u64) {
        let mut wish = self.shared.wish.lock();
        (wish.goal, wish.used) = (0, used);
    }

    /// A system that refuses a thread costs speed only.
    fn start_thread(&self) {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let named = thread::Builder::new().name("pantile-ahead".to_owned());
            *thread = named.spawn(move || shared.run()).ok();
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.wish.lock().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.get_mut().take() {
            // A growth that needs the space tries again, and reports.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut wish = self.wish.lock();
        while !wish.stop {
            let len = self.map.len();
            if len >= wish.goal {
                self.changed.wait(&mut wish);
                continue;
            }
            drop(wish);
            let grown = self.map.grow(len + CHUNK_BYTES, |from, to| self.attach_and_touch(from, to));
            wish = self.wish.lock();
            if grown.is_err() {
                wish.goal = 0;
            }
        }
    }

    fn attach_and_touch(&self, from: u64, to: u64) -> Result<(), MediumError> {
        attach(&self.map, self.file.as_ref(), from, to)?;
        // Best effort: memory that is not there yet comes with its first use.
        let _ = populate(self.map.at(from).cast(), to - from);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::MapOptions;

    #[test]
    fn small_maps_grow_exactly_and_no_map_beyond_its_limit() {
        assert_eq!(goal_for(CHUNK_BYTES, u64::MAX), CHUNK_BYTES);
        let len = 100 * CHUNK_BYTES;
        assert!(goal_for(len, u64::MAX) > len);
        assert_eq!(goal_for(len, len), len);
    }

    #[test]
    fn the_thread_gets_ahead_of_use_and_stays_within_the_limit() {
        let limit = 14 * CHUNK_BYTES;
        let options = MapOptions { reserve_bytes: 32 * CHUNK_BYTES, max_bytes: Some(limit) };
        let contents = Contents::in_memory("test", options).expect("reserve");
        let (ahead, map) = (Ahead::of(&contents), &contents.map);
        ahead.grow(SMALL_BYTES).expect("grow");
        while map.len() < SMALL_BYTES + AHEAD_BYTES.0 {
            thread::yield_now();
        }
        ahead.grow(limit).expect("grow to the limit");
        drop(ahead);
        assert_eq!(map.len(), limit);
    }

    #[test]
    fn nothing_is_found_ahead_of_what_does_not_grow() {
        let options = MapOptions { reserve_bytes: 32 * CHUNK_BYTES, max_bytes: None };
        let contents = Contents::in_memory("test", options).expect("reserve");
        let (ahead, map) = (Ahead::of(&contents), &contents.map);
        let goal = || ahead.shared.wish.lock().goal;
        ahead.grow(SMALL_BYTES).expect("grow");
        while map.len() < SMALL_BYTES + AHEAD_BYTES.0 {
            thread::yield_now();
        }
        // SAFETY: nobody else has the contents.
        unsafe { contents.shrink(SMALL_BYTES, |left| ahead.rest(left)) }.expect("shrink");
        ahead.grow(SMALL_BYTES).expect("it is as long");
        assert_eq!(goal(), 0);
        ahead.grow(SMALL_BYTES + CHUNK_BYTES).expect("grow");
        assert!(goal() > SMALL_BYTES + CHUNK_BYTES);
    }
}
