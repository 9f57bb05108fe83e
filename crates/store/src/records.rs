//! Room for state records (I-19), and writing them.

use pantile_base::Timestamp;
use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::Ordering;
use pantile_media::{FullReason, MediumError};

use crate::allocator::Allocator;
use crate::append::Reservation;
use crate::block::BlockId;
use crate::format::{Descriptor, RECORD_TABLE};
use crate::geometry::Class;
use crate::shape::Shape;
use crate::state_record::{IN_PLACE, MOST_PARTS, StateRecord, capacity};
use crate::store::Store;

impl Store {
    /// Counts one more block that a state record has to list, and reserves room
    /// for it in the records at both places (I-19).
    ///
    /// # Errors
    /// As for appending; nothing is counted then.
    pub(crate) fn list_one_more(
        &self,
        allocator: &mut Allocator,
        now: Timestamp,
        reservation: &mut Reservation,
    ) -> Result<(), MediumError> {
        let listed = self.listed.load(Ordering::Relaxed) + 1;
        if listed > IN_PLACE as u64 && !is_removed(Control::RoomForRecords) {
            for place in 0..2 {
                self.reserve_for_record(allocator, place, listed, now, reservation)?;
            }
        }
        // The allocator is locked, and every other change is a decrease.
        self.listed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn reserve_for_record(
        &self,
        allocator: &mut Allocator,
        place: usize,
        listed: u64,
        now: Timestamp,
        reservation: &mut Reservation,
    ) -> Result<(), MediumError> {
        let mut blocks = self.record_blocks.lock();
        while capacity(blocks[place].len()) < listed {
            if blocks[place].len() == MOST_PARTS {
                let reason = FullReason::Limit(self.medium.facts().limit);
                return Err(MediumError::Full { needed: self.medium.len(), path: None, reason });
            }
            let id = self.take_of_class(allocator, Class::OF_RECORDS, reservation)?;
            let (chunk, block) = self.block(id);
            block.keep_for_records(now.get());
            let shape = Shape::default();
            let descriptor = Descriptor { table: RECORD_TABLE, opened_at: now.get(), recycles: false, shape };
            self.write_descriptor(chunk, id.index, &descriptor)?;
            blocks[place].push(id);
        }
        Ok(())
    }

    /// Reserves what the records at both places need for the blocks that are
    /// listed now. Only recovery calls this, before anything is appended.
    pub(crate) fn reserve_records(&self, allocator: &mut Allocator) -> Result<(), MediumError> {
        let now = Timestamp::from_raw(self.state.lock().taken_at + 1);
        let mut reservation = Reservation::for_records();
        let listed = self.listed.load(Ordering::Relaxed);
        for place in 0..2 {
            self.reserve_for_record(allocator, place, listed, now, &mut reservation)?;
        }
        for id in reservation.carved {
            allocator.give(self.block(id).0.geometry.class(), id);
        }
        Ok(())
    }

    /// Writes a record, but does not make it durable.
    pub(crate) fn write_record(&self, record: &StateRecord) -> Result<(), MediumError> {
        let blocks = self.record_blocks.lock()[record.place()].clone();
        record.write(&self.medium, self.identity, &blocks)
    }

    /// Takes over the blocks of records that the scan has found: those that the
    /// record in force does not name are for both places alike. Its own is written to
    /// once the next one, at the other place, is in force.
    pub(crate) fn keep_record_blocks(&self, found: Vec<BlockId>) {
        let in_force = self.state.lock().place();
        let mut blocks = self.record_blocks.lock();
        let mut others: Vec<_> = found.into_iter().filter(|id| !blocks[in_force].contains(id)).collect();
        while others.len() > blocks[in_force].len() {
            blocks[in_force].extend(others.pop());
        }
        blocks[1 - in_force] = others;
    }
}
