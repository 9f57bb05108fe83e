//! Orders and their customers in SQL: tables, an index, a transaction, joins and totals.
//!
//! `cargo run --example orders [DIRECTORY]` prints who has bought for how much. Without a directory it uses a temporary
//! one.

use std::error::Error;
use std::path::Path;

use gluesql_core::prelude::{Glue, Payload};
use pantile::Database;
use pantile_gluesql::PantileStorage;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS orders (
        id INTEGER PRIMARY KEY,
        customer INTEGER NOT NULL,
        cents INTEGER NOT NULL,
        FOREIGN KEY (customer) REFERENCES customers (id)
    );
";

const ORDERS: &str = "
    BEGIN;
    DELETE FROM orders;
    DELETE FROM customers;
    INSERT INTO customers VALUES (1, 'Ida', 'Bern'), (2, 'Otto', 'Bern'), (3, 'Mia', 'Ulm');
    INSERT INTO orders VALUES (1, 1, 1250), (2, 3, 300), (3, 1, 750), (4, 2, 9900), (5, 1, 20);
    COMMIT;
";

const BY_CUSTOMER: &str = "
    SELECT c.name AS name, COUNT(*) AS orders, SUM(o.cents) AS cents
    FROM orders o JOIN customers c ON c.id = o.customer
    GROUP BY c.name HAVING COUNT(*) > 0 ORDER BY cents DESC
";

const BY_CITY: &str = "
    SELECT c.city AS city, SUM(o.cents) AS cents
    FROM orders o JOIN customers c ON c.id = o.customer
    WHERE o.cents >= 100 GROUP BY c.city ORDER BY city
";

fn report(dir: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut sql = Glue::new(PantileStorage::new(Database::open(dir)?)?);
    sql.execute(TABLES)?;
    sql.execute(ORDERS)?;
    let mut lines = Vec::new();
    for query in [BY_CUSTOMER, BY_CITY] {
        for payload in sql.execute(query)? {
            lines.extend(lines_of(&payload));
        }
    }
    Ok(lines)
}

fn lines_of(payload: &Payload) -> Vec<String> {
    let Payload::Select { labels, rows } = payload else { return Vec::new() };
    let line = |row: &Vec<_>| row.iter().map(String::from).collect::<Vec<_>>().join(" | ");
    std::iter::once(labels.join(" | ")).chain(rows.iter().map(line)).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let dir = std::env::args_os().nth(1).map_or(temporary.path().to_owned(), Into::into);
    for line in report(&dir)? {
        println!("{line}");
    }
    Ok(())
}

#[test]
fn a_report_is_the_same_whenever_it_is_made() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = report(dir.path()).expect("a report");
    let expected = [
        "name | orders | cents",
        "Otto | 1 | 9900",
        "Ida | 3 | 2020",
        "Mia | 1 | 300",
        "city | cents",
        "Bern | 11900",
        "Ulm | 300",
    ];
    assert_eq!(first, expected);
    assert_eq!(report(dir.path()).expect("a report"), expected);
}
