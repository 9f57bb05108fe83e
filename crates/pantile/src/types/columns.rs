//! The columns of a table as a handle knows them.

use std::sync::Arc;

use pantile_base::Timestamp;

use crate::types::error::{Error, Result};
use crate::types::history::Definition;
use crate::types::layout::{ColumnLocation, Schema};
use crate::types::schema::{ColumnDef, IndexDef, TableDef, find_column};
use crate::types::value::Value;

/// The columns, as of when a handle was made, and the ids behind
/// them. Ids stay what they are when a definition changes.
#[derive(Debug)]
pub struct Columns {
    /// The definition of then. Of its indexes nothing is used.
    def: TableDef,
    ids: Vec<usize>,
    /// Numbers by id; for those that the handle does not know there is none.
    numbers: Vec<Option<usize>>,
    /// Whether each column's number is its id.
    is_plain: bool,
    /// When the table got them.
    pub(crate) since: Timestamp,
}

impl Columns {
    pub(crate) fn new(definition: &Definition, since: Timestamp) -> Self {
        let numbers: Vec<_> = definition.columns.iter().map(|column| column.position).collect();
        let mut ids = vec![0; definition.def.columns.len()];
        for (id, number) in numbers.iter().enumerate() {
            if let Some(number) = number {
                ids[*number] = id;
            }
        }
        let is_plain = ids.len() == numbers.len() && ids.iter().enumerate().all(|(n, id)| n == *id);
        Self { def: definition.def.clone(), ids, numbers, is_plain, since }
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The name of a column, if there is one of this number.
    #[cfg(feature = "serde")]
    pub(crate) fn name(&self, number: usize) -> Option<&str> {
        self.def.columns.get(number).map(|column| column.name.as_str())
    }

    /// The columns, in order.
    pub(crate) fn defs(&self) -> &[ColumnDef] {
        &self.def.columns
    }

    /// The definition of then under the name of now, with these indexes: the name, whether it is unique, the ids. Those are
    /// left out that have columns which the handle does not know.
    pub(crate) fn definition<'i>(
        &self,
        name: &str,
        indexes: impl Iterator<Item = (Arc<str>, bool, &'i [usize])>,
    ) -> TableDef {
        let known = |id: &usize| {
            let number = self.numbers.get(*id).copied().flatten()?;
            Some(self.def.columns[number].name.clone())
        };
        let index = |(name, unique, ids): (Arc<str>, bool, &[usize])| {
            let columns = ids.iter().map(known).collect::<Option<_>>()?;
            Some(IndexDef { name: name.to_string(), columns, unique })
        };
        TableDef { name: name.to_owned(), indexes: indexes.filter_map(index).collect(), ..self.def.clone() }
    }

    /// The names and ids of the columns, in order.
    pub(crate) fn names_and_ids(&self) -> impl Iterator<Item = (&str, usize)> {
        self.def.columns.iter().map(|def| def.name.as_str()).zip(self.ids.iter().copied())
    }

    /// The id of a column by its number.
    #[inline]
    pub(crate) fn id(&self, number: usize, table: &str) -> Result<usize> {
        match self.ids.get(number) {
            Some(_) if self.is_plain => Ok(number),
            Some(id) => Ok(*id),
            None => Err(unknown(number, table)),
        }
    }

    /// Whether rows of this layout have the handle's columns, in the same order.
    #[inline]
    pub(crate) fn are_those_of(&self, schema: &Schema) -> bool {
        self.is_plain && schema.columns.len() == self.ids.len() && schema.stored == self.ids.len()
    }

    /// The number of a column by its name.
    pub(crate) fn number(&self, name: &str, table: &str) -> Result<usize> {
        find_column(self.def.columns.iter().map(|column| column.name.as_str()), name, table)
    }

    /// The value of a column among those of a new row.
    #[inline]
    pub(crate) fn value<'v>(&self, values: &[Value<'v>], schema: &'v Schema, id: usize) -> Value<'v> {
        match self.numbers.get(id) {
            Some(Some(number)) => values[*number],
            _ => schema.defaults[id].as_value(),
        }
    }

    /// Checks that a new row can have values of all the columns.
    pub(crate) fn check_stored(&self, schema: &Schema) -> Result<()> {
        self.ids.iter().try_for_each(|&id| self.check_not_dropped(schema, id))
    }

    /// Fails if the column has been dropped.
    #[cold]
    pub(crate) fn check_not_dropped(&self, schema: &Schema, id: usize) -> Result<()> {
        if !matches!(schema.columns[id].place, ColumnLocation::Dropped) {
            return Ok(());
        }
        let name = self.numbers.get(id).copied().flatten().map(|n| self.def.columns[n].name.clone());
        Err(Error::ColumnDropped { table: schema.name.clone(), column: name.unwrap_or_default() })
    }
}

/// Names a column: by its number, which is fast, or by its name.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// # db.run(|txn| txn.insert(&t, &[1u64.into(), 5i64.into()]))?;
/// let n = t.column("n")?; // once, outside a loop
/// let txn = db.begin_read()?;
/// let row = txn.get(&t, &[1u64.into()])?.expect("a row");
/// assert_eq!(row.get::<i64>(n)?, row.get::<i64>("n")?);
/// # Ok::<(), Error>(())
/// ```
pub trait ColumnRef {
    /// The column's id in the table.
    #[doc(hidden)]
    fn resolve(&self, columns: &Columns, table: &str) -> Result<usize>;
}

impl ColumnRef for usize {
    #[inline]
    fn resolve(&self, columns: &Columns, table: &str) -> Result<usize> {
        columns.id(*self, table)
    }
}

impl ColumnRef for &str {
    fn resolve(&self, columns: &Columns, table: &str) -> Result<usize> {
        columns.number(self, table)?.resolve(columns, table)
    }
}

impl ColumnRef for &String {
    fn resolve(&self, columns: &Columns, table: &str) -> Result<usize> {
        self.as_str().resolve(columns, table)
    }
}

#[cold]
fn unknown(number: usize, table: &str) -> Error {
    Error::UnknownColumn { table: table.to_owned(), column: number.to_string() }
}
