//! Reading a table by the ids of its tuples, for a backup.

use std::ops::Range;

use pantile_base::{Timestamp, TupleId};

use crate::engine::anchor::Anchor;
use crate::engine::table::TableInner;
use crate::transactions::read::Seen;
use crate::transactions::transaction::Transaction;
use crate::types::encoding::Encoded;
use crate::types::error::Result;

/// How many tuples ahead of its use a version is fetched.
const AHEAD: u64 = 8;

impl Transaction {
    /// The version of a tuple that this transaction sees, whose checksum fits:
    /// its timestamp and its row.
    ///
    /// The transaction is at a safe snapshot. So nothing will be published that
    /// it could see, whatever is locked. It asks for tuples rather than for keys.
    /// Another transaction would have to mark the gaps between them.
    pub(crate) fn copied<'t>(
        &'t self,
        table: &'t TableInner,
        tuple: TupleId,
    ) -> Result<Option<(Timestamp, Encoded<'t>)>> {
        assert!(self.safe, "only a safe snapshot can be read by tuples");
        self.check_ended()?;
        let newest = |tuple: u64| Anchor::load(table.anchor(TupleId(tuple))).newest();
        // Only the pin protects a version that is too new (T6).
        let _pin = self.core.registry.pin(self.slot);
        if tuple.0 + AHEAD < table.tuples_end() {
            let ahead = newest(tuple.0 + AHEAD);
            if self.core.store.may_wait() {
                self.core.store.fetch_across(ahead);
            }
            self.core.store.prefetch(ahead);
        }
        let newest = newest(tuple.0);
        self.verify_version(newest, self.ts)?;
        Ok(match self.version_at(table, newest, self.ts) {
            (Seen::Row(row), version) => Some((version, row)),
            _ => None,
        })
    }

    /// Begins to read the newest versions of some tuples, where reads wait for
    /// the device.
    pub(crate) fn fetch_tuples(&self, table: &TableInner, tuples: Range<u64>) {
        if self.core.store.may_wait() {
            self.fetch(table, tuples);
        }
    }
}
