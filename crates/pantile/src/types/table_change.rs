//! Changes of a table's definition.

use crate::types::owned_value::OwnedValue;
use crate::types::schema::{ColumnDef, Type};

/// Changes of a table's columns, of its name and of those of its indexes, for
/// [`Database::alter_table`](crate::Database::alter_table).
///
/// They are made all at once, and take effect one after the other, so a change can use a name that
/// an earlier one has given.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// let pets = TableDef::new("pets").column("id", Type::U32).column("name", Type::String(40)).primary_key(["id"]);
/// let pets = db.create_table(pets)?;
/// db.run(|txn| txn.insert(&pets, &[7u32.into(), "Rex".into()]))?;
/// let change = TableChange::new()
///     .add_column(ColumnDef::new("legs", Type::U8).default(4u8))
///     .rename_column("name", "called")
///     .rename_table("animals");
/// let animals = db.alter_table(&pets, &change)?;
/// let txn = db.begin_read()?;
/// let rex = txn.get(&animals, &[7u32.into()])?.expect("an animal");
/// assert_eq!((rex.get::<&str>("called")?, rex.get::<u8>("legs")?), ("Rex", 4));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TableChange {
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Add { column: ColumnDef, before: Option<String> },
    Drop { column: String },
    Rename { column: String, to: String },
    Widen { column: String, to: Type },
    TakeNull { column: String },
    Default { column: String, to: OwnedValue },
    RenameIndex { index: String, to: String },
    RenameTable { to: String },
}

impl TableChange {
    /// No change yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn with(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds a column after all others. It must take NULL or have a default, which is its value in
    /// the rows that exist.
    #[must_use]
    pub fn add_column(self, column: ColumnDef) -> Self {
        self.with(Step::Add { column, before: None })
    }

    /// Adds a column before another one.
    #[must_use]
    pub fn add_column_before(self, next: impl Into<String>, column: ColumnDef) -> Self {
        self.with(Step::Add { column, before: Some(next.into()) })
    }

    /// Drops a column that is in no index.
    #[must_use]
    pub fn drop_column(self, column: impl Into<String>) -> Self {
        self.with(Step::Drop { column: column.into() })
    }

    /// Renames a column, in its indexes, too. No column may have the new name when this step is made:
    /// to swap two names, go through a third one.
    #[must_use]
    pub fn rename_column(self, column: impl Into<String>, to: impl Into<String>) -> Self {
        self.with(Step::Rename { column: column.into(), to: to.into() })
    }

    /// Changes the type of a column that is in no index to one that holds all its values: a longer
    /// integer of the same kind, `F64` for `F32`, a decimal with more digits before the point, or a
    /// longer string or byte string.
    #[must_use]
    pub fn widen_column(self, column: impl Into<String>, to: Type) -> Self {
        self.with(Step::Widen { column: column.into(), to })
    }

    /// Lets a column that is in no index take NULL.
    #[must_use]
    pub fn make_nullable(self, column: impl Into<String>) -> Self {
        self.with(Step::TakeNull { column: column.into() })
    }

    /// Changes the default of a column, for rows that are written without it from now on. NULL
    /// removes the default.
    #[must_use]
    pub fn set_default(self, column: impl Into<String>, value: impl Into<OwnedValue>) -> Self {
        self.with(Step::Default { column: column.into(), to: value.into() })
    }

    /// Renames a secondary index. No index may have the new name when this step is made.
    #[must_use]
    pub fn rename_index(self, index: impl Into<String>, to: impl Into<String>) -> Self {
        self.with(Step::RenameIndex { index: index.into(), to: to.into() })
    }

    /// Gives the table another name.
    #[must_use]
    pub fn rename_table(self, to: impl Into<String>) -> Self {
        self.with(Step::RenameTable { to: to.into() })
    }
}
