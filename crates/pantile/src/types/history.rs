//! A table's definition, and what is left of those before it.

use crate::types::error::{Error, Result};
use crate::types::owned_value::OwnedValue;
use crate::types::schema::{ColumnDef, TableDef, Type, find_column, invalid};
use crate::types::table_change::{Step, TableChange};

/// A definition with what is needed to read rows that were written under earlier
/// ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Definition {
    pub def: TableDef,
    /// By id. Columns get ids in the order in which they are added, and keep them.
    pub columns: Vec<ColumnHistory>,
    /// The number of the layout of rows that are written now.
    pub layout: u8,
    /// How often it has been changed.
    pub version: u64,
}

/// A column through all layouts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ColumnHistory {
    /// Its number among the columns that there are; `None` if it has been dropped.
    pub position: Option<usize>,
    /// What it was, from which layout on; ascending, never empty.
    pub forms: Vec<Form>,
    /// The first layout without it.
    pub until: Option<u8>,
    /// Its value in rows of the layouts before it was added.
    pub before: OwnedValue,
}

/// What a column is, from a layout on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Form {
    pub since: u8,
    pub ty: Type,
    pub nullable: bool,
}

impl ColumnHistory {
    /// That of a column that has been there from the beginning, unchanged.
    pub fn of_first(position: usize, column: &ColumnDef) -> Self {
        Self {
            position: Some(position),
            forms: vec![Form { since: 0, ty: column.ty, nullable: column.nullable }],
            until: None,
            before: OwnedValue::Null,
        }
    }

    /// What it is in the rows of a layout, if they hold it.
    pub fn form(&self, layout: u8) -> Option<Form> {
        let is_left = self.until.is_none_or(|until| layout < until);
        self.forms.iter().rfind(|form| form.since <= layout).copied().filter(|_| is_left)
    }

    /// What it is now, or was last.
    pub fn last(&self) -> Form {
        *self.forms.last().expect("a column has a form")
    }
}

impl From<TableDef> for Definition {
    /// The definition of a new table.
    fn from(def: TableDef) -> Self {
        let columns = def.columns.iter().enumerate();
        let columns = columns.map(|(n, column)| ColumnHistory::of_first(n, column)).collect();
        Self { def, columns, layout: 0, version: 0 }
    }
}

impl Definition {
    /// Whether no change of it has to be remembered.
    pub fn is_first(&self) -> bool {
        self.version == 0
    }

    /// The definition after a change.
    ///
    /// # Errors
    /// [`Error::InvalidDefinition`], [`Error::UnknownColumn`].
    pub fn changed(&self, change: &TableChange) -> Result<Self> {
        let mut new = self.clone();
        new.version += 1;
        // Steps that need a layout share one.
        let next = self.layout.checked_add(1);
        for step in &change.steps {
            if !new.apply(step, next.unwrap_or(u8::MAX))? {
                continue;
            }
            new.layout = next.ok_or_else(|| {
                invalid(&self.def.name, "its rows have had 256 layouts; copy it into a new table")
            })?;
        }
        Ok(new)
    }

    /// Makes a change. Returns whether rows from here on have another layout,
    /// `next`.
    fn apply(&mut self, step: &Step, next: u8) -> Result<bool> {
        match step {
            Step::Add { column, before } => self.add(column, before.as_deref(), next)?,
            Step::Drop { column } => self.drop(column, next)?,
            Step::Widen { column, to } => {
                let id = self.unindexed(column, "be given another type")?;
                let from = self.columns[id].last();
                if !widens(from.ty, *to) {
                    let (from, to) = (from.ty, to);
                    return Err(self.refused(column, &format!("{to} does not hold all values of {from}")));
                }
                self.set_form(id, Form { since: next, ty: *to, ..from });
            }
            Step::TakeNull { column } => {
                let id = self.unindexed(column, "begin to take NULL")?;
                let from = self.columns[id].last();
                self.set_form(id, Form { since: next, nullable: true, ..from });
            }
            Step::Rename { column, to } => {
                self.rename(column, to)?;
                return Ok(false);
            }
            Step::Default { column, to } => {
                let n = self.number(column)?;
                self.def.columns[n].default.clone_from(to);
                return Ok(false);
            }
            Step::RenameIndex { index, to } => {
                self.rename_index(index, to)?;
                return Ok(false);
            }
            Step::RenameTable { to } => {
                self.def.name.clone_from(to);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn add(&mut self, column: &ColumnDef, before: Option<&str>, next: u8) -> Result<()> {
        if !column.nullable && column.default.is_null() {
            let why = "a column that is added takes NULL or has a default, which the rows that are there get";
            return Err(self.refused(&column.name, why));
        }
        self.check_free(&column.name)?;
        let at = before.map_or(Ok(self.def.columns.len()), |name| self.number(name))?;
        let moved = self.columns.iter_mut().filter_map(|other| other.position.as_mut());
        moved.filter(|position| **position >= at).for_each(|position| *position += 1);
        self.def.columns.insert(at, column.clone());
        self.columns.push(ColumnHistory {
            position: Some(at),
            forms: vec![Form { since: next, ty: column.ty, nullable: column.nullable }],
            until: None,
            before: column.default.clone(),
        });
        Ok(())
    }

    fn drop(&mut self, column: &str, next: u8) -> Result<()> {
        let id = self.unindexed(column, "be dropped")?;
        let Some(at) = self.columns[id].position.take() else { return Ok(()) };
        self.columns[id].until = Some(next);
        self.def.columns.remove(at);
        let moved = self.columns.iter_mut().filter_map(|other| other.position.as_mut());
        moved.filter(|position| **position > at).for_each(|position| *position -= 1);
        Ok(())
    }

    fn rename(&mut self, column: &str, to: &str) -> Result<()> {
        let n = self.number(column)?;
        if to != column {
            self.check_free(to)?;
        }
        to.clone_into(&mut self.def.columns[n].name);
        let keys = self.def.indexes.iter_mut().flat_map(|index| &mut index.columns);
        for name in keys.chain(&mut self.def.primary_key).filter(|name| *name == column) {
            to.clone_into(name);
        }
        Ok(())
    }

    fn rename_index(&mut self, index: &str, to: &str) -> Result<()> {
        let has = |name: &str| self.def.indexes.iter().any(|index| index.name == name);
        if to != index && has(to) {
            return Err(Error::IndexExists { table: self.def.name.clone(), index: to.to_owned() });
        }
        let Some(found) = self.def.indexes.iter_mut().find(|other| other.name == index) else {
            return Err(Error::UnknownIndex { table: self.def.name.clone(), index: index.to_owned() });
        };
        to.clone_into(&mut found.name);
        Ok(())
    }

    /// Fails if a column has this name. While two had it, steps and keys that name it would mean either.
    fn check_free(&self, name: &str) -> Result<()> {
        match self.def.columns.iter().any(|column| column.name == name) {
            true => {
                Err(self
                    .refused(name, "there is one of this name; rename or drop that one in an earlier step"))
            }
            false => Ok(()),
        }
    }

    fn set_form(&mut self, id: usize, form: Form) {
        let column = &mut self.columns[id];
        column.forms.retain(|other| other.since < form.since);
        column.forms.push(form);
        let n = column.position.expect("the column has a name");
        (self.def.columns[n].ty, self.def.columns[n].nullable) = (form.ty, form.nullable);
    }

    fn number(&self, name: &str) -> Result<usize> {
        find_column(self.def.columns.iter().map(|column| column.name.as_str()), name, &self.def.name)
    }

    /// The id of a column that is in no index: the keys of an index are those of
    /// all versions.
    fn unindexed(&self, column: &str, to: &str) -> Result<usize> {
        let n = self.number(column)?;
        let is_key = |columns: &[String]| columns.iter().any(|name| name == column);
        if is_key(&self.def.primary_key) {
            return Err(self.refused(column, &format!("a column of the primary key cannot {to}")));
        }
        if let Some(index) = self.def.indexes.iter().find(|index| is_key(&index.columns)) {
            let why = format!("a column of index {:?} cannot {to}; drop the index first", index.name);
            return Err(self.refused(column, &why));
        }
        let id = self.columns.iter().position(|history| history.position == Some(n));
        Ok(id.expect("every column has an id"))
    }

    fn refused(&self, column: &str, why: &str) -> Error {
        invalid(&self.def.name, &format!("column {column:?}: {why}"))
    }

    /// Fails if it cannot be the definition of a table.
    pub fn check(&self) -> Result<()> {
        check_names(&self.def)?;
        self.def.columns.iter().try_for_each(check_type)?;
        let fits = |(n, def): (usize, &ColumnDef)| {
            let mut of = self.columns.iter().filter(|column| column.position == Some(n));
            let form = of.next().and_then(|column| column.form(self.layout));
            of.next().is_none() && form.is_some_and(|f| (f.ty, f.nullable) == (def.ty, def.nullable))
        };
        let is_ascending = |column: &ColumnHistory| {
            let mut layouts = column.forms.iter().map(|form| form.since).chain(column.until);
            let first = layouts.next();
            first.is_some_and(|first| layouts.try_fold(first, |a, b| (a <= b).then_some(b)).is_some())
                && column.until.is_none_or(|until| until <= self.layout)
                && column.position.is_some() != column.until.is_some()
        };
        let is_whole = self.def.columns.iter().enumerate().all(fits)
            && self.columns.iter().all(is_ascending)
            && self.columns.iter().filter(|c| c.position.is_some()).count() == self.def.columns.len();
        match is_whole {
            true => Ok(()),
            false => Err(invalid(&self.def.name, "the history of its columns does not lead to them")),
        }
    }
}

/// Whether every value of one type is one of the other, and reads as the same.
fn widens(from: Type, to: Type) -> bool {
    match (from, to) {
        (Type::I8, Type::I16 | Type::I32 | Type::I64)
        | (Type::I16, Type::I32 | Type::I64)
        | (Type::I32, Type::I64)
        | (Type::U8, Type::U16 | Type::U32 | Type::U64)
        | (Type::U16, Type::U32 | Type::U64)
        | (Type::U32, Type::U64)
        | (Type::F32, Type::F64) => true,
        (Type::Decimal { precision: a, scale: at }, Type::Decimal { precision: b, scale }) => {
            at == scale && a <= b
        }
        (Type::String(a), Type::String(b)) | (Type::Bytes(a), Type::Bytes(b)) => a <= b,
        (Type::FixedString(a), Type::FixedString(b)) => a <= b,
        (Type::FixedString(a), Type::String(b)) => u32::from(a) <= b,
        (a, b) => a == b,
    }
}

/// Most bytes of a name.
pub(crate) const MOST_OF_NAME: usize = 255;

fn check_names(def: &TableDef) -> Result<()> {
    if def.name.is_empty() || def.name.len() > MOST_OF_NAME {
        return Err(invalid(&def.name, "a table's name takes 1 to 255 bytes"));
    }
    if def.columns.is_empty() || def.columns.len() > 4096 {
        return Err(invalid(&def.name, "a table has 1 to 4096 columns"));
    }
    for (n, column) in def.columns.iter().enumerate() {
        if column.name.is_empty() || column.name.len() > MOST_OF_NAME {
            return Err(invalid(&def.name, "a column's name takes 1 to 255 bytes"));
        }
        if def.columns[..n].iter().any(|other| other.name == column.name) {
            return Err(invalid(&def.name, &format!("column {:?} is named twice", column.name)));
        }
    }
    if def.primary_key.is_empty() {
        return Err(invalid(&def.name, "a table needs a primary key"));
    }
    for (n, index) in def.indexes.iter().enumerate() {
        if index.name.is_empty() || index.name == "primary" || index.name.len() > MOST_OF_NAME {
            return Err(invalid(&def.name, "an index's name takes 1 to 255 bytes and is not \"primary\""));
        }
        if def.indexes[..n].iter().any(|other| other.name == index.name) {
            return Err(invalid(&def.name, &format!("index {:?} is named twice", index.name)));
        }
    }
    Ok(())
}

pub(crate) fn check_type(column: &ColumnDef) -> Result<()> {
    let reason = match column.ty {
        Type::Decimal { precision, .. } if precision == 0 || precision > 38 => "a decimal has 1 to 38 digits",
        Type::Decimal { precision, scale } if scale > precision => {
            "a decimal's scale is at most its precision"
        }
        Type::FixedBytes(0) | Type::FixedString(0) => "a fixed length is at least 1",
        _ => return Ok(()),
    };
    Err(invalid(&column.name, reason))
}
