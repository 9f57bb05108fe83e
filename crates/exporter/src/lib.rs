//! Serves the statistics of an open Pantile database to Prometheus.
//!
//! ```
//! use pantile::{MediumKind, Options};
//! let db = Options::new().medium(MediumKind::Dram).open("unused")?;
//! // Port 0 takes any that is free.
//! let exporter = pantile_exporter::serve(&db, ("127.0.0.1", 0))?;
//! println!("http://{}/metrics", exporter.address());
//! // It ends when `exporter` is dropped.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It speaks as much HTTP/1.1 as Prometheus needs: one request to a connection, a few connections at a time. There is no
//! authentication and no encryption, so keep it on the loopback address or behind something that has both. It has a
//! handle of the database, so drop it before the last handle of yours is to close the database.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pantile::Database;

/// How long a client may take to ask, and to read.
const PATIENCE: Duration = Duration::from_secs(5);
/// After a connection that could not be taken.
const PAUSE: Duration = Duration::from_millis(100);
/// A request is never longer.
const LONGEST: usize = 16 << 10;
/// Connections at a time. One more ends the oldest, which is most likely silent or slow.
const MOST: usize = 8;

/// A thread that answers Prometheus. Dropping it ends the thread.
#[derive(Debug)]
pub struct Exporter {
    address: SocketAddr,
    /// What the thread waits for, to be shut down.
    #[cfg(unix)]
    socket: TcpStream,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Serves the statistics of a database at this address, under `/metrics`.
///
/// # Errors
/// What the system says when the address is taken or cannot be used.
pub fn serve(db: &Database, address: impl ToSocketAddrs) -> io::Result<Exporter> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    #[cfg(unix)]
    let socket = TcpStream::from(OwnedFd::from(listener.try_clone()?));
    let stop = Arc::new(AtomicBool::new(false));
    let (db, stopped) = (db.clone(), Arc::clone(&stop));
    let builder = thread::Builder::new().name("pantile-exporter".into());
    let thread = builder.spawn(move || {
        let mut answering = VecDeque::<Answering>::new();
        for stream in listener.incoming() {
            if stopped.load(Ordering::SeqCst) {
                return;
            }
            answering.retain(|one| !one.is_done());
            if answering.len() == MOST {
                answering.pop_front();
            }
            match stream.and_then(|stream| Answering::begin(stream, &db)) {
                Ok(one) => answering.push_back(one),
                // As where the process has too many files open: it may pass.
                Err(_) => thread::sleep(PAUSE),
            }
        }
    })?;
    Ok(Exporter {
        address,
        #[cfg(unix)]
        socket,
        stop,
        thread: Some(thread),
    })
}

impl Exporter {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // The thread waits for a connection. Linux ends that where the socket is shut down, also if nobody can connect
        // any more.
        #[cfg(unix)]
        let _ = self.socket.shutdown(Shutdown::Both);
        let _ = TcpStream::connect_timeout(&reachable(self.address), PATIENCE);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already said so.
            let _ = thread.join();
        }
    }
}

/// An address that stands for all of the machine is reached by the loopback.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// A connection, and the thread that answers it. Dropping it ends both, so that nobody waits for a silent client.
struct Answering {
    stream: TcpStream,
    thread: Option<JoinHandle<()>>,
}

impl Answering {
    fn begin(stream: TcpStream, db: &Database) -> io::Result<Self> {
        let (own, db) = (stream.try_clone()?, db.clone());
        let builder = thread::Builder::new().name("pantile-metrics".into());
        let thread = builder.spawn(move || {
            // A client that goes away, or talks nonsense, is its own trouble. It reads to the end of the connection.
            let _ = answer(&own, &db);
            let _ = own.shutdown(Shutdown::Both);
        })?;
        Ok(Self { stream, thread: Some(thread) })
    }

    fn is_done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if !self.is_done() {
            // The client may have gone already.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already said so.
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: &TcpStream, db: &Database) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = request(&mut stream)?;
    let mut words = request.split_ascii_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // A server takes both forms (RFC 9112, 3.2.2): a proxy names the host as well.
    let path = match path.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => path,
    };
    let (status, body) = match (method, path.split('?').next()) {
        ("GET" | "HEAD", Some("/metrics")) => ("200 OK", db.metrics()),
        ("GET" | "HEAD", _) => ("404 Not Found", "the statistics are under /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET and HEAD are answered\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// The first line of a request, once all of its head has come.
fn request(stream: &mut impl Read) -> io::Result<String> {
    let (mut head, began) = (Vec::new(), Instant::now());
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if began.elapsed() > PATIENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => head.extend(&piece[..n]),
        }
        if head.len() > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}
