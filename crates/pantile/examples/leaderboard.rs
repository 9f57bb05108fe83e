//! A leaderboard: one index gives the best players, the rank of a player, and the players just
//! above and below.
//!
//! `cargo run -p pantile --example leaderboard`

use std::ops::Bound;

use pantile::{Database, Error, Index, IndexDef, Range, Result, Table, TableDef, Transaction, Type, Value};

const PLAYERS: u32 = 1_000;

struct Board {
    db: Database,
    players: Table,
    by_score: Index,
}

impl Board {
    fn open(db: Database) -> Result<Self> {
        let players = db.open_or_create(
            TableDef::new("players")
                .column("id", Type::U32)
                .column("name", Type::String(40))
                .column("score", Type::I64)
                .primary_key(["id"])
                .index(IndexDef::new("by_score", ["score", "id"])),
        )?;
        Ok(Self { by_score: players.index("by_score")?, db, players })
    }

    fn add(&self, id: u32, points: i64) -> Result<bool> {
        self.db.run(|txn| {
            txn.modify(&self.players, &[id.into()], |player| {
                let score: i64 = player.get(2)?;
                player.set(2, (score + points).into())?;
                Ok(true)
            })
        })
    }

    fn top(&self, n: usize) -> Result<Vec<(String, i64)>> {
        let txn = self.db.begin_read()?;
        let best = txn.scan_index(&self.by_score, Range::all().reverse().limit(n))?;
        best.map(|row| {
            let row = row?;
            Ok((row.get::<&str>("name")?.to_owned(), row.get("score")?))
        })
        .collect()
    }

    /// The key of a player in the index.
    fn place(&self, txn: &Transaction, id: u32) -> Result<Option<[Value<'static>; 2]>> {
        let Some(player) = txn.get(&self.players, &[id.into()])? else { return Ok(None) };
        Ok(Some([player.get::<i64>("score")?.into(), id.into()]))
    }

    /// 1 for the best. It walks over the players that are better, so it suits
    /// boards of some thousands.
    fn rank(&self, id: u32) -> Result<Option<u64>> {
        let txn = self.db.begin_read()?;
        let Some(place) = self.place(&txn, id)? else { return Ok(None) };
        let better = txn.count_index(&self.by_score, Range::all().from(Bound::Excluded(&place)))?;
        Ok(Some(better + 1))
    }

    /// The player just above, the player, and the one just below.
    fn neighbours(&self, id: u32) -> Result<Vec<u32>> {
        let txn = self.db.begin_read()?;
        let Some(place) = self.place(&txn, id)? else { return Ok(Vec::new()) };
        let above = Range::all().from(Bound::Excluded(&place)).limit(1);
        let from_here = Range::all().to(Bound::Included(&place)).reverse().limit(2);
        let rows = txn.scan_index(&self.by_score, above)?.chain(txn.scan_index(&self.by_score, from_here)?);
        rows.map(|row| row?.get("id")).collect()
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let board = Board::open(Database::open(dir.path())?)?;
    board.db.run(|txn| {
        (0..PLAYERS).try_for_each(|id| {
            let name = format!("player {id}");
            txn.insert(&board.players, &[id.into(), name.as_str().into(), i64::from(id * 10).into()])
        })
    })?;

    assert_eq!(board.top(1)?, [("player 999".to_owned(), 9990)]);
    assert_eq!(board.rank(500)?, Some(500));
    board.add(500, 5_000)?;
    println!("the best three: {:?}", board.top(3)?);
    println!("player 500 is number {}", board.rank(500)?.expect("a player"));
    assert_eq!(board.top(1)?, [("player 500".to_owned(), 10_000)]);
    assert_eq!(board.rank(500)?, Some(1));
    assert_eq!(board.neighbours(499)?, [501, 499, 498]);
    assert_eq!(board.neighbours(500)?, [500, 999]);

    // Nobody is on the board twice.
    let twice = board.db.run(|txn| txn.insert(&board.players, &[500u32.into(), "x".into(), 0i64.into()]));
    assert!(matches!(twice, Err(Error::DuplicateKey { .. })));
    Ok(())
}
