//! The tables of an open database, by name and by id, and those that were dropped.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use foldhash::fast::FixedState;
use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use pantile_base::sync::{Mutex, MutexGuard, RwLock};
use pantile_base::{TableId, Timestamp, thread_id};
use pantile_cc::{Grace, Registry, RunningSet};
use pantile_index::{Index as Tree, NodeArena};
use pantile_store::{DroppedTable, GivenBack, Holds, Period, StoreError};

use crate::engine::index::IndexInner;
use crate::engine::table::{Table, TableInner};
use crate::engine::{catalog, pieces};
use crate::types::error::{Error, Result};
use crate::types::history::Definition;
use crate::types::schema::{IndexDef, TableDef};

/// A table that has been dropped.
struct Dropped {
    period: Period,
    /// Set when all transactions and processes that could use it were found to have ended.
    unused: Option<Unused>,
    table: TableId,
    /// For transactions that began to use it before it was dropped, until they have
    /// ended. Other processes that read it have their own indexes.
    in_use: Option<Arc<TableInner>>,
}

/// Since when nobody may use a table.
struct Unused {
    since: Timestamp,
    /// For those who may still look at a link that once led to where a block of the table is now (T6).
    grace: Grace,
}

/// Those that may use dropped tables (I-37). They are looked for when the tables are listed:
/// each of these was marked as dropped before.
pub(crate) struct Users<'h> {
    /// All transactions read at this timestamp or above.
    pub watermark: Timestamp,
    /// Those that run, unless some of them could not be told.
    pub running: Option<RunningSet>,
    /// What is held for other processes.
    pub holds: &'h Holds,
    pub registry: &'h Registry,
}

impl Users<'_> {
    /// Whether a transaction may use the table.
    fn may_use(&self, table: Period) -> bool {
        let may_use = |running: &RunningSet| running.may_use_table(table.from, table.until);
        table.until >= self.watermark && self.running.as_ref().is_none_or(may_use)
    }

    /// Whether a transaction may use the table, or another process read it.
    fn may_read(&self, table: Period) -> bool {
        self.holds.cover_table(table) || self.may_use(table)
    }
}

/// How much is given back of dropped tables at a time.
#[derive(Clone, Copy)]
pub(crate) struct Batch {
    tables: usize,
    pub blocks: usize,
    /// Whether to wait for another thread that releases some.
    waits: bool,
}

impl Batch {
    /// By a commit. The rest waits for later ones.
    pub const OF_A_COMMIT: Self = Self { tables: 8, blocks: 128, waits: false };
    /// By a thread that nobody waits for, or whose caller waits for all of it.
    pub const LARGE: Self = Self { tables: 512, blocks: 1 << 13, waits: true };
}

/// The names that tables have lost, and the tables that were renamed: when that happened last.
#[derive(Default)]
struct LeftNames {
    names: HashMap<String, Timestamp>,
    renamed: HashMap<TableId, Timestamp, FixedState>,
}

impl LeftNames {
    fn leave(&mut self, name: String, at: Timestamp) {
        let last = self.names.entry(name).or_insert(at);
        *last = at.max(*last);
    }

    /// Forgets what is older than all transactions.
    fn forget(&mut self, watermark: Timestamp) {
        self.names.retain(|_, at| *at >= watermark);
        self.renamed.retain(|_, at| *at >= watermark);
    }
}

/// An index that was dropped at this time. Transactions that began before
/// maintain it.
struct DroppedIndex {
    at: Timestamp,
    table: Weak<TableInner>,
    number: u32,
}

/// Every table is in `by_id`, users' tables are also in `by_name`, and a
/// dropped one is in `dropped` until its blocks have been released. Ids are
/// never used twice.
pub(crate) struct Tables {
    /// Distinguishes the handles of different databases.
    database: u64,
    /// The nodes of all indexes.
    pub arena: Arc<NodeArena>,
    by_name: RwLock<BTreeMap<String, Table>>,
    by_id: RwLock<HashMap<TableId, Arc<TableInner>, FixedState>>,
    /// Held while a definition changes.
    ddl: Mutex<()>,
    /// Held while migrations are made.
    migrations: Mutex<()>,
    /// The thread that makes them, or 0.
    migrating: AtomicU32,
    next: AtomicU64,
    dropped: Mutex<Vec<Dropped>>,
    has_more_to_release: AtomicBool,
    dropped_indexes: Mutex<Vec<DroppedIndex>>,
    /// Names under which running transactions may have known another table.
    left_names: Mutex<LeftNames>,
}

impl Default for Tables {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            database: NEXT.fetch_add(1, Ordering::Relaxed),
            arena: Arc::new(NodeArena::new()),
            by_name: RwLock::default(),
            by_id: RwLock::default(),
            ddl: Mutex::default(),
            migrations: Mutex::default(),
            migrating: AtomicU32::new(0),
            next: AtomicU64::new(u64::from(catalog::FIRST_USER_TABLE)),
            dropped: Mutex::default(),
            has_more_to_release: AtomicBool::new(false),
            dropped_indexes: Mutex::default(),
            left_names: Mutex::default(),
        }
    }
}

#[cold]
fn unusable(table: &TableInner, is_own: bool) -> Error {
    match is_own {
        true => Error::TableDropped(table.name()),
        false => Error::ForeignTable(table.name()),
    }
}

/// While it lives, nobody else makes migrations.
pub struct Migrating<'t> {
    thread: &'t AtomicU32,
    _turn: MutexGuard<'t, ()>,
}

impl Drop for Migrating<'_> {
    fn drop(&mut self) {
        self.thread.store(0, Ordering::Relaxed);
    }
}

impl Tables {
    /// Lets one caller at a time change the definition of a table that is there.
    pub fn change_table<'t>(&'t self, table: &'t TableInner) -> (MutexGuard<'t, ()>, MutexGuard<'t, ()>) {
        let table = table.change();
        (table, self.change())
    }

    /// Lets one caller at a time change what is stored of definitions. Held for a moment, since it holds up
    /// changes of all tables.
    pub fn change(&self) -> MutexGuard<'_, ()> {
        self.ddl.lock()
    }

    /// Lets one caller at a time make migrations. None if this thread is making
    /// some: it would wait for itself.
    pub fn migrate(&self) -> Option<Migrating<'_>> {
        let thread = thread_id();
        if self.migrating.load(Ordering::Relaxed) == thread {
            return None;
        }
        let turn = self.migrations.lock();
        self.migrating.store(thread, Ordering::Relaxed);
        Some(Migrating { thread: &self.migrating, _turn: turn })
    }

    /// Checks that the table is of this database and has not been dropped.
    #[inline]
    pub fn check_own(&self, table: &TableInner) -> Result<()> {
        let is_own = self.is_of_this(table);
        if is_own && !table.is_dropped() { Ok(()) } else { Err(unusable(table, is_own)) }
    }

    /// Whether a table is of this database, or was.
    #[inline]
    pub fn is_of_this(&self, table: &TableInner) -> bool {
        table.database == self.database
    }

    pub fn names(&self) -> Vec<String> {
        self.by_name.read().keys().cloned().collect()
    }

    pub fn exists(&self, name: &str) -> bool {
        self.by_name.read().contains_key(name)
    }

    pub fn by_name(&self, name: &str) -> Result<Table> {
        let tables = self.by_name.read();
        tables.get(name).cloned().ok_or_else(|| Error::UnknownTable(name.to_owned()))
    }

    pub fn by_id(&self, id: TableId) -> Option<Arc<TableInner>> {
        self.by_id.read().get(&id).cloned()
    }

    /// Like [`Tables::by_id`], for a running transaction that has found the
    /// table. The table may have been dropped since.
    pub fn in_use(&self, id: TableId) -> Option<Arc<TableInner>> {
        self.by_id(id).or_else(|| {
            let dropped = self.dropped.lock();
            dropped.iter().find(|d| d.table == id).and_then(|d| d.in_use.clone())
        })
    }

    /// All tables, by id. The lock is not held while the caller works on
    /// them: a collector at work waits for it.
    pub fn all(&self) -> Vec<Arc<TableInner>> {
        let mut tables: Vec<_> = self.by_id.read().values().cloned().collect();
        tables.sort_unstable_by_key(|table| table.id);
        tables
    }

    pub fn catalog(&self) -> Result<Table> {
        self.by_id(catalog::CATALOG).map(Table::of).ok_or(Error::Closed)
    }

    /// A table with this definition, without rows and trees.
    pub fn make(&self, id: TableId, definition: Definition) -> Result<TableInner> {
        TableInner::new(id, self.database, definition)
    }

    /// The secondary indexes of a table's definition, without trees.
    pub fn make_indexes(&self, table: &TableInner) -> Result<Vec<IndexInner>> {
        let make = |def: &IndexDef| IndexInner::new(def, table.next_index_number(), table.schema());
        table.layouts().definition.def.indexes.iter().map(make).collect()
    }

    /// A new table with its indexes, which are complete because it has no rows.
    pub fn make_empty(&self, id: TableId, def: TableDef) -> Result<Table> {
        let table = self.make(id, def.into())?;
        let list: Vec<_> = self.make_indexes(&table)?.into_iter().map(Arc::new).collect();
        list.iter().for_each(|index| index.set_ready());
        let trees = table.keys_of(&list).into_iter().map(|keys| Tree::new(keys, &self.arena)).collect();
        table.change_indexes(|indexes| *indexes = list);
        table.set_trees(trees);
        Ok(Table::of(Arc::new(table)))
    }

    /// The empty table of a new table's values out of line, if it can have any.
    pub fn make_pieces(&self, of: TableId, definition: &Definition) -> Result<Option<Table>> {
        let make = || self.make_empty(pieces::of(of), pieces::definition(&definition.def.name));
        definition.can_move_out().then(make).transpose()
    }

    /// Makes a table known, under its name if it is a user's. The table of its
    /// values out of line must be known before.
    pub fn add(&self, table: Table) {
        self.by_id.write().insert(table.inner.id, Arc::clone(&table.inner));
        if catalog::is_of_user(table.inner.id) {
            self.by_name.write().insert(table.name().to_owned(), table);
        }
    }

    /// Makes a table known as what it has become. Returns a handle of that.
    pub fn renamed(&self, old: &str, table: &Arc<TableInner>, now: impl FnOnce() -> Timestamp) -> Table {
        let handle = Table::of(Arc::clone(table));
        let mut tables = self.by_name.write();
        tables.remove(old);
        tables.insert(table.name(), handle.clone());
        if table.name() != old {
            // A transaction that begins after this time does not find the table by its old name.
            let mut left = self.left_names.lock();
            let at = now();
            left.leave(old.to_owned(), at);
            left.renamed.insert(table.id, at);
        }
        handle
    }

    /// The table of a table's values out of line, also for a transaction that
    /// has found the table before it was dropped.
    pub fn pieces_of(&self, table: TableId) -> Arc<TableInner> {
        self.in_use(pieces::of(table)).expect("a table with long values has a table of their pieces")
    }

    /// The id of the next table; the caller holds [`Tables::change`].
    pub fn next_id(&self) -> TableId {
        TableId(self.next.load(Ordering::Relaxed) as u32)
    }

    /// Never gives this id to a new table.
    pub fn id_is_used(&self, id: TableId) {
        self.next.fetch_max(u64::from(id.0 | 1) + 1, Ordering::Relaxed);
    }

    /// Takes a table and its values out of line away from its name and id, but
    /// not from the transactions that use it. Returns both.
    pub fn drop_table(
        &self,
        table: &Arc<TableInner>,
        now: impl FnOnce() -> Timestamp,
    ) -> Vec<Arc<TableInner>> {
        let mut dropped = self.dropped.lock();
        // A transaction that finds no table of its name begins after it has been dropped.
        let mut names = self.by_name.write();
        let gone = self.retire(&mut dropped, table, now);
        names.remove(&table.name());
        gone
    }

    /// Puts a new table in the place of another, which is dropped; nobody finds
    /// none of its name. Returns what is dropped, and from when on the new one is
    /// there.
    pub fn replace(
        &self,
        table: &Arc<TableInner>,
        new: &Table,
        pieces: Option<Table>,
        now: impl Fn() -> Timestamp,
    ) -> (Vec<Arc<TableInner>>, Timestamp) {
        // First, for blocks of others may just be given back under this lock, and look-ups by name do not wait for that.
        let mut dropped = self.dropped.lock();
        let mut names = self.by_name.write();
        let gone = self.retire(&mut dropped, table, &now);
        let at = now();
        new.inner.set_created(at);
        new.inner.set_replacing();
        let known = pieces.iter().chain([new]).map(|table| (table.inner.id, Arc::clone(&table.inner)));
        self.by_id.write().extend(known);
        names.insert(table.name(), new.clone());
        (gone, at)
    }

    /// Whether a transaction may still run that began when there was another table of
    /// this name.
    pub fn was_used_of_late(&self, name: &str, watermark: Timestamp) -> bool {
        self.left_names.lock().names.get(name).is_some_and(|&at| at >= watermark)
    }

    /// Whether a table has been renamed since.
    pub fn was_renamed(&self, table: TableId, since: Timestamp) -> bool {
        self.left_names.lock().renamed.get(&table).is_some_and(|&at| at >= since)
    }

    /// Takes a table and its values out of line away from their ids.
    fn retire(
        &self,
        dropped: &mut Vec<Dropped>,
        table: &Arc<TableInner>,
        now: impl FnOnce() -> Timestamp,
    ) -> Vec<Arc<TableInner>> {
        let pieces = self.by_id(pieces::of(table.id)).filter(|_| !is_removed(Control::PiecesOfTables));
        let both = [Some(Arc::clone(table)), pieces];
        // Work of the database that begins after `at` does not find the table by its number (I-37).
        for table in both.iter().flatten() {
            table.set_dropped();
            self.by_id.write().remove(&table.id);
        }
        let at = now();
        self.left_names.lock().leave(table.name(), at);
        // What is out of line is used through the table that it belongs to.
        let period = Period { from: table.defined_from(), until: at };
        dropped.extend(both.iter().flatten().map(|table| Dropped {
            period,
            unused: None,
            table: table.id,
            in_use: Some(Arc::clone(table)),
        }));
        both.into_iter().flatten().collect()
    }

    /// Takes an index away from scans that begin later. It stays in the table's
    /// list for the transactions that began before (I-16).
    pub fn drop_index(
        &self,
        table: &Arc<TableInner>,
        index: &IndexInner,
        now: impl FnOnce() -> Timestamp,
    ) -> Timestamp {
        let at = index.drop_at(now);
        let dropped = DroppedIndex { at, table: Arc::downgrade(table), number: index.number };
        self.dropped_indexes.lock().push(dropped);
        at
    }

    /// Whether there are dropped indexes that have not been taken away.
    pub fn has_dropped_indexes(&self) -> bool {
        !self.dropped_indexes.lock().is_empty()
    }

    /// Takes away the dropped indexes that no running transaction maintains: those dropped
    /// before this time. One that only reads keeps the tree that it scans. Returns whether
    /// there were any.
    pub fn forget_indexes(&self, before: Timestamp) -> bool {
        // Dropped after the lock: the end of a large tree takes long.
        let mut gone = Vec::new();
        let mut indexes = self.dropped_indexes.lock();
        let count = indexes.len();
        indexes.retain(|dropped| {
            let is_needed = dropped.at >= before;
            if let Some(table) = dropped.table.upgrade().filter(|_| !is_needed) {
                let list = table.change_indexes(|list| list.retain(|i| i.number != dropped.number));
                gone.push((table, list));
            }
            is_needed
        });
        indexes.len() < count
    }

    /// Recovery found contents of a table that was dropped. They go when all
    /// that was found is durably known to be committed (T1).
    pub fn found_dropped(&self, table: TableId) {
        let (from, until) = (Timestamp::ZERO, Timestamp::ZERO);
        let unused = Some(Unused { since: until, grace: Grace::default() });
        let dropped = Dropped { period: Period { from, until }, unused, table, in_use: None };
        self.dropped.lock().push(dropped);
        self.id_is_used(table);
    }

    /// Whether there are dropped tables whose space has not been given back.
    pub fn has_dropped(&self) -> bool {
        !self.dropped.lock().is_empty()
    }

    /// Whether there are such tables that were dropped before `since`.
    pub fn has_dropped_before(&self, since: Timestamp) -> bool {
        self.dropped.lock().iter().any(|dropped| dropped.period.until < since)
    }

    /// Whether dropped tables have space that can be released once a state
    /// record is written.
    pub fn can_release<'h>(&self, look: impl FnOnce() -> Users<'h>) -> bool {
        let dropped = self.dropped.lock();
        let users = look();
        dropped.iter().any(|d| match d.unused {
            Some(_) => !users.holds.cover_table(d.period),
            None => !users.may_read(d.period),
        })
    }

    /// The dropped tables that wait for transactions, or processes, which may read them.
    pub fn waiting(&self) -> BTreeMap<TableId, DroppedTable> {
        let dram = |table: &Arc<TableInner>| table.anchor_bytes() + table.index_bytes();
        let waiting =
            |d: &Dropped| DroppedTable { period: d.period, dram: d.in_use.as_ref().map_or(0, dram) };
        let dropped = self.dropped.lock();
        dropped.iter().filter(|d| d.unused.is_none()).map(|d| (d.table, waiting(d))).collect()
    }

    /// Takes out the dropped tables that no transaction can use any more. Their memory
    /// goes with them.
    pub fn take_unused<'h>(&self, look: impl FnOnce() -> Users<'h>) -> Vec<Arc<TableInner>> {
        let Some(mut dropped) = self.dropped.try_lock() else { return Vec::new() };
        if dropped.is_empty() {
            return Vec::new();
        }
        let users = look();
        let in_use = dropped.iter_mut().filter(|d| d.in_use.is_some());
        in_use.filter(|d| !users.may_use(d.period)).filter_map(|d| d.in_use.take()).collect()
    }

    /// Calls `release` for a batch of the dropped tables that no transaction and no other
    /// process has been able to use since before `durable`. A transaction that wrote to a
    /// table when it was dropped may have committed at any time until it ended. Returns
    /// whether more can be released now.
    pub fn release_dropped<'h>(
        &self,
        look: impl FnOnce() -> Users<'h>,
        durable: Timestamp,
        batch: Batch,
        release: impl FnOnce(&BTreeMap<TableId, Period>) -> std::result::Result<GivenBack, StoreError>,
    ) -> bool {
        let mut dropped = match batch.waits {
            true => self.dropped.lock(),
            // Another thread releases some.
            false => match self.dropped.try_lock() {
                Some(dropped) => dropped,
                None => return false,
            },
        };
        let users = look();
        self.left_names.lock().forget(users.watermark);
        for d in dropped.iter_mut().filter(|d| d.unused.is_none() && !users.may_read(d.period)) {
            d.unused = Some(Unused { since: users.registry.now(), grace: users.registry.grace() });
        }
        // A process that has come since may look at any block.
        let is_free = |d: &mut Dropped| {
            let is_unused = |u: &mut Unused| u.since < durable && u.grace.is_over(users.registry);
            d.unused.as_mut().is_some_and(is_unused) && !users.holds.cover_table(d.period)
        };
        let is_ready = |d: &mut Dropped| is_free(d).then_some((d.table, d.period));
        let free: BTreeMap<TableId, Period> =
            dropped.iter_mut().filter_map(is_ready).take(batch.tables).collect();
        let mut gone = Vec::new();
        let given = if free.is_empty() { Ok(GivenBack::Nothing) } else { release(&free) };
        if let Ok(GivenBack::All) = given {
            gone.extend(dropped.extract_if(.., |d| free.contains_key(&d.table)));
        }
        let has_more = dropped.iter_mut().any(is_free);
        self.has_more_to_release.store(has_more, Ordering::Relaxed);
        // Memory is freed without the lock.
        drop(dropped);
        drop(gone);
        // Nobody waits for another process to end.
        has_more && given.is_ok_and(|given| given != GivenBack::Nothing)
    }

    /// Whether dropped tables wait that can be released now.
    pub fn has_more_to_release(&self) -> bool {
        self.has_more_to_release.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use pantile_testkit::Patience;

    use crate::{MediumKind, Options, TableChange, TableDef, Type};

    #[test]
    fn names_that_tables_have_left_are_forgotten() {
        let options = Options::new().medium(MediumKind::Dram).worker(false);
        let db = options.open("unused").expect("open");
        let definition = TableDef::new("a").column("id", Type::U64).primary_key(["id"]);
        let mut table = db.create_table(definition).expect("a table");
        let left = || db.core.tables.left_names.lock().names.len();
        for n in 0..10 {
            table = db.truncate_table(&table).expect("it is there");
            let rename = TableChange::new().rename_table(format!("name {n}"));
            table = db.alter_table(&table, &rename).expect("a free name");
        }
        assert!(left() > 0, "nothing could be known of them");
        let reader = db.begin_read().expect("a transaction");
        db.alter_table(&table, &TableChange::new().rename_table("last")).expect("a free name");
        let patience = Patience::new();
        while left() > 1 {
            patience.check(|| format!("{} names", left()));
            db.upkeep();
        }
        for _ in 0..20 {
            db.upkeep();
        }
        assert_eq!(left(), 1, "the reader began before");
        drop(reader);
        while left() > 0 {
            patience.check(|| format!("{} names", left()));
            db.upkeep();
        }
    }
}
