//! What a commit appends: a content for each tuple that it changes, and the list of commits on
//! which it depends.

use std::slice::Iter;

use pantile_base::Timestamp;
use pantile_store::{ContentFlags, NewContent};

use crate::engine::writes::{Pending, TableUse, Write};
use crate::transactions::depends::listing;

/// They come in the order of the addresses that they will get.
#[derive(Clone)]
pub(super) struct Contents<'b> {
    pub appends: Iter<'b, u32>,
    /// Which commits it depends on; empty if on none, and once the list has come.
    pub list: &'b [u8],
    pub writes: &'b [Write],
    pub tables: &'b [TableUse],
    pub rows: &'b [u8],
    pub timestamp: Timestamp,
    pub of_transaction: u64,
}

impl<'b> Iterator for Contents<'b> {
    type Item = NewContent<'b>;

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.appends.len() + usize::from(!self.list.is_empty());
        (left, Some(left))
    }

    // The store takes two turns through them, and a commit shall not pay for a call in each.
    #[inline(always)]
    fn next(&mut self) -> Option<NewContent<'b>> {
        let Some(&n) = self.appends.next() else {
            let list = std::mem::take(&mut self.list);
            return (!list.is_empty()).then(|| listing(list, self.timestamp, self.of_transaction));
        };
        let write = &self.writes[n as usize];
        let (flags, layout, row) = match write.pending {
            Pending::Row { start, len, layout } => {
                (ContentFlags::ROW, layout, &self.rows[start..start + len as usize])
            }
            Pending::Nothing | Pending::Tombstone => (ContentFlags::TOMBSTONE, 0, &[][..]),
        };
        Some(NewContent {
            table: self.tables[write.table as usize].table.id,
            tuple: write.tuple,
            flags,
            layout,
            since: write.has_chain().then_some(write.base_ts),
            timestamp: self.timestamp,
            transaction_contents: self.of_transaction,
            row,
        })
    }
}
