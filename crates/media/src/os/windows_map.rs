//! Windows: addresses.
//!
//! A reservation is a placeholder. What is attached takes the place of a part of
//! it, in pieces, because only a whole piece can be detached again. What is not
//! attached is one placeholder from the last piece to the end: growth splits it,
//! and what is detached joins it again. (Windows 10 version 1803 and later.)

use super::{Protection, handle, read_exact_at};
use pantile_base::limits::{CHUNK_BYTES, GROWTH_BYTES};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr;
use windows_sys::Win32::Foundation::{CloseHandle, HANDLE};
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, MEM_COMMIT, MEM_MAPPED, MEM_PRESERVE_PLACEHOLDER, MEM_RELEASE,
    MEM_REPLACE_PLACEHOLDER, MEM_RESERVE, MEM_RESERVE_PLACEHOLDER, MEMORY_BASIC_INFORMATION,
    MEMORY_MAPPED_VIEW_ADDRESS, MapViewOfFile3, PAGE_NOACCESS, PAGE_READONLY, PAGE_READWRITE,
    PrefetchVirtualMemory, UnmapViewOfFileEx, VirtualAlloc2, VirtualFree, VirtualQuery,
    WIN32_MEMORY_RANGE_ENTRY,
};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// How what is mapped will be read. The system takes only one advice.
pub(crate) const NORMAL: i32 = 0;
pub(crate) const AT_RANDOM: i32 = 1;
pub(crate) const SOON: i32 = 2;
pub(crate) const LET_GO: i32 = 3;

/// Below this length a medium grows and shrinks by less than a chunk.
const SMALL_BYTES: u64 = 8 * CHUNK_BYTES;

/// Joins placeholders that lie side by side, of `winnt.h`.
const MEM_COALESCE_PLACEHOLDERS: u32 = 1;

/// Bytes read at once into the memory of a view.
const READ_BYTES: u64 = 1 << 20;

fn done(status: i32) -> io::Result<()> {
    if status == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn this_process() -> HANDLE {
    // SAFETY: takes nothing, and returns a number that need not be closed.
    unsafe { GetCurrentProcess() }
}

/// Reserves addresses without memory behind them.
pub(crate) fn reserve(bytes: u64) -> io::Result<*mut c_void> {
    let kind = MEM_RESERVE | MEM_RESERVE_PLACEHOLDER;
    // SAFETY: addresses of the system's choice are nobody's.
    let region = unsafe {
        VirtualAlloc2(this_process(), ptr::null(), bytes as usize, kind, PAGE_NOACCESS, ptr::null_mut(), 0)
    };
    if region.is_null() { Err(io::Error::last_os_error()) } else { Ok(region) }
}

/// A placeholder, or what has taken the place of one.
#[derive(Clone, Copy)]
struct Piece {
    start: *mut c_void,
    bytes: usize,
    is_view: bool,
    is_attached: bool,
}

impl Piece {
    /// The piece at an address, which is the first of its own or inside it.
    fn at(address: *mut c_void) -> io::Result<Self> {
        // SAFETY: plain numbers, of which the call fills in as much as it is told.
        let found = unsafe {
            let mut found: MEMORY_BASIC_INFORMATION = std::mem::zeroed();
            let len = size_of::<MEMORY_BASIC_INFORMATION>();
            if VirtualQuery(address, &raw mut found, len) == 0 {
                return Err(io::Error::last_os_error());
            }
            found
        };
        Ok(Self {
            start: found.AllocationBase,
            bytes: found.BaseAddress.addr() - found.AllocationBase.addr() + found.RegionSize,
            is_view: found.Type == MEM_MAPPED,
            is_attached: found.State == MEM_COMMIT,
        })
    }

    /// Those of a range, which begins with one.
    fn all_in(at: *mut c_void, bytes: usize) -> io::Result<Vec<Self>> {
        let (mut pieces, mut next) = (Vec::new(), at);
        while next.addr() < at.addr() + bytes {
            let piece = Self::at(next)?;
            next = piece.end();
            pieces.push(piece);
        }
        Ok(pieces)
    }

    fn end(&self) -> *mut c_void {
        self.start.wrapping_byte_add(self.bytes)
    }

    /// Ends it, or leaves a placeholder.
    ///
    /// # Safety
    /// Nobody uses it.
    unsafe fn end_as(&self, placeholder: u32) -> io::Result<()> {
        // SAFETY: by the contract; it is whole.
        unsafe {
            if self.is_view {
                return done(UnmapViewOfFileEx(
                    MEMORY_MAPPED_VIEW_ADDRESS { Value: self.start },
                    placeholder,
                ));
            }
            let bytes = if placeholder == 0 { 0 } else { self.bytes };
            done(VirtualFree(self.start, bytes, MEM_RELEASE | placeholder))
        }
    }
}

/// Gives a reservation back with all that is attached to it.
///
/// # Safety
/// It is what [`reserve`] returned, and nobody uses it any more.
pub(crate) unsafe fn release(region: *mut c_void, bytes: usize) {
    // All are known before the first ends and others may have its addresses.
    for piece in Piece::all_in(region, bytes).unwrap_or_default() {
        // Best effort: what stays are addresses that nobody uses.
        // SAFETY: by the contract.
        let _ = unsafe { piece.end_as(0) };
    }
}

/// Takes what is attached to a part of a reservation away, from there to its end.
///
/// # Safety
/// The range is inside a reservation, everything behind it is not attached, and
/// nobody uses it.
pub(crate) unsafe fn detach(at: *mut c_void, bytes: u64) {
    // Best effort: the next growth that finds no placeholder says so.
    // SAFETY: by the contract.
    let _ = unsafe { try_detach(at, bytes as usize) };
}

/// # Safety
/// As for [`detach`].
unsafe fn try_detach(at: *mut c_void, bytes: usize) -> io::Result<()> {
    let pieces = Piece::all_in(at, bytes)?;
    for piece in pieces.iter().filter(|piece| piece.is_attached) {
        // SAFETY: by the contract.
        unsafe { piece.end_as(MEM_PRESERVE_PLACEHOLDER)? };
    }
    let behind = at.wrapping_byte_add(bytes);
    let rest = Piece::at(behind).ok().filter(|rest| rest.start == behind && is_placeholder(rest));
    let end = match (rest, pieces.last()) {
        (Some(rest), _) => rest.end(),
        (None, Some(last)) => last.end(),
        (None, None) => return Ok(()),
    };
    let is_several = pieces.len() + usize::from(rest.is_some()) > 1;
    if !is_several {
        return Ok(());
    }
    // SAFETY: the range is whole placeholders of ours.
    unsafe { done(VirtualFree(at, end.addr() - at.addr(), MEM_RELEASE | MEM_COALESCE_PLACEHOLDERS)) }
}

fn is_placeholder(piece: &Piece) -> bool {
    !piece.is_attached && !piece.is_view
}

/// Puts something in the place of each piece of a range, which is for the bytes
/// from `offset` on: `put` is given the address of the piece, its first byte and
/// its length. A medium shrinks to the beginning of a piece.
///
/// # Safety
/// The range is at the front of what is not attached of a reservation.
unsafe fn in_pieces(
    at: *mut c_void,
    bytes: u64,
    offset: u64,
    put: impl Fn(*mut c_void, u64, usize) -> io::Result<()>,
) -> io::Result<()> {
    let (mut from, to) = (offset, offset + bytes);
    while from < to {
        let unit = if from < SMALL_BYTES { GROWTH_BYTES } else { CHUNK_BYTES };
        let until = (from / unit * unit + unit).min(to);
        let (place, len) = (at.wrapping_byte_add((from - offset) as usize), (until - from) as usize);
        // SAFETY: by the contract, and what was before is attached by now.
        unsafe { split(place, len)? };
        put(place, from, len)?;
        from = until;
    }
    Ok(())
}

/// Makes the first bytes of a placeholder one of their own.
///
/// # Safety
/// They are inside a reservation, and not attached.
unsafe fn split(at: *mut c_void, bytes: usize) -> io::Result<()> {
    let piece = Piece::at(at)?;
    if piece.start == at && piece.bytes == bytes {
        return Ok(());
    }
    // SAFETY: by the contract.
    unsafe { done(VirtualFree(at, bytes, MEM_RELEASE | MEM_PRESERVE_PLACEHOLDER)) }
}

/// Puts zeroed memory behind a part of a reservation, `offset` bytes from its beginning.
///
/// # Safety
/// The range is inside a reservation, at the front of what is not attached.
pub(crate) unsafe fn attach_memory(at: *mut c_void, bytes: u64, offset: u64) -> io::Result<()> {
    let kind = MEM_RESERVE | MEM_COMMIT | MEM_REPLACE_PLACEHOLDER;
    let put = |place: *mut c_void, _: u64, len: usize| {
        // SAFETY: the placeholder there has this length, and nobody uses it.
        let got =
            unsafe { VirtualAlloc2(this_process(), place, len, kind, PAGE_READWRITE, ptr::null_mut(), 0) };
        if got.is_null() { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: by the contract.
    let attached = unsafe { in_pieces(at, bytes, offset, put) };
    if attached.is_err() {
        // SAFETY: nobody has it yet.
        unsafe { detach(at, bytes) };
    }
    attached
}

/// Puts bytes of a file, from `offset` on, behind a part of a reservation.
///
/// # Errors
/// What the system says; `Unsupported` where they are to be stored to: a sync of
/// the file would not write what was stored.
///
/// # Safety
/// The range is inside a reservation, at the front of what is not attached.
pub(crate) unsafe fn attach_file(
    at: *mut c_void,
    bytes: u64,
    file: &File,
    offset: u64,
    protection: Protection,
) -> io::Result<()> {
    if protection != Protection::ReadOnly {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let section = Section::of(file, offset + bytes)?;
    let put = |place: *mut c_void, from: u64, len: usize| {
        // SAFETY: the placeholder there has this length, and nobody uses it.
        let view = unsafe {
            let (kind, extra) = (MEM_REPLACE_PLACEHOLDER, ptr::null_mut());
            MapViewOfFile3(section.0, this_process(), place, from, len, kind, PAGE_READONLY, extra, 0)
        };
        if view.Value.is_null() { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: by the contract.
    unsafe { in_pieces(at, bytes, offset, put) }
}

/// The first bytes of a file, to be mapped. Views outlast it.
struct Section(HANDLE);

impl Section {
    fn of(file: &File, len: u64) -> io::Result<Self> {
        let (high, low) = ((len >> 32) as u32, len as u32);
        // SAFETY: the handle is open, and there is neither a name nor a descriptor to read.
        let section =
            unsafe { CreateFileMappingW(handle(file), ptr::null(), PAGE_READONLY, high, low, ptr::null()) };
        if section.is_null() { Err(io::Error::last_os_error()) } else { Ok(Self(section)) }
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        // SAFETY: it is open, and this is the only one who has it.
        unsafe { CloseHandle(self.0) };
    }
}

/// Puts the first bytes of a file in the place of memory: reads them, up to the
/// end of the file.
///
/// # Errors
/// What the system says, also of a place that cannot be read.
///
/// # Safety
/// The range is attached memory, and no other thread has it yet.
pub(crate) unsafe fn attach_private(at: *mut c_void, bytes: u64, file: &File) -> io::Result<()> {
    let bytes = bytes.min(file.metadata()?.len());
    // SAFETY: by the contract.
    let memory = unsafe { std::slice::from_raw_parts_mut(at.cast::<u8>(), bytes as usize) };
    let mut pieces = memory.chunks_mut(READ_BYTES as usize).zip((0..).step_by(READ_BYTES as usize));
    pieces.try_for_each(|(piece, offset)| read_exact_at(file, piece, offset))
}

/// Puts zeros in the place of bytes that [`attach_private`] has put there.
///
/// # Errors
/// None.
///
/// # Safety
/// As for [`attach_private`].
pub(crate) unsafe fn replace_private(at: *mut c_void, bytes: u64) -> io::Result<()> {
    // SAFETY: by the contract.
    unsafe { ptr::write_bytes(at.cast::<u8>(), 0, bytes as usize) };
    Ok(())
}

/// Tries to map the first bytes of a file to be stored to: nothing is here.
pub(crate) fn would_attach(_file: &File, _bytes: u64, _protection: Protection) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Says that a range will soon be read. There is no other advice.
///
/// # Safety
/// The range is inside a reservation.
pub(crate) unsafe fn advise(at: *mut c_void, bytes: u64, advice: i32) {
    if advice == SOON {
        let range = WIN32_MEMORY_RANGE_ENTRY { VirtualAddress: at, NumberOfBytes: bytes as usize };
        // SAFETY: by the contract; nothing is changed.
        unsafe { PrefetchVirtualMemory(this_process(), 1, &raw const range, 0) };
    }
}

/// Memory that is attached stays, so that it cannot turn out that there is none
/// when it is needed again.
///
/// # Errors
/// Always.
///
/// # Safety
/// The range is memory of a reservation, and nobody uses it.
pub(crate) unsafe fn discard_memory(_at: *mut c_void, _bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
