//! The words of a command.

use crate::error::Error;

/// A word. One that begins with a quote is never a keyword.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    pub text: String,
    pub is_quoted: bool,
}

impl Word {
    pub fn is(&self, keyword: &str) -> bool {
        !self.is_quoted && self.text.eq_ignore_ascii_case(keyword)
    }
}

/// Splits a command at its spaces. Within double quotes are all characters, a quote written twice.
pub fn split(line: &str) -> Result<Vec<Word>, Error> {
    let (mut words, mut rest) = (Vec::new(), line.trim_start());
    while !rest.is_empty() {
        let (word, after) = take(rest)?;
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

fn take(line: &str) -> Result<(Word, &str), Error> {
    let (mut text, mut inside) = (String::new(), false);
    let mut chars = line.char_indices().peekable();
    let is_quoted = line.starts_with('"');
    while let Some((at, c)) = chars.next() {
        match c {
            '"' if inside && chars.peek().is_some_and(|(_, next)| *next == '"') => {
                chars.next();
                text.push('"');
            }
            '"' => inside = !inside,
            c if c.is_whitespace() && !inside => return Ok((Word { text, is_quoted }, &line[at..])),
            c => text.push(c),
        }
    }
    if inside {
        return Err(Error::command("a quote is not closed; write a quote twice that is a part of a value"));
    }
    Ok((Word { text, is_quoted }, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_words_together() {
        let texts = |line: &str| -> Vec<String> {
            split(line).expect("words").into_iter().map(|word| word.text).collect()
        };
        assert_eq!(texts(r#"  a  "b c" d="e ""f""" "" \N"#), ["a", "b c", r#"d=e "f""#, "", r"\N"]);
        assert!(split("to").expect("a word")[0].is("TO") && !split("\"to\"").expect("a word")[0].is("to"));
        assert!(split("a \"b").is_err());
        assert_eq!(split(" ").expect("nothing"), []);
    }
}
