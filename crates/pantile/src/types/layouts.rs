//! All layouts of a table's rows at one time.

use std::sync::{Arc, OnceLock};

use pantile_base::{TableId, Timestamp};

use crate::types::columns::Columns;
use crate::types::encoding::{self, Encoded};
use crate::types::error::Result;
use crate::types::fit::check;
use crate::types::history::{Definition, check_type};
use crate::types::layout::Schema;
use crate::types::schema::{TableDef, Type};
use crate::types::table_change::{Step, TableChange};

/// Fails if the default of a column that a change adds does not fit it. The rows that are there get that
/// one, whatever becomes of the column in later steps.
pub(crate) fn check_added(table: &str, change: &TableChange) -> Result<()> {
    let added = change.steps.iter().filter_map(|step| match step {
        Step::Add { column, .. } if !column.default.is_null() => Some(column),
        _ => None,
    });
    for column in added {
        check_type(column)?;
        let mut alone = TableDef::new(table).column("key", Type::U8).primary_key(["key"]);
        alone.columns.push(column.clone());
        check(&Schema::new(&Definition::from(alone), 0)?, 1, &column.default.as_value())?;
    }
    Ok(())
}

/// A definition with all layouts that rows of the table may have.
#[derive(Debug)]
pub(crate) struct Layouts {
    pub definition: Definition,
    /// That of the rows that are written now.
    pub latest: Schema,
    /// The others, by number, made when a row of theirs is met.
    older: Vec<OnceLock<Box<Schema>>>,
    /// The columns as a handle that is made now knows them.
    pub columns: Arc<Columns>,
    /// Whether rows can have values out of line.
    pub can_move_out: bool,
    /// No version that is older has the latest layout.
    pub since: Timestamp,
}

impl Layouts {
    /// Those of a new table. Fails if the definition cannot be one.
    pub fn new(definition: Definition, table: TableId) -> Result<Self> {
        definition.check()?;
        let latest = Schema { table, ..Schema::new(&definition, definition.layout)? };
        for (id, default) in latest.defaults.iter().enumerate().filter(|(_, default)| !default.is_null()) {
            check(&latest, id, &default.as_value())?;
        }
        let older = (0..definition.layout).map(|_| OnceLock::new()).collect();
        let since = Timestamp::ZERO;
        let columns = Arc::new(Columns::new(&definition, since));
        let can_move_out = definition.can_move_out();
        Ok(Self { definition, latest, older, columns, can_move_out, since })
    }

    /// The same of a table that is changed at this time.
    pub fn made_at(mut self, since: Timestamp) -> Self {
        self.since = since;
        Arc::get_mut(&mut self.columns).expect("no handle has them yet").since = since;
        self
    }

    /// Whether a row that one of the older layouts allows may be too large in the latest one.
    pub fn may_be_too_large(&self) -> bool {
        encoding::longest(&self.latest) > encoding::MAX_ROW
    }

    /// Fails if a row that has been written in one of these layouts would be too large in the latest one.
    pub fn check_length(&self, row: &Encoded<'_>) -> Result<()> {
        let row = Encoded { schema: self.get(row.schema.layout), bytes: row.bytes };
        encoding::check_length(&row, &self.latest)
    }

    /// The layout with this number, which a content names.
    #[inline]
    pub fn get(&self, layout: u8) -> &Schema {
        if layout == self.latest.layout { &self.latest } else { self.older(layout) }
    }

    /// Recovery refuses contents of layouts that the table has not had.
    #[cold]
    fn older(&self, layout: u8) -> &Schema {
        let Some(cell) = self.older.get(usize::from(layout)) else { return &self.latest };
        cell.get_or_init(|| {
            let schema = Schema::new(&self.definition, layout).expect("the table has had this layout");
            Box::new(Schema { table: self.latest.table, ..schema })
        })
    }
}
