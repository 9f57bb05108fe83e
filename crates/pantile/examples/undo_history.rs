//! A history of every change: who changed what, what it was before, and undo.
//!
//! A change and its record are written in one transaction. Undoing is also a change, so it has a
//! record and can be undone.
//!
//! `cargo run -p pantile --example undo_history`

use pantile::{Database, Error, OwnedValue, Range, Result, Table, TableDef, Transaction, Type, Value};

struct Wiki {
    db: Database,
    pages: Table,
    history: Table,
}

impl Wiki {
    fn open(db: Database) -> Result<Self> {
        let pages =
            TableDef::new("pages").column("name", Type::String(80)).column("text", Type::String(60_000));
        let pages = db.open_or_create(pages.primary_key(["name"]))?;
        let history = db.open_or_create(
            TableDef::new("history")
                .column("page", Type::String(80))
                .column("number", Type::U64)
                .column("by", Type::String(40))
                .nullable("before", Type::String(60_000)) // NULL: there was no page
                .primary_key(["page", "number"]),
        )?;
        Ok(Self { db, pages, history })
    }

    /// Sets the text of a page, or removes it, and records what was there.
    fn set(&self, txn: &mut Transaction, by: &str, page: &str, text: Option<&str>) -> Result<()> {
        let before = match text {
            Some(text) => txn.replace(&self.pages, &[page.into(), text.into()])?.map(|mut row| row.remove(1)),
            None => {
                let row = txn.get(&self.pages, &[page.into()])?.map(|row| row.get("text")).transpose()?;
                txn.delete(&self.pages, &[page.into()])?;
                row
            }
        };
        let before = before.unwrap_or(OwnedValue::Null);
        let number = self.last(txn, page)?.map_or(1, |(number, _)| number + 1);
        txn.insert(&self.history, &[page.into(), number.into(), by.into(), before.as_value()])
    }

    /// The last change of a page: its number, and the text before it.
    fn last(&self, txn: &Transaction, page: &str) -> Result<Option<(u64, OwnedValue)>> {
        let key: [Value; 1] = [page.into()];
        let row = txn.scan(&self.history, Range::prefix(&key).reverse().limit(1))?.next().transpose()?;
        row.map(|row| Ok((row.get("number")?, row.get("before")?))).transpose()
    }

    fn write(&self, by: &str, page: &str, text: &str) -> Result<()> {
        self.db.run(|txn| self.set(txn, by, page, Some(text)))
    }

    /// Brings back what was there before the last change.
    fn undo(&self, by: &str, page: &str) -> Result<bool> {
        self.db.run(|txn| {
            let Some((_, before)) = self.last(txn, page)? else { return Ok(false) };
            let text = match &before {
                OwnedValue::Str(text) => Some(text.as_str()),
                _ => None,
            };
            self.set(txn, by, page, text).map(|()| true)
        })
    }

    fn text(&self, page: &str) -> Result<Option<String>> {
        let txn = self.db.begin_read()?;
        let Some(row) = txn.get(&self.pages, &[page.into()])? else { return Ok(None) };
        row.get("text").map(Some)
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let wiki = Wiki::open(Database::open(dir.path())?)?;
    wiki.write("ann", "tiles", "Tiles cover roofs.")?;
    wiki.write("bob", "tiles", "Tiles are boring.")?;
    assert!(wiki.undo("ann", "tiles")?);
    assert_eq!(wiki.text("tiles")?.as_deref(), Some("Tiles cover roofs."));
    assert!(wiki.undo("bob", "tiles")?, "an undo can be undone");
    assert_eq!(wiki.text("tiles")?.as_deref(), Some("Tiles are boring."));

    wiki.write("ann", "moss", "Moss grows on roofs.")?;
    assert!(wiki.undo("ann", "moss")? && wiki.text("moss")?.is_none(), "there was no page before");
    assert!(!wiki.undo("ann", "gutters")?, "there is nothing to undo");

    // A change that fails leaves no record: both are one transaction.
    let too_long = "x".repeat(60_001);
    assert!(matches!(wiki.write("bob", "tiles", &too_long), Err(Error::TooLong { .. })));

    let txn = wiki.db.begin_read()?;
    for row in txn.scan(&wiki.history, Range::prefix(&["tiles".into()]))? {
        let row = row?;
        let (number, by) = (row.get::<u64>("number")?, row.get::<&str>("by")?);
        println!("change {number} by {by}; before it: {:?}", row.get::<Option<&str>>("before")?);
    }
    assert_eq!(txn.count(&wiki.history, Range::prefix(&["tiles".into()]))?, 4);
    Ok(())
}
