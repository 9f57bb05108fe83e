//! Sockets with a name that is in no directory: nobody can remove it, and it ends
//! with the process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
pub(crate) use std::os::unix::net::{UnixListener as Listener, UnixStream as Stream};

use pantile_media::Identity;

/// Where the process that has a data file open listens.
fn address((device, number): Identity) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("pantile-{device:x}-{number:x}"))
}

/// Connects to the process that listens for this data file.
pub(crate) fn connect(file: Identity) -> io::Result<Stream> {
    Stream::connect_addr(&address(file)?)
}

/// Listens for this data file.
pub(crate) fn listen(file: Identity) -> io::Result<Listener> {
    Listener::bind_addr(&address(file)?)
}

/// The process at the other end, and its user.
pub(crate) fn peer_of(stream: &Stream) -> io::Result<(u32, u32)> {
    pantile_media::peer_of(stream.as_fd())
}

/// The socket that listens. Shutting it down takes no new descriptor, and wakes
/// the thread that waits.
pub(crate) fn socket_of(listener: &Listener) -> io::Result<Stream> {
    Ok(Stream::from(OwnedFd::from(listener.try_clone()?)))
}
