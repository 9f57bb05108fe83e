//! The table that rows go to.

use pantile::{OwnedValue, Table, TableDef, Type};

use crate::error::{Error, Place};

/// A table that is loaded.
pub struct Target {
    pub table: Table,
    pub def: TableDef,
    /// Whether the load may fill it by several transactions, because it can take all rows away again.
    pub is_own: bool,
    /// Its number among the tables of the load.
    pub number: usize,
}

impl Target {
    /// What rows have in columns of which the input has no values.
    pub fn defaults(&self) -> Vec<OwnedValue> {
        self.def.columns.iter().map(|column| column.default.clone()).collect()
    }

    /// Checks that columns of which the input has no values take NULL or have a
    /// default.
    pub fn check_columns(&self, at: Place, has: impl Fn(usize) -> bool) -> Result<(), Error> {
        for (n, column) in self.def.columns.iter().enumerate() {
            if !column.nullable && column.default.is_null() && !has(n) {
                let (table, column) = (self.def.name.clone(), column.name.clone());
                return Err(Error::MissingColumn { at, table, column });
            }
        }
        Ok(())
    }

    /// More bytes than a value of any column takes as text.
    pub fn longest_text(&self) -> usize {
        let most = |ty| match ty {
            Type::Bytes(most) | Type::String(most) => most as usize,
            Type::FixedBytes(most) | Type::FixedString(most) => usize::from(most),
            _ => 0,
        };
        let longest = self.def.columns.iter().map(|column| most(column.ty)).max().unwrap_or(0);
        // Bytes are a third more in base64; numbers and times are short.
        longest * 4 + 4096
    }

    pub fn unknown_column(&self, at: Place, column: &str, detail: &'static str) -> Error {
        Error::UnknownColumn { at, table: self.def.name.clone(), column: column.to_owned(), detail }
    }
}
