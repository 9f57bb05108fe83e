//! Other processes that read this database (I-27).
//!
//! A reader marks the data file (`media/src/reader_mark.rs`) and then connects to
//! the process that has the database open. That holds every block, says up to
//! which timestamp all is decided and durable. After that the reader asks for nothing: it reads the file by
//! itself. The process lets go when the connection has ended and the mark is gone.
//! Readers that are there when a database is opened are known by their marks alone.

use std::io::{self, Read};
use std::net::Shutdown;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::sync::atomic::{AtomicBool, Ordering};
use pantile_base::sync::{Mutex, thread};
use pantile_cc::{Begin, Registry};
use pantile_media::Identity;
use pantile_store::Beside;

use crate::engine::core::Core;
use crate::engine::readers::{Admitted, Earlier};
use crate::types::channel::{self, Listener, Stream};
use crate::types::error::{Error, Result};
use crate::types::reading::{PATIENCE, PAUSE, SCANNED, WAIT_FOR_WRITERS, write_beside};
use crate::types::stats::ReadingProcess;

/// How often it is looked whether earlier readers are still there.
pub(crate) const LOOK: Duration = Duration::from_millis(500);

/// After this many tries the address is not free soon.
const SOON: u32 = 100;

/// Looks at a mark after its connection has ended, before it is left to the worker.
const TRIES: u32 = 5;

/// The threads that serve readers. Dropping it ends them.
pub(crate) struct ReaderProcesses {
    connections: Arc<Mutex<Connections>>,
    listening: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Connections {
    is_over: bool,
    /// The socket that listens. Shutting it down takes no new descriptor.
    socket: Option<Stream>,
    open: Vec<Serving>,
}

/// A reader that is served.
struct Serving {
    stream: Stream,
    thread: thread::JoinHandle<()>,
    is_over: Arc<AtomicBool>,
}

impl ReaderProcesses {
    /// Begins to serve readers. If the system refuses that, there can be none.
    pub fn start(core: &Arc<Core>) -> Option<Self> {
        let options = &core.options;
        let apart = options.simulated_time.is_some() || options.without_worker || options.is_read_only();
        if apart || core.store.reuses_slots() {
            return None;
        }
        let file = core.store.medium().facts().file.clone()?;
        let identity = file.identity().ok()?;
        let connections = Arc::<Mutex<Connections>>::default();
        let (core, shared) = (Arc::downgrade(core), Arc::clone(&connections));
        let builder = thread::Builder::new().name("pantile-readers".into());
        let listening = builder.spawn(move || {
            if let Some(listener) = bind(identity, &shared) {
                listen(&core, &listener, &shared);
            }
        });
        Some(Self { connections, listening: Some(listening.ok()?) })
    }
}

impl Drop for ReaderProcesses {
    fn drop(&mut self) {
        let socket = {
            let mut connections = self.connections.lock();
            connections.is_over = true;
            connections.socket.take()
        };
        // That wakes the thread that listens.
        let _ = socket.map(|socket| socket.shutdown(Shutdown::Both));
        if let Some(thread) = self.listening.take() {
            let _ = thread.join();
        }
        let open = std::mem::take(&mut self.connections.lock().open);
        open.iter().for_each(|serving| _ = serving.stream.shutdown(Shutdown::Both));
        for Serving { thread, .. } in open {
            let _ = thread.join();
        }
    }
}

/// Takes the address. A child that is being forked keeps the one of an earlier
/// opening for a moment, and descriptors or memory may be short, so this tries until
/// it is there. If the system has no such addresses, there can be no readers.
fn bind(file: Identity, shared: &Mutex<Connections>) -> Option<Listener> {
    let mut tries = 0;
    loop {
        let mut connections = shared.lock();
        if connections.is_over {
            return None;
        }
        let listens =
            channel::listen(file).and_then(|listener| Ok((channel::socket_of(&listener)?, listener)));
        match listens {
            Ok((socket, listener)) => {
                connections.socket = Some(socket);
                return Some(listener);
            }
            Err(error) if is_for_good(&error) => return None,
            Err(_) => drop(connections),
        }
        tries += 1;
        if tries == SOON {
            tracing::warn!(
                "another process has the address at which readers ask; until it ends, none is served"
            );
        }
        thread::sleep(if tries < SOON { PAUSE } else { PAUSE * 10 });
    }
}

/// Whether trying again is of no use.
fn is_for_good(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied)
}

fn listen(core: &Weak<Core>, listener: &Listener, shared: &Mutex<Connections>) {
    for stream in listener.incoming() {
        let mut connections = shared.lock();
        if connections.is_over {
            return;
        }
        connections.open.retain(|serving| !serving.is_over.load(Ordering::Relaxed));
        let Ok((stream, kept)) = stream.and_then(|stream| Ok((stream.try_clone()?, stream))) else {
            // There are too many descriptors, and it will not be better at once.
            drop(connections);
            thread::sleep(PAUSE);
            continue;
        };
        let (core, is_over) = (Weak::clone(core), Arc::<AtomicBool>::default());
        let ended = Arc::clone(&is_over);
        let builder = thread::Builder::new().name("pantile-reader".into());
        let served = builder.spawn(move || {
            // A reader that is not served sees its connection end.
            let _ = serve(&core, kept);
            ended.store(true, Ordering::Relaxed);
        });
        connections.open.extend(served.map(|thread| Serving { stream, thread, is_over }));
    }
}

/// A state that a reader may see.
struct Decided {
    /// All at or below is decided.
    timestamp: Timestamp,
    /// All that had been acknowledged is at or below.
    is_current: bool,
    /// The blocks that hold it had been opened by then.
    opened_by: Timestamp,
}

/// Serves a reader until it goes.
fn serve(core: &Weak<Core>, mut stream: Stream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let (mut mark, mut process) = ([0; 8], [0; 4]);
    stream.read_exact(&mut mark)?;
    stream.read_exact(&mut process)?;
    let admit = |core: Arc<Core>| core.admit(u64::from_le_bytes(mark), u32::from_le_bytes(process));
    let Some((hold, beside)) = core.upgrade().and_then(admit) else { return Ok(()) };
    let served = serve_held(core, &mut stream, hold, &beside);
    if let Some(core) = core.upgrade() {
        core.let_go(hold, u64::from_le_bytes(mark));
    }
    served
}

fn serve_held(core: &Weak<Core>, stream: &mut Stream, hold: u64, beside: &Beside) -> io::Result<()> {
    write_beside(beside, stream)?;
    // A scan takes as long as it takes, and the reader may read for days.
    stream.set_read_timeout(None)?;
    stream.read_exact(&mut [0; SCANNED.len()])?;
    if let Some(core) = core.upgrade() {
        core.store.holds().scan_is_over(hold);
        core.look_at_held();
    }
    stream.read_exact(&mut [0])
}

impl Core {
    /// Holds what a process with this mark may read, and says what that is. None if
    /// there is no such process, or if the state cannot be recorded.
    fn admit(&self, mark: u64, process: u32) -> Option<(u64, Beside)> {
        // Only who can open the file can have a mark on it.
        let file = self.store.medium().facts().file.as_ref()?;
        if !file.is_read_by(mark).unwrap_or(false) {
            return None;
        }
        let hold = self.store.holds().begin();
        match self.decided() {
            Ok(Decided { timestamp, is_current, opened_by }) => {
                self.store.holds().narrow(hold, opened_by);
                let dead = self.store.dead_blocks(timestamp);
                self.store.holds().leave_out(hold, timestamp, &dead);
                let since = self.registry.clock().elapsed();
                self.admitted.lock().push(Admitted { hold, process, since });
                let dead = dead.into_iter().collect();
                Some((hold, Beside { timestamp, is_current, opened_by, dead }))
            }
            Err(_) => {
                self.end_hold(hold);
                None
            }
        }
    }

    /// Up to where all is decided, and durable, and recorded.
    fn decided(&self) -> Result<Decided> {
        if self.store.is_unchanged() {
            let closed = self.store.durable_watermark();
            return Ok(Decided { timestamp: closed, is_current: true, opened_by: closed });
        }
        let (timestamp, is_current) = self.settled()?;
        // Contents at or below the timestamp have been written by now.
        let opened_by = self.registry.after_all();
        let until = self.registry.clock().elapsed() + PATIENCE;
        match self.await_record(opened_by, Some(until))? {
            true => Ok(Decided { timestamp, is_current, opened_by }),
            false => Err(Error::Closed),
        }
    }

    /// A safe snapshot, and whether it shows all that was acknowledged before the call. It waits a moment for
    /// those who were writing then.
    fn settled(&self) -> Result<(Timestamp, bool)> {
        let clock = self.registry.clock();
        let (called, began) = (self.registry.now(), clock.elapsed());
        loop {
            let (permit, timestamp) = self.enter(Begin::SafeReader)?;
            self.leave(permit);
            let is_current = Registry::shows_all(timestamp, called);
            if is_current || clock.elapsed().saturating_sub(began) >= WAIT_FOR_WRITERS {
                return Ok((timestamp, is_current));
            }
            clock.sleep(Duration::from_millis(1));
        }
    }

    /// The connection of a process with this mark has ended. That may be because this process closes: what is still
    /// read stays held.
    fn let_go(&self, hold: u64, mark: u64) {
        let file = self.store.medium().facts().file.as_ref();
        let reads = || file.is_some_and(|file| file.is_read_by(mark).unwrap_or(true));
        // A process that ends lets go of the file a moment later.
        for _ in 0..TRIES {
            if !reads() {
                return self.end_hold(hold);
            }
            thread::sleep(PAUSE);
        }
        self.admitted.lock().retain(|admitted| admitted.hold != hold);
        self.earlier.lock().push(Earlier::of(mark, hold));
        self.look_at_held();
    }

    fn end_hold(&self, hold: u64) {
        self.admitted.lock().retain(|admitted| admitted.hold != hold);
        self.store.holds().end(hold);
        self.look_at_held();
    }

    /// What was held can be given back.
    fn look_at_held(&self) {
        self.alarm.ended();
        self.alarm.written();
    }
}

impl Core {
    /// From here on what is written is not what earlier readers read.
    pub fn hold_for_earlier(&self) {
        for earlier in &*self.earlier.lock() {
            self.store.holds().narrow(earlier.hold, self.registry.after_all());
        }
    }

    /// Lets go of what readers without a connection have read once they have ended. Returns
    /// whether there are some.
    pub fn look_at_earlier(&self) -> bool {
        let mut earlier = self.earlier.lock();
        let gone: Vec<_> = earlier.extract_if(.., |earlier| !earlier.are_left(&self.store)).collect();
        let are_left = !earlier.is_empty();
        drop(earlier);
        gone.iter().for_each(|earlier| self.end_hold(earlier.hold));
        are_left
    }

    /// The processes that read this database. Visits every block for each.
    pub fn reading_processes(&self) -> Vec<ReadingProcess> {
        let held = |hold| self.store.obsolete_in_held_blocks(hold);
        let now = self.registry.clock().elapsed();
        let admitted = self.admitted.lock();
        let admitted = admitted.iter().map(|admitted| ReadingProcess {
            process: Some(admitted.process),
            age: Some(now.saturating_sub(admitted.since)),
            held_bytes: held(admitted.hold),
        });
        let earlier = self.earlier.lock();
        let earlier = earlier.iter().flat_map(|earlier| {
            let one = ReadingProcess { process: None, age: None, held_bytes: held(earlier.hold) };
            std::iter::repeat_n(one, earlier.count())
        });
        admitted.chain(earlier).collect()
    }
}
