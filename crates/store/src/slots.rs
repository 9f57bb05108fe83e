//! Rewriting slots, for collectors that free versions one by one.
//!
//! The product does not do this. A collector that does passes the store a
//! [`SlotReuse`](crate::SlotReuse), which holds the free slots. The store asks
//! it for slots only where it would otherwise open a block. No list of free
//! slots is on the medium: recovery finds the newest versions by their
//! timestamps (Zen 3.4).
//!
//! Two rules keep reuse safe, and the store enforces both. First, a slot is free only if its
//! version and that version's successor are at or below the durable watermark. So no evidence is
//! lost with the version (T1), and nothing older comes back in its place. Second, the descriptor of
//! a block says from the start that its slots may be written more than once. So a torn write to
//! such a slot does not count as damage.

use pantile_base::control::{Control, is_removed};
use pantile_base::limits::CHUNK_BYTES;
use pantile_base::{Address, TableId, Timestamp};
use pantile_media::MediumError;

use crate::append::Reservation;
use crate::block::{BlockRef, BlockState};
use crate::collect::Refused;
use crate::content::{Header, encode};
use crate::error::StoreError;
use crate::free_slot::FreeSlot;
use crate::store::Store;
use crate::stream::{Company, NewContent, Urgency};
use crate::tile::Link;

impl Store {
    /// The block that a version lies in, or lay in; `None` if its chunk is gone.
    pub fn block_of(&self, address: Address) -> Option<BlockRef> {
        let chunk = self.chunk((address.offset() / CHUNK_BYTES) as u32)?;
        Some(chunk.block_ref(chunk.locate(address).0))
    }

    /// Checks whether a superseded version may be overwritten: **this is where
    /// space is reclaimed version by version** (I-10). The caller guarantees
    /// that no transaction sees the version or is on its way to it. At `at` the
    /// version had been superseded and could be found for the last time.
    ///
    /// # Errors
    /// [`Refused::NotDurable`] if `at` is not yet known to be durable.
    /// [`Refused::NotReusable`] if the slot no longer belongs to the table, or
    /// if the slots of its block are not rewritten one by one.
    ///
    /// # Panics
    /// If the version is the newest one.
    pub fn free_slot(&self, table: TableId, version: Address, at: Timestamp) -> Result<FreeSlot, Refused> {
        if at > self.durable_watermark() && !is_removed(Control::DurableBeforeRecycle) {
            return Err(Refused::NotDurable);
        }
        let chunk = self.chunk((version.offset() / CHUNK_BYTES) as u32).ok_or(Refused::NotReusable)?;
        let (index, slot) = chunk.locate(version);
        let block = &chunk.blocks[index as usize];
        let is_used = matches!(block.state(), BlockState::Open | BlockState::Sealed);
        if !is_used || block.table() != table || !block.recycles() {
            return Err(Refused::NotReusable);
        }
        assert!(block.map.is_set(slot), "a slot is freed although its version is the newest");
        Ok(FreeSlot { block: chunk.block_ref(index), slot, table, stride: block.stride() })
    }

    /// Writes a content to a slot that has become free.
    ///
    /// # Panics
    /// If the slot has been written since it was freed.
    pub(crate) fn overwrite(
        &self,
        to: FreeSlot,
        header: Header,
        row: &[u8],
        at: Timestamp,
        buffer: &mut Vec<u8>,
    ) -> Result<Address, MediumError> {
        let (chunk, block) = self.block(to.block.id);
        let is_free = block.opened_at() == to.block.opened_at && block.map.is_set(to.slot);
        assert!(is_free, "a slot that is not free is rewritten");
        let address = chunk.address(to.block.id.index, to.slot);
        block.tile.replace_link(to.slot, None);
        encode(header, row, self.content_seed(to.block.opened_at), address, buffer);
        // It was given back, and is taken again.
        self.charge_slots(1);
        self.medium.write_flushed(address.offset(), buffer)?;
        buffer.clear();
        let begin = header.timestamp.get();
        block.note_begins(begin, begin, at.get());
        // Last, so that a thread that finds the slot in use finds the content
        // there.
        block.map.unset(to.slot);
        Ok(address)
    }

    /// Appends copies of versions that are being superseded, for readers of
    /// this process only. Recovery ignores the copies, and no thread waits
    /// until they are durable. They share blocks with nothing else.
    ///
    /// # Errors
    /// [`StoreError::Medium`]. If it is `Full`, nothing was written.
    pub fn copy_superseded(
        &self,
        hint: usize,
        versions: impl Iterator<Item = (TableId, Address)> + Clone,
        now: impl Fn() -> Timestamp,
        copies: &mut Vec<Address>,
    ) -> Result<(), StoreError> {
        let contents = versions.map(|(table, address)| {
            let content = self.content(address);
            NewContent::copy_of(table, &content, content.flags().superseded())
        });
        let reservation = Reservation::new(Urgency::Write, Company::Alone).on(self.nodes.here());
        let (appended, _) =
            self.append_to(&self.survivor_streams, hint, reservation, contents, now, copies)?;
        appended.persist_later();
        Ok(())
    }

    /// Removes the link of the version at `address` if it is still this one,
    /// and returns whether it did. The caller that removes a link may retire
    /// the version that it leads to.
    pub fn take_link(&self, address: Address, link: Link) -> bool {
        let (_, _, block, slot) = self.locate(address);
        block.tile.take_link(slot, link)
    }

    /// Replaces the link of the version at `address`, so that walks skip the
    /// version that it leads to. The caller prevents other threads from
    /// changing the chain.
    pub fn skip_link(&self, address: Address, next: Option<Link>) {
        let (_, _, block, slot) = self.locate(address);
        block.tile.replace_link(slot, next);
    }

    /// Calls `each` with the superseded versions of every block, for collectors
    /// that begin with what an earlier run left behind.
    pub fn superseded_versions(&self, mut each: impl FnMut(TableId, &[Address])) {
        let _chunks = self.chunks_lock.read();
        let mut versions = Vec::new();
        for (chunk, index, block) in self.used() {
            if block.state() == BlockState::Frozen {
                continue;
            }
            versions.clear();
            let mut at = 0;
            while let Some(slot) = block.map.next_set(at, block.fill()) {
                versions.push(chunk.address(index, slot));
                at = slot + 1;
            }
            each(block.table(), &versions);
        }
    }
}
