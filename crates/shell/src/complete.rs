//! Completion of what is typed.

use pantile::Database;

use crate::help::COMMANDS;

/// Where the word begins that is completed, and what it can become.
pub fn complete(db: &Database, line: &str) -> (usize, Vec<String>) {
    let mut blanks = line.char_indices().rev().filter(|(_, blank)| blank.is_whitespace());
    let start = blanks.next().map_or(0, |(at, blank)| at + blank.len_utf8());
    let (before, word) = line.split_at(start);
    let before: Vec<&str> = before.split_whitespace().collect();
    let mut all = match before[..] {
        [] => commands(),
        [verb] => after_verb(db, verb),
        _ => names_of(db, &before),
    };
    all.retain(|name| name.starts_with(word));
    all.sort_unstable();
    all.dedup();
    (start, all)
}

fn commands() -> Vec<String> {
    COMMANDS.iter().filter_map(|(name, _, _)| name.split(' ').next()).map(str::to_owned).collect()
}

/// The second word of a command of two, or a table.
fn after_verb(db: &Database, verb: &str) -> Vec<String> {
    let second = COMMANDS.iter().filter_map(|(name, _, _)| name.strip_prefix(verb)?.strip_prefix(' '));
    let second: Vec<String> = second.map(str::to_owned).collect();
    if second.is_empty() { db.tables() } else { second }
}

/// The columns and indexes of the tables that the line names, what can stand in a range, and the tables.
fn names_of(db: &Database, before: &[&str]) -> Vec<String> {
    let keywords = ["by", "prefix", "from", "after", "to", "before", "reverse", "limit", "set"];
    let mut names: Vec<String> = keywords.map(str::to_owned).into();
    for table in before.iter().filter_map(|word| db.table(word).ok()) {
        let def = table.definition();
        names.extend(def.columns.into_iter().map(|column| column.name));
        names.extend(def.indexes.into_iter().map(|index| index.name));
    }
    names.extend(db.tables());
    names
}

#[cfg(test)]
mod tests {
    use pantile::{IndexDef, MediumKind, Options, TableDef, Type};

    use super::*;

    #[test]
    fn commands_tables_columns_and_indexes_are_completed() {
        let db = Options::new().medium(MediumKind::Dram).open("unused").expect("memory");
        let pets = TableDef::new("pets").column("id", Type::U8).column("name", Type::String(9));
        let pets = pets.primary_key(["id"]).index(IndexDef::new("by_name", ["name"]));
        db.create_table(pets).expect("a table");
        let of = |line: &str| complete(&db, line);
        assert_eq!(of("sc"), (0, vec!["scan".into(), "schema".into()]));
        assert_eq!(of("create "), (7, vec!["index".into(), "table".into()]));
        assert_eq!(of("scan p"), (5, vec!["pets".into()]));
        assert_eq!(of("scan pets by by"), (13, vec!["by".into(), "by_name".into()]));
        assert_eq!(of("update pets 1 set na"), (18, vec!["name".into()]));
        assert_eq!(of("nothing x y"), (10, vec![]));
        // A wide blank, as Japanese keyboards have it.
        assert_eq!(of("scan\u{3000}p"), (7, vec!["pets".into()]));
    }
}
