//! Edits by clients that were offline: an edit is saved only if nobody has changed the row since
//! the client read it.
//!
//! No transaction stays open while a person thinks. Instead the row has a version number. To save
//! an edit, the client names the version that it has edited.
//!
//! `cargo run -p pantile --example offline_edits`

use pantile::{Database, Result, Table, TableDef, Type};

/// What a client has on its device.
#[derive(Clone, Debug, PartialEq)]
struct Card {
    id: u64,
    version: u64,
    phone: String,
}

#[derive(Debug, PartialEq)]
enum Saved {
    Yes,
    /// Somebody was faster. This is what there is now.
    Conflict(Card),
    Gone,
}

struct Cards {
    db: Database,
    cards: Table,
}

impl Cards {
    fn open(db: Database) -> Result<Self> {
        let cards = db.open_or_create(
            TableDef::new("cards")
                .column("id", Type::U64)
                .column("version", Type::U64)
                .column("phone", Type::String(40))
                .primary_key(["id"]),
        )?;
        Ok(Self { db, cards })
    }

    fn read(&self, id: u64) -> Result<Option<Card>> {
        let txn = self.db.begin_read()?;
        let Some(row) = txn.get(&self.cards, &[id.into()])? else { return Ok(None) };
        Ok(Some(Card { id, version: row.get("version")?, phone: row.get::<&str>("phone")?.to_owned() }))
    }

    /// Saves an edit of the version that the client has read.
    fn save(&self, edited: &Card) -> Result<Saved> {
        let key = [edited.id.into()];
        self.db.run(|txn| {
            let mut newer = None;
            let is_saved = txn.modify(&self.cards, &key, |row| {
                let version: u64 = row.get(1)?;
                if version != edited.version {
                    newer = Some(Card { id: edited.id, version, phone: row.get::<&str>(2)?.to_owned() });
                    return Ok(false);
                }
                row.set(1, (version + 1).into())?;
                row.set(2, edited.phone.as_str().into())?;
                Ok(true)
            })?;
            Ok(match newer {
                Some(card) => Saved::Conflict(card),
                None if is_saved => Saved::Yes,
                None => Saved::Gone,
            })
        })
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let cards = Cards::open(Database::open(dir.path())?)?;
    cards.db.run(|txn| txn.insert(&cards.cards, &[1u64.into(), 1u64.into(), "555-0100".into()]))?;

    // Two devices take the card along, and both edit it.
    let (mut phone, mut laptop) = (cards.read(1)?.expect("a card"), cards.read(1)?.expect("a card"));
    phone.phone = "555-0101".into();
    laptop.phone = "555-0102".into();
    assert_eq!(cards.save(&phone)?, Saved::Yes);

    let Saved::Conflict(now) = cards.save(&laptop)? else { panic!("the phone was faster") };
    println!("the laptop's edit began with version {}; now there is {now:?}", laptop.version);
    assert_eq!(now, Card { version: 2, ..phone.clone() });

    // The person looks at both and decides for the laptop's number.
    let merged = Card { phone: laptop.phone.clone(), ..now };
    assert_eq!(cards.save(&merged)?, Saved::Yes);
    println!("saved after a look: {:?}", cards.read(1)?.expect("a card"));
    assert_eq!(cards.read(1)?, Some(Card { version: 3, ..laptop }));

    cards.db.run(|txn| txn.delete(&cards.cards, &[1u64.into()]))?;
    assert_eq!(cards.save(&merged)?, Saved::Gone);
    Ok(())
}
