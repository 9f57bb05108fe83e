//! What is shown while a dump or a load runs.

/// How far a dump or a load is.
///
/// ```
/// # use std::cell::Cell;
/// # use std::ops::ControlFlow;
/// # use pantile::{MediumKind, Options, TableDef, Type};
/// use pantile_transfer::{Dump, Progress};
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let pets = db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
/// # db.run(|txn| txn.insert(&pets, &[7u32.into()]))?;
/// let rows = Cell::new(0);
/// let show = |progress: &Progress<'_>| {
///     rows.set(progress.rows);
///     ControlFlow::Continue(())
/// };
/// Dump::new(&db)?.progress(&show).write(std::io::sink())?;
/// assert_eq!(rows.get(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress<'p> {
    /// The table that is read or written.
    pub table: &'p str,
    /// Rows in all.
    pub rows: u64,
    /// Bytes of text in all.
    pub bytes: u64,
}
