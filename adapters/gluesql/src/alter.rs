//! ALTER TABLE. Adding a column is as GlueSQL does it for every storage: it writes each row again.

use gluesql_core::data::{Schema, Value};
use gluesql_core::error::{AlterTableError, Result};
use gluesql_core::store::{AlterTable, Store, StoreMut};

use crate::PantileStorage;
use crate::expression::each_column;
use crate::tables::Stored;

impl AlterTable for PantileStorage {
    fn rename_schema(&mut self, table_name: &str, new_table_name: &str) -> Result<()> {
        self.write(|tables, txn| {
            let stored = Stored::load(tables, txn, table_name)?.ok_or_else(|| unknown(table_name))?;
            stored.rename(tables, txn, new_table_name)
        })
    }

    /// Rows do not know the names of their columns, so they stay as they are.
    fn rename_column(
        &mut self,
        table_name: &str,
        old_column_name: &str,
        new_column_name: &str,
    ) -> Result<()> {
        let mut schema = self.fetch_schema(table_name)?.ok_or_else(|| unknown(table_name))?;
        let columns = columns_of(&mut schema)?;
        if columns.iter().any(|column| column.name == new_column_name) {
            return Err(AlterTableError::AlreadyExistingColumn(new_column_name.to_owned()).into());
        }
        let column = columns.iter_mut().find(|column| column.name == old_column_name);
        new_column_name.clone_into(&mut column.ok_or(AlterTableError::RenamingColumnNotFound)?.name);
        for index in &mut schema.indexes {
            each_column(&mut index.expr, &mut |column| {
                if column == old_column_name {
                    new_column_name.clone_into(column);
                }
            });
        }
        self.insert_schema(&schema)
    }

    /// Indexes that name the column go with it. Without its primary key, a table numbers its rows.
    fn drop_column(&mut self, table_name: &str, column_name: &str, if_exists: bool) -> Result<()> {
        let mut schema = self.fetch_schema(table_name)?.ok_or_else(|| unknown(table_name))?;
        let columns = columns_of(&mut schema)?;
        let Some(at) = columns.iter().position(|column| column.name == column_name) else {
            let missing = AlterTableError::DroppingColumnNotFound(column_name.to_owned());
            return if if_exists { Ok(()) } else { Err(missing.into()) };
        };
        let was_key = columns.remove(at).unique.is_some_and(|unique| unique.is_primary);
        schema.indexes.retain_mut(|index| {
            let mut named = false;
            each_column(&mut index.expr, &mut |column| named |= column == column_name);
            !named
        });
        let without = |(key, mut values): (_, Vec<Value>)| {
            values.remove(at);
            (key, values)
        };
        let rows = self.scan_data(table_name)?.map(|row| row.map(without)).collect::<Result<Vec<_>>>()?;
        self.insert_schema(&schema)?;
        if !was_key {
            return self.insert_data(table_name, rows);
        }
        // From here on rows have numbers of the database as keys, which would meet the old keys.
        let (keys, rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        self.delete_data(table_name, keys)?;
        self.append_data(table_name, rows)
    }
}

fn unknown(table: &str) -> gluesql_core::error::Error {
    AlterTableError::TableNotFound(table.to_owned()).into()
}

fn columns_of(schema: &mut Schema) -> Result<&mut Vec<gluesql_core::ast::ColumnDef>> {
    let table = &schema.table_name;
    schema.column_defs.as_mut().ok_or_else(|| AlterTableError::SchemalessTableFound(table.clone()).into())
}
