//! Definitions of tables as lines of JSON.

use pantile::{ColumnDef, IndexDef, OwnedValue, TableDef, Type};
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::text;

/// The format version that this build writes and reads.
pub const VERSION: u64 = 1;

/// The first line.
#[derive(Serialize, Deserialize)]
pub struct Header {
    pub pantile_dump: u64,
    /// Whether there are definitions only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub schema_only: bool,
}

/// A definition.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableLine {
    table: String,
    columns: Vec<ColumnLine>,
    primary_key: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    indexes: Vec<IndexLine>,
    /// The file with the rows, in a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The rows in that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnLine {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    #[serde(default, skip_serializing_if = "is_false")]
    nullable: bool,
    /// As in CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IndexLine {
    name: String,
    columns: Vec<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    unique: bool,
}

/// The line after the rows of a table.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableEnd {
    pub end_of_table: String,
    pub rows: u64,
}

/// The last line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DumpEnd {
    pub end_of_dump: bool,
    pub tables: u64,
    /// Rows in all; none where there are definitions only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl TableLine {
    pub fn new(def: &TableDef) -> Self {
        let column = |ColumnDef { name, ty, nullable, default }: &ColumnDef| ColumnLine {
            name: name.clone(),
            ty: ty.to_string(),
            nullable: *nullable,
            default: default_text(*ty, default),
        };
        let index = |IndexDef { name, columns, unique }: &IndexDef| IndexLine {
            name: name.clone(),
            columns: columns.clone(),
            unique: *unique,
        };
        Self {
            table: def.name.clone(),
            columns: def.columns.iter().map(column).collect(),
            primary_key: def.primary_key.clone(),
            indexes: def.indexes.iter().map(index).collect(),
            file: None,
            rows: None,
        }
    }

    /// The definition, or what is wrong with it.
    pub fn definition(&self) -> Result<TableDef, String> {
        let column = |line: &ColumnLine| {
            let ty = line
                .ty
                .parse()
                .map_err(|_| format!("column {:?} has the unknown type {:?}", line.name, line.ty))?;
            let default = parse_default(ty, line.default.as_deref())
                .ok_or_else(|| format!("column {:?} has a default that is no {}", line.name, line.ty))?;
            Ok(ColumnDef { name: line.name.clone(), ty, nullable: line.nullable, default })
        };
        let index = |line: &IndexLine| IndexDef {
            name: line.name.clone(),
            columns: line.columns.clone(),
            unique: line.unique,
        };
        Ok(TableDef {
            name: self.table.clone(),
            columns: self.columns.iter().map(column).collect::<Result<_, String>>()?,
            primary_key: self.primary_key.clone(),
            indexes: self.indexes.iter().map(index).collect(),
        })
    }
}

fn default_text(ty: Type, value: &OwnedValue) -> Option<String> {
    let mut bytes = Vec::new();
    text::write(ty, &value.as_value(), &mut bytes);
    (!value.is_null()).then(|| String::from_utf8(bytes).expect("values are written as text"))
}

fn parse_default(ty: Type, default: Option<&str>) -> Option<OwnedValue> {
    let Some(text) = default else { return Some(OwnedValue::Null) };
    let mut batch = Batch::new(vec![OwnedValue::Null], None);
    let cell = text::parse(ty, text, &mut batch)?;
    Some(batch.value(0, cell).into())
}

/// How the columns and the primary key of a table differ from those of the
/// dump, if they do.
pub fn difference(dump: &TableDef, table: &TableDef) -> Option<String> {
    for (n, wanted) in dump.columns.iter().enumerate() {
        let show = |column: &ColumnDef| {
            let null = if column.nullable { ", nullable" } else { "" };
            let default = default_text(column.ty, &column.default);
            let default = default.map_or_else(String::new, |text| format!(", default {text:?}"));
            format!("{:?} {}{null}{default}", column.name, column.ty)
        };
        match table.columns.get(n) {
            Some(column) if column == wanted => {}
            other => {
                let other = other.map_or("missing".to_owned(), show);
                return Some(format!(
                    "its column {} is {}, and in the database it is {other}",
                    n + 1,
                    show(wanted)
                ));
            }
        }
    }
    if table.columns.len() != dump.columns.len() {
        let (dump, table) = (dump.columns.len(), table.columns.len());
        return Some(format!("it has {dump} columns, and in the database it has {table}"));
    }
    let keys = [&dump.primary_key, &table.primary_key].map(|key| key.join(", "));
    (keys[0] != keys[1])
        .then(|| format!("its primary key is ({}), and in the database it is ({})", keys[0], keys[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_does_not_change() {
        let def = TableDef::new("t \"q\"\n")
            .column("id", Type::U64)
            .nullable("d", Type::Decimal { precision: 9, scale: 2 })
            .primary_key(["id"])
            .index(IndexDef::new("i", ["d"]))
            .index(IndexDef::unique("u", ["d", "id"]));
        let text = serde_json::to_string(&TableLine::new(&def)).expect("JSON");
        assert_eq!(
            text,
            r#"{"table":"t \"q\"\n","columns":[{"name":"id","type":"u64"},{"name":"d","type":"decimal(9,2)","nullable":true}],"primary_key":["id"],"indexes":[{"name":"i","columns":["d"]},{"name":"u","columns":["d","id"],"unique":true}]}"#
        );
        let read: TableLine = serde_json::from_str(&text).expect("the text");
        assert_eq!(read.definition(), Ok(def));
    }

    #[test]
    fn differences_are_named() {
        let def = TableDef::new("t").column("id", Type::U64).column("n", Type::I8).primary_key(["id"]);
        let says = |other: TableDef| difference(&def, &other).unwrap_or_default();
        assert_eq!(says(def.clone()), "");
        assert_eq!(says(def.clone().index(IndexDef::new("i", ["n"]))), "");
        let less = TableDef::new("t").column("id", Type::U64).primary_key(["id"]);
        assert_eq!(says(less.clone()), "its column 2 is \"n\" i8, and in the database it is missing");
        let nullable = less.clone().nullable("n", Type::I8);
        assert_eq!(says(nullable), "its column 2 is \"n\" i8, and in the database it is \"n\" i8, nullable");
        assert_eq!(says(def.clone().column("m", Type::I8)), "it has 2 columns, and in the database it has 3");
        let other = def.clone().primary_key(["n"]);
        assert_eq!(says(other), "its primary key is (id), and in the database it is (n)");
    }
}
