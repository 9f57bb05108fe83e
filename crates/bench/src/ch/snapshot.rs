//! What queries are made of: scans, hash tables and the join of orders with
//! their lines, all in one transaction.

use std::hash::Hash;

use foldhash::HashMap;
use pantile::{Micros, Range, Result, Row, Table, Transaction};

use super::load::SUPPLIERS;
use super::schema::{self, nation, region, supplier};
use crate::tpcc::schema::{self as tpcc_schema, order, order_line, stock};

/// The tables as one transaction sees them.
pub struct Snapshot<'a> {
    /// The transaction.
    pub txn: &'a Transaction,
    /// TPC-C's tables.
    pub tpcc: &'a tpcc_schema::Tables,
    /// The other three.
    pub ch: &'a schema::Tables,
}

/// A district's, customer's or order's place: warehouse, district, number.
pub type WarehouseKey = (u16, u8, u32);

/// What queries want of a row of ORDER.
pub struct Order {
    /// Warehouse, district, number.
    pub key: WarehouseKey,
    /// The customer's number in the district.
    pub customer: u32,
    /// When it was entered.
    pub entered: Micros,
    /// The carrier that delivers it.
    pub carrier: Option<u8>,
    /// How many lines it has.
    pub lines: u8,
}

impl Order {
    /// Reads a row of ORDER.
    ///
    /// # Errors
    /// As [`Row::get`].
    pub fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            key: (row.get(order::O_W_ID)?, row.get(order::O_D_ID)?, row.get(order::O_ID)?),
            customer: row.get(order::O_C_ID)?,
            entered: row.get(order::O_ENTRY_D)?,
            carrier: row.get(order::O_CARRIER_ID)?,
            lines: row.get(order::O_OL_CNT)?,
        })
    }

    /// Its customer.
    pub fn customer(&self) -> WarehouseKey {
        (self.key.0, self.key.1, self.customer)
    }
}

/// What queries want of a row of ORDER-LINE.
pub struct Line {
    /// Warehouse, district, number of its order.
    pub order: WarehouseKey,
    /// Its number in the order.
    pub number: u8,
    /// What is sold.
    pub item: u32,
    /// The warehouse that it comes from.
    pub supply: u16,
    /// When it was delivered.
    pub delivered: Option<Micros>,
    /// How many.
    pub quantity: u8,
    /// For how much, in hundredths.
    pub amount: i64,
}

impl Line {
    /// Reads a row of ORDER-LINE.
    ///
    /// # Errors
    /// As [`Row::get`].
    pub fn read(row: &Row<'_>) -> Result<Self> {
        let (w, d) = (row.get(order_line::OL_W_ID)?, row.get(order_line::OL_D_ID)?);
        Ok(Self {
            order: (w, d, row.get(order_line::OL_O_ID)?),
            number: row.get(order_line::OL_NUMBER)?,
            item: row.get(order_line::OL_I_ID)?,
            supply: row.get(order_line::OL_SUPPLY_W_ID)?,
            delivered: row.get(order_line::OL_DELIVERY_D)?,
            quantity: row.get(order_line::OL_QUANTITY)?,
            amount: row.get(order_line::OL_AMOUNT)?,
        })
    }
}

/// The supplier of a stock.
pub fn supplier_of(w: u16, item: u32) -> u16 {
    (u64::from(w) * u64::from(item) % u64::from(SUPPLIERS)) as u16
}

impl Snapshot<'_> {
    /// Scans a table.
    ///
    /// # Errors
    /// As [`Transaction::scan`]; those of `each`. The same of what follows.
    pub fn each(&self, table: &Table, mut each: impl FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        self.txn.scan(table, Range::all())?.try_for_each(|row| each(&row?))
    }

    /// The rows of a table that are `wanted`, in a hash table: the smaller
    /// side of a join.
    pub fn hashed<K: Eq + Hash, V>(
        &self,
        table: &Table,
        mut wanted: impl FnMut(&Row<'_>) -> Result<Option<(K, V)>>,
    ) -> Result<HashMap<K, V>> {
        let mut rows = HashMap::default();
        self.each(table, |row| {
            rows.extend(wanted(row)?);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Scans ORDER-LINE.
    pub fn lines(&self, mut each: impl FnMut(Line)) -> Result<()> {
        self.each(&self.tpcc.order_line, |row| {
            each(Line::read(row)?);
            Ok(())
        })
    }

    /// Joins ORDER with ORDER-LINE by merging: both are in the order of
    /// warehouse, district and number.
    pub fn orders(&self, mut each: impl FnMut(&Order, &[Line]) -> Result<()>) -> Result<()> {
        let lines = self.txn.scan(&self.tpcc.order_line, Range::all())?;
        let mut lines = lines.map(|row| Line::read(&row?)).peekable();
        let mut own = Vec::new();
        self.each(&self.tpcc.order, |row| {
            let order = Order::read(row)?;
            own.clear();
            while let Some(line) = lines.next_if(|line| !matches!(line, Ok(line) if line.order > order.key)) {
                let line = line?;
                if line.order == order.key {
                    own.push(line);
                }
            }
            each(&order, &own)
        })
    }

    /// The names of the nations of a region, by key.
    pub fn nations_of(&self, region: impl Fn(&str) -> bool) -> Result<HashMap<u8, String>> {
        let regions: HashMap<u8, ()> = self.hashed(&self.ch.region, |row| {
            let wanted = region(row.get(region::R_NAME)?);
            Ok(wanted.then_some((row.get(region::R_REGIONKEY)?, ())))
        })?;
        self.hashed(&self.ch.nation, |row| {
            let wanted = regions.contains_key(&row.get(nation::N_REGIONKEY)?);
            wanted.then(|| name_of_nation(row)).transpose()
        })
    }

    /// The names of the nations that are called so, by key.
    pub fn nations(&self, name: impl Fn(&str) -> bool) -> Result<HashMap<u8, String>> {
        self.hashed(&self.ch.nation, |row| {
            name(row.get(nation::N_NAME)?).then(|| name_of_nation(row)).transpose()
        })
    }

    /// The nations of the suppliers that are from one of these.
    pub fn suppliers_of(&self, nations: &HashMap<u8, String>) -> Result<HashMap<u16, u8>> {
        self.hashed(&self.ch.supplier, |row| {
            let nation: u8 = row.get(supplier::SU_NATIONKEY)?;
            let wanted = nations.contains_key(&nation);
            wanted.then(|| Ok((row.get(supplier::SU_SUPPKEY)?, nation))).transpose()
        })
    }

    /// The nations of the suppliers of all stock, by warehouse and item,
    /// whose suppliers are among these.
    pub fn stock_of(&self, suppliers: &HashMap<u16, u8>) -> Result<HashMap<(u16, u32), u8>> {
        self.hashed(&self.tpcc.stock, |row| {
            let (w, item) = (row.get(stock::S_W_ID)?, row.get(stock::S_I_ID)?);
            Ok(suppliers.get(&supplier_of(w, item)).map(|&nation| ((w, item), nation)))
        })
    }
}

fn name_of_nation(row: &Row<'_>) -> Result<(u8, String)> {
    Ok((row.get(nation::N_NATIONKEY)?, row.get::<&str>(nation::N_NAME)?.to_owned()))
}
