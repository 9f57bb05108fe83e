//! A mapping that grows but never moves.
//!
//! A large range of addresses is reserved once, without memory behind it, and
//! pieces are attached to it from the front as the medium grows.

use crate::MediumError;
use crate::limits::FullReason;
use crate::nodes::MachineNodes;
pub use crate::os::Protection;
use crate::os::{self, Watch, watch};
use pantile_base::limits::{CHUNK_BYTES, GROWTH_BYTES};
use parking_lot::Mutex;
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Addresses reserved unless told otherwise: 1 TiB.
pub const DEFAULT_RESERVE_BYTES: u64 = 1 << 40;

/// The unit in which the system reads a mapped file.
const PAGE_BYTES: u64 = 4096;

/// The smallest reservation that is worth having.
const LEAST_RESERVE_BYTES: u64 = 1 << 28;

/// How large a mapped medium may become.
#[derive(Debug, Clone, Copy)]
pub struct MapOptions {
    /// Bytes of address space to reserve, unless fewer are enough for `max_bytes`. If the system refuses, half is
    /// tried, and so on down to 256 MiB. Costs no memory.
    pub reserve_bytes: u64,
    /// Most bytes the medium may have; `None` is what could be reserved.
    pub max_bytes: Option<u64>,
}

impl Default for MapOptions {
    /// 1 TiB of addresses and no further limit.
    fn default() -> Self {
        Self { reserve_bytes: DEFAULT_RESERVE_BYTES, max_bytes: None }
    }
}

/// A reservation of addresses of which `[0, len)` can be read.
#[derive(Debug)]
pub struct Map {
    /// What the system gave, for unmapping.
    region: *mut c_void,
    region_len: usize,
    /// The first address in `region` on a chunk boundary.
    base: *mut u8,
    limit: u64,
    /// What is in the way of more than that.
    reason: FullReason,
    len: AtomicU64,
    growth: Mutex<()>,
    /// The system's advice for what is attached, and for what will be.
    advice: AtomicI32,
    watch: Option<Watch>,
    /// The nodes that memory is spread over, where it is.
    nodes: OnceLock<Arc<MachineNodes>>,
}

// SAFETY: the pointers name address space that this object owns until it is
// dropped; what is stored there is shared under the rules of `Medium`.
unsafe impl Send for Map {}
// SAFETY: as for Send; `len` is atomic and growth is under a lock.
unsafe impl Sync for Map {}

#[expect(clippy::len_without_is_empty, reason = "`len` says how far the mapping goes")]
impl Map {
    /// Reserves addresses and attaches nothing.
    ///
    /// # Errors
    /// [`MediumError::Io`] when not even 256 MiB of addresses can be had.
    pub(crate) fn reserve(options: MapOptions) -> Result<Self, MediumError> {
        // Addresses are finite: a hundred databases with a terabyte each would use them up.
        let wanted = options.max_bytes.map_or(options.reserve_bytes, |max| max.min(options.reserve_bytes));
        let mut bytes = round_up(wanted.max(CHUNK_BYTES));
        loop {
            match Self::try_reserve(bytes, options) {
                Ok(map) => return Ok(map),
                Err(_) if bytes / 2 >= LEAST_RESERVE_BYTES => bytes = round_up(bytes / 2),
                Err(source) => {
                    return Err(MediumError::Io { operation: "reserve addresses for", path: None, source });
                }
            }
        }
    }

    /// As [`Map::reserve`], but all addresses or none.
    pub(crate) fn reserve_all(options: MapOptions) -> Option<Self> {
        Self::try_reserve(round_up(options.reserve_bytes.max(CHUNK_BYTES)), options).ok()
    }

    fn try_reserve(bytes: u64, options: MapOptions) -> io::Result<Self> {
        os::reserve(bytes + CHUNK_BYTES).map(|region| Self::over(region, bytes, options))
    }

    fn over(region: *mut c_void, bytes: u64, options: MapOptions) -> Self {
        let start = region.cast::<u8>();
        let wanted = options.max_bytes.unwrap_or(options.reserve_bytes).min(options.reserve_bytes);
        let limit = wanted.min(bytes);
        let limit = limit - limit % GROWTH_BYTES;
        Self {
            region,
            region_len: (bytes + CHUNK_BYTES) as usize,
            base: start.wrapping_add(start.align_offset(CHUNK_BYTES as usize)),
            limit,
            reason: if bytes < wanted { FullReason::Addresses(limit) } else { FullReason::Limit(limit) },
            len: AtomicU64::new(0),
            growth: Mutex::new(()),
            advice: AtomicI32::new(os::NORMAL),
            watch: None,
            nodes: OnceLock::new(),
        }
    }

    /// The first byte; fixed for the life of the map.
    #[inline]
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Bytes attached, a multiple of `GROWTH_BYTES`.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Most bytes that can be attached.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Fails unless `len` bytes at `offset` are attached.
    #[inline]
    pub fn check(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let size = self.len();
        match offset.checked_add(len) {
            Some(end) if end <= size => Ok(()),
            _ => Err(MediumError::OutOfRange { offset, len, size }),
        }
    }

    /// Fails unless `len` bytes at `offset`, which must be multiples of
    /// `GROWTH_BYTES`, are attached.
    pub(crate) fn check_aligned(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let whole = offset.is_multiple_of(GROWTH_BYTES) && len.is_multiple_of(GROWTH_BYTES);
        assert!(whole, "{len} bytes at {offset} are not multiples of {GROWTH_BYTES}");
        self.check(offset, len)
    }

    /// Takes a file's `len` bytes and no more, since what lies beyond its end cannot
    /// be touched. A file may end anywhere: zeros are written ahead of its use.
    ///
    /// # Errors
    /// [`MediumError::Full`] without addresses for them, or what `attach(0, len)` returns.
    pub(crate) fn begin(
        &self,
        len: u64,
        attach: impl FnOnce(u64, u64) -> Result<(), MediumError>,
    ) -> Result<(), MediumError> {
        self.permit(len)?;
        if len > 0 {
            attach(0, len)?;
            self.len.store(len, Ordering::Release);
        }
        Ok(())
    }

    fn permit(&self, len: u64) -> Result<(), MediumError> {
        match len <= self.limit {
            true => Ok(()),
            false => Err(MediumError::Full { needed: len, path: None, reason: self.reason }),
        }
    }

    /// Grows to at least `len` bytes: `attach(from, to)` must make the bytes
    /// between readable. One thread grows at a time.
    ///
    /// # Errors
    /// [`MediumError::Full`] beyond the limit, or what `attach` returns; the
    /// length is then as before.
    pub(crate) fn grow(
        &self,
        len: u64,
        attach: impl FnOnce(u64, u64) -> Result<(), MediumError>,
    ) -> Result<(), MediumError> {
        if len <= self.len() {
            return Ok(());
        }
        self.permit(len)?;
        let _one_at_a_time = self.growth.lock();
        let (from, to) = (self.len(), round_up(len).min(self.limit));
        if from < to {
            attach(from, to)?;
            self.len.store(to, Ordering::Release);
        }
        Ok(())
    }

    /// Shrinks to `len` bytes, rounded up, if it is longer: `give_back(to)` must
    /// let go of what was behind the rest. One thread shrinks or grows at a time.
    ///
    /// # Errors
    /// What `give_back` returns; the map is shorter all the same.
    pub(crate) fn shrink(
        &self,
        len: u64,
        give_back: impl FnOnce(u64) -> Result<(), MediumError>,
    ) -> Result<(), MediumError> {
        let _one_at_a_time = self.growth.lock();
        let (from, to) = (self.len(), round_up(len));
        if to < from {
            self.len.store(to, Ordering::Release);
            self.reserve_again(to, from);
        }
        give_back(to.min(from))
    }

    /// Explains loads and stores that fail: everything attached will be of `file`,
    /// which stays open as long as the map exists.
    pub(crate) fn explain_bus_errors(&mut self, file: &File, path: &Path, protection: Protection) {
        let len = self.region_len - CHUNK_BYTES as usize;
        self.watch = watch(self.base as usize, len, file, path, protection);
    }

    /// Asks for huge pages in everything that will be attached. A wish only.
    pub fn prefer_huge_pages(&self) {
        self.advice.store(os::HUGE_PAGES, Ordering::Relaxed);
        self.prefer_huge_pages_in(0, self.region_len as u64 - CHUNK_BYTES);
    }

    fn prefer_huge_pages_in(&self, from: u64, to: u64) {
        self.advise_in(from, to, os::HUGE_PAGES);
    }

    /// How what is attached will be read, and what will be attached
    /// (`os::NORMAL` and similar).
    pub(crate) fn expect(&self, advice: i32) {
        // No thread attaches anything in between and misses it.
        let _one_at_a_time = self.growth.lock();
        self.advice.store(advice, Ordering::Relaxed);
        self.advise_in(0, self.len(), advice);
    }

    /// Begins to read attached bytes of a file that are not in memory. Does
    /// not wait for them.
    pub(crate) fn fetch(&self, offset: u64, len: u64) {
        let from = offset / PAGE_BYTES * PAGE_BYTES;
        let to = offset.saturating_add(len).min(self.len());
        if from < to {
            self.advise_in(from, to, os::SOON);
        }
    }

    /// Takes attached pages of a file out of the mapping. The file keeps them, and the next use brings them back.
    pub(crate) fn let_go(&self, offset: u64, len: u64) {
        self.advise_in(offset, offset + len, os::LET_GO);
    }

    fn advise_in(&self, from: u64, to: u64, advice: i32) {
        // SAFETY: the range is inside the reservation.
        unsafe { os::advise(self.at(from), to - from, advice) };
    }

    /// Memory that will be attached is to be on these nodes in turn. It stays so once it was said.
    pub(crate) fn spread_over(&self, nodes: Arc<MachineNodes>) {
        self.nodes.get_or_init(|| nodes);
    }

    /// Puts zeroed memory behind bytes `from..to` of the reservation.
    pub(crate) fn attach_memory(&self, from: u64, to: u64) -> Result<(), MediumError> {
        // SAFETY: `grow` gives ranges inside the reservation that are not used yet.
        let attached = unsafe { os::attach_memory(self.at(from), to - from, from) };
        attached.map_err(|source| MediumError::growing("get", None, to, source))?;
        if let Some(nodes) = self.nodes.get() {
            nodes.place(|offset| self.at(offset), from, to);
        }
        Ok(())
    }

    /// Lets go of the memory behind attached bytes, which then read as zero
    /// and get new memory when they are stored to.
    pub(crate) fn discard_memory(&self, offset: u64, len: u64) {
        // SAFETY: the caller of `discard` promises that no thread uses these bytes.
        if unsafe { os::discard_memory(self.at(offset), len) }.is_err() {
            // Memory that the process has locked (`mlockall`) stays.
            // SAFETY: as before; the bytes are attached and writable.
            unsafe { ptr::write_bytes(self.at(offset).cast::<u8>(), 0, len as usize) };
        }
    }

    /// Puts bytes `from..to` of `file` behind the same bytes of the reservation.
    pub(crate) fn attach_file(
        &self,
        file: &File,
        protection: Protection,
        from: u64,
        to: u64,
    ) -> Result<(), MediumError> {
        // SAFETY: `grow` gives ranges inside the reservation that are not used yet.
        let attached = unsafe { os::attach_file(self.at(from), to - from, file, from, protection) };
        if let Err(source) = attached {
            self.reserve_again(from, to);
            return Err(MediumError::growing("map", None, to, source));
        }
        if is_memory(file, protection) {
            self.prefer_huge_pages_in(from, to);
        } else {
            self.advise_in(from, to, self.advice.load(Ordering::Relaxed));
        }
        Ok(())
    }

    /// Tries to map the first chunk of `file` with this protection. The file
    /// may be shorter. Nothing is attached.
    pub(crate) fn would_attach(file: &File, protection: Protection) -> io::Result<()> {
        os::would_attach(file, CHUNK_BYTES, protection)
    }

    /// A refused fixed mapping may leave a hole that other mappings could fall into.
    fn reserve_again(&self, from: u64, to: u64) {
        // SAFETY: the range belongs to this reservation and is not used.
        unsafe { os::detach(self.at(from), to - from) };
        // The new reserve knows nothing of what was asked for in the old one.
        self.advise_in(from, to, self.advice.load(Ordering::Relaxed));
    }

    /// The address of byte `offset`.
    pub fn at(&self, offset: u64) -> *mut c_void {
        self.base.wrapping_add(offset as usize).cast()
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // Before others may have the addresses.
        self.watch = None;
        // SAFETY: the region is ours, and no reference into it outlives the medium.
        unsafe { os::release(self.region, self.region_len) };
    }
}

/// Whether a mapping of the file shows memory, not copies of what a device
/// has. Huge pages pay there. On a device they would make the system read
/// megabytes for a row.
pub(crate) fn is_memory(file: &File, protection: Protection) -> bool {
    protection == Protection::Persistent || os::is_in_memory(file)
}

/// From this size on media grow by whole chunks, for the sake of huge pages.
const LARGE_BYTES: u64 = 8 * CHUNK_BYTES;

/// The length of a medium that has grown to have room for `bytes`.
pub(crate) fn round_up(bytes: u64) -> u64 {
    bytes.next_multiple_of(if bytes < LARGE_BYTES { GROWTH_BYTES } else { CHUNK_BYTES })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(max_bytes: Option<u64>) -> Map {
        Map::reserve(MapOptions { reserve_bytes: 8 * CHUNK_BYTES, max_bytes }).expect("reserve")
    }

    #[test]
    fn the_base_is_aligned_and_new_bytes_are_zero() {
        let map = small(None);
        assert_eq!(map.base().align_offset(CHUNK_BYTES as usize), 0);
        map.grow(1, |from, to| map.attach_memory(from, to)).expect("grow");
        assert_eq!(map.len(), GROWTH_BYTES);
        // SAFETY: the byte is attached.
        assert_eq!(unsafe { map.base().add(4095).read() }, 0);
    }

    #[test]
    fn the_limit_holds_and_a_failed_growth_changes_nothing() {
        let map = small(Some(2 * CHUNK_BYTES + 5));
        assert_eq!(map.limit(), 2 * CHUNK_BYTES);
        map.grow(3 * GROWTH_BYTES, |from, to| map.attach_memory(from, to)).expect("grow");
        map.shrink(GROWTH_BYTES + 1, |_| Ok(())).expect("shrink");
        assert_eq!(map.len(), 2 * GROWTH_BYTES);
        map.shrink(0, |_| Ok(())).expect("shrink");
        let full = map.grow(2 * CHUNK_BYTES + 1, |_, _| Ok(()));
        assert!(full.expect_err("too large").is_full());
        let full = || MediumError::Full { needed: 1, path: None, reason: FullReason::Device };
        map.grow(1, |_, _| Err(full())).expect_err("attach failed");
        assert_eq!(map.len(), 0);
    }

    #[test]
    fn a_file_larger_than_the_addresses_is_refused() {
        let options = MapOptions { reserve_bytes: 1 << 50, max_bytes: None };
        let map = Map::reserve(options).expect("fallback");
        let attach = |_, _| panic!("it would go over other mappings");
        let full = map.begin(map.limit() + GROWTH_BYTES, attach).expect_err("too large");
        let reserved = map.limit();
        assert!(
            matches!(full, MediumError::Full { reason: FullReason::Addresses(n), .. } if n == reserved),
            "{full}"
        );
    }

    #[test]
    fn ranges_are_checked_without_overflow() {
        let map = small(None);
        assert!(map.check(0, 0).is_ok());
        assert!(map.check(u64::MAX, 2).is_err());
        assert!(map.check(0, 1).is_err());
    }

    #[test]
    fn many_small_media_have_their_limits() {
        let options = MapOptions { max_bytes: Some(4 * CHUNK_BYTES), ..MapOptions::default() };
        let maps: Vec<_> = (0..300).map(|_| Map::reserve(options).expect("reserve")).collect();
        for map in &maps {
            assert_eq!(map.limit(), 4 * CHUNK_BYTES);
            map.grow(1, |from, to| map.attach_memory(from, to)).expect("grow");
        }
    }

    #[test]
    fn an_absurd_reservation_falls_back_to_a_smaller_one() {
        let map = Map::reserve(MapOptions { reserve_bytes: 1 << 50, max_bytes: None }).expect("fallback");
        assert!(map.limit() >= LEAST_RESERVE_BYTES && map.limit() < 1 << 50);
    }

    /// What the system says about the mapping at an address (`VmFlags`).
    fn flags_at(address: *mut c_void) -> String {
        let smaps = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
        let range = |line: &str| {
            let (from, to) = line.split_whitespace().next()?.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some(number(from)?..number(to)?)
        };
        let mut lines = smaps.lines();
        let is_it = |line: &str| range(line).is_some_and(|range| range.contains(&(address as usize)));
        lines.find(|line| is_it(line)).expect("it is mapped");
        lines.find(|line| line.starts_with("VmFlags")).expect("flags").to_owned()
    }

    #[test]
    fn memory_that_is_attached_again_is_on_huge_pages_too() {
        let options = MapOptions { reserve_bytes: 16 * CHUNK_BYTES, max_bytes: None };
        let map = Map::reserve(options).expect("reserve");
        map.prefer_huge_pages();
        let grow = || map.grow(8 * CHUNK_BYTES, |from, to| map.attach_memory(from, to)).expect("grow");
        grow();
        let has_huge = |n: u64| flags_at(map.at(n * CHUNK_BYTES)).contains(" hg");
        if !has_huge(1) {
            return eprintln!("skipped: this system has no huge pages");
        }
        map.shrink(2 * CHUNK_BYTES, |_| Ok(())).expect("shrink");
        grow();
        assert!((0..8).all(has_huge));
    }
}
