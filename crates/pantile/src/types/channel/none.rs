//! macOS and Windows have no name for a socket that is in no directory, and no
//! marks of readers (`media/src/reader_mark.rs`). So nobody listens, and there is
//! no connection. A database is read by itself there, or not at all.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use pantile_media::Identity;

/// There is none.
#[derive(Debug)]
pub(crate) enum Stream {}

/// There is none.
#[derive(Debug)]
pub(crate) enum Listener {}

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Connects to nobody.
pub(crate) fn connect(_file: Identity) -> io::Result<Stream> {
    unsupported()
}

/// Listens to nobody.
pub(crate) fn listen(_file: Identity) -> io::Result<Listener> {
    unsupported()
}

/// The process at the other end, and its user.
pub(crate) fn peer_of(stream: &Stream) -> io::Result<(u32, u32)> {
    match *stream {}
}

/// The socket that listens.
pub(crate) fn socket_of(listener: &Listener) -> io::Result<Stream> {
    match *listener {}
}

impl Listener {
    pub(crate) fn incoming(&self) -> std::iter::Empty<io::Result<Stream>> {
        match *self {}
    }
}

impl Stream {
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        match *self {}
    }

    pub(crate) fn set_read_timeout(&self, _longest: Option<Duration>) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn shutdown(&self, _how: Shutdown) -> io::Result<()> {
        match *self {}
    }
}

impl Read for Stream {
    fn read(&mut self, _out: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }
}

impl Write for Stream {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match *self {}
    }
}
