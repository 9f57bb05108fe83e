//! What clients do, and every row that follows from it.
//!
//! Every transaction follows from its client and its number in the client's
//! sequence. So the number of transactions of each client determines every row.
//! Each transaction changes two balances, so that a missing or duplicate
//! transaction shows, however long ago it was.

use std::collections::{BTreeMap, BTreeSet};

use pantile::{
    Database, IndexDef, Range, Result, Table, TableDef, Transaction, TransactionOptions, Type, Value,
};
use pantile_testkit::Random;

use crate::rows::{Rows, words};

const ACCOUNTS: u64 = 9;
const SLOTS: u64 = 13;
/// How many rows of the ledger a client keeps. It deletes older ones.
const LEDGER_KEPT: u64 = 200;
/// After this many transactions, client 0 creates a table and drops an old one.
const EXTRA_EVERY: u64 = 20;
/// How many tables of client 0 are kept besides the newest.
const EXTRAS_KEPT: u64 = 4;

/// The work of the clients. The same seed gives the same work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Workload {
    /// The seed of what is written.
    pub seed: u64,
    /// The number of clients.
    pub clients: u64,
}

/// The tables that always exist.
#[derive(Debug)]
pub struct Tables {
    ledger: Table,
    accounts: Table,
    items: Table,
    blobs: Table,
}

/// What one transaction writes.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Deed {
    from: u64,
    to: u64,
    amount: i64,
    slot: u64,
    deleted_slot: Option<u64>,
    /// Number of a long value.
    blob: Option<u64>,
}

fn definitions() -> [TableDef; 4] {
    let ledger = TableDef::new("ledger").column("client", Type::U32).column("seq", Type::U64);
    let ledger = ledger.column("from", Type::U32).column("to", Type::U32).column("amount", Type::I64);
    let items = TableDef::new("items").column("client", Type::U32).column("slot", Type::U32);
    let items = items.column("seq", Type::U64).column("tag", Type::String(60));
    [
        ledger.primary_key(["client", "seq"]).index(IndexDef::new("by_from", ["from", "amount"])),
        TableDef::new("accounts")
            .column("id", Type::U32)
            .column("balance", Type::I64)
            .primary_key(["id"])
            .index(IndexDef::new("by_balance", ["balance"])),
        items
            .primary_key(["client", "slot"])
            .index(IndexDef::unique("by_tag", ["tag"]))
            .index(IndexDef::new("by_seq", ["seq"])),
        TableDef::new("blobs")
            .column("client", Type::U32)
            .column("n", Type::U32)
            .column("data", Type::Bytes(1 << 20))
            .primary_key(["client", "n"]),
    ]
}

impl Tables {
    /// Opens the tables, and creates those that do not exist.
    ///
    /// # Errors
    /// What the engine returns.
    pub fn open(db: &Database) -> Result<Self> {
        let mut tables = Vec::new();
        for def in definitions() {
            let known = db.tables().contains(&def.name);
            tables.push(if known { db.table(&def.name)? } else { db.create_table(def)? });
        }
        let [ledger, accounts, items, blobs] = tables.try_into().expect("four tables");
        Ok(Self { ledger, accounts, items, blobs })
    }

    /// The number of the client's last transaction.
    ///
    /// # Errors
    /// What the engine returns.
    pub fn last_of(&self, db: &Database, client: u64) -> Result<u64> {
        let key = [client.into()];
        db.run_with(TransactionOptions::new().read_only(true), |txn| {
            let last = txn.scan(&self.ledger, Range::prefix(&key).reverse().limit(1))?.next();
            last.map_or(Ok(0), |row| row?.get(1))
        })
    }

    /// The balances as one transaction sees them. They add up to 0.
    ///
    /// # Errors
    /// What the engine returns.
    pub fn balances(&self, txn: &Transaction) -> Result<Vec<i64>> {
        txn.scan(&self.accounts, Range::all())?.map(|row| row?.get(1)).collect()
    }

    /// The tags as one transaction sees them.
    ///
    /// # Errors
    /// What the engine returns.
    pub fn tags(&self, txn: &Transaction) -> Result<Vec<String>> {
        txn.scan(&self.items, Range::all())?.map(|row| Ok(row?.get::<&str>(3)?.to_owned())).collect()
    }
}

impl Workload {
    fn deed(self, client: u64, seq: u64) -> Deed {
        let mut random = Random::new(self.seed ^ (client << 48), seq);
        let from = random.below(ACCOUNTS);
        Deed {
            from,
            to: (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS,
            amount: 1 + random.below(100) as i64,
            slot: seq % SLOTS,
            deleted_slot: seq.is_multiple_of(3).then_some((seq / 3 + 1) % SLOTS),
            blob: seq.is_multiple_of(16).then_some(seq / 16 % 3),
        }
    }

    /// A text that no other transaction writes.
    pub fn tag(self, client: u64, seq: u64) -> String {
        format!("{client}-{seq}-{:x}", Random::new(self.seed, seq).below(0xffff))
    }

    fn blob_data(self, client: u64, seq: u64) -> Vec<u8> {
        vec![Random::new(self.seed ^ client, seq).below(255) as u8; 66_000 + (seq % 1000) as usize]
    }

    /// Runs transaction `seq` of a client, except for the commit. Returns false
    /// if a row that it deletes does not exist, although it must.
    ///
    /// # Errors
    /// What the engine returns.
    pub fn transaction(self, tables: &Tables, txn: &mut Transaction, client: u64, seq: u64) -> Result<bool> {
        let Deed { from, to, amount, slot, deleted_slot, blob } = self.deed(client, seq);
        txn.insert(&tables.ledger, &[client.into(), seq.into(), from.into(), to.into(), amount.into()])?;
        let mut whole = true;
        if seq > LEDGER_KEPT {
            whole = txn.delete(&tables.ledger, &[client.into(), (seq - LEDGER_KEPT).into()])?;
        }
        for (id, change) in [(from, -amount), (to, amount)] {
            let balance = match txn.get_for_update(&tables.accounts, &[id.into()])? {
                Some(row) => row.get::<i64>(1)?,
                None => 0,
            };
            let balance = (balance + change).into();
            if !txn.update(&tables.accounts, &[id.into()], &[("balance", balance)])? {
                txn.insert(&tables.accounts, &[id.into(), balance])?;
            }
        }
        let tag = self.tag(client, seq);
        txn.upsert(&tables.items, &[client.into(), slot.into(), seq.into(), tag.as_str().into()])?;
        if let Some(slot) = deleted_slot {
            txn.delete(&tables.items, &[client.into(), slot.into()])?;
        }
        if let Some(n) = blob {
            let data = self.blob_data(client, seq);
            txn.upsert(&tables.blobs, &[client.into(), n.into(), Value::Bytes(&data)])?;
        }
        Ok(whole)
    }

    /// Undoes a part of transaction `seq`, as an engine would that loses a row.
    ///
    /// # Errors
    /// What the engine returns.
    pub fn lose_a_row(self, tables: &Tables, txn: &mut Transaction, client: u64, seq: u64) -> Result<()> {
        txn.delete(&tables.items, &[client.into(), (seq % SLOTS).into()]).map(|_| ())
    }

    /// Every row of the tables that always exist, after the given number of
    /// transactions of each client.
    pub fn rows(self, lasts: &[u64]) -> BTreeMap<&'static str, Rows> {
        let mut ledger = Rows::new();
        let mut balances = BTreeMap::new();
        let mut items = BTreeMap::new();
        let mut blobs = BTreeMap::new();
        for (client, &last) in (0..).zip(lasts) {
            for seq in 1..=last {
                let Deed { from, to, amount, slot, deleted_slot, blob } = self.deed(client, seq);
                if seq + LEDGER_KEPT > last {
                    let row = [client.into(), seq.into(), from.into(), to.into(), amount.into()];
                    ledger.insert(words(&row));
                }
                *balances.entry(from).or_insert(0) -= amount;
                *balances.entry(to).or_insert(0) += amount;
                items.insert((client, slot), seq);
                if let Some(slot) = deleted_slot {
                    items.remove(&(client, slot));
                }
                if let Some(n) = blob {
                    blobs.insert((client, n), seq);
                }
            }
        }
        let account = |(id, balance): (u64, i64)| words(&[id.into(), balance.into()]);
        let item = |((client, slot), seq): ((u64, u64), u64)| {
            words(&[client.into(), slot.into(), seq.into(), self.tag(client, seq).as_str().into()])
        };
        let blob = |((client, n), seq): ((u64, u64), u64)| {
            words(&[client.into(), n.into(), Value::Bytes(&self.blob_data(client, seq))])
        };
        BTreeMap::from([
            ("ledger", ledger),
            ("accounts", balances.into_iter().map(account).collect()),
            ("items", items.into_iter().map(item).collect()),
            ("blobs", blobs.into_iter().map(blob).collect()),
        ])
    }

    /// Every row of an extra table.
    pub fn extra_rows(self, name: &str, lasts: &[u64]) -> Rows {
        match extra_seq(name) {
            Some(seq) if seq <= lasts[0] => {
                BTreeSet::from([words(&[seq.into(), self.tag(0, seq).as_str().into()])])
            }
            _ => Rows::new(),
        }
    }
}

/// Name of the secondary index of extra tables.
pub const EXTRA_INDEX: &str = "by_tag";

/// The table that client 0 creates before transaction `seq` and fills in it.
pub fn extra(client: u64, seq: u64) -> Option<String> {
    (client == 0 && seq.is_multiple_of(EXTRA_EVERY)).then(|| format!("extra{seq}"))
}

/// The table whose index client 0 drops after transaction `seq`. Every second
/// table is one.
pub fn unindexed(client: u64, seq: u64) -> Option<String> {
    let old = seq.checked_sub(EXTRA_EVERY).filter(|old| (old / EXTRA_EVERY).is_multiple_of(2));
    old.filter(|old| *old > 0).and_then(|old| extra(client, old))
}

/// The table that client 0 drops after transaction `seq`.
pub fn retired(client: u64, seq: u64) -> Option<String> {
    let old = seq.checked_sub(EXTRAS_KEPT * EXTRA_EVERY).filter(|old| *old > 0);
    old.and_then(|old| extra(client, old))
}

/// The transaction that fills the extra table of this name, if it is one.
pub fn extra_seq(name: &str) -> Option<u64> {
    name.strip_prefix("extra")?.parse().ok()
}

/// The definition of an extra table, before it has its index.
pub fn extra_definition(name: &str) -> TableDef {
    TableDef::new(name).column("seq", Type::U64).column("tag", Type::String(60)).primary_key(["seq"])
}
