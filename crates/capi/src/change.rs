//! Changes of tables.

use std::ffi::{c_char, c_int};

use pantile::{ColumnDef, OwnedValue, TableChange};

use crate::database::{pantile_db, pantile_table};
use crate::definition::pantile_type;
use crate::error::{Failure, PANTILE_OK, call};
use crate::pointer::{Out, free, lent, lent_mut, text};
use crate::value::{pantile_value, values};

/// Changes of a table that are to be made at once.
pub struct pantile_table_change {
    change: TableChange,
}

/// Notes a step of a change.
fn step(
    change: *mut pantile_table_change,
    add: impl FnOnce(TableChange) -> Result<TableChange, Failure>,
) -> c_int {
    call(|| {
        let change = lent_mut(change, "the change")?;
        change.change = add(change.change.clone())?;
        Ok(PANTILE_OK)
    })
}

fn owned(value: *const pantile_value) -> Result<OwnedValue, Failure> {
    if value.is_null() {
        return Ok(OwnedValue::Null);
    }
    Ok(values(value, 1)?.first().map_or(OwnedValue::Null, |value| OwnedValue::from(*value)))
}

/// No change yet. Freed by `pantile_table_change_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_change_new(out: *mut *mut pantile_table_change) -> c_int {
    call(|| {
        Out::new(out)?.give(pantile_table_change { change: TableChange::new() });
        Ok(PANTILE_OK)
    })
}

/// Frees a change, made or not.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_change_free(change: *mut pantile_table_change) {
    free(change);
}

/// Adds a column, before the column `before` or, if that is NULL, behind all others. It is nullable or has a default,
/// which is its value in the rows that are there; `default_value` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_change_add_column(
    change: *mut pantile_table_change,
    name: *const c_char,
    r#type: pantile_type,
    nullable: bool,
    default_value: *const pantile_value,
    before: *const c_char,
) -> c_int {
    step(change, |change| {
        let mut column = ColumnDef::new(text(name, "the column's name")?, r#type.to_type()?);
        column.nullable = nullable;
        column.default = owned(default_value)?;
        if before.is_null() {
            return Ok(change.add_column(column));
        }
        Ok(change.add_column_before(text(before, "the next column's name")?, column))
    })
}

/// Drops a column that no index has.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_change_drop_column(
    change: *mut pantile_table_change,
    name: *const c_char,
) -> c_int {
    step(change, |change| Ok(change.drop_column(text(name, "the column's name")?)))
}

/// Gives a column another name.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_change_rename_column(
    change: *mut pantile_table_change,
    name: *const c_char,
    to: *const c_char,
) -> c_int {
    step(change, |change| {
        Ok(change.rename_column(text(name, "the column's name")?, text(to, "the new name")?))
    })
}

/// Gives a column that no index has a type that holds all its values: a longer integer of the same kind, a longer text
/// or byte string, a longer floating-point number, a decimal number with more digits before the point.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_change_widen_column(
    change: *mut pantile_table_change,
    name: *const c_char,
    to: pantile_type,
) -> c_int {
    step(change, |change| Ok(change.widen_column(text(name, "the column's name")?, to.to_type()?)))
}

/// Lets a column that no index has take NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_change_make_nullable(
    change: *mut pantile_table_change,
    name: *const c_char,
) -> c_int {
    step(change, |change| Ok(change.make_nullable(text(name, "the column's name")?)))
}

/// Gives a column another default, or none if `value` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_change_set_default(
    change: *mut pantile_table_change,
    name: *const c_char,
    value: *const pantile_value,
) -> c_int {
    step(change, |change| Ok(change.set_default(text(name, "the column's name")?, owned(value)?)))
}

/// Gives a secondary index another name. Handles of it from before go on working.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_change_rename_index(
    change: *mut pantile_table_change,
    name: *const c_char,
    to: *const c_char,
) -> c_int {
    step(change, |change| Ok(change.rename_index(text(name, "the index's name")?, text(to, "the new name")?)))
}

/// Gives the table another name.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_change_rename_table(
    change: *mut pantile_table_change,
    to: *const c_char,
) -> c_int {
    step(change, |change| Ok(change.rename_table(text(to, "the new name")?)))
}

/// Changes a table, beside transactions that go on and without touching its rows. Handles from before know the columns
/// that there were. `out` may be NULL; the handle of the table as it is then is freed by `pantile_table_free`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_alter_table(
    db: *mut pantile_db,
    table: *const pantile_table,
    change: *const pantile_table_change,
    out: *mut *mut pantile_table,
) -> c_int {
    call(|| {
        let (table, change) = (lent(table, "the table")?, lent(change, "the change")?);
        let changed = lent(db, "the database")?.db.alter_table(&table.table, &change.change)?;
        if !out.is_null() {
            Out::new(out)?.give(pantile_table::new(changed));
        }
        Ok(PANTILE_OK)
    })
}

/// How often a table has been changed since it was created; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_table_version(table: *const pantile_table) -> u64 {
    lent(table, "the table").map_or(0, |table| table.table.version())
}
