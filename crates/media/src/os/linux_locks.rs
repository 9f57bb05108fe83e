//! Locks on Linux that the standard library does not have: those of a range of
//! an open file, and the list of all.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;

/// Locks one byte of a file, beside others that do so. Returns whether there are
/// such locks.
///
/// # Errors
/// What the system says: some file systems have no such locks.
pub(crate) fn lock_byte(file: &File, at: u64) -> io::Result<bool> {
    control(file, libc::F_OFD_SETLK, &mut range(libc::F_RDLCK, at, 1)).map(|()| true)
}

/// The first byte of a lock that others have in a range, if there is one: any of them.
///
/// # Errors
/// What the system says.
pub(crate) fn locked_in(file: &File, from: u64, len: u64) -> io::Result<Option<u64>> {
    let mut lock = range(libc::F_WRLCK, from, len);
    control(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok((i32::from(lock.l_type) != libc::F_UNLCK).then_some(lock.l_start as u64))
}

fn range(kind: libc::c_int, from: u64, len: u64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: from as libc::off_t,
        l_len: len as libc::off_t,
        l_pid: 0,
    }
}

fn control(file: &File, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the system reads and writes one `flock`.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut *lock) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The process at the other end of a connection, and its user.
///
/// # Errors
/// What the system says.
pub fn peer_of(socket: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let (to, mut len) = ((&raw mut peer).cast(), size_of::<libc::ucred>() as libc::socklen_t);
    // SAFETY: the descriptor is open, and the system writes no more than there is room for.
    match unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, to, &raw mut len)
    } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok((peer.pid as u32, peer.uid)),
    }
}

/// The process that has locked a file, as far as the system says. It names no
/// process outside of the container.
pub(crate) fn holder_of(file: &File) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let found = file.metadata().ok()?;
    let device = format!("{:02x}:{:02x}", libc::major(found.dev()), libc::minor(found.dev()));
    locks.lines().find_map(|line| {
        let entry = Entry::parse(line).filter(|entry| entry.inode == found.ino())?;
        // Some file systems show another device here than to `stat`.
        (entry.device == device || has_open(entry.process, &found)).then_some(entry.process)
    })
}

/// A line of `/proc/locks`, as in `1: FLOCK  ADVISORY  WRITE 1234 fe:00:567 0 EOF`.
struct Entry<'a> {
    process: u32,
    device: &'a str,
    inode: u64,
}

impl<'a> Entry<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().skip(1);
        if words.next()? != "FLOCK" {
            return None;
        }
        let mut words = words.skip(2);
        let process = words.next()?.parse().ok()?;
        let (device, inode) = words.next()?.rsplit_once(':')?;
        Some(Self { process, device, inode: inode.parse().ok()? })
    }
}

fn has_open(process: u32, file: &fs::Metadata) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let is_it = |other: fs::Metadata| (other.dev(), other.ino()) == (file.dev(), file.ino());
    descriptors.flatten().any(|entry| fs::metadata(entry.path()).is_ok_and(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_list_of_locks_is_read() {
        let entry = Entry::parse("12: FLOCK  ADVISORY  WRITE 1234 fe:00:567 0 EOF").expect("a lock");
        assert_eq!((entry.process, entry.device, entry.inode), (1234, "fe:00", 567));
        for other in [
            "12: -> FLOCK  ADVISORY  WRITE 1234 fe:00:567 0 EOF",
            "3: OFDLCK ADVISORY  READ -1 00:18:3 0 EOF",
            "",
        ] {
            assert!(Entry::parse(other).is_none(), "{other}");
        }
    }
}
