//! Finds any part of a word in texts, by groups of three letters (trigrams).
//!
//! A table maps each trigram to the notes that contain it. The transaction that changes a note also
//! changes this table, so a search never sees one without the other.
//!
//! `cargo run -p pantile --example full_text`

use std::collections::BTreeSet;

use pantile::{Database, Range, Result, Table, TableDef, Transaction, Type};

struct Notes {
    db: Database,
    notes: Table,
    grams: Table,
}

/// The groups of three letters of a text, in lower case.
fn grams(text: &str) -> BTreeSet<String> {
    let letters: Vec<char> = text.to_lowercase().chars().collect();
    letters.windows(3).map(|three| three.iter().collect()).collect()
}

impl Notes {
    fn open(db: Database) -> Result<Self> {
        let notes = TableDef::new("notes").column("id", Type::U64).column("text", Type::String(100_000));
        let notes = db.open_or_create(notes.primary_key(["id"]))?;
        // Three letters take at most 12 bytes.
        let grams = TableDef::new("grams").column("gram", Type::String(12)).column("note", Type::U64);
        let grams = db.open_or_create(grams.primary_key(["gram", "note"]))?;
        Ok(Self { db, notes, grams })
    }

    /// Saves a note, and changes what differs in the index.
    fn save(&self, id: u64, text: &str) -> Result<()> {
        self.db.run(|txn| {
            let old = self.text(txn, id)?.map(|old| grams(&old)).unwrap_or_default();
            let new = grams(text);
            for gone in old.difference(&new) {
                txn.delete(&self.grams, &[gone.as_str().into(), id.into()])?;
            }
            for added in new.difference(&old) {
                txn.insert(&self.grams, &[added.as_str().into(), id.into()])?;
            }
            txn.upsert(&self.notes, &[id.into(), text.into()]).map(|_| ())
        })
    }

    fn text(&self, txn: &Transaction, id: u64) -> Result<Option<String>> {
        let Some(row) = txn.get(&self.notes, &[id.into()])? else { return Ok(None) };
        // A long text may be stored out of line, so it is copied, not borrowed.
        row.get("text").map(Some)
    }

    fn notes_with(&self, txn: &Transaction, gram: &str) -> Result<BTreeSet<u64>> {
        txn.scan(&self.grams, Range::prefix(&[gram.into()]))?.map(|row| row?.get("note")).collect()
    }

    /// The notes that contain these three letters or more. The trigrams say which
    /// notes may; their texts decide.
    fn search(&self, wanted: &str) -> Result<Vec<u64>> {
        let txn = self.db.begin_read()?;
        let mut candidates: Option<BTreeSet<u64>> = None;
        for gram in grams(wanted) {
            let these = self.notes_with(&txn, &gram)?;
            candidates = Some(match candidates {
                Some(others) => &others & &these,
                None => these,
            });
        }
        let wanted = wanted.to_lowercase();
        let mut found = Vec::new();
        for id in candidates.unwrap_or_default() {
            if self.text(&txn, id)?.is_some_and(|text| text.to_lowercase().contains(&wanted)) {
                found.push(id);
            }
        }
        Ok(found)
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let notes = Notes::open(Database::open(dir.path())?)?;
    notes.save(1, "Buy apples and pears")?;
    notes.save(2, "Pineapple upside-down cake: 200 g of butter")?;
    notes.save(3, "Call the plumber about the pear-shaped leak")?;

    let apples = notes.search("apple")?;
    println!("notes with \"apple\": {apples:?}");
    assert_eq!(apples, [1, 2]);
    assert_eq!(notes.search("PEAR")?, [1, 3]);
    assert!(notes.search("lemon")?.is_empty());

    notes.save(1, "Buy lemons")?;
    println!("note 1 is about lemons now; notes with \"apple\": {:?}", notes.search("apple")?);
    assert_eq!(notes.search("apple")?, [2]);
    assert_eq!(notes.search("lemon")?, [1]);
    Ok(())
}
