//! How processes that have the same data file open reach each other.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod none;

#[cfg(target_os = "linux")]
pub(crate) use linux::{Listener, Stream, connect, listen, peer_of, socket_of};
#[cfg(not(target_os = "linux"))]
pub(crate) use none::{Listener, Stream, connect, listen, peer_of, socket_of};
