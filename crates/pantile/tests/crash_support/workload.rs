//! What the clients of a process that will be killed do, and how to tell from
//! what is left whether anything is missing.
//!
//! Every transaction follows from its client and its number in the client's
//! sequence, so that whoever knows how many of each client are there knows
//! every row.

use std::collections::{BTreeMap, BTreeSet};

use pantile::{Database, IndexDef, Range, Result, Row, Table, TableDef, Timestamp, Transaction, Type, Value};

use super::{Random, mix};

pub const CLIENTS: u64 = 4;
const ACCOUNTS: u64 = 9;
const SLOTS: u64 = 13;
/// Every so many transactions client 0 makes a table, and drops an old one.
const EXTRA_EVERY: u64 = 20;

/// Rows of all tables as values in words; long values by length and content.
type Rows = BTreeSet<Vec<String>>;

pub struct Tables {
    ledger: Table,
    accounts: Table,
    items: Table,
    blobs: Table,
}

fn definitions() -> [TableDef; 4] {
    let ledger = TableDef::new("ledger").column("client", Type::U32).column("seq", Type::U64);
    let ledger = ledger.column("from", Type::U32).column("to", Type::U32).column("amount", Type::I64);
    let items = TableDef::new("items").column("client", Type::U32).column("slot", Type::U32);
    let items = items.column("seq", Type::U64).column("tag", Type::String(40));
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
    /// Opens the tables, or makes those that are not there.
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
    pub fn last_of(&self, db: &Database, client: u64) -> Result<u64> {
        let txn = db.begin_read()?;
        let key = [client.into()];
        let last = txn.scan(&self.ledger, Range::prefix(&key).reverse().limit(1))?.next();
        last.map_or(Ok(0), |row| row?.get(1))
    }

    pub fn transaction(&self, txn: &mut Transaction, client: u64, seq: u64) -> Result<()> {
        let (from, to, amount) = transfer(client, seq);
        txn.insert(&self.ledger, &[client.into(), seq.into(), from.into(), to.into(), amount.into()])?;
        for (id, change) in [(from, -amount), (to, amount)] {
            let balance = match txn.get_for_update(&self.accounts, &[id.into()])? {
                Some(row) => row.get::<i64>(1)?,
                None => 0,
            };
            txn.upsert(&self.accounts, &[id.into(), (balance + change).into()])?;
        }
        let tag = tag(client, seq);
        txn.upsert(&self.items, &[client.into(), (seq % SLOTS).into(), seq.into(), tag.as_str().into()])?;
        if let Some(slot) = deleted_slot(seq) {
            txn.delete(&self.items, &[client.into(), slot.into()])?;
        }
        if let Some((n, data)) = blob(client, seq) {
            txn.upsert(&self.blobs, &[client.into(), n.into(), Value::Bytes(&data)])?;
        }
        Ok(())
    }
}

fn transfer(client: u64, seq: u64) -> (u64, u64, i64) {
    let mut random = Random::new(mix(client) ^ seq);
    let from = random.below(ACCOUNTS);
    (from, (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS, 1 + random.below(100) as i64)
}

pub fn tag(client: u64, seq: u64) -> String {
    format!("{client}-{seq}-{:x}", mix(seq) % 0xffff)
}

fn deleted_slot(seq: u64) -> Option<u64> {
    seq.is_multiple_of(3).then_some((seq / 3 + 1) % SLOTS)
}

fn blob(client: u64, seq: u64) -> Option<(u64, Vec<u8>)> {
    let data = || vec![mix(client ^ (seq << 8)) as u8; 66_000 + (seq % 1000) as usize];
    seq.is_multiple_of(16).then(|| (seq / 16 % 3, data()))
}

/// The table that client 0 makes before transaction `seq` and fills in it.
pub fn extra(client: u64, seq: u64) -> Option<String> {
    (client == 0 && seq.is_multiple_of(EXTRA_EVERY)).then(|| format!("extra{seq}"))
}

/// The table that client 0 drops before transaction `seq`.
pub fn retired(client: u64, seq: u64) -> Option<String> {
    let old = seq.checked_sub(4 * EXTRA_EVERY)?;
    extra(client, old)
}

pub fn extra_definition(name: &str) -> TableDef {
    TableDef::new(name).column("seq", Type::U64).column("tag", Type::String(40)).primary_key(["seq"])
}

/// What the log of acknowledgements says.
#[derive(Default, Debug)]
pub struct Acknowledged {
    /// The last transaction of each client.
    pub last: [u64; CLIENTS as usize],
    pub highest: Timestamp,
    pub made: BTreeSet<String>,
    pub indexed: BTreeSet<String>,
    /// Tables whose dropping had begun, and those where it had ended.
    pub dropping: BTreeSet<String>,
    pub dropped: BTreeSet<String>,
    /// Blocks that the collector has freed in one life, and survivors that it has moved, at most.
    pub freed: u64,
    pub moved: u64,
}

impl Acknowledged {
    /// Takes in a log; a last line that was cut off does not count.
    pub fn read(&mut self, log: &str) {
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        for line in whole.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |n: usize| words[n].parse::<u64>().expect("a number");
            let name = || words[1].to_owned();
            match words[0] {
                "commit" => {
                    let last = &mut self.last[number(1) as usize];
                    *last = (*last).max(number(2));
                    self.highest = self.highest.max(Timestamp::from_raw(number(3)));
                }
                "collected" => {
                    self.freed = self.freed.max(number(1));
                    self.moved = self.moved.max(number(2));
                }
                "made" => _ = self.made.insert(name()),
                "indexed" => _ = self.indexed.insert(name()),
                "dropping" => _ = self.dropping.insert(name()),
                "dropped" => _ = self.dropped.insert(name()),
                other => panic!("{other:?} in the log of acknowledgements"),
            }
        }
    }

    /// Compares what is there with what was acknowledged, and learns what
    /// else is there: each kill may have come between a commit and its
    /// acknowledgement.
    pub fn verify(&mut self, db: &Database, kills: u64) -> Result<()> {
        let tables = Tables::open(db)?;
        let mut lasts = [0; CLIENTS as usize];
        for client in 0..CLIENTS {
            let (last, known) = (tables.last_of(db, client)?, self.last[client as usize]);
            assert!(
                (known..=known + kills).contains(&last),
                "client {client}: {last} there, {known} acknowledged"
            );
            lasts[client as usize] = last;
        }
        self.last = lasts;
        for (table, expected) in expected_rows(lasts) {
            assert_eq!(rows_of(db, &table)?, expected, "table {table}");
        }
        self.verify_extras(db)?;
        let next = db.begin()?.timestamp();
        assert!(next > self.highest, "the clock went back from {} to {next}", self.highest);
        Ok(())
    }

    fn verify_extras(&self, db: &Database) -> Result<()> {
        let there: BTreeSet<String> =
            db.tables().into_iter().filter(|name| name.starts_with("extra")).collect();
        for name in self.made.difference(&self.dropping) {
            assert!(there.contains(name), "{name} was made and is gone");
        }
        assert_eq!(there.intersection(&self.dropped).count(), 0, "a dropped table is back: {there:?}");
        for name in &there {
            let seq: u64 = name["extra".len()..].parse().expect("a number");
            let filled = seq <= self.last[0];
            let expected = filled
                .then(|| vec![format!("{:?}", Value::UInt(seq)), format!("{:?}", Value::Str(&tag(0, seq)))]);
            assert_eq!(rows_of(db, name)?, expected.into_iter().collect(), "table {name}");
            let indexed = db.table(name)?.index("by_tag").is_ok();
            assert!(indexed || !self.indexed.contains(name), "the index of {name} is gone");
        }
        Ok(())
    }
}

/// Every row that follows from the last transactions of all clients.
fn expected_rows(lasts: [u64; CLIENTS as usize]) -> BTreeMap<String, Rows> {
    let mut ledger = Rows::new();
    let mut balances = BTreeMap::new();
    let mut items = BTreeMap::new();
    let mut blobs = BTreeMap::new();
    for (client, last) in (0..).zip(lasts) {
        for seq in 1..=last {
            let (from, to, amount) = transfer(client, seq);
            ledger.insert(words(&[client.into(), seq.into(), from.into(), to.into(), amount.into()]));
            *balances.entry(from).or_insert(0) -= amount;
            *balances.entry(to).or_insert(0) += amount;
            items.insert((client, seq % SLOTS), seq);
            if let Some(slot) = deleted_slot(seq) {
                items.remove(&(client, slot));
            }
            if let Some((n, data)) = blob(client, seq) {
                blobs.insert((client, n), data);
            }
        }
    }
    assert_eq!(balances.values().sum::<i64>(), 0);
    let account = |(id, balance): (u64, i64)| words(&[id.into(), balance.into()]);
    let item = |((client, slot), seq): ((u64, u64), u64)| {
        words(&[client.into(), slot.into(), seq.into(), tag(client, seq).as_str().into()])
    };
    let blob =
        |((client, n), data): ((u64, u64), Vec<u8>)| words(&[client.into(), n.into(), Value::Bytes(&data)]);
    BTreeMap::from([
        ("ledger".to_owned(), ledger),
        ("accounts".to_owned(), balances.into_iter().map(account).collect()),
        ("items".to_owned(), items.into_iter().map(item).collect()),
        ("blobs".to_owned(), blobs.into_iter().map(blob).collect()),
    ])
}

fn words(values: &[Value<'_>]) -> Vec<String> {
    values.iter().map(word).collect()
}

fn word(value: &Value<'_>) -> String {
    match value {
        Value::Bytes(bytes) => {
            format!("{} times {}, {}", bytes.len(), bytes[0], bytes.iter().all(|b| *b == bytes[0]))
        }
        Value::Int(n) if *n >= 0 => format!("{:?}", Value::UInt(*n as u64)),
        other => format!("{other:?}"),
    }
}

/// The rows of a table, which each of its indexes must show as well.
fn rows_of(db: &Database, name: &str) -> Result<Rows> {
    let table = db.table(name)?;
    let txn = db.begin_read()?;
    let rows: Rows = txn.scan(&table, Range::all())?.map(|row| row_words(&row?)).collect::<Result<_>>()?;
    for def in &table.definition().indexes {
        let index = table.index(&def.name)?;
        let found = txn.scan_index(&index, Range::all())?.map(|row| row_words(&row?));
        let found: Vec<_> = found.collect::<Result<_>>()?;
        assert_eq!(found.len(), rows.len(), "index {} of {name}", def.name);
        assert_eq!(found.into_iter().collect::<Rows>(), rows, "index {} of {name}", def.name);
    }
    Ok(rows)
}

fn row_words(row: &Row<'_>) -> Result<Vec<String>> {
    let of = |n: usize| match row.get::<Value<'_>>(n) {
        Err(pantile::Error::OutOfLine { .. }) => Ok(word(&Value::Bytes(&row.read(n)?.unwrap_or_default()))),
        value => value.map(|value| word(&value)),
    };
    (0..row.len()).map(of).collect()
}
