//! The nine tables of TPC-C, clause 1.3, and one that says what was loaded.
//!
//! Every column of the specification is there in its size. Money is kept in
//! hundredths and rates in ten-thousandths, as whole numbers: exact, and no
//! larger than the specification's `numeric` types. `HISTORY` has no key in
//! the specification; here it is a stream (one per client, and one per
//! warehouse for what was loaded) and a number within it.

use pantile::{Database, Index, IndexDef, Result, Table, TableDef, Type};

macro_rules! table {
    ($(#[$doc:meta])* $module:ident $name:literal { $($column:ident: $ty:expr $(, $null:ident)?;)+ } key $($key:ident)+) => {
        $(#[$doc])*
        #[allow(missing_docs, reason = "the columns have the names of the specification")]
        pub mod $module {
            use super::{TableDef, Type, add};

            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            enum Columns { $($column),+ }

            $(pub const $column: usize = Columns::$column as usize;)+

            /// The name of the table.
            pub const NAME: &str = $name;

            /// The table without its secondary indexes.
            pub fn definition() -> TableDef {
                let mut table = TableDef::new(NAME);
                $(table = add(table, stringify!($column), $ty, !stringify!($($null)?).is_empty());)+
                table.primary_key([$(stringify!($key)),+].map(str::to_ascii_lowercase))
            }
        }
    };
}

pub(crate) use table;

/// The table with one more column.
pub(crate) fn add(table: TableDef, column: &str, ty: Type, nullable: bool) -> TableDef {
    let column = column.to_ascii_lowercase();
    if nullable { table.nullable(column, ty) } else { table.column(column, ty) }
}

table! {
    /// WAREHOUSE.
    warehouse "warehouse" {
        W_ID: Type::U16;
        W_NAME: Type::String(10);
        W_STREET_1: Type::String(20);
        W_STREET_2: Type::String(20);
        W_CITY: Type::String(20);
        W_STATE: Type::FixedString(2);
        W_ZIP: Type::FixedString(9);
        W_TAX: Type::U16;
        W_YTD: Type::I64;
    } key W_ID
}

table! {
    /// DISTRICT.
    district "district" {
        D_W_ID: Type::U16;
        D_ID: Type::U8;
        D_NAME: Type::String(10);
        D_STREET_1: Type::String(20);
        D_STREET_2: Type::String(20);
        D_CITY: Type::String(20);
        D_STATE: Type::FixedString(2);
        D_ZIP: Type::FixedString(9);
        D_TAX: Type::U16;
        D_YTD: Type::I64;
        D_NEXT_O_ID: Type::U32;
    } key D_W_ID D_ID
}

table! {
    /// CUSTOMER.
    customer "customer" {
        C_W_ID: Type::U16;
        C_D_ID: Type::U8;
        C_ID: Type::U32;
        C_FIRST: Type::String(16);
        C_MIDDLE: Type::FixedString(2);
        C_LAST: Type::String(16);
        C_STREET_1: Type::String(20);
        C_STREET_2: Type::String(20);
        C_CITY: Type::String(20);
        C_STATE: Type::FixedString(2);
        C_ZIP: Type::FixedString(9);
        C_PHONE: Type::FixedString(16);
        C_SINCE: Type::Timestamp;
        C_CREDIT: Type::FixedString(2);
        C_CREDIT_LIM: Type::I64;
        C_DISCOUNT: Type::U16;
        C_BALANCE: Type::I64;
        C_YTD_PAYMENT: Type::I64;
        C_PAYMENT_CNT: Type::U32;
        C_DELIVERY_CNT: Type::U32;
        C_DATA: Type::String(500);
    } key C_W_ID C_D_ID C_ID
}

table! {
    /// HISTORY.
    history "history" {
        H_STREAM: Type::U32;
        H_NUMBER: Type::U32;
        H_C_ID: Type::U32;
        H_C_D_ID: Type::U8;
        H_C_W_ID: Type::U16;
        H_D_ID: Type::U8;
        H_W_ID: Type::U16;
        H_DATE: Type::Timestamp;
        H_AMOUNT: Type::I32;
        H_DATA: Type::String(24);
    } key H_STREAM H_NUMBER
}

table! {
    /// NEW-ORDER.
    new_order "new_order" {
        NO_W_ID: Type::U16;
        NO_D_ID: Type::U8;
        NO_O_ID: Type::U32;
    } key NO_W_ID NO_D_ID NO_O_ID
}

table! {
    /// ORDER.
    order "order" {
        O_W_ID: Type::U16;
        O_D_ID: Type::U8;
        O_ID: Type::U32;
        O_C_ID: Type::U32;
        O_ENTRY_D: Type::Timestamp;
        O_CARRIER_ID: Type::U8, null;
        O_OL_CNT: Type::U8;
        O_ALL_LOCAL: Type::U8;
    } key O_W_ID O_D_ID O_ID
}

table! {
    /// ORDER-LINE.
    order_line "order_line" {
        OL_W_ID: Type::U16;
        OL_D_ID: Type::U8;
        OL_O_ID: Type::U32;
        OL_NUMBER: Type::U8;
        OL_I_ID: Type::U32;
        OL_SUPPLY_W_ID: Type::U16;
        OL_DELIVERY_D: Type::Timestamp, null;
        OL_QUANTITY: Type::U8;
        OL_AMOUNT: Type::I32;
        OL_DIST_INFO: Type::FixedString(24);
    } key OL_W_ID OL_D_ID OL_O_ID OL_NUMBER
}

table! {
    /// ITEM.
    item "item" {
        I_ID: Type::U32;
        I_IM_ID: Type::U32;
        I_NAME: Type::String(24);
        I_PRICE: Type::I32;
        I_DATA: Type::String(50);
    } key I_ID
}

table! {
    /// STOCK. `S_DIST_01` is followed by its nine siblings.
    stock "stock" {
        S_W_ID: Type::U16;
        S_I_ID: Type::U32;
        S_QUANTITY: Type::I16;
        S_DIST_01: Type::FixedString(24);
        S_DIST_02: Type::FixedString(24);
        S_DIST_03: Type::FixedString(24);
        S_DIST_04: Type::FixedString(24);
        S_DIST_05: Type::FixedString(24);
        S_DIST_06: Type::FixedString(24);
        S_DIST_07: Type::FixedString(24);
        S_DIST_08: Type::FixedString(24);
        S_DIST_09: Type::FixedString(24);
        S_DIST_10: Type::FixedString(24);
        S_YTD: Type::U32;
        S_ORDER_CNT: Type::U32;
        S_REMOTE_CNT: Type::U32;
        S_DATA: Type::String(50);
    } key S_W_ID S_I_ID
}

table! {
    /// Not of the specification: one row, written when loading is complete.
    loaded "tpcc_loaded" {
        L_KEY: Type::U8;
        L_WAREHOUSES: Type::U16;
        L_ITEMS: Type::U32;
        L_CUSTOMERS: Type::U32;
        L_C_LAST: Type::U32;
    } key L_KEY
}

/// The index of customers by last and first name.
const CUSTOMER_BY_NAME: &str = "customer_by_name";

/// The index of orders by customer, oldest first.
const ORDER_BY_CUSTOMER: &str = "order_by_customer";

/// All tables, in the order in which they are created: the one that says
/// whose they are first.
pub fn definitions() -> Vec<TableDef> {
    let by_name = ["c_w_id", "c_d_id", "c_last", "c_first"];
    let by_customer = ["o_w_id", "o_d_id", "o_c_id", "o_id"];
    vec![
        loaded::definition(),
        warehouse::definition(),
        district::definition(),
        customer::definition().index(IndexDef::new(CUSTOMER_BY_NAME, by_name)),
        history::definition(),
        new_order::definition(),
        order::definition().index(IndexDef::new(ORDER_BY_CUSTOMER, by_customer)),
        order_line::definition(),
        item::definition(),
        stock::definition(),
    ]
}

/// Handles of all tables and indexes.
#[derive(Clone)]
pub struct Tables {
    /// WAREHOUSE.
    pub warehouse: Table,
    /// DISTRICT.
    pub district: Table,
    /// CUSTOMER.
    pub customer: Table,
    /// CUSTOMER by warehouse, district, last and first name.
    pub customer_by_name: Index,
    /// HISTORY.
    pub history: Table,
    /// NEW-ORDER.
    pub new_order: Table,
    /// ORDER.
    pub order: Table,
    /// ORDER by warehouse, district, customer and number.
    pub order_by_customer: Index,
    /// ORDER-LINE.
    pub order_line: Table,
    /// ITEM.
    pub item: Table,
    /// STOCK.
    pub stock: Table,
    /// What was loaded.
    pub loaded: Table,
}

impl Tables {
    /// Opens the tables of a database.
    ///
    /// # Errors
    /// [`pantile::Error::UnknownTable`] when one is missing.
    pub fn open(db: &Database) -> Result<Self> {
        let (customer, order) = (db.table(customer::NAME)?, db.table(order::NAME)?);
        Ok(Self {
            warehouse: db.table(warehouse::NAME)?,
            district: db.table(district::NAME)?,
            customer_by_name: customer.index(CUSTOMER_BY_NAME)?,
            customer,
            history: db.table(history::NAME)?,
            new_order: db.table(new_order::NAME)?,
            order_by_customer: order.index(ORDER_BY_CUSTOMER)?,
            order,
            order_line: db.table(order_line::NAME)?,
            item: db.table(item::NAME)?,
            stock: db.table(stock::NAME)?,
            loaded: db.table(loaded::NAME)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_their_numbers_and_names() {
        assert_eq!((warehouse::W_ID, warehouse::W_YTD), (0, 8));
        assert_eq!(stock::S_DIST_10 - stock::S_DIST_01, 9);
        let order = order::definition();
        assert_eq!(order.columns[order::O_CARRIER_ID].name, "o_carrier_id");
        let nullable: Vec<_> = definitions()
            .into_iter()
            .flat_map(|table| table.columns)
            .filter(|column| column.nullable)
            .map(|column| column.name)
            .collect();
        assert_eq!(nullable, ["o_carrier_id", "ol_delivery_d"]);
        assert_eq!(order.primary_key, ["o_w_id", "o_d_id", "o_id"]);
    }
}
