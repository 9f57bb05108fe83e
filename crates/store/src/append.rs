//! Appending: how contents reach the medium.
//!
//! A stream holds one open block per lane. A thread takes any free stream for the duration of its
//! append. So nothing grows with the number of threads that ever ran (T19), and the contents of
//! concurrent commits lie densely.

use std::ops::DerefMut;

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::Ordering;
use pantile_base::sync::{Mutex, MutexGuard};
use pantile_base::{Address, Padded, TableId, Timestamp};
use pantile_media::{MediumError, SyncPoint};

use crate::block::{Block, BlockId, BlockRef, BlockState};
use crate::collect::BlockInfo;
use crate::content::{HEADER_BYTES, Header, encode};
use crate::error::StoreError;
use crate::event::{BlockEvent, emit, emit_opened};
use crate::format::Descriptor;
use crate::geometry::{Class, stride_for};
use crate::shape::Shape;
use crate::store::Store;
use crate::stream::{
    Company, Lane, Life, NO_BEGINS, NewContent, OpenBlock, PLAN_KEPT, STAGING_KEPT, Spare, Stream, Urgency,
};

/// Blocks that a table has, at least, for each that is open, before its later
/// versions are divided by their lives.
const CLOSED_FOR_OPEN: usize = 16;

/// Rows of one table and stride have this many blocks before each stream opens
/// one of its own, if the blocks are of the smallest size.
const FEW_BLOCKS: u64 = 4;

/// Contents of an append from which on it takes long enough for others to mind; or bytes; or blocks, where an option
/// keeps them small.
const LARGE: usize = 1024;
const LARGE_BYTES: usize = 1 << 20;
const LARGE_BLOCKS: usize = 8;
/// Fewer contents, of at most 64 KB each, are not worth looking whether they are large.
const WORTH_A_LOOK: usize = 32;

/// Contents that are on the medium but not yet durable.
#[must_use = "an append is durable only after `persist`"]
#[derive(Debug)]
pub struct Appended<'s> {
    store: &'s Store,
    /// Held if the append opened a block. Another commit must not rely on the
    /// block's descriptor before this append's fence has made it durable (I-7).
    stream: Option<MutexGuard<'s, Stream>>,
    carved: Vec<BlockId>,
}

impl Appended<'_> {
    /// Begins the one fence of a commit. Where threads share syncs it returns the
    /// point that is to be waited for. A later append to a block that this one has
    /// opened gets the same point or a later one (I-7).
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed and accepts nothing more.
    pub fn begin_persist(self) -> Result<Option<SyncPoint>, StoreError> {
        let point = self.store.medium.begin_fence()?;
        if !self.carved.is_empty() {
            self.store.give_carved(self.carved, point);
        }
        drop(self.stream);
        Ok(point)
    }

    /// Makes the contents durable.
    ///
    /// # Errors
    /// As for [`Appended::begin_persist`].
    pub fn persist(self) -> Result<(), StoreError> {
        let store = self.store;
        if let Some(point) = self.begin_persist()? {
            store.medium.end_fence(point)?;
        }
        Ok(())
    }

    /// Leaves the contents to become durable with another thread's sync.
    pub(crate) fn persist_later(self) -> SyncPoint {
        let point = self.store.medium.sync_point();
        if !self.carved.is_empty() {
            self.store.give_carved(self.carved, Some(point));
        }
        point
    }
}

impl Store {
    /// Appends the contents of a transaction. `hint` spreads callers over the
    /// streams; `now` draws timestamps for blocks that are opened. The
    /// addresses go to `addresses`, in order.
    ///
    /// # Errors
    /// [`StoreError::Medium`]. If it is `Full`, nothing was written. Any other
    /// error means that the medium has failed for good.
    pub fn append<'s, 'c>(
        &'s self,
        hint: usize,
        urgency: Urgency,
        contents: impl Iterator<Item = NewContent<'c>> + Clone,
        now: impl Fn() -> Timestamp,
        addresses: &mut Vec<Address>,
    ) -> Result<Appended<'s>, StoreError> {
        let reservation = Reservation::new(urgency, Company::Any).on(self.nodes.here());
        let is_large = contents.size_hint().0 >= WORTH_A_LOOK && self.is_large(contents.clone());
        let streams = if is_large { &self.large_streams } else { &self.streams };
        let (appended, payload) = self.append_to(streams, hint, reservation, contents, now, addresses)?;
        self.appended.add(hint, payload);
        Ok(appended)
    }

    /// Whether others would mind to wait for an append of this many contents.
    #[cold]
    #[inline(never)]
    fn is_large<'c>(&self, contents: impl Iterator<Item = NewContent<'c>>) -> bool {
        let count = contents.size_hint().0;
        let bytes = || contents.map(|content| content.row.len()).sum::<usize>();
        let is_of_many = || count >= LARGE.min(LARGE_BLOCKS * self.options.block_slots as usize);
        !self.large_streams.is_empty() && (is_of_many() || bytes() >= LARGE_BYTES)
    }

    /// Appends copies to blocks that hold only copies, on a node. They take as much of the reserve as `spends` may.
    pub(crate) fn append_survivors<'c>(
        &self,
        hint: usize,
        (node, spends): (Option<usize>, Urgency),
        contents: impl Iterator<Item = NewContent<'c>> + Clone,
        now: impl Fn() -> Timestamp,
        addresses: &mut Vec<Address>,
    ) -> Result<SyncPoint, StoreError> {
        let mut reservation = Reservation::new(Urgency::Collect, Company::Any).on(node);
        reservation.spends = spends;
        let (appended, payload) =
            self.append_to(&self.survivor_streams, hint, reservation, contents, now, addresses)?;
        self.appended.add(hint, payload);
        Ok(appended.persist_later())
    }

    /// Appends to one of `streams`; also returns the bytes of the contents.
    pub(crate) fn append_to<'s, 'c>(
        &'s self,
        streams: &'s [Padded<Mutex<Stream>>],
        hint: usize,
        mut reservation: Reservation,
        contents: impl Iterator<Item = NewContent<'c>> + Clone,
        now: impl Fn() -> Timestamp,
        addresses: &mut Vec<Address>,
    ) -> Result<(Appended<'s>, u64), StoreError> {
        self.begin_write()?;
        let mut guard = take_stream(self.nodes.streams_of(streams, reservation.node), hint);
        // Under the stream's lock, so that a sample is taken before or after
        // all of this.
        let at = now();
        let stream = guard.deref_mut();
        self.reserve(stream, hint, contents.clone(), (at, &now), &mut reservation)?;
        let (mut count, mut payload) = (0, 0);
        for (n, content) in contents.enumerate() {
            payload += (content.row.len() + HEADER_BYTES) as u64;
            count += 1;
            let lane = &mut stream.lanes[stream.plan[n] as usize];
            let header = Header {
                timestamp: content.timestamp,
                tuple: content.tuple,
                transaction_contents: content.transaction_contents,
                flags: content.flags,
                layout: content.layout,
            };
            addresses.push(self.stage(lane, header, content.row, at)?);
        }
        for n in 0..stream.plan.len() {
            let lane = &mut stream.lanes[stream.plan[n] as usize];
            if !lane.staging.is_empty() {
                self.write_staged(lane, at)?;
                lane.staging.shrink_to(STAGING_KEPT);
            }
        }
        stream.payload_bytes += payload;
        stream.contents += count;
        stream.plan.shrink_to(PLAN_KEPT);
        let stream = reservation.opened.then_some(guard);
        Ok((Appended { store: self, stream, carved: reservation.carved }, payload))
    }

    /// Finds room for all contents before any is written.
    fn reserve<'c>(
        &self,
        stream: &mut Stream,
        hint: usize,
        contents: impl Iterator<Item = NewContent<'c>>,
        (at, now): (Timestamp, &impl Fn() -> Timestamp),
        reservation: &mut Reservation,
    ) -> Result<(), StoreError> {
        stream.plan.clear();
        // Most are for the lane of the one before.
        let (mut last, mut lane) = (None, 0);
        for content in contents {
            let life = self.life_of(&content, at);
            let class = (content.table, stride_for(content.row.len() + HEADER_BYTES), life);
            if last != Some(class) {
                lane = stream.lane(class.0, class.1, class.2);
                last = Some(class);
            }
            stream.lanes[lane].wanted += 1;
            stream.plan.push(lane as u32);
        }
        let mut outcome = Ok(());
        for n in 0..stream.plan.len() {
            let lane = &mut stream.lanes[stream.plan[n] as usize];
            let wanted = std::mem::take(&mut lane.wanted);
            if outcome.is_ok() && wanted > lane.room() {
                outcome = self.find_room(lane, hint, wanted, now, reservation);
                stream.divide(stream.plan[n] as usize);
            }
        }
        if outcome.is_err() {
            self.give_back(stream, std::mem::take(&mut reservation.carved), now());
        }
        outcome.map_err(StoreError::Medium)
    }

    /// Finds what a lane fills after its open block: first free slots, if a
    /// collector reuses them, then partly filled blocks, then free blocks.
    #[cold]
    fn find_room(
        &self,
        lane: &mut Lane,
        hint: usize,
        wanted: u32,
        now: &impl Fn() -> Timestamp,
        reservation: &mut Reservation,
    ) -> Result<(), MediumError> {
        let mut room = lane.room();
        if let Some(reuse) = self.options.reuse.as_ref().filter(|_| reservation.company == Company::Any) {
            let mut slots = Vec::new();
            reuse.take((lane.table, lane.stride), hint, (wanted - room) as usize, &mut slots);
            room += slots.len() as u32;
            self.overwritten.add(hint, slots.len() as u64);
            lane.spare.extend(slots.into_iter().map(Spare::Slot));
        }
        while room < wanted {
            let id = match self.started_block(lane, reservation) {
                Some(id) => id,
                None => match self.open_block(lane, now(), reservation) {
                    // Space of another node is better than none.
                    Err(error) if error.is_full() && reservation.node.take().is_some() => {
                        self.started_block(lane, reservation).ok_or(error)?
                    }
                    opened => opened?,
                },
            };
            let block = self.block(id).1;
            room += block.slots() - block.fill();
            lane.spare.push(Spare::Block(id));
        }
        // Filled in order, the partly filled block first.
        lane.spare.reverse();
        Ok(())
    }

    /// Gives the blocks of lanes that have been idle for this many calls to any
    /// lane of their class, so that the blocks become full and can be
    /// collected. Returns whether there were any.
    pub fn give_up_idle(&self, rounds: u32) -> bool {
        let mut is_any = false;
        for stream in self.all_streams() {
            let Some(mut stream) = stream.try_lock() else { continue };
            let mut resumable = self.resumable.lock();
            for (class, block) in stream.take_idle(rounds) {
                resumable.entry(class).or_default().push(block);
                is_any = true;
            }
        }
        is_any
    }

    /// Closes partly filled blocks that no lane appends to, where `is_spent`
    /// says so: otherwise they would wait to be filled for as long as nothing is
    /// appended. Returns them. They can be emptied like full ones.
    pub fn close_spent(&self, is_spent: impl Fn(BlockRef, &BlockInfo) -> bool) -> Vec<BlockRef> {
        let mut resumable = self.resumable.lock();
        let mut spent = Vec::new();
        for ids in resumable.values_mut() {
            ids.retain(|id| {
                let (chunk, block) = self.block(*id);
                let named = chunk.block_ref(id.index);
                let is_spent = block.fill() > 0 && is_spent(named, &block.info());
                if is_spent {
                    self.close_early(*id);
                    spent.push(named);
                }
                !is_spent
            });
        }
        resumable.retain(|_, ids| !ids.is_empty());
        spent
    }

    /// Whether a lane has a partly filled block for which `of` holds. One of a stream that is being appended to is not idle.
    pub fn has_lane(&self, of: impl Fn(&BlockInfo) -> bool) -> bool {
        self.all_streams().any(|stream| {
            let Some(stream) = stream.try_lock() else { return false };
            let open = stream.partly_filled();
            drop(stream);
            open.iter().any(|(id, fill)| *fill > 0 && of(&self.block(*id).1.info()))
        })
    }

    /// Whether [`Store::close_spent`] would close a block.
    pub fn has_spent(&self, is_spent: impl Fn(&BlockInfo) -> bool) -> bool {
        let resumable = self.resumable.lock();
        let mut blocks = resumable.values().flatten().map(|id| self.block(*id).1);
        blocks.any(|block| block.fill() > 0 && is_spent(&block.info()))
    }

    /// A partly filled block to go on with.
    fn started_block(&self, lane: &Lane, reservation: &Reservation) -> Option<BlockId> {
        match reservation.company {
            Company::Any => self.resume(lane, reservation).or_else(|| self.take_over(lane, reservation)),
            Company::Alone => None,
        }
    }

    /// A partly filled block of an idle lane, or from before the database was
    /// opened. Its versions may live longer or less long, which costs one block.
    fn resume(&self, lane: &Lane, reservation: &Reservation) -> Option<BlockId> {
        self.nodes.take_near(self.resumable.lock().get_mut(&lane.class())?, reservation.node)
    }

    /// The partly filled block of another stream, while the class has few blocks:
    /// a table of a few rows need not have an open block in each stream.
    ///
    /// The descriptor is durable. A stream that has opened a block is locked
    /// until then ([`Appended`]).
    fn take_over(&self, lane: &Lane, reservation: &Reservation) -> Option<BlockId> {
        let few = FEW_BLOCKS * u64::from(Class::least(lane.stride)?.block_bytes());
        if reservation.is_of_copies() || self.allocator.lock().bytes_of(lane.class()) >= few {
            return None;
        }
        let near = |streams| self.nodes.streams_of(streams, reservation.node);
        let mut streams = near(&self.streams).iter().chain(near(&self.large_streams));
        streams.find_map(|stream| stream.try_lock()?.take_open(lane.class()))
    }

    fn open_block(
        &self,
        lane: &mut Lane,
        now: Timestamp,
        reservation: &mut Reservation,
    ) -> Result<BlockId, MediumError> {
        reservation.opened = true;
        let id = {
            let mut allocator = self.allocator.lock();
            self.give_settled(&mut allocator, now);
            self.list_one_more(&mut allocator, now, reservation)?;
            let taken = self.take_block(&mut allocator, lane.table, lane.stride, reservation);
            if taken.is_err() {
                self.listed.fetch_sub(1, Ordering::Relaxed);
            }
            let id = taken?;
            let block_bytes = u64::from(self.block(id).0.geometry.block_bytes);
            allocator.add_to(lane.class(), block_bytes);
            lane.is_large = allocator.bytes_of(lane.class()) >= self.blocks_for_lanes() * block_bytes;
            id
        };
        let (chunk, block) = self.block(id);
        let bytes = chunk.geometry.block_bytes;
        let shape = Shape::new(lane.stride, self.options.block_slots, bytes);
        let shape = shape.expect("the block was taken for contents of this stride");
        let recycles = self.options.reuse.is_some();
        let descriptor = Descriptor { table: lane.table.0, opened_at: now.get(), recycles, shape };
        self.open_in_dram(block, &descriptor, bytes);
        self.write_descriptor(chunk, id.index, &descriptor)?;
        let offset = chunk.end_of(id.index) - u64::from(bytes);
        emit_opened(chunk.block_ref(id.index), lane.table, offset, bytes, lane.life);
        Ok(id)
    }

    /// The number of blocks from which on a table has a lane for each life: open
    /// blocks should stay a small part.
    fn blocks_for_lanes(&self) -> u64 {
        (self.all_streams().count() * Life::LATER.len() * CLOSED_FOR_OPEN) as u64
    }

    /// Opens a block in DRAM.
    pub(crate) fn open_in_dram(&self, block: &Block, descriptor: &Descriptor, block_bytes: u32) {
        let &Descriptor { table, opened_at, recycles, shape } = descriptor;
        let bytes = shape.counted_bytes(self.options.block_slots, block_bytes);
        block.open(TableId(table), opened_at, recycles, shape, bytes);
        self.used_bytes.fetch_add(u64::from(bytes), Ordering::Relaxed);
        self.used_blocks.fetch_add(1, Ordering::Relaxed);
    }

    /// Undoes a reservation that failed. Blocks that hold something stay with
    /// their table, to be filled later. The others are free for all.
    fn give_back(&self, stream: &mut Stream, carved: Vec<BlockId>, now: Timestamp) {
        let (mut slots, mut empty) = (Vec::new(), Vec::new());
        stream.plan.clear();
        stream.plan.shrink_to(PLAN_KEPT);
        for lane in &mut stream.lanes {
            let class = lane.class();
            for spare in lane.spare.drain(..) {
                match spare {
                    Spare::Block(id)
                        if self.block(id).1.fill() == 0 && !is_removed(Control::RefusedBlocks) =>
                    {
                        empty.push(id);
                    }
                    Spare::Block(id) => self.resumable.lock().entry(class).or_default().push(id),
                    Spare::Slot(slot) => slots.push(slot),
                }
            }
        }
        // The chunks that were carved become durable as well. A failure latches in
        // the medium, and nothing is appended any more.
        let _ = match empty.is_empty() {
            true => self.medium.fence().map_err(StoreError::Medium),
            false => self.release_unread(empty.into_iter(), now),
        };
        if let Some(reuse) = &self.options.reuse {
            reuse.give_back(&mut slots.into_iter());
        }
        let chunks: Vec<_> = carved.iter().map(|id| self.block(*id).0).collect();
        self.give_carved(carved, None);
        // Nothing may be left in them.
        let mut allocator = self.allocator.lock();
        chunks.iter().for_each(|chunk| self.note_empty(&mut allocator, chunk, now));
    }

    /// Makes blocks available that an append has carved and not opened, at once
    /// or when a sync point is durable.
    #[cold]
    fn give_carved(&self, carved: Vec<BlockId>, point: Option<SyncPoint>) {
        let mut allocator = self.allocator.lock();
        for id in carved {
            let class = self.block(id).0.geometry.class();
            match point {
                Some(point) => allocator.give_later(point, class, id),
                None => allocator.give(class, id),
            }
        }
    }

    #[inline]
    fn stage(
        &self,
        lane: &mut Lane,
        header: Header,
        row: &[u8],
        at: Timestamp,
    ) -> Result<Address, MediumError> {
        if lane.room() == 0
            && let Some(address) = self.go_on(lane, header, row, at)?
        {
            return Ok(address);
        }
        let stride = lane.stride as usize;
        let open = lane.open.as_mut().expect("the reservation made room");
        let address = Address::from_offset(open.first.offset() + u64::from(open.next) * stride as u64);
        lane.idle = 0;
        let end = lane.staging.len() + stride;
        encode(header, row, open.seed, address, &mut lane.staging);
        lane.staging.resize(end, 0);
        open.next += 1;
        let begin = header.timestamp.get();
        open.staged_begins = (open.staged_begins.0.min(begin), open.staged_begins.1.max(begin));
        Ok(address)
    }

    /// The open block is full. Takes the next block, or writes the content to a
    /// free slot and returns its address.
    #[cold]
    fn go_on(
        &self,
        lane: &mut Lane,
        header: Header,
        row: &[u8],
        at: Timestamp,
    ) -> Result<Option<Address>, MediumError> {
        if lane.open.is_some() {
            self.write_staged(lane, at)?;
        }
        let id = match lane.spare.pop().expect("the reservation made room") {
            Spare::Block(id) => id,
            Spare::Slot(slot) => return self.overwrite(slot, header, row, at, &mut lane.staging).map(Some),
        };
        let (chunk, block) = self.block(id);
        lane.open = Some(OpenBlock {
            id,
            first: chunk.address(id.index, 0),
            seed: self.content_seed(block.opened_at()),
            next: block.fill(),
            slots: block.slots(),
            staged_from: block.fill(),
            staged_begins: NO_BEGINS,
        });
        Ok(None)
    }

    /// Writes what is staged, with one write for contents that lie side by
    /// side.
    fn write_staged(&self, lane: &mut Lane, at: Timestamp) -> Result<(), MediumError> {
        let Some(open) = lane.open.as_mut() else { return Ok(()) };
        let offset = open.first.offset() + u64::from(open.staged_from) * u64::from(lane.stride);
        self.charge_slots(open.next - open.staged_from);
        self.medium.write_flushed(offset, &lane.staging)?;
        lane.staging.clear();
        open.staged_from = open.next;
        let (chunk, block) = self.block(open.id);
        let (first, last) = std::mem::replace(&mut open.staged_begins, NO_BEGINS);
        match block.recycles() {
            // Others may be writing to slots of it again.
            true => block.note_begins(first, last, at.get()),
            false => block.note_begins_alone(first, last, at.get()),
        }
        block.set_fill(open.next);
        if open.next == open.slots {
            block.become_(BlockState::Sealed);
            self.listed.fetch_sub(1, Ordering::Relaxed);
            emit(BlockEvent::Sealed, chunk.block_ref(open.id.index), lane.table);
            lane.open = None;
        }
        Ok(())
    }
}

/// Any free stream, or else the caller's own.
fn take_stream(streams: &[Padded<Mutex<Stream>>], hint: usize) -> MutexGuard<'_, Stream> {
    let own = hint % streams.len();
    let mut each = (0..streams.len()).map(|n| (own + n) % streams.len());
    each.find_map(|n| streams[n].try_lock()).unwrap_or_else(|| streams[own].lock())
}

/// Room for the contents of one append.
#[derive(Debug)]
pub(crate) struct Reservation {
    pub(crate) urgency: Urgency,
    /// It takes as much of the reserve as something of this urgency may.
    pub(crate) spends: Urgency,
    /// The node that the room is to be on, if that matters.
    pub(crate) node: Option<usize>,
    company: Company,
    /// Whether it has opened a block.
    opened: bool,
    /// Blocks of freshly carved chunks that the append did not need.
    pub(crate) carved: Vec<BlockId>,
}

impl Reservation {
    /// Blocks for state records only.
    pub fn for_records() -> Self {
        Self::new(Urgency::Collect, Company::Alone)
    }

    /// Whether what is appended becomes durable with a later sync.
    pub fn is_of_copies(&self) -> bool {
        self.urgency == Urgency::Collect && self.company == Company::Any
    }

    pub fn new(urgency: Urgency, company: Company) -> Self {
        Self { urgency, spends: urgency, node: None, company, opened: false, carved: Vec::new() }
    }

    /// The same on a node.
    pub fn on(self, node: Option<usize>) -> Self {
        Self { node, ..self }
    }
}
