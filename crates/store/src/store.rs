//! The store itself: finding contents and links, opening and closing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pantile_base::control::{Control, is_removed};
use pantile_base::limits::{BLOCK_SLOTS, CHUNK_BYTES, HEAD_BYTES, STATE_RECORDS, SUPERBLOCK_COPY};
use pantile_base::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};
use pantile_base::sync::{Mutex, RwLock, plain_access};
use pantile_base::{Address, Padded, Segments, TableId, Timestamp, TupleId, prefetch};
use pantile_media::{Charges, IMAGE_FILE, Medium, MediumExt};

use crate::allocator::Allocator;
use crate::block::{Block, BlockId, BlockRef, BlockState, Chunk};
use crate::content::{Content, HEADER_BYTES, row_len};
use crate::divisions::PastDivisions;
use crate::error::StoreError;
use crate::event::{BlockEvent, emit};
use crate::format::{DESCRIPTOR_BYTES, FORMAT_VERSION, Lineage, Superblock, Unreadable};
use crate::free_slot::SlotReuse;
use crate::hold::{Holds, Period};
use crate::image::ImageName;
use crate::kept_tiles::KeptTiles;
use crate::nodes::NodeMap;
use crate::own::{Own, mapped};
use crate::shape::Shape;
use crate::state_record::StateRecord;
use crate::stream::{Life, NewContent, Stream, StreamFigures, class_key};
use crate::tally::Tally;
use crate::tile::Link;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Number of append streams, that is, of commits that can append at the
    /// same time.
    pub streams: usize,
    /// The most contents that a block holds (1 to 1,920).
    pub block_slots: u32,
    /// Identifies this boot of the machine.
    pub boot: u64,
    /// Whether commits will be acknowledged before they are durable.
    pub relaxed: bool,
    /// Whether to fail with [`StoreError::Blank`] instead of creating a store.
    pub must_exist: bool,
    /// Free slots to rewrite, if the collector frees versions one by one.
    pub reuse: Option<Arc<dyn SlotReuse>>,
}

/// One stream, blocks as large as they may be, created if there is none, and durable commits that free whole blocks.
impl Default for StoreOptions {
    fn default() -> Self {
        let block_slots = BLOCK_SLOTS as u32;
        Self { streams: 1, block_slots, boot: 0, relaxed: false, must_exist: false, reuse: None }
    }
}

/// Contents in blocks on a medium.
#[derive(Debug)]
pub struct Store {
    pub(crate) medium: Own,
    /// Start of the mapping, as a number so that the store can be shared
    /// between threads.
    base: usize,
    /// What is charged beyond what the calls take, on media that do.
    charges: Option<Arc<dyn Charges>>,
    pub(crate) nodes: NodeMap,
    pub(crate) identity: u64,
    lineage: Lineage,
    /// It was opened to read what is whole.
    pub(crate) is_damaged: bool,
    pub(crate) options: StoreOptions,
    chunks: Segments<AtomicPtr<Chunk>>,
    pub(crate) allocator: Mutex<Allocator>,
    pub(crate) streams: Box<[Padded<Mutex<Stream>>]>,
    /// Streams for large appends, where all others share one stream, and would wait.
    pub(crate) large_streams: Box<[Padded<Mutex<Stream>>]>,
    /// What was last known of these.
    pub(crate) large_uses: Box<[Mutex<StreamFigures>]>,
    /// Streams for copies that collectors make. Usually fewer, since each
    /// stream has partly filled blocks of its own.
    pub(crate) survivor_streams: Box<[Padded<Mutex<Stream>>]>,
    /// Partly filled blocks that no lane appends to, by class. Lanes take these
    /// before they open others.
    pub(crate) resumable: Mutex<BTreeMap<u64, Vec<BlockId>>>,
    /// Blocks that were closed before they were full.
    pub(crate) closed_early: Mutex<BTreeSet<BlockId>>,
    pub(crate) state: Mutex<StateRecord>,
    /// Blocks that state records continue in, by place.
    pub(crate) record_blocks: Mutex<[Vec<BlockId>; 2]>,
    /// Number of blocks that a state record has to list: partly filled ones,
    /// and those closed early.
    pub(crate) listed: AtomicU64,
    /// The durable watermark of `state`.
    pub(crate) durable: AtomicU64,
    /// Whether the record that says closed has been written, or is about to be.
    pub(crate) closed: AtomicBool,
    /// Number of those who pack copies.
    pub(crate) packing: AtomicU64,
    /// Whether transactions read, rather than recovery.
    pub(crate) is_running: AtomicBool,
    /// Whether the medium is larger than memory, see [`Store::may_wait`].
    pub(crate) may_wait: AtomicBool,
    /// The life of a typical version, in ticks; `u64::MAX` if that is not known.
    typical_life: AtomicU64,
    /// Bytes appended since the store was opened.
    pub(crate) appended: Tally,
    /// As many of them come before the last sample.
    pub(crate) appended_before: AtomicU64,
    /// Bytes of the blocks that are in use, and their number.
    pub(crate) used_bytes: AtomicU64,
    /// Slots that have been written again.
    pub(crate) overwritten: Tally,
    pub(crate) used_blocks: AtomicU64,
    /// Tiles of released blocks.
    pub(crate) kept: KeptTiles,
    /// How chunks were divided of whose blocks tiles are kept.
    pub(crate) past: PastDivisions,
    /// Blocks whose tiles have been made and not yet dropped.
    pub(crate) tiled: Mutex<VecDeque<BlockRef>>,
    /// Locked, by block, while a block header is written.
    pub(crate) header_locks: [Mutex<()>; 64],
    /// Held while iterating over chunks, so that none is removed.
    pub(crate) chunks_lock: RwLock<()>,
    /// The index image that the next sample names.
    pub(crate) image: Mutex<Option<ImageName>>,
    /// Bytes that the index image and its successor take beside the medium.
    pub(crate) image_bytes: AtomicU64,
    /// Contents found damaged.
    pub(crate) damaged: Mutex<BTreeSet<Address>>,
    /// Whether nothing has been written since recovery found a closed database.
    /// The record that says so is still in force.
    pub(crate) dormant: AtomicBool,
    /// No timestamp that recovery has found is higher.
    pub(crate) highest: AtomicU64,
    /// What other processes read.
    pub(crate) holds: Holds,
}

/// What has been given back of the space of dropped tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GivenBack {
    /// Nothing: another process may be looking at it.
    Nothing,
    /// Some blocks.
    Part,
    /// All that was left.
    All,
}

impl Store {
    /// Creates a store on an empty medium, or opens the store that is there.
    /// [`Store::recover`] must follow.
    ///
    /// # Errors
    /// [`StoreError::Foreign`], [`StoreError::Version`], [`StoreError::Damaged`]
    /// with the medium untouched; [`StoreError::Medium`], with
    /// [`MediumError::Locked`](pantile_media::MediumError::Locked) if another store uses the medium.
    pub fn open(medium: Arc<dyn Medium>, options: StoreOptions, identity: u64) -> Result<Self, StoreError> {
        Self::open_with(medium, options, identity, Lineage::new(identity))
    }

    /// As [`Store::open`]. A store that is created is to take a backup of the
    /// database with the lineage `of`.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_backup(
        medium: Arc<dyn Medium>,
        options: StoreOptions,
        identity: u64,
        of: Lineage,
    ) -> Result<Self, StoreError> {
        Self::open_with(medium, options, identity, of.of_backup(identity))
    }

    fn open_with(
        medium: Arc<dyn Medium>,
        options: StoreOptions,
        identity: u64,
        lineage: Lineage,
    ) -> Result<Self, StoreError> {
        let medium = Own::claim(medium)?;
        medium.check_readable(0, HEAD_BYTES.min(medium.len()))?;
        if is_blank(&*medium) {
            if options.must_exist {
                return Err(StoreError::Blank);
            }
            refuse_emptied(&*medium)?;
            medium.grow(HEAD_BYTES)?;
            let superblock = Superblock { version: FORMAT_VERSION, identity, lineage };
            let state = StateRecord { sequence: 2, boot: options.boot, ..StateRecord::default() };
            state.write(&medium, identity, &[])?;
            medium.write_flushed(SUPERBLOCK_COPY, &superblock.encode())?;
            medium.sync_all()?;
            medium.write_flushed(0, &superblock.encode())?;
            medium.fence()?;
            medium.sync_all()?;
        }
        let superblock = Superblock::decode(mapped(&*medium, 0, DESCRIPTOR_BYTES)).map_err(unreadable)?;
        let (state, record_blocks) = newest_state(&*medium, superblock.identity)?;
        if state.emulated && !state.closed && state.boot != options.boot {
            return Err(StoreError::Damaged {
                place: "the state record".into(),
                detail: "the database was on emulated persistent memory, which keeps commits only \
                         as long as the machine runs, and the machine stopped before the database was closed"
                    .into(),
            });
        }
        Ok(Self::over(medium, options, superblock, state, record_blocks))
    }

    /// A store that has not been scanned.
    pub(crate) fn over(
        medium: Own,
        options: StoreOptions,
        Superblock { identity, lineage, .. }: Superblock,
        state: StateRecord,
        record_blocks: [Vec<BlockId>; 2],
    ) -> Self {
        // A collector that reuses slots makes its copies in every commit.
        let survivor_streams =
            if options.reuse.is_some() { options.streams } else { options.streams.div_ceil(4) };
        let nodes = NodeMap(medium.facts().nodes.clone());
        let [streams, survivor_streams] =
            [options.streams, survivor_streams].map(|streams| nodes.share(streams.max(1)));
        let large_streams = if options.streams <= 1 { nodes.share(1) } else { 0 };
        Self {
            base: medium.base() as usize,
            charges: medium.facts().charges.clone(),
            nodes,
            medium,
            identity,
            lineage,
            is_damaged: false,
            chunks: Segments::default(),
            allocator: Mutex::default(),
            streams: (0..streams).map(|_| Padded::default()).collect(),
            large_streams: (0..large_streams).map(|_| Padded::default()).collect(),
            large_uses: (0..large_streams).map(|_| Mutex::default()).collect(),
            survivor_streams: (0..survivor_streams).map(|_| Padded::default()).collect(),
            resumable: Mutex::default(),
            durable: AtomicU64::new(state.watermark),
            closed_early: Mutex::default(),
            listed: AtomicU64::new(0),
            record_blocks: Mutex::new(record_blocks),
            state: Mutex::new(state),
            closed: AtomicBool::new(false),
            typical_life: AtomicU64::new(u64::MAX),
            packing: AtomicU64::new(0),
            is_running: AtomicBool::new(false),
            may_wait: AtomicBool::new(false),
            appended: Tally::new(options.streams.max(1)),
            appended_before: AtomicU64::new(0),
            used_bytes: AtomicU64::new(0),
            overwritten: Tally::new(options.streams.max(1)),
            used_blocks: AtomicU64::new(0),
            kept: KeptTiles::default(),
            past: PastDivisions::default(),
            tiled: Mutex::default(),
            header_locks: [const { Mutex::new(()) }; 64],
            chunks_lock: RwLock::default(),
            image: Mutex::default(),
            image_bytes: AtomicU64::default(),
            damaged: Mutex::default(),
            dormant: AtomicBool::new(false),
            highest: AtomicU64::new(0),
            holds: Holds::default(),
            options,
        }
    }

    /// The medium.
    pub fn medium(&self) -> &Arc<dyn Medium> {
        self.medium.shared()
    }

    /// Charges for bytes that are read, on media that do.
    #[inline]
    pub(crate) fn charge_read(&self, offset: u64, len: u64) {
        if let Some(charges) = &self.charges {
            charges.read(offset, len);
        }
    }

    /// Charges for slots that are taken.
    #[inline]
    pub(crate) fn charge_slots(&self, count: u32) {
        if let Some(charges) = &self.charges {
            charges.slots(u64::from(count));
        }
    }

    /// Where what it holds comes from.
    pub fn lineage(&self) -> Lineage {
        self.lineage
    }

    /// The content at an address that came from an anchor or a link.
    ///
    /// The bytes stay as they are while a transaction that can see the version
    /// runs (I-3). That transaction must outlive the content.
    #[inline]
    pub fn content(&self, address: Address) -> Content<'_> {
        plain_access();
        let content = self.known_content(address);
        self.charge_read(address.offset(), content.bytes().len() as u64);
        content
    }

    /// The same where it has been read, and paid for, before.
    #[inline]
    pub fn known_content(&self, address: Address) -> Content<'_> {
        let start = (self.base + address.offset() as usize) as *const u8;
        // SAFETY: the address is that of a content that was written whole
        // before it was published, inside the mapping. Contents do not change
        // while they can be reached (I-3).
        unsafe {
            let len = row_len(u32::from_le(start.add(16).cast::<u32>().read()));
            Content::new(std::slice::from_raw_parts(start, HEADER_BYTES + len))
        }
    }

    /// Like [`Store::content`], but only the content header: the content has no
    /// row.
    pub fn content_header(&self, address: Address) -> Content<'_> {
        plain_access();
        let start = (self.base + address.offset() as usize) as *const u8;
        self.charge_read(address.offset(), HEADER_BYTES as u64);
        // SAFETY: as for `content`.
        Content::new(unsafe { std::slice::from_raw_parts(start, HEADER_BYTES) })
    }

    /// Whether there is a content at this address and it is a row. Only its header is looked at.
    #[inline]
    pub fn is_row(&self, address: Address) -> bool {
        !address.is_none() && !self.content_header(address).flags().is_tombstone()
    }

    /// Whether the content that a tuple's anchor names is one of that tuple. If not,
    /// the content header is damaged. The caller sees to it that the content stays.
    #[inline]
    pub fn is_of(&self, address: Address, tuple: TupleId) -> bool {
        self.known_header(address).tuple() == tuple
    }

    /// Whether that content is a tombstone.
    #[inline]
    pub fn is_tombstone(&self, address: Address) -> bool {
        self.known_header(address).flags().is_tombstone()
    }

    /// A content header that is paid for when it is read.
    #[inline]
    fn known_header(&self, address: Address) -> Content<'_> {
        let start = (self.base + address.offset() as usize) as *const u8;
        // SAFETY: as for `content`.
        Content::new(unsafe { std::slice::from_raw_parts(start, HEADER_BYTES) })
    }

    /// Asks the CPU to fetch a content that will be read soon. The content may be
    /// gone; a hint does no harm.
    #[inline]
    pub fn prefetch(&self, address: Address) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint that never faults.
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let start = (self.base + address.offset() as usize) as *const i8;
            _mm_prefetch(start, _MM_HINT_T0);
            _mm_prefetch(start.wrapping_add(64), _MM_HINT_T0);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = address;
    }

    /// Asks the CPU to fetch what is known about the block of a content that will
    /// be superseded.
    #[inline]
    pub fn prefetch_block(&self, address: Address) {
        if !address.is_none() {
            let chunk = self.chunk_of(address);
            prefetch(&chunk.blocks[chunk.place(address).0 as usize]);
        }
    }

    /// Asks the CPU to fetch the superseded bit of a content.
    #[inline]
    pub fn prefetch_superseded(&self, address: Address) {
        if !address.is_none() {
            let (_, _, block, slot) = self.locate(address);
            block.map.prefetch(slot);
        }
    }

    /// The links of a chain, from the version at `newest` with this `begin_ts`, which an anchor
    /// has just named: each with the `begin_ts` of the version that has it. The next one is looked for when it is asked
    /// for; what holds for [`Store::older`] holds for it.
    pub fn links(&self, newest: Address, begin: Timestamp) -> impl Iterator<Item = (Link, Timestamp)> {
        let mut last = None;
        std::iter::from_fn(move || {
            last = match last {
                None => self.link(newest).map(|link| (link, begin)),
                Some((link, newer)) => self.older(link, newer).map(|older| (older, link.begin_ts)),
            };
            last
        })
        .fuse()
    }

    /// The link from the version at `address`, which an anchor has just named,
    /// to the version before it.
    #[inline]
    pub fn link(&self, address: Address) -> Option<Link> {
        let (_, _, block, slot) = self.locate(address);
        block.tile.link(slot)
    }

    /// The link from the version that `link` leads to, whose block may have
    /// been released, to the version before it. The caller must have begun
    /// before the version. `newer` is the `begin_ts` of the version that has `link`.
    #[inline]
    pub fn older(&self, link: Link, newer: Timestamp) -> Option<Link> {
        let now = self.place_now(link).filter(|(block, _)| !self.is_namesake(block, link, newer));
        // The shape is that of the version's generation if that has not ended
        // after the link was read.
        if let Some((block, place)) = now
            && block.generation() == link.generation
            && let Some(found) = block.tile.link(place.within / block.stride())
            && block.generation() == link.generation
        {
            return Some(found);
        }
        // The chunk may have been divided in another way since.
        match (self.past.place(link), now) {
            (Some(place), _) => self.kept.link(place),
            (None, Some((block, place))) => self.kept.link_of(block, place),
            (None, None) => None,
        }
    }

    /// Whether a block is in a later generation than the one that `link` names, but
    /// with its number: after 65,536 generations they come round again (I-13). That of the
    /// version was opened, with rare exceptions, before the `newer` version began; a later one is
    /// opened after that.
    ///
    /// The generation may end meanwhile, and the block be used again. Then it is none of that number, and what was
    /// read of it does not count.
    #[inline]
    pub(crate) fn is_namesake(&self, block: &Block, link: Link, newer: Timestamp) -> bool {
        let is_of_number = || block.generation() == link.generation;
        let may_be = is_of_number() && block.opened_at() > newer.get() && !self.is_there(link);
        // What was read above is read before the generation is looked at again.
        fence(Ordering::Acquire);
        may_be && is_of_number()
    }

    /// Whether the version that `link` leads to lies in its place.
    #[cold]
    fn is_there(&self, link: Link) -> bool {
        self.is_place(link.address) && self.content_header(link.address).timestamp() == link.begin_ts
    }

    /// The number of versions that can be reached, over links that still exist,
    /// from the one at `newest`, which an anchor has just named. Unlike a
    /// transaction, this walk continues to versions that no transaction sees,
    /// and must not rely on their state.
    pub fn chain_length(&self, newest: Address) -> u64 {
        let begin = self.content_header(newest).timestamp();
        // A slot may have been rewritten. Its link does not lead back in time.
        let is_there = |link| self.options.reuse.is_none() || self.is_there(link);
        let links = self.links(newest, begin);
        1 + links.take_while(|(link, newer)| link.begin_ts < *newer && is_there(*link)).count() as u64
    }

    /// Whether the chunk is divided so that a content can lie there.
    fn is_place(&self, address: Address) -> bool {
        let Some(chunk) = self.chunk((address.offset() / CHUNK_BYTES) as u32) else { return false };
        let Some((index, within)) = chunk.find(address) else { return false };
        let Shape { stride, slots } = chunk.blocks[index as usize].shape();
        within < slots * stride
    }

    /// Links a version that has been appended but not published to the version
    /// before it. The caller keeps that version from being freed.
    #[inline]
    pub fn set_link(&self, address: Address, older: Address, begin_ts: Timestamp) {
        let (_, _, block, slot) = self.locate(older);
        // It will be superseded in a moment.
        block.map.prefetch(slot);
        self.copy_link(address, Link { address: older, begin_ts, generation: block.generation() });
    }

    /// Gives the version's link to a copy of it that no reader finds yet.
    #[inline]
    pub fn copy_link(&self, address: Address, link: Link) {
        let (chunk, index, block, slot) = self.locate(address);
        if block.tile.set(slot, link, || block.slots()) {
            self.tiled.lock().push_back(chunk.block_ref(index));
        }
    }

    /// The chunk, the block with its number there, and the slot of an address.
    #[inline]
    pub(crate) fn locate(&self, address: Address) -> (&Chunk, u32, &Block, u32) {
        let chunk = self.chunk_of(address);
        let (index, slot) = chunk.locate(address);
        (chunk, index, &chunk.blocks[index as usize], slot)
    }

    #[inline]
    fn chunk_of(&self, address: Address) -> &Chunk {
        let chunk = self.chunk((address.offset() / CHUNK_BYTES) as u32);
        chunk.expect("addresses lie in carved chunks")
    }

    #[inline]
    pub(crate) fn chunk(&self, number: u32) -> Option<&Chunk> {
        let chunk = self.chunks.get(u64::from(number))?.load(Ordering::Acquire);
        // SAFETY: published whole by `add_chunk`. A chunk that is taken out of the table
        // is freed when every slot has been seen unpinned and `chunks_lock` was free (T6).
        unsafe { chunk.as_ref() }
    }

    pub(crate) fn add_chunk(&self, chunk: Chunk) {
        let cell = self.chunks.get_or_grow(u64::from(chunk.number));
        let old = cell.swap(Box::into_raw(Box::new(chunk)), Ordering::AcqRel);
        assert!(old.is_null(), "a chunk is carved once");
    }

    /// Takes a chunk out of the table. Threads may still be looking at it.
    pub(crate) fn remove_chunk(&self, number: u32) -> Option<Box<Chunk>> {
        let old = self.chunks.get(u64::from(number))?.swap(std::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: made by `add_chunk` and no longer in the table.
        (!old.is_null()).then(|| unsafe { Box::from_raw(old) })
    }

    /// Keeps chunks from being taken apart while a thread that has not pinned
    /// its transaction slot looks at blocks, and the medium from ending before a block
    /// that is being read and may become free.
    pub fn hold_chunks(&self) -> impl Drop + '_ {
        self.chunks_lock.read()
    }

    pub(crate) fn block(&self, id: BlockId) -> (&Chunk, &Block) {
        let chunk = self.chunk(id.chunk).expect("a block lies in a carved chunk");
        (chunk, &chunk.blocks[id.index as usize])
    }

    /// All carved chunks; the caller holds `chunks_lock`.
    pub(crate) fn all_chunks(&self) -> impl Iterator<Item = &Chunk> {
        let end = self.allocator.lock().next_chunk;
        (0..end).filter_map(|number| self.chunk(number))
    }

    /// All blocks that belong to tables; the caller holds `chunks_lock`.
    pub(crate) fn used(&self) -> impl Iterator<Item = (&Chunk, u32, &Block)> {
        let blocks =
            self.all_chunks().flat_map(|chunk| (0u32..).zip(&chunk.blocks).map(move |b| (chunk, b.0, b.1)));
        blocks.filter(|(_, _, block)| block.state().is_used())
    }

    /// The seed of the checksums of the contents of a block's generation.
    #[inline]
    pub(crate) fn content_seed(&self, opened_at: u64) -> u64 {
        let generation = if is_removed(Control::LifeInChecksum) { 0 } else { opened_at };
        self.identity.rotate_left(17) ^ generation
    }

    /// What is held for other processes that read the medium.
    pub fn holds(&self) -> &Holds {
        &self.holds
    }

    /// Whether slots are written again one by one, before their block is released.
    pub fn reuses_slots(&self) -> bool {
        self.options.reuse.is_some()
    }

    /// The mapped bytes of a range.
    pub(crate) fn bytes(&self, offset: u64, len: usize) -> &[u8] {
        mapped(&*self.medium, offset, len)
    }

    /// Gives back blocks of dropped tables, at most `most` of them, with one
    /// sync.
    ///
    /// As long as another process may look at blocks of one of the tables, nothing is given
    /// back (I-27).
    ///
    /// No transaction may be able to see into the tables any more (I-37), and a state
    /// record whose watermark covers all their transactions must be durable (T1).
    pub fn release_tables(
        &self,
        tables: &BTreeMap<TableId, Period>,
        most: usize,
        now: Timestamp,
    ) -> Result<GivenBack, StoreError> {
        let held = self.holds.look();
        if tables.values().any(|&table| held.covers_table(table)) {
            return Ok(GivenBack::Nothing);
        }
        tables.keys().for_each(|&table| self.stop_appending(table));
        let _chunks = self.chunks_lock.read();
        let mut blocks = self.used().filter(|(_, _, block)| tables.contains_key(&block.table()));
        let some: Vec<_> = blocks.by_ref().take(most).map(|(chunk, index, _)| chunk.id(index)).collect();
        let is_last = blocks.next().is_none();
        if let Some(reuse) = &self.options.reuse {
            tables.keys().for_each(|&table| reuse.forget(table));
        }
        self.release_unread(some.into_iter(), now)?;
        if !is_last {
            return Ok(GivenBack::Part);
        }
        // Walks through blocks of the tables that are gone would begin in their tables.
        let tiles = self.kept.take_of(|table| tables.contains_key(&table));
        self.keep_fewer(tiles.iter().map(|(of, _)| *of));
        Ok(GivenBack::All)
    }

    /// Releases and frees blocks into which no transaction can see, and whose
    /// contents nobody needs as evidence, with one sync.
    pub(crate) fn release_unread(
        &self,
        blocks: impl Iterator<Item = BlockId>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut released = Vec::new();
        for id in blocks {
            let (chunk, block) = self.block(id);
            block.become_(BlockState::Released);
            block.end_generation();
            // Links to a generation of this number may still be followed (see `Refused::GenerationsUsedUp`).
            while self.kept.has(id, block.generation()) {
                block.end_generation();
            }
            self.zero_descriptor(chunk, id.index)?;
            released.push((chunk, id));
        }
        // Nothing may be written there before the medium has forgotten it
        // (I-12).
        self.medium.fence()?;
        self.medium.sync_all()?;
        for (chunk, id) in released {
            drop(self.block(id).1.tile.take());
            self.free_block(chunk, id, now);
        }
        Ok(())
    }

    /// Closes a partly filled block early. It stays listed in state records
    /// until it is free (I-9): the caller holds the lock under which a sample
    /// would have found it.
    pub(crate) fn close_early(&self, id: BlockId) {
        let (chunk, block) = self.block(id);
        block.close_early();
        emit(BlockEvent::Sealed, chunk.block_ref(id.index), block.table());
        self.closed_early.lock().insert(id);
    }

    /// Those that others may hold for long come first.
    pub(crate) fn all_streams(&self) -> impl Iterator<Item = &Padded<Mutex<Stream>>> {
        self.large_streams.iter().chain(&self.streams).chain(&self.survivor_streams)
    }

    /// Closes the partly filled blocks of a table early.
    fn stop_appending(&self, table: TableId) {
        let close = |ids: Vec<BlockId>| ids.into_iter().for_each(|id| self.close_early(id));
        for stream in self.all_streams() {
            let mut stream = stream.lock();
            close(stream.forget(table));
        }
        let mut resumable = self.resumable.lock();
        let is_of_table = |key: &&u64| class_key(table, 0) >> 32 == **key >> 32;
        let of_table: Vec<u64> = resumable.keys().filter(is_of_table).copied().collect();
        close(of_table.iter().filter_map(|key| resumable.remove(key)).flatten().collect());
    }

    /// Says how long a typical version lives, in ticks: what is expected of others
    /// is relative to that. With `None`, no other is expected of any.
    pub fn set_typical_life(&self, ticks: Option<u64>) {
        self.typical_life.store(ticks.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// What is expected at `at` of a content's life.
    #[inline]
    pub(crate) fn life_of(&self, content: &NewContent<'_>, at: Timestamp) -> Life {
        let Some(since) = content.since else { return Life::Unknown };
        Life::after(at.tick().saturating_sub(since.tick()), self.typical_life.load(Ordering::Relaxed))
    }

    /// Bytes of the blocks that are in use.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Slots that have been written again since the store was opened, by collectors
    /// that free versions one by one.
    pub fn overwritten(&self) -> u64 {
        self.overwritten.sum()
    }

    /// Bytes appended since the store was opened.
    pub fn appended_ever(&self) -> u64 {
        self.appended.sum()
    }

    /// Bytes appended since the last sample.
    pub fn appended_since_sample(&self) -> u64 {
        self.appended.sum().saturating_sub(self.appended_before.load(Ordering::Relaxed))
    }

    /// The same without a look at what each stream has appended last: about 64 KB less in all.
    #[inline]
    pub fn appended_since_sample_about(&self) -> u64 {
        self.appended.about().saturating_sub(self.appended_before.load(Ordering::Relaxed))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Every chunk that recovery may have reached, even if it failed.
        for number in 0..=(self.medium.len() / CHUNK_BYTES) {
            if let Some(cell) = self.chunks.get(number) {
                let chunk = cell.swap(std::ptr::null_mut(), Ordering::AcqRel);
                if !chunk.is_null() {
                    // SAFETY: made by `add_chunk`; no other user is left.
                    drop(unsafe { Box::from_raw(chunk) });
                }
            }
        }
    }
}

/// Whether no commit has ever been acknowledged here: the medium is empty, or
/// its creation was cut short before the superblock was whole.
pub(crate) fn is_blank(medium: &dyn Medium) -> bool {
    // The first chunk is carved after the superblock has become durable. Media grow ahead of what is asked for.
    medium.is_empty()
        || medium.len() < CHUNK_BYTES
            && Superblock::is_unwritten(mapped(medium, 0, 64))
            && all_zero_beyond_records(medium)
}

/// Refuses to create a store where there was one: an index image is written long after a creation.
fn refuse_emptied(medium: &dyn Medium) -> Result<(), StoreError> {
    match medium.facts().beside.as_ref().is_some_and(|beside| beside.is_any()) {
        true => Err(StoreError::Damaged {
            place: "offset 0".into(),
            detail: format!(
                "the data is gone, or was emptied: the index image beside it ({IMAGE_FILE}, or the same with .new) is \
                 that of a database. Restore a backup, or remove these files if an empty database is what you want"
            ),
        }),
        false => Ok(()),
    }
}

fn all_zero_beyond_records(medium: &dyn Medium) -> bool {
    let zero = |from: u64, to: u64| mapped(medium, from, (to - from) as usize).iter().all(|&b| b == 0);
    let copy_end = SUPERBLOCK_COPY + DESCRIPTOR_BYTES as u64;
    zero(64, STATE_RECORDS[0]) && zero(copy_end, medium.len())
}

pub(crate) fn unreadable(reason: Unreadable) -> StoreError {
    match reason {
        Unreadable::Foreign => StoreError::Foreign(reason.to_string()),
        Unreadable::Version(found) => StoreError::Version(found),
        Unreadable::Damaged => {
            StoreError::Damaged { place: "offset 0, the superblock".into(), detail: reason.to_string() }
        }
    }
}

/// The record in force, and the blocks in which those at the two places
/// continue.
pub(crate) fn newest_state(
    medium: &dyn Medium,
    seed: u64,
) -> Result<(StateRecord, [Vec<BlockId>; 2]), StoreError> {
    let copies = StateRecord::copies(medium, seed).into_iter().flatten();
    let newest = copies.max_by_key(|copy| copy.record.sequence).ok_or_else(|| StoreError::Damaged {
        place: format!("offsets {} and {}, the state records", STATE_RECORDS[0], STATE_RECORDS[1]),
        detail: "no checksum fits".into(),
    })?;
    // Only the record in force needs its blocks. The scan finds the others.
    let mut blocks = [Vec::new(), Vec::new()];
    blocks[newest.record.place()] = newest.blocks;
    Ok((newest.record, blocks))
}
