//! When index images are made while the database is open.

use pantile_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pantile_base::sync::{Mutex, thread};
use pantile_store::{ImageName, Store};

/// An image is worth it after this many times its bytes have been appended. So
/// images are at most a twentieth of what is written.
const TIMES: u64 = 20;
/// Reading so much takes no longer than a few milliseconds.
const LEAST: u64 = 8 << 20;

/// What making one takes, beside notes: pages on their way to the file.
const BUFFERS: u64 = 512 << 10;

/// The images of an open database.
#[derive(Default)]
pub(crate) struct Images {
    /// Bytes that an opening would scan now are those that had been appended
    /// before this one, and those appended since the base of the last image.
    before: AtomicU64,
    base: AtomicU64,
    /// What had been appended when one was last begun.
    begun: AtomicU64,
    /// Whether there is an image.
    is_there: AtomicBool,
    /// Named by the next sample, and perhaps not by the record in force.
    pending: Mutex<Option<ImageName>>,
    is_being_made: AtomicBool,
    is_stopped: AtomicBool,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Images {
    /// The database has been opened; this many bytes were scanned.
    pub fn begin(&self, scanned: u64, is_there: bool) {
        self.before.store(scanned, Ordering::Relaxed);
        self.is_there.store(is_there, Ordering::Relaxed);
    }

    /// Whether an image of these `bytes` is worth them. While nothing else is
    /// written, the first one is. With `every`, it is worth it after that many
    /// bytes.
    pub fn is_worth_it(
        &self,
        store: &Store,
        every: Option<u64>,
        is_at_rest: bool,
        bytes: impl FnOnce() -> u64,
    ) -> bool {
        let appended = store.appended_ever() - self.base.load(Ordering::Relaxed);
        // Making one may fail, and is not tried again at once.
        let since = store.appended_ever() - self.begun.load(Ordering::Relaxed);
        if let Some(every) = every {
            return appended >= every.max(1) && since > 0;
        }
        let to_scan = self.before.load(Ordering::Relaxed) + appended;
        let is_first = is_at_rest && !self.is_there.load(Ordering::Relaxed);
        let is_tried = self.begun.load(Ordering::Relaxed) > 0 && since < LEAST;
        to_scan >= LEAST && !is_tried && (is_first || appended >= bytes() * TIMES)
    }

    /// Whether no image is being made; the caller makes one then.
    pub fn try_begin(&self, store: &Store) -> bool {
        let begins = !self.is_stopped() && !self.is_being_made.swap(true, Ordering::SeqCst);
        if begins {
            self.begun.store(store.appended_ever(), Ordering::Relaxed);
        }
        begins
    }

    /// An image has been made whose base was taken when so much had been appended.
    pub fn made(&self, name: ImageName, base: u64) {
        *self.pending.lock() = Some(name);
        self.before.store(0, Ordering::Relaxed);
        self.base.store(base, Ordering::Relaxed);
        self.is_there.store(true, Ordering::Relaxed);
    }

    /// The caller of [`Images::try_begin`] is done when this is dropped.
    pub fn making(&self) -> Making<'_> {
        Making(self)
    }

    /// DRAM used, in bytes.
    pub fn bytes(&self) -> u64 {
        if self.is_being_made.load(Ordering::Relaxed) { BUFFERS } else { 0 }
    }

    /// Whether an image waits to be named by a record.
    pub fn is_pending(&self) -> bool {
        self.pending.lock().is_some()
    }

    /// Calls `adopt` once, as soon as the record in force names the new image.
    pub fn adopt_if_named(&self, store: &Store, adopt: impl FnOnce()) {
        let mut pending = self.pending.lock();
        if pending.is_some() && *pending == store.image_in_force() {
            adopt();
            *pending = None;
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
        match named.spawn(make) {
            Ok(thread) => *self.thread.lock() = Some(thread),
            Err(_) => drop(self.making()),
        }
    }
}

/// An image is being made.
pub(crate) struct Making<'i>(&'i Images);

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.0.is_being_made.store(false, Ordering::SeqCst);
    }
}
