//! The formats of rows.

/// How the rows of one table are written.
///
/// ```
/// # use pantile::{MediumKind, Options, TableDef, Type};
/// use pantile_transfer::{Dump, Format};
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let pets = db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
/// # db.run(|txn| txn.insert(&pets, &[7u32.into()]))?;
/// let dump = Dump::new(&db)?;
/// let (mut csv, mut json) = (Vec::new(), Vec::new());
/// dump.write_rows("pets", Format::Csv, &mut csv)?;
/// dump.write_rows("pets", Format::JsonLines, &mut json)?;
/// assert_eq!((&csv[..], &json[..]), (&b"id\n7\n"[..], &b"{\"id\":7}\n"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Format {
    /// CSV as in RFC 4180, with the names of the columns in the first row.
    Csv,
    /// One JSON object per line, with the values by the names of their columns.
    JsonLines,
}

impl Format {
    const ALL: [Format; 2] = [Format::Csv, Format::JsonLines];

    /// How the names of files end.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::JsonLines => "jsonl",
        }
    }

    /// The format of a file in a directory. `None` if it has none, or is elsewhere.
    pub(crate) fn of_file(name: &str) -> Option<Self> {
        let (stem, extension) = name.rsplit_once('.')?;
        let is_plain = !stem.is_empty() && !stem.contains(['/', '\\']);
        Self::ALL.into_iter().find(|format| is_plain && format.extension() == extension)
    }
}
