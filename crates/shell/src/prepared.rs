//! Commands about transactions that are prepared and wait to be decided.

use std::io::Write;

use crate::error::Error;
use crate::session::Session;
use crate::words::Word;

/// Prints the names, each as the word that [`decide`] takes.
pub fn list(session: &Session<'_>, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    if !words.is_empty() {
        return Err(Error::command("`prepared` stands alone"));
    }
    let names = names(session)?;
    for name in &names {
        writeln!(out, "{}", word(&text(name)))?;
    }
    if names.is_empty() {
        writeln!(out, "no transaction is prepared")?;
    }
    Ok(())
}

/// Commits one or rolls it back.
pub fn decide(session: &Session<'_>, verb: &str, words: &[Word], out: &mut dyn Write) -> Result<(), Error> {
    let [name] = words else {
        return Err(Error::Command(format!("`{verb} prepared NAME`, with a name that `prepared` lists")));
    };
    let found = names(session)?.into_iter().find(|other| text(other) == name.text);
    let found = found.ok_or_else(|| {
        Error::Command(format!("no prepared transaction is called {:?}; `prepared` lists them", name.text))
    })?;
    let prepared = session.db.take_prepared(&found)?;
    if verb == "rollback" {
        prepared.rollback()?;
        return Ok(writeln!(out, "rolled back")?);
    }
    prepared.commit()?;
    Ok(writeln!(out, "committed")?)
}

/// Those that wait, and in a database that is only read those that are written down.
fn names(session: &Session<'_>) -> Result<Vec<Vec<u8>>, Error> {
    let mut names = session.db.prepared();
    names.extend(session.db.written_prepared()?);
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// A name in characters that any terminal shows. No two names have the same text.
fn text(name: &[u8]) -> String {
    name.escape_ascii().to_string()
}

fn word(text: &str) -> String {
    match text.is_empty() || text.contains([' ', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::split;

    #[test]
    fn a_name_is_shown_as_a_word_that_means_it() {
        for name in [&b"transfer 5"[..], b"", b"\"", b"$\"a\"", b"\x00\xff\n", b"it's", b"a\\b", b"5"] {
            let shown = word(&text(name));
            assert!(shown.chars().all(|c| c.is_ascii_graphic() || c == ' '), "{shown:?}");
            let words = split(&shown).expect("a word");
            assert_eq!(words.iter().map(|word| &word.text).collect::<Vec<_>>(), [&text(name)]);
        }
    }
}
