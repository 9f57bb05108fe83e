//! The end of a scan: decides which uncertain transactions have committed, and makes the contents
//! of the others void.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::control::{Control, is_removed};
use pantile_base::{Address, Timestamp, TupleId};

use crate::content::{ContentFlags, HEADER_BYTES, Header, encode};
use crate::error::StoreError;
use crate::expectation::Expectation;
use crate::format::ENTRY_BYTES;
use crate::kept::Kept;
use crate::scan::{Found, Scan, Seen, Uncertain, note_committed};
use crate::store::Store;

impl Store {
    /// Decides the uncertain transactions and makes the contents of those that
    /// did not commit void, so that no later recovery can take them for
    /// committed. All of that is durable when it returns.
    pub(crate) fn settle(
        &self,
        scan: &Scan<'_>,
        expect: &Expectation,
        all: &mut Seen,
        lost_tail: bool,
        was_closed: bool,
    ) -> Result<(), StoreError> {
        let mut counted: HashMap<Timestamp, u64, FixedState> = HashMap::default();
        let uncertain = std::mem::take(&mut all.uncertain);
        let found = |u: &Uncertain| {
            let (chunk, block) = self.block(u.block);
            let address = chunk.address(u.block.index, u.slot);
            (block.table(), Found { address, content: self.known_content(address) })
        };
        for one in &uncertain {
            *counted.entry(found(one).1.content.timestamp()).or_default() += 1;
        }
        let mut void = std::mem::take(&mut all.holes);
        let mut kept = Kept::default();
        for one in &uncertain {
            let (table, Found { content, .. }) = found(one);
            let is_whole = counted.get(&content.timestamp()) == Some(&content.transaction_contents());
            if is_whole || is_removed(Control::Evidence) {
                kept.add(table, &content);
            }
        }
        kept.drop_dependent(|timestamp| expect.is_over(timestamp));
        for one in uncertain {
            let (table, found) = found(&one);
            // After a power failure under relaxed durability, later commits may
            // be whole while earlier ones are not. Keep the consistent part.
            if kept.has(found.content.timestamp()) && !lost_tail {
                note_committed(self.block(one.block).1, &found.content);
                all.committed(scan, table, &[found]);
            } else {
                all.summary.discarded += 1;
                void.push(one);
            }
        }
        // What lies beyond the end of the medium is not there in any case.
        void.retain(|one| self.is_on_medium(one));
        // Blocks without any committed content are released whole.
        void.retain(|one| was_closed || self.block(one.block).1.last_append() > 0);
        all.behind.retain(|one| self.block(one.block).1.last_append() > 0);
        if all.torn.is_empty() && all.lost.is_empty() && void.is_empty() && all.behind.is_empty() {
            return Ok(());
        }
        self.clear(&all.torn)?;
        self.write_again(&all.lost)?;
        self.make_void(&void)?;
        self.wipe(&all.behind)?;
        self.medium.fence()?;
        Ok(self.medium.sync_all()?)
    }

    /// Whether there is anything where a header would be.
    pub(crate) fn has_header(&self, address: Address) -> bool {
        let is_there = address.offset() + HEADER_BYTES as u64 <= self.medium.len();
        is_there && self.bytes(address.offset(), HEADER_BYTES).iter().any(|byte| *byte != 0)
    }

    /// Zeroes the headers in slots that will be written next. A content may have been
    /// cut off there. If what is written over it were cut off in turn, and agreed with
    /// it in the lines that are there, the first one would be whole.
    fn wipe(&self, slots: &[Uncertain]) -> Result<(), StoreError> {
        for one in slots {
            let address = self.block(one.block).0.address(one.block.index, one.slot);
            self.medium.write_flushed(address.offset(), &[0; HEADER_BYTES])?;
        }
        Ok(())
    }

    fn is_on_medium(&self, slot: &Uncertain) -> bool {
        let (chunk, block) = self.block(slot.block);
        chunk.address(slot.block.index, slot.slot).offset() + u64::from(block.stride()) <= self.medium.len()
    }

    /// Zeroes entries that were cut off. What is written over them may be cut
    /// off in turn, and the two must not mix.
    fn clear(&self, entries: &[u64]) -> Result<(), StoreError> {
        for &offset in entries {
            self.medium.write_flushed(offset, &[0; ENTRY_BYTES])?;
        }
        Ok(())
    }

    fn make_void(&self, slots: &[Uncertain]) -> Result<(), StoreError> {
        let header = Header {
            timestamp: Timestamp::ZERO,
            tuple: TupleId(0),
            transaction_contents: 0,
            flags: ContentFlags::VOID,
            layout: 0,
        };
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        for one in slots {
            let (chunk, block) = self.block(one.block);
            let address = chunk.address(one.block.index, one.slot);
            block.map.set(one.slot);
            bytes.clear();
            encode(header, &[], self.content_seed(block.opened_at()), address, &mut bytes);
            self.medium.write_flushed(address.offset(), &bytes)?;
        }
        Ok(())
    }
}
