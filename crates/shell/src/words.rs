//! The words of a command.

use std::str::Chars;

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

/// Splits a command at its spaces. Within double quotes are all characters, a quote written twice. Within `$"` and a
/// quote, a backslash says which character is meant, as [`shown`] writes it.
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
    let is_quoted = line.starts_with('"') || line.starts_with(ESCAPED);
    while let Some((at, c)) = chars.next() {
        match c {
            '$' if !inside && line[at..].starts_with(ESCAPED) => {
                let mut rest = line[at + ESCAPED.len()..].chars();
                unescape(&mut rest, &mut text)?;
                chars = line.char_indices().peekable();
                let end = line.len() - rest.as_str().len();
                while chars.next_if(|(at, _)| *at < end).is_some() {}
            }
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

/// What begins a part of a word with escapes.
const ESCAPED: &str = "$\"";

/// Reads up to the closing quote.
fn unescape(chars: &mut Chars<'_>, text: &mut String) -> Result<(), Error> {
    let unknown = || {
        Error::command(format!(
            "in {ESCAPED}…\" a backslash stands before n, r, t, 0, a quote, another backslash, or u{{…}} with a number in hexadecimal"
        ))
    };
    loop {
        match chars.next() {
            Some('"') => return Ok(()),
            Some('\\') => text.push(escape(chars).ok_or_else(unknown)?),
            Some(c) => text.push(c),
            None => return Err(Error::command(format!("a quote that {ESCAPED} opens is not closed"))),
        }
    }
}

/// The character of which the backslash has been read.
fn escape(chars: &mut Chars<'_>) -> Option<char> {
    match chars.next()? {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '0' => Some('\0'),
        c @ ('"' | '\\') => Some(c),
        'u' => {
            let (number, rest) = chars.as_str().strip_prefix('{')?.split_once('}')?;
            *chars = rest.chars();
            char::from_u32(u32::from_str_radix(number, 16).ok()?)
        }
        _ => None,
    }
}

/// A text with control characters as a word that means it. Terminals would obey them.
pub fn shown(text: &str) -> Option<String> {
    if !text.chars().any(char::is_control) {
        return None;
    }
    let escaped = |c: char| match c {
        '\0' => "\\0".to_owned(),
        '"' => "\\\"".to_owned(),
        c if c.is_control() || c == '\\' => c.escape_default().to_string(),
        c => c.to_string(),
    };
    Some(format!("{ESCAPED}{}\"", text.chars().map(escaped).collect::<String>()))
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

    #[test]
    fn escapes_mean_characters() {
        let words = split(r#"a=$"b\n\t\\ \"c\" \u{1b}[0m" $"to" "$" $"" $x $"#).expect("words");
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(texts, ["a=b\n\t\\ \"c\" \u{1b}[0m", "to", "$", "", "$x", "$"]);
        assert!(!words[1].is("to"));
        for wrong in [r#"$"a"#, r#"$"\"#, r#"$"\x41""#, r#"$"\u{d800}""#, r#"$"\u{41""#, r#"$"\u41""#] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_shown_means_the_text() {
        for text in ["a\nb", "\0", "\r\n\t \"c:\\new\"", "\u{1b}[31mred", "ö\u{7f}\u{9b}1"] {
            let word = shown(text).expect("control characters");
            assert!(!word.chars().any(char::is_control), "{word:?}");
            assert_eq!(split(&word).expect("a word"), [Word { text: text.into(), is_quoted: true }]);
        }
        assert_eq!(shown("ö \"\\n\""), None);
    }
}
