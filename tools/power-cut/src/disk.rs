//! A disk with a volatile cache over an image in a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that are written whole or not at all.
pub const SECTOR: usize = 512;

/// Versions of a sector that are kept apart until a flush; of more, some are forgotten.
const VERSIONS: usize = 8;

type Sector = [u8; SECTOR];

/// The disk. What is written stays in its cache until it is flushed.
pub struct Disk {
    image: File,
    len: u64,
    /// What has been written to each sector since the last flush.
    cache: BTreeMap<u64, Vec<Sector>>,
    /// Flushes do nothing.
    lies: bool,
    cut: bool,
    random: Random,
    writes: u64,
    flushes: u64,
}

/// What a power cut has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Writes until then.
    pub writes: u64,
    /// Flushes until then.
    pub flushes: u64,
    /// Sectors that were in the cache only.
    pub pending: usize,
    /// Of these, how many have reached the image, in some version.
    pub kept: usize,
}

impl Disk {
    /// A disk with the contents of an image.
    pub fn new(image: File, seed: u64, lies: bool) -> io::Result<Self> {
        let len = image.metadata()?.len();
        let random = Random(seed);
        Ok(Self { image, len, cache: BTreeMap::new(), lies, cut: false, random, writes: 0, flushes: 0 })
    }

    /// Bytes of the disk.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Reads as much as there is from `offset`.
    pub fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.check_power()?;
        let len = self.len.saturating_sub(offset).min(len as u64) as usize;
        let mut bytes = vec![0; len];
        self.image.read_exact_at(&mut bytes, offset)?;
        for (sector, versions) in self.cache.range(offset / SECTOR as u64..) {
            let start = sector * SECTOR as u64;
            if start >= offset + len as u64 {
                break;
            }
            let newest = versions.last().expect("a sector in the cache has been written");
            let from = offset.max(start);
            let to = (offset + len as u64).min(start + SECTOR as u64);
            bytes[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&newest[(from - start) as usize..(to - start) as usize]);
        }
        Ok(bytes)
    }

    /// Writes to the cache.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.check_power()?;
        if offset + bytes.len() as u64 > self.len {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.writes += 1;
        let mut at = 0;
        while at < bytes.len() {
            let (sector, within) =
                ((offset + at as u64) / SECTOR as u64, ((offset + at as u64) % SECTOR as u64) as usize);
            let len = (SECTOR - within).min(bytes.len() - at);
            let mut new = [0; SECTOR];
            if len < SECTOR {
                let old = self.read(sector * SECTOR as u64, SECTOR)?;
                new[..old.len()].copy_from_slice(&old);
            }
            new[within..within + len].copy_from_slice(&bytes[at..at + len]);
            let versions = self.cache.entry(sector).or_default();
            if versions.len() == VERSIONS {
                versions.remove(self.random.below(VERSIONS as u64) as usize);
            }
            versions.push(new);
            at += len;
        }
        Ok(())
    }

    /// Brings everything to the image, unless the disk lies.
    pub fn flush(&mut self) -> io::Result<()> {
        self.check_power()?;
        self.flushes += 1;
        if !self.lies {
            for (sector, versions) in std::mem::take(&mut self.cache) {
                let newest = versions.last().expect("a sector in the cache has been written");
                self.image.write_all_at(newest, sector * SECTOR as u64)?;
            }
        }
        Ok(())
    }

    /// Cuts the power: of the sectors in the cache some reach the image, each in
    /// any version since the last flush. Nothing works after that.
    pub fn cut(&mut self) -> io::Result<Cut> {
        // Often nothing or everything, which is what happens to disks most of the time.
        let percent = match self.random.below(6) {
            0 => 0,
            1 => 100,
            _ => self.random.below(101),
        };
        let pending = self.cache.len();
        let mut kept = 0;
        for (sector, versions) in std::mem::take(&mut self.cache) {
            if self.random.below(100) < percent {
                let version = &versions[self.random.below(versions.len() as u64) as usize];
                self.image.write_all_at(version, sector * SECTOR as u64)?;
                kept += 1;
            }
        }
        self.cut = true;
        Ok(Cut { writes: self.writes, flushes: self.flushes, pending, kept })
    }

    fn check_power(&self) -> io::Result<()> {
        if self.cut { Err(io::Error::other("the power is cut")) } else { Ok(()) }
    }
}

/// A stream of numbers that a seed determines (SplitMix64).
struct Random(u64);

impl Random {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let n = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (n ^ (n >> 31)) % end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(seed: u64, lies: bool) -> Disk {
        let image = tempfile::tempfile().unwrap();
        image.set_len(64 * SECTOR as u64).unwrap();
        Disk::new(image, seed, lies).unwrap()
    }

    fn image(disk: &Disk) -> Vec<u8> {
        let mut bytes = vec![0; disk.len as usize];
        disk.image.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_read_back_before_and_after_a_flush() {
        let mut disk = disk(1, false);
        disk.write(500, &[7; 1100]).unwrap();
        let expected = [vec![0; 100], vec![7; 1100], vec![0; 100]].concat();
        assert_eq!(disk.read(400, 1300).unwrap(), expected);
        assert!(image(&disk).iter().all(|byte| *byte == 0), "not before it is flushed");
        disk.flush().unwrap();
        assert_eq!(disk.read(400, 1300).unwrap(), expected);
        assert_eq!(image(&disk)[400..1700], expected);
        assert!(disk.write(disk.len() - 1, &[1; 2]).is_err());
        assert_eq!(disk.read(disk.len() - 1, 9).unwrap(), [0]);
    }

    #[test]
    fn a_cut_keeps_what_was_flushed_and_whole_sectors_of_the_rest() {
        let mut partly = 0;
        for seed in 0..50 {
            let mut disk = disk(seed, false);
            disk.write(0, &[1; 64 * SECTOR]).unwrap();
            disk.flush().unwrap();
            disk.write(0, &[2; 32 * SECTOR]).unwrap();
            disk.write(0, &[3; 32 * SECTOR]).unwrap();
            let cut = disk.cut().unwrap();
            assert_eq!((cut.writes, cut.flushes, cut.pending), (3, 1, 32));
            let image = image(&disk);
            let sectors: Vec<_> = image.chunks(SECTOR).collect();
            assert!(sectors.iter().all(|sector| sector.iter().all(|byte| *byte == sector[0])));
            assert!(sectors[32..].iter().all(|sector| sector[0] == 1));
            assert_eq!(sectors.iter().filter(|sector| sector[0] > 1).count(), cut.kept);
            let versions = [2, 3].map(|n| sectors.iter().any(|sector| sector[0] == n));
            partly += u32::from(versions == [true; 2] && cut.kept < 32);
            assert!(disk.read(0, 1).is_err() && disk.write(0, &[1]).is_err() && disk.flush().is_err());
        }
        assert!(partly > 10, "{partly}");
    }

    #[test]
    fn a_disk_that_lies_keeps_everything_in_its_cache() {
        let mut disk = disk(1, true);
        disk.write(0, &[1; SECTOR]).unwrap();
        disk.flush().unwrap();
        assert_eq!(image(&disk)[0], 0);
        assert_eq!(disk.cut().unwrap().pending, 1);
    }
}
