//! A file system of one file, `disk`, that behaves like a disk with a volatile
//! cache whose power is cut on SIGUSR1; afterwards every request fails.
//!
//! usage: power-cut IMAGE MOUNTPOINT SEED [--lies]

mod disk;

use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use disk::{Disk, SECTOR};
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request,
    WriteFlags,
};
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;

const NAME: &str = "disk";
const FILE: INodeNo = INodeNo(2);
const VALID: Duration = Duration::from_secs(3600);

struct OneFile(Arc<Mutex<Disk>>);

impl OneFile {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().expect("no request panics")
    }

    fn attr(&self, ino: INodeNo) -> Option<FileAttr> {
        let (kind, size, perm, nlink) = match ino {
            INodeNo::ROOT => (FileType::Directory, 0, 0o700, 2),
            FILE => (FileType::RegularFile, self.disk().len(), 0o600, 1),
            _ => return None,
        };
        Some(FileAttr {
            ino,
            size,
            blocks: size / SECTOR as u64,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: SECTOR as u32,
        })
    }
}

impl Filesystem for OneFile {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attr(FILE) {
            Some(attr) if parent == INodeNo::ROOT && name == NAME => {
                reply.entry(&VALID, &attr, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attr(ino) {
            Some(attr) => reply.attr(&VALID, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // No cache but the disk's own may stand between.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.disk().read(offset, size as usize) {
            Ok(bytes) => reply.data(&bytes),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.disk().write(offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.disk().flush() {
            Ok(()) => reply.ok(),
            Err(_) => reply.error(Errno::EIO),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (image, mountpoint, seed, lies) = match &args[..] {
        [image, mountpoint, seed] => (image, mountpoint, seed, false),
        [image, mountpoint, seed, flag] if flag == "--lies" => (image, mountpoint, seed, true),
        _ => return Err("usage: power-cut IMAGE MOUNTPOINT SEED [--lies]".into()),
    };
    let image = File::options().read(true).write(true).open(image)?;
    let disk = Arc::new(Mutex::new(Disk::new(image, seed.parse()?, lies)?));
    let mut signals = Signals::new([SIGUSR1])?;
    let power = Arc::clone(&disk);
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            match power.lock().expect("no request panics").cut() {
                Ok(cut) => println!(
                    "cut after {} writes and {} flushes: {} of {} sectors in the cache kept",
                    cut.writes, cut.flushes, cut.kept, cut.pending
                ),
                Err(error) => println!("the image cannot be written: {error}"),
            }
        }
    });
    let mut config = Config::default();
    config.mount_options.push(MountOption::FSName("power-cut".into()));
    fuser::mount(OneFile(disk), mountpoint, &config)?;
    Ok(())
}
