//! When index images are made while the database is open.

use std::sync::Arc;

use pantile_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use pantile_base::sync::{Mutex, thread};
use pantile_store::{ImageName, Store};

/// An image is worth it after this many times its bytes have been appended. So
/// images are at most a twentieth of what is written.
const TIMES: u64 = 20;
/// Reading more takes seconds: an image is worth it sooner, though not before `TIMES_AT_LEAST`
/// times its bytes have been appended. So large ones are at most a fifth of what is written.
const MANY: u64 = 2 << 30;
const TIMES_AT_LEAST: u64 = 5;
/// Reading so much takes no longer than a few milliseconds.
const LEAST: u64 = 8 << 20;

/// After an image that was not made, the next one waits until a part of what makes it worth while has been
/// appended once more. The part doubles with each failure, a few times.
const PART: u64 = 4;
const MOST_DOUBLINGS: u32 = 6;

/// Bytes of an image that is not made anew only because fewer rows are left.
const SMALL: u64 = if cfg!(test) { 64 << 10 } else { 1 << 20 };

/// What making one takes, beside notes: pages on their way to the file.
const BUFFERS: u64 = 512 << 10;

/// The images of an open database.
#[derive(Default)]
pub(crate) struct Images {
    /// Bytes that an opening would scan now are those that had been appended
    /// before this one, and those appended since the base of the last image.
    before: AtomicU64,
    base: AtomicU64,
    /// What had been appended when one was last begun, and when somebody last asked
    /// whether it is time for one.
    begun: AtomicU64,
    seen: AtomicU64,
    /// How many were begun since the last one that was made.
    attempts: AtomicU32,
    /// Rows of the database when one was last begun; after opening, those of the image
    /// that lies there.
    rows: AtomicU64,
    /// Whether the file has a successor that is still to take its place.
    has_successor: AtomicBool,
    is_being_made: AtomicBool,
    is_stopped: AtomicBool,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

/// Bytes to append before an image of this many is worth it.
fn worth_writing(image: u64) -> u64 {
    (image * TIMES).min(MANY.max(image * TIMES_AT_LEAST))
}

impl Images {
    /// The database has been opened; this many bytes were scanned. The image that
    /// lies there has `rows`, or nobody knows how many.
    pub fn begin(&self, scanned: u64, rows: Option<u64>) {
        self.before.store(scanned, Ordering::Relaxed);
        self.rows.store(rows.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether an image of these `bytes` is worth them. If nothing has been appended
    /// since the last call, the first one is, and one of half the `rows` with which the last
    /// one was begun. With `every`, it is worth it after that many bytes.
    pub fn is_worth_it(
        &self,
        store: &Store,
        every: Option<u64>,
        rows: u64,
        bytes: impl FnOnce() -> u64,
    ) -> bool {
        let now = store.appended_ever();
        let is_at_rest = self.seen.swap(now, Ordering::Relaxed) == now;
        // Beside a commit the count may have been somewhat less.
        let appended = now.saturating_sub(self.base.load(Ordering::Relaxed));
        // Making one may fail, now or always, and each attempt may write all of it.
        let begun = self.begun.load(Ordering::Relaxed);
        let since = now.saturating_sub(begun);
        let attempts = self.attempts.load(Ordering::Relaxed);
        let is_tried = |pause: u64| {
            let doublings = attempts.saturating_sub(1).min(MOST_DOUBLINGS);
            attempts > 0 && since < pause.saturating_mul(1 << doublings)
        };
        let is_too_large = store.image_bytes() > SMALL && rows < self.rows.load(Ordering::Relaxed) / 2;
        if is_at_rest && is_too_large && since > 0 {
            return true;
        }
        if let Some(every) = every {
            return appended >= every.max(1) && since > 0 && !is_tried(every);
        }
        let to_scan = self.before.load(Ordering::Relaxed) + appended;
        if to_scan < LEAST || begun > 0 && since < LEAST {
            return false;
        }
        let is_first = is_at_rest && !store.has_image();
        if is_first && attempts == 0 {
            return true;
        }
        let worth = worth_writing(bytes());
        (is_first || appended >= worth) && !is_tried(worth / PART)
    }

    /// Begins an image, unless one is being made.
    pub fn try_begin(self: &Arc<Self>, store: &Store, rows: u64) -> Option<Making> {
        if self.is_being_made.swap(true, Ordering::SeqCst) {
            return None;
        }
        // Announced first: of this and a stop at once, one sees the other.
        let making = Making(Arc::clone(self));
        if self.is_stopped() {
            return None;
        }
        self.begun.store(store.appended_ever(), Ordering::Relaxed);
        self.attempts.fetch_add(1, Ordering::Relaxed);
        // If making it fails, that is not tried again until half of these have gone.
        self.rows.store(rows, Ordering::Relaxed);
        Some(making)
    }

    /// An image has been made whose base was taken when so much had been appended.
    /// Later samples name it.
    pub fn made(&self, store: &Store, name: ImageName, base: u64) {
        self.before.store(0, Ordering::Relaxed);
        self.base.store(base, Ordering::Relaxed);
        self.attempts.store(0, Ordering::Relaxed);
        store.name_image(Some(name));
        self.has_successor.store(true, Ordering::SeqCst);
    }

    /// DRAM used, in bytes.
    pub fn bytes(&self) -> u64 {
        if self.is_being_made.load(Ordering::Relaxed) { BUFFERS } else { 0 }
    }

    /// Whether an image waits to be named by a record.
    pub fn is_pending(&self) -> bool {
        self.has_successor.load(Ordering::SeqCst)
    }

    /// Calls `adopt` once, as soon as the record in force names the new image.
    pub fn adopt_if_named(&self, store: &Store, adopt: impl FnOnce()) {
        if self.is_pending() && store.is_image_in_force() && self.has_successor.swap(false, Ordering::SeqCst)
        {
            adopt();
        }
    }

    /// Whether the thread that makes an image is to give up.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// No image is made any more, and none is being made afterwards.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        // The worker may have begun one, and not yet started its thread.
        while self.is_being_made.load(Ordering::SeqCst) {
            self.join();
            thread::yield_now();
        }
        self.join();
    }

    fn join(&self) {
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // If it has panicked, it has already said so on stderr.
            let _ = thread.join();
        }
    }

    /// Lets a thread of its own `make` an image. If the system refuses the thread,
    /// there is none.
    pub fn make_apart(&self, make: impl FnOnce() + Send + 'static) {
        self.join();
        let named = thread::Builder::new().name("pantile-image".into());
        if let Ok(thread) = named.spawn(make) {
            *self.thread.lock() = Some(thread);
        }
    }
}

/// An image has been begun. It is made, or given up, when this is dropped.
pub(crate) struct Making(Arc<Images>);

impl Drop for Making {
    fn drop(&mut self) {
        self.0.is_being_made.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_images_are_made_sooner_and_none_for_less_than_five_times_its_size() {
        let (mb, gb) = (1 << 20, 1 << 30);
        assert_eq!(worth_writing(mb), 20 * mb);
        assert_eq!(worth_writing(100 * mb), 2_000 * mb);
        assert_eq!(worth_writing(300 * mb), 2 * gb);
        assert_eq!(worth_writing(gb), 5 * gb);
    }
}
