//! Compares the state that recovery has found with the contents on the medium.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;
use pantile_base::{Address, TableId};
use pantile_store::{BlockUse, Content, FilledSlot, Survey};

use crate::engine::anchor::Anchor;
use crate::engine::core::Core;
use crate::engine::table::TableInner;
use crate::tools::findings::{Findings, Location};
use crate::tools::options::{CheckOptions, CheckStep};

/// Said of what is wrong by the contents themselves: nothing.
pub(super) const THEMSELVES: &str = "";

type TablesById = HashMap<TableId, Arc<TableInner>, FixedState>;

/// What is wrong is said to be so `by` what the state was recovered from.
pub(super) fn check(core: &Core, found: &Survey, options: &CheckOptions, (findings, by): (&Findings, &str)) {
    let tables: TablesById = core.tables.all().into_iter().map(|table| (table.id, table)).collect();
    space(core, &tables, found, (findings, by));
    let look = |slot: FilledSlot<'_>| check_slot(core, &tables, slot, (findings, by));
    let progress = |done, total| options.report(CheckStep::Contents, done, total);
    core.store.for_each_slot(options.thread_count(), &look, &progress);
}

/// Compares the store's own accounts with what the survey has counted. Opening
/// releases the blocks of dropped tables, and after an unclean stop those that
/// hold nothing committed.
fn space(core: &Core, tables: &TablesById, found: &Survey, (findings, by): (&Findings, &str)) {
    let mut counted = BTreeMap::<u32, [u64; 3]>::new();
    for block in found.chunks.iter().flat_map(|c| &c.blocks).filter(|b| b.found == BlockUse::Used) {
        let table = counted.entry(block.table).or_default();
        table[0] += 1;
        table[1] += u64::from(block.fill < block.slots);
        table[2] += u64::from(block.fill);
    }
    let by_table = core.store.space_by_table();
    for (id, counted) in counted.into_iter().filter(|(id, _)| tables.contains_key(&TableId(*id))) {
        let account = by_table.get(&TableId(id)).copied().unwrap_or_default();
        let accounted = [account.blocks, account.open_blocks, account.contents];
        for ((what, accounted), counted) in
            ["blocks", "open blocks", "slots"].iter().zip(accounted).zip(counted)
        {
            let is_closed = found.record().is_some_and(|record| record.closed);
            if accounted > counted || is_closed && accounted < counted {
                let place = Location { table_id: Some(id), ..Location::default() };
                findings.damage(
                    place,
                    format!("the store accounts for {accounted} {what} in use, and {counted} are{by}"),
                );
            }
        }
    }
}

fn check_slot(core: &Core, tables: &TablesById, slot: FilledSlot<'_>, (findings, by): (&Findings, &str)) {
    let content = slot.content;
    let report = |what: String| {
        let mut place = Location::from(core.store.place_of(slot.address));
        place.tuple = Some(content.tuple().0);
        findings.damage(place, what + by);
    };
    if content.flags().is_void() {
        if !slot.is_superseded {
            report("a void slot is taken for a live version".into());
        }
        return;
    }
    // Nothing of a dropped table is live, and all of it is released at once.
    let Some(table) = tables.get(&slot.table) else { return };
    let newest = Anchor::load(table.anchor(content.tuple())).newest();
    if newest == slot.address {
        if slot.is_superseded {
            report("a live version is taken for superseded".into());
        }
        return;
    }
    if newest.is_none() {
        // An image has nothing of deleted rows.
        if by == THEMSELVES {
            report("a committed version that its tuple does not reach".into());
        }
        return;
    }
    if !slot.is_superseded {
        report("a superseded version is taken for live".into());
    }
    compare(core.store.content(newest), content, newest, &report);
}

/// An older version, or another copy of the newest.
fn compare(newest: Content<'_>, other: Content<'_>, at: Address, report: &dyn Fn(String)) {
    let (begin, offset) = (newest.timestamp(), at.offset());
    if begin < other.timestamp() {
        report(format!("a version newer than the one at {offset}, which is taken for the newest"));
    }
    let is_same =
        newest.row() == other.row() && newest.flags().is_tombstone() == other.flags().is_tombstone();
    if begin == other.timestamp() && !is_same {
        report(format!("the version of transaction {begin} differs from its copy at {offset}"));
    }
    let is_twice = !newest.flags().is_relocated() && !other.flags().is_relocated();
    if begin == other.timestamp() && is_twice {
        report(format!("the version of transaction {begin} is also at {offset}, and neither is a copy"));
    }
}
