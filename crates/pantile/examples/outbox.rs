//! An event log with an outbox.
//!
//! A change and the message about it are written in one transaction. The messages reach others at
//! least once, in order.
//!
//! Sending cannot be part of the transaction. So the message is stored with the change, sent
//! afterwards, and then noted as sent. After a crash between sending and noting, the message is
//! sent again. Its number lets the receiver drop the second copy.
//!
//! `cargo run -p pantile --example outbox`

use std::ops::Bound;

use pantile::{Database, Range, Result, Table, TableDef, Transaction, Type, Value};

struct Shop {
    db: Database,
    orders: Table,
    events: Table,
    /// How far each receiver has been sent the log.
    sent: Table,
}

impl Shop {
    fn open(path: &std::path::Path) -> Result<Self> {
        let db = Database::open(path)?;
        let orders = TableDef::new("orders").column("id", Type::U64).column("state", Type::String(20));
        let events = TableDef::new("events").column("number", Type::U64).column("text", Type::String(200));
        let sent = TableDef::new("sent").column("receiver", Type::String(40)).column("number", Type::U64);
        let orders = db.open_or_create(orders.primary_key(["id"]))?;
        let events = db.open_or_create(events.primary_key(["number"]))?;
        let sent = db.open_or_create(sent.primary_key(["receiver"]))?;
        Ok(Self { db, orders, events, sent })
    }

    fn last_event(&self, txn: &Transaction) -> Result<u64> {
        let last = txn.scan(&self.events, Range::all().reverse().limit(1))?.next().transpose()?;
        last.map_or(Ok(0), |row| row.get("number"))
    }

    fn change(&self, order: u64, state: &str) -> Result<()> {
        self.db.run(|txn| {
            txn.upsert(&self.orders, &[order.into(), state.into()])?;
            let number = self.last_event(txn)? + 1;
            let text = format!("order {order} is {state}");
            txn.insert(&self.events, &[number.into(), text.as_str().into()])
        })
    }

    /// Sends what the receiver has not had. `stop_before_noting` imitates a crash
    /// at the worst moment.
    fn send(&self, receiver: &mut Receiver, stop_before_noting: bool) -> Result<()> {
        let txn = self.db.begin_read()?;
        let sent = txn.get(&self.sent, &[receiver.name.into()])?.map_or(Ok(0), |row| row.get("number"))?;
        let after: [Value; 1] = [sent.into()];
        let mut last = sent;
        for row in txn.scan(&self.events, Range::all().from(Bound::Excluded(&after)))? {
            let row = row?;
            last = row.get("number")?;
            receiver.receive(last, row.get("text")?);
        }
        drop(txn);
        if !stop_before_noting {
            self.db.run(|txn| txn.upsert(&self.sent, &[receiver.name.into(), last.into()]))?;
        }
        Ok(())
    }
}

/// Another system. It remembers the number of the last message that it has had.
struct Receiver {
    name: &'static str,
    last: u64,
    texts: Vec<String>,
    copies: u32,
}

impl Receiver {
    fn receive(&mut self, number: u64, text: &str) {
        if number <= self.last {
            self.copies += 1;
            return;
        }
        self.last = number;
        self.texts.push(text.to_owned());
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let mut mail = Receiver { name: "mail", last: 0, texts: Vec::new(), copies: 0 };
    let shop = Shop::open(dir.path())?;
    shop.change(1, "placed")?;
    shop.change(2, "placed")?;
    shop.send(&mut mail, true)?;
    shop.db.close()?;

    let shop = Shop::open(dir.path())?;
    shop.change(1, "paid")?;
    shop.send(&mut mail, false)?;
    shop.send(&mut mail, false)?;
    println!("received: {:#?}", mail.texts);
    println!("{} were sent twice, because the sender crashed, and dropped", mail.copies);
    assert_eq!(mail.texts, ["order 1 is placed", "order 2 is placed", "order 1 is paid"]);
    assert_eq!(mail.copies, 2);
    Ok(())
}
