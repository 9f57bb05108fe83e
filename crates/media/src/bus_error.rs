//! An explanation before a failed read ends the process.
//!
//! A mapped file is read by loads, and on some media written by stores. When the device cannot give the bytes, or
//! another program has cut the file short, these have no way to fail: the
//! system sends SIGBUS, which by default ends the process without a message.
//! Ending is right, since anything put in place of the bytes would be read as
//! data. So a handler says which file and which byte, what is still true and
//! what to do, and then lets the process end as it would have.
//!
//! The handler acts on addresses inside Pantile's mapped files only. Every
//! other signal goes on to the handler that was there before, or to the
//! default action. It is installed with the first file that asks for it and
//! stays; a handler that is installed later takes its place, as usual.
//!
//! # In a signal handler
//! Any thread may be anywhere, so the handler takes no lock and allocates
//! nothing: it looks through a fixed table of atomics and calls what POSIX
//! allows there (fstat, write, sigaction, raise).

use crate::os::{FAULTS, Protection, errno_location, is_failed_memory};
use std::fmt::{self, Write};
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

/// Mappings that can be watched at a time. Faults in others end the process
/// without a message.
const PLACES: usize = 512;

/// Longest message; it goes out in one write.
const TEXT_BYTES: usize = 2048;

/// What the handler knows of a mapping.
#[derive(Debug)]
struct Watched {
    start: usize,
    end: usize,
    file: RawFd,
    is_stored_to: bool,
    path: String,
    directory: String,
}

static TABLE: [AtomicPtr<Watched>; PLACES] = [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];

/// Handlers that are looking through the table.
static LOOKING: AtomicUsize = AtomicUsize::new(0);

/// Whether the explanation is still to be given, being given, or given.
static EXPLAINED: AtomicU32 = AtomicU32::new(NOT_YET);
const NOT_YET: u32 = 0;
const UNDER_WAY: u32 = 1;
const DONE: u32 = 2;

/// What was to happen to SIGBUS before.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Explains faults in a range of addresses until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    watched: *mut Watched,
    place: usize,
}

// SAFETY: what it points to is only read while it is in the table, and freed by `drop`.
unsafe impl Send for Watch {}
// SAFETY: as for Send; nothing is changed through it.
unsafe impl Sync for Watch {}

/// Watches `len` bytes from `start` on, see [`Watch::over`].
pub(crate) fn watch(
    start: usize,
    len: usize,
    file: &File,
    path: &Path,
    protection: Protection,
) -> Option<Watch> {
    Watch::over(start, len, file.as_raw_fd(), path, protection != Protection::ReadOnly)
}

impl Watch {
    /// Watches `len` bytes from `start` on, which map `file`, called `path`,
    /// from its first byte. The file must stay open until this is dropped.
    /// None if too many are watched already.
    pub(crate) fn over(
        start: usize,
        len: usize,
        file: RawFd,
        path: &Path,
        is_stored_to: bool,
    ) -> Option<Self> {
        install();
        let directory = path.parent().unwrap_or(path).display().to_string();
        let path = path.display().to_string();
        let watched =
            Box::into_raw(Box::new(Watched { start, end: start + len, file, is_stored_to, path, directory }));
        let is_free = |place: &AtomicPtr<Watched>| {
            place.compare_exchange(ptr::null_mut(), watched, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        match TABLE.iter().position(is_free) {
            Some(place) => Some(Self { watched, place }),
            None => {
                // SAFETY: made above, and no other thread has it.
                drop(unsafe { Box::from_raw(watched) });
                None
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        TABLE[self.place].store(ptr::null_mut(), Ordering::SeqCst);
        // Both sides use SeqCst: a handler that found the entry is counted here.
        if LOOKING.load(Ordering::SeqCst) == 0 {
            // SAFETY: made by `over`, and no handler will find it any more.
            drop(unsafe { Box::from_raw(self.watched) });
        }
    }
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the structures are plain data, and the handler has the
        // signature that SA_SIGINFO asks for.
        unsafe {
            let mut previous: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, ptr::null(), &mut previous) != 0 {
                return;
            }
            let _ = PREVIOUS.set(previous);
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = on_bus_error as *const () as usize;
            // On the alternate stack, where a thread has one.
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigemptyset(&mut ours.sa_mask);
            libc::sigaction(libc::SIGBUS, &ours, ptr::null_mut());
        }
    });
}

extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system gives a valid `info`; errno is this thread's own.
    unsafe {
        let errno = *errno_location();
        let ours = explain(&*info);
        pass_on(signal, info, context);
        if ours {
            // The previous handler has returned. Nothing can mend this: the
            // load or store must not be tried again, and meet other bytes.
            die(signal);
        }
        *errno_location() = errno;
    }
}

/// Whether a signal is about an address, rather than sent by a process.
fn is_fault(info: &libc::siginfo_t) -> bool {
    FAULTS.contains(&info.si_code)
}

/// Explains a fault in a watched range. Returns whether it was one.
fn explain(info: &libc::siginfo_t) -> bool {
    if !is_fault(info) {
        return false;
    }
    // SAFETY: signals about addresses carry the address.
    let address = unsafe { info.si_addr() } as usize;
    LOOKING.fetch_add(1, Ordering::SeqCst);
    let found = find(address);
    if let Some(watched) = found {
        explain_once(watched, (address - watched.start) as u64, info.si_code);
    }
    let ours = found.is_some();
    LOOKING.fetch_sub(1, Ordering::SeqCst);
    ours
}

/// The entry of an address; it stays while the caller counts in [`LOOKING`].
fn find<'t>(address: usize) -> Option<&'t Watched> {
    let entries = TABLE.iter().map(|place| place.load(Ordering::SeqCst));
    // SAFETY: entries in the table are not freed while a handler looks.
    let mut known = entries.filter_map(|entry| unsafe { entry.as_ref() });
    known.find(|watched| (watched.start..watched.end).contains(&address))
}

/// The first thread explains; others wait until it has, and end with it.
fn explain_once(watched: &Watched, offset: u64, code: libc::c_int) {
    match EXPLAINED.compare_exchange(NOT_YET, UNDER_WAY, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => {
            let mut text = Text { bytes: [0; TEXT_BYTES], len: 0 };
            // What does not fit is cut off.
            let _ = describe(&mut text, watched, offset, length(watched.file), code);
            // SAFETY: the bytes are initialized, and a closed stderr is an error like others.
            unsafe { libc::write(libc::STDERR_FILENO, text.bytes.as_ptr().cast(), text.len) };
            EXPLAINED.store(DONE, Ordering::SeqCst);
        }
        Err(_) => {
            while EXPLAINED.load(Ordering::SeqCst) == UNDER_WAY {
                // SAFETY: gives the processor to another thread and does nothing else.
                unsafe { libc::sched_yield() };
            }
        }
    }
}

fn length(file: RawFd) -> Option<u64> {
    // SAFETY: plain data, filled by the call; a bad descriptor is an error.
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        (libc::fstat(file, &mut found) == 0).then_some(found.st_size as u64)
    }
}

fn describe(
    text: &mut impl Write,
    watched: &Watched,
    offset: u64,
    length: Option<u64>,
    code: libc::c_int,
) -> fmt::Result {
    let Watched { path, directory, is_stored_to, .. } = watched;
    let used = if *is_stored_to { "read or written" } else { "read" };
    write!(text, "pantile: {path} cannot be {used} at byte {offset}: ")?;
    match length {
        Some(length) if length <= offset => {
            write!(text, "it is only {length} bytes long now, so another program has cut it short. ")?;
        }
        _ if is_failed_memory(code) => {
            write!(text, "the memory that holds it has failed. ")?;
        }
        _ if *is_stored_to => {
            write!(text, "the device does not give the bytes, or the file system takes no more (SIGBUS). ")?;
        }
        _ => write!(text, "the device does not give the bytes (SIGBUS). ")?,
    }
    writeln!(
        text,
        "The process ends here, because other bytes would be taken for data. Every acknowledged commit \
         is on the medium as far as the device can still read it. Look at the system's log and at the \
         device, then run `pantile check {directory}`, and restore from a copy what is damaged."
    )
}

/// Does what would have happened without this handler.
///
/// # Safety
/// In a signal handler, with the handler's own arguments.
unsafe fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let previous = PREVIOUS.get();
    let action = previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    let takes_info = previous.is_some_and(|previous| previous.sa_flags & libc::SA_SIGINFO != 0);
    // SAFETY: the address is that of a handler, of the kind that its flags say.
    unsafe {
        match action {
            // The system does not let a fault be ignored.
            libc::SIG_IGN if !is_fault(&*info) => {}
            libc::SIG_DFL | libc::SIG_IGN => die(signal),
            action if takes_info => {
                let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(action);
                handler(signal, info, context);
            }
            action => {
                let handler: extern "C" fn(libc::c_int) = std::mem::transmute(action);
                handler(signal);
            }
        }
    }
}

/// Ends the process by the signal's default action as soon as its handler returns.
fn die(signal: libc::c_int) {
    // SAFETY: plain data, and calls that handlers may make.
    unsafe {
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &default, ptr::null_mut());
        libc::raise(signal);
    }
}

/// Text on the stack; what does not fit is cut off.
struct Text {
    bytes: [u8; TEXT_BYTES],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let taken = more.len().min(TEXT_BYTES - self.len);
        self.bytes[self.len..self.len + taken].copy_from_slice(&more.as_bytes()[..taken]);
        self.len += taken;
        if taken == more.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
#[path = "bus_error_test.rs"]
mod tests;
