//! What a dump of a damaged database lacks.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use pantile::tools::Finding;
use pantile_transfer::LeftOut;

use crate::exit::Failure;
use crate::output;

/// Rows that were left out, by table.
#[derive(Default)]
pub struct Losses {
    rows: RefCell<BTreeMap<String, Rows>>,
}

/// The rows of a table, which are left out in the order of their keys.
struct Rows {
    count: u64,
    first: String,
    last: String,
}

impl Losses {
    /// Counts a row, and names it on stderr.
    pub fn note(&self, row: LeftOut) {
        // One line for each, whatever is in the key.
        let key = output::printable(&format!("({})", row.key.join(", ")));
        output::note(&format!(
            "lost: table {:?}, the row with the primary key {key}: {}",
            row.table, row.why
        ));
        let mut tables = self.rows.borrow_mut();
        let new = || Rows { count: 0, first: key.clone(), last: String::new() };
        let rows = tables.entry(row.table).or_insert_with(new);
        rows.count += 1;
        rows.last = key;
    }

    /// Lists on stderr what else is lost, and how much it is of each table.
    pub fn report(&self, found: &[Finding], dir: &Path) -> Result<(), Failure> {
        for finding in found {
            output::note(&format!("lost: {}", finding.to_string().trim_start_matches("damage: ")));
        }
        let mut places = BTreeMap::<&str, u64>::new();
        for table in found.iter().filter_map(|finding| finding.place.table.as_deref()) {
            *places.entry(table).or_default() += 1;
        }
        for (table, count) in places {
            let places = if count == 1 { "place" } else { "places" };
            output::note(&format!("lost in table {table:?}: what lies in {count} damaged {places}"));
        }
        let rows = self.rows.borrow();
        for (table, Rows { count, first, last }) in rows.iter() {
            output::note(&format!("lost in table {table:?}: {count} rows with keys from {first} to {last}"));
        }
        let lost = found.len() as u64 + rows.values().map(|rows| rows.count).sum::<u64>();
        if lost == 0 {
            return Ok(());
        }
        let (dir, places) = (dir.display(), if lost == 1 { "place is" } else { "places are" });
        Err(Failure::failed(format!(
            "{lost} {places} damaged or lost in {dir}, which is unchanged; what was asked for and is not named above is in the dump"
        )))
    }
}
