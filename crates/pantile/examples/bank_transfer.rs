//! Several threads transfer money between accounts. The sum of all balances stays the same, and
//! readers that run at the same time always see this sum.
//!
//! `cargo run -p pantile --example bank_transfer`

use std::thread;

use pantile::{Database, Range, Result, Table, TableDef, Transaction, Type};

const ACCOUNTS: u64 = 20;
const TELLERS: u64 = 4;
const TRANSFERS: u64 = 100;

fn transfer(txn: &mut Transaction, accounts: &Table, from: u64, to: u64, amount: i64) -> Result<bool> {
    let source = txn.get_for_update(accounts, &[from.into()])?.expect("the account exists");
    let left = source.get::<i64>("balance")? - amount;
    if left < 0 {
        return Ok(false);
    }
    txn.update(accounts, &[from.into()], &[(1, left.into())])?;
    txn.modify(accounts, &[to.into()], |account| {
        let balance = account.get::<i64>(1)?;
        account.set(1, (balance + amount).into())?;
        Ok(true)
    })
}

fn total(db: &Database, accounts: &Table) -> Result<i64> {
    let txn = db.begin_read()?;
    let sum = txn.scan(accounts, Range::all())?.map(|row| row?.get::<i64>("balance")).sum::<Result<_>>()?;
    txn.commit()?;
    Ok(sum)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let db = Database::open(dir.path())?;
    let accounts = db.create_table(
        TableDef::new("accounts").column("id", Type::U64).column("balance", Type::I64).primary_key(["id"]),
    )?;
    db.run(|txn| (0..ACCOUNTS).try_for_each(|id| txn.insert(&accounts, &[id.into(), 100i64.into()])))?;
    println!("{ACCOUNTS} accounts hold {} in all", total(&db, &accounts)?);

    thread::scope(|scope| {
        for teller in 0..TELLERS {
            let (db, accounts) = (&db, &accounts);
            scope.spawn(move || {
                for n in 0..TRANSFERS {
                    let (from, to) = ((teller * 7 + n) % ACCOUNTS, (teller + n * 3 + 1) % ACCOUNTS);
                    if from != to {
                        // `run` starts the transfer again when it conflicts with another one.
                        db.run(|txn| transfer(txn, accounts, from, to, 30)).expect("a transfer");
                    }
                }
            });
        }
        for _ in 0..20 {
            assert_eq!(total(&db, &accounts).expect("a total"), 100 * ACCOUNTS as i64);
        }
    });
    let stats = db.stats();
    println!("{} commits; {} attempts met a conflict and ran again", stats.commits, stats.aborts);

    drop(accounts);
    db.close()?;
    let db = Database::open(dir.path())?;
    let sum = total(&db, &db.table("accounts")?)?;
    assert_eq!(sum, 100 * ACCOUNTS as i64);
    println!("after closing and opening again they still hold {sum}");
    Ok(())
}
