//! The layouts of a table's rows (docs/format.md, "Rows"). A change of the
//! columns gives the table a new one. Rows that are there keep theirs and are
//! read by it.

use pantile_base::TableId;

use crate::types::error::{Error, Result};
use crate::types::history::{ColumnHistory, Definition, Form};
use crate::types::owned_value::OwnedValue;
use crate::types::schema::{ColumnDef, Type, find_column, invalid};
use crate::types::stored_value::put_default;

/// Most bytes of an encoded index key.
pub(crate) const MAX_KEY_BYTES: usize = 3072 - 8;

/// Columns longer than this may have their values moved out of line.
const OUT_OF_LINE_FROM: u32 = 1536;

/// The null bit of a column that no row of the layout has, and that is NULL there.
pub(crate) const ALWAYS_NULL: u16 = u16::MAX;

/// A column with its place in the rows of a layout. What is seldom needed lies
/// beside it, in the schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// Its type now.
    pub ty: Type,
    /// Whether it takes NULL now.
    pub nullable: bool,
    /// Its type in this layout.
    pub stored: Type,
    /// Bit in the null bitmap.
    pub null_bit: Option<u16>,
    pub place: ColumnLocation,
}

impl Column {
    /// Whether its values lie behind the fixed part of the row.
    pub fn is_variable(&self) -> bool {
        matches!(self.place, ColumnLocation::Variable { .. })
    }

    /// Whether its values can be stored out of line.
    pub fn can_move_out(&self) -> bool {
        matches!(self.place, ColumnLocation::Variable { large: Some(_), .. })
    }

    /// Whether rows of the layout hold a value of it.
    pub fn is_stored(&self) -> bool {
        matches!(self.place, ColumnLocation::Fixed(_) | ColumnLocation::Variable { .. })
    }
}

/// Where a column's bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ColumnLocation {
    /// At this offset from the start of the row.
    Fixed(u32),
    /// The n-th value of variable length; `large` its bit in the out-of-line bitmap.
    Variable { nth: u16, large: Option<u16> },
    /// In no row of the layout, because the column was added later. The schema has
    /// its bytes at this place unless it is NULL.
    Later(u16),
    /// In no row of the layout, because the column had been dropped.
    Dropped,
}

/// A layout, with the names and defaults that the columns have now.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    pub name: String,
    /// The table, once it has an id.
    pub table: TableId,
    /// Its number, which stands in the contents.
    pub layout: u8,
    /// By id; with those of other layouts.
    pub columns: Vec<Column>,
    /// The names that they have now; empty for those that have been dropped.
    pub names: Vec<String>,
    /// Their values in new rows for which none is given.
    pub defaults: Vec<OwnedValue>,
    /// What columns have that were added later.
    pub later: Vec<Box<[u8]>>,
    /// How many columns its rows hold.
    pub stored: usize,
    /// Ids of columns.
    pub primary_key: Vec<usize>,
    /// The type of the primary key's column, if there is only one.
    pub only_key: Option<Type>,
    /// First byte of the out-of-line bitmap.
    pub large_at: usize,
    /// First byte of the table of end offsets.
    pub ends_at: usize,
    /// Number of columns of variable length.
    pub variable: usize,
    /// First byte of the variable part.
    pub heap_at: usize,
}

impl Schema {
    /// A layout that the table of this definition has or had.
    pub fn new(definition: &Definition, layout: u8) -> Result<Self> {
        let def = &definition.def;
        let forms = || definition.columns.iter().map(|column| column.form(layout));
        let nullable = forms().flatten().filter(|form| form.nullable).count();
        let mut columns = Vec::with_capacity(definition.columns.len());
        let mut values_of_later = Vec::new();
        let (mut fixed_at, mut null_bit, mut variable, mut large) = (nullable.div_ceil(8), 0u16, 0u16, 0u16);
        for (history, form) in definition.columns.iter().zip(forms()) {
            let Some(form) = form else {
                columns.push(unstored(history, layout, &mut values_of_later));
                continue;
            };
            let place = if let Some(len) = form.ty.fixed_len() {
                let at = u32::try_from(fixed_at).map_err(|_| too_wide(&def.name))?;
                fixed_at += len;
                ColumnLocation::Fixed(at)
            } else {
                let bit = next_bit(may_be_large(form.ty), &mut large);
                variable += 1;
                ColumnLocation::Variable { nth: variable - 1, large: bit }
            };
            columns.push(Column {
                null_bit: next_bit(form.nullable, &mut null_bit),
                place,
                ..column(history, form)
            });
        }
        let ends_at = fixed_at + usize::from(large).div_ceil(8);
        let heap_at = ends_at + usize::from(variable) * 2;
        if heap_at > usize::from(u16::MAX) {
            return Err(too_wide(&def.name));
        }
        let mut schema = Self {
            name: def.name.clone(),
            table: TableId(0),
            layout,
            stored: columns.iter().filter(|column| column.is_stored()).count(),
            columns,
            names: now(definition, |column| column.name.clone()),
            defaults: now(definition, |column| column.default.clone()),
            later: values_of_later,
            primary_key: Vec::new(),
            only_key: None,
            large_at: fixed_at,
            ends_at,
            variable: usize::from(variable),
            heap_at,
        };
        schema.primary_key = schema.key_columns("primary", &def.primary_key)?;
        if schema.primary_key.iter().any(|&c| schema.columns[c].nullable) {
            return Err(invalid(&def.name, "a column of the primary key takes NULL"));
        }
        if let [id] = schema.primary_key[..] {
            schema.only_key = Some(schema.columns[id].ty);
        }
        Ok(schema)
    }

    /// The ids of an index's columns, checked.
    pub fn key_columns(&self, index: &str, names: &[String]) -> Result<Vec<usize>> {
        if names.is_empty() {
            return Err(invalid(&self.name, &format!("index {index:?} has no columns")));
        }
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let column = self.column(name)?;
            if columns.contains(&column) {
                return Err(invalid(&self.name, &format!("index {index:?} names column {name:?} twice")));
            }
            columns.push(column);
        }
        if self.max_key_bytes(&columns) > MAX_KEY_BYTES {
            return Err(invalid(
                &self.name,
                &format!("a key of index {index:?} could take more than {MAX_KEY_BYTES} bytes"),
            ));
        }
        Ok(columns)
    }

    /// Most bytes that a key of these columns takes.
    pub fn max_key_bytes(&self, columns: &[usize]) -> usize {
        columns
            .iter()
            .map(|&c| self.columns[c].ty.max_key_len().saturating_add(usize::from(self.columns[c].nullable)))
            .fold(0, usize::saturating_add)
    }

    /// The id of a column by the name that it has now.
    pub fn column(&self, name: &str) -> Result<usize> {
        find_column(self.names.iter().map(String::as_str), name, &self.name)
    }
}

/// Something of each column as it is now, by id.
fn now<T: Default>(definition: &Definition, of: impl Fn(&ColumnDef) -> T) -> Vec<T> {
    let column = |history: &ColumnHistory| history.position.map(|n| of(&definition.def.columns[n]));
    definition.columns.iter().map(|history| column(history).unwrap_or_default()).collect()
}

/// A column without a place in the rows of the layout.
fn column(history: &ColumnHistory, form: Form) -> Column {
    let last = history.last();
    Column {
        ty: last.ty,
        nullable: last.nullable,
        stored: form.ty,
        null_bit: None,
        place: ColumnLocation::Dropped,
    }
}

/// A column that rows of the layout do not hold.
fn unstored(history: &ColumnHistory, layout: u8, later: &mut Vec<Box<[u8]>>) -> Column {
    let first = history.forms[0];
    let column = column(history, first);
    if first.since <= layout {
        return column;
    }
    let mut bytes = Vec::new();
    put_default(first.ty, &history.before, &mut bytes);
    later.push(bytes.into());
    let null_bit = history.before.is_null().then_some(ALWAYS_NULL);
    Column { null_bit, place: ColumnLocation::Later(later.len() as u16 - 1), ..column }
}

fn next_bit(wanted: bool, counter: &mut u16) -> Option<u16> {
    wanted.then(|| {
        *counter += 1;
        *counter - 1
    })
}

fn may_be_large(ty: Type) -> bool {
    matches!(ty, Type::Bytes(max) | Type::String(max) if max > OUT_OF_LINE_FROM)
}

fn too_wide(table: &str) -> Error {
    invalid(table, "the fixed part of a row takes more than 65535 bytes")
}

impl Definition {
    /// Whether rows of any layout can have values out of line.
    pub fn can_move_out(&self) -> bool {
        self.columns.iter().flat_map(|column| &column.forms).any(|form| may_be_large(form.ty))
    }
}
