//! The three tables of CH-benCHmark beside those of TPC-C.
//!
//! STOCK has no column for its supplier: that is `S_W_ID * S_I_ID` modulo
//! the number of suppliers. A customer's nation is the one whose key is the
//! code of the first character of `C_STATE`.

use pantile::{Database, Result, Table, TableDef, Type};

use crate::tpcc::schema::{add, table};

table! {
    /// SUPPLIER.
    supplier "supplier" {
        SU_SUPPKEY: Type::U16;
        SU_NAME: Type::String(25);
        SU_ADDRESS: Type::String(40);
        SU_NATIONKEY: Type::U8;
        SU_PHONE: Type::FixedString(15);
        SU_ACCTBAL: Type::I64;
        SU_COMMENT: Type::String(100);
    } key SU_SUPPKEY
}

table! {
    /// NATION.
    nation "nation" {
        N_NATIONKEY: Type::U8;
        N_NAME: Type::String(25);
        N_REGIONKEY: Type::U8;
        N_COMMENT: Type::String(152);
    } key N_NATIONKEY
}

table! {
    /// REGION.
    region "region" {
        R_REGIONKEY: Type::U8;
        R_NAME: Type::String(55);
        R_COMMENT: Type::String(152);
    } key R_REGIONKEY
}

/// The three tables.
pub fn definitions() -> Vec<TableDef> {
    vec![supplier::definition(), nation::definition(), region::definition()]
}

/// Handles of the three tables.
#[derive(Clone)]
pub struct Tables {
    /// SUPPLIER.
    pub supplier: Table,
    /// NATION.
    pub nation: Table,
    /// REGION.
    pub region: Table,
}

impl Tables {
    /// Opens the tables of a database.
    ///
    /// # Errors
    /// [`pantile::Error::UnknownTable`] when one is missing.
    pub fn open(db: &Database) -> Result<Self> {
        Ok(Self {
            supplier: db.table(supplier::NAME)?,
            nation: db.table(nation::NAME)?,
            region: db.table(region::NAME)?,
        })
    }
}
