//! Table definitions as the catalog stores them (docs/format.md, "Tables"): JSON
//! without spaces, with all fields and in this order.

use std::str::FromStr;

use crate::types::schema::{ColumnDef, IndexDef, TableDef, Type};

/// The types that a name is enough for.
const SIMPLE: [Type; 12] = [
    Type::Bool,
    Type::I8,
    Type::I16,
    Type::I32,
    Type::I64,
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::F32,
    Type::F64,
    Type::Timestamp,
];

/// The text of a definition.
pub(crate) fn encode(def: &TableDef) -> String {
    let column = |column: &ColumnDef| {
        let ColumnDef { name, ty, nullable } = column;
        format!(r#"{{"name":{},"ty":{},"nullable":{nullable}}}"#, quoted(name), type_text(*ty))
    };
    let index = |index: &IndexDef| {
        let IndexDef { name, columns, unique } = index;
        format!(r#"{{"name":{},"columns":{},"unique":{unique}}}"#, quoted(name), names(columns))
    };
    format!(
        r#"{{"name":{},"columns":{},"primary_key":{},"indexes":{}}}"#,
        quoted(&def.name),
        list(&def.columns, column),
        names(&def.primary_key),
        list(&def.indexes, index)
    )
}

fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(","))
}

fn names(names: &[String]) -> String {
    list(names, |name| quoted(name))
}

fn type_text(ty: Type) -> String {
    match ty {
        Type::Decimal { precision, scale } => {
            format!(r#"{{"Decimal":{{"precision":{precision},"scale":{scale}}}}}"#)
        }
        Type::FixedBytes(len) => format!(r#"{{"FixedBytes":{len}}}"#),
        Type::FixedString(len) => format!(r#"{{"FixedString":{len}}}"#),
        Type::Bytes(max) => format!(r#"{{"Bytes":{max}}}"#),
        Type::String(max) => format!(r#"{{"String":{max}}}"#),
        simple => format!(r#""{simple:?}""#),
    }
}

/// Letters after a backslash, and what they stand for.
const ESCAPES: [(char, char); 7] =
    [('"', '"'), ('\\', '\\'), ('b', '\u{8}'), ('f', '\u{c}'), ('n', '\n'), ('r', '\r'), ('t', '\t')];

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for char in text.chars() {
        match ESCAPES.iter().find(|(_, stands_for)| *stands_for == char) {
            Some((letter, _)) => out.extend(['\\', *letter]),
            None if char < ' ' => out += &format!("\\u{:04x}", u32::from(char)),
            None => out.push(char),
        }
    }
    out + "\""
}

/// Reads the text of a definition; fails with the number of the byte that does
/// not fit.
pub(crate) fn decode(bytes: &[u8]) -> Result<TableDef, usize> {
    let text = str::from_utf8(bytes).map_err(|error| error.valid_up_to())?;
    let mut reader = Reader(text);
    match reader.table() {
        Some(def) if reader.0.is_empty() => Ok(def),
        _ => Err(text.len() - reader.0.len()),
    }
}

/// The text that has not been read yet.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn table(&mut self) -> Option<TableDef> {
        let name = self.field(r#"{"name":"#, Self::string)?;
        let columns = self.field(r#","columns":"#, |r| r.list(Self::column))?;
        let primary_key = self.field(r#","primary_key":"#, Self::names)?;
        let indexes = self.field(r#","indexes":"#, |r| r.list(Self::index))?;
        self.token("}")?;
        Some(TableDef { name, columns, primary_key, indexes })
    }

    fn column(&mut self) -> Option<ColumnDef> {
        let name = self.field(r#"{"name":"#, Self::string)?;
        let ty = self.field(r#","ty":"#, Self::ty)?;
        let nullable = self.field(r#","nullable":"#, Self::flag)?;
        self.token("}")?;
        Some(ColumnDef { name, ty, nullable })
    }

    fn index(&mut self) -> Option<IndexDef> {
        let name = self.field(r#"{"name":"#, Self::string)?;
        let columns = self.field(r#","columns":"#, Self::names)?;
        let unique = self.field(r#","unique":"#, Self::flag)?;
        self.token("}")?;
        Some(IndexDef { name, columns, unique })
    }

    fn ty(&mut self) -> Option<Type> {
        if self.token("{").is_none() {
            let name = self.string()?;
            return SIMPLE.into_iter().find(|ty| format!("{ty:?}") == name);
        }
        let name = self.string()?;
        self.token(":")?;
        let ty = match name.as_str() {
            "Decimal" => {
                let precision = self.field(r#"{"precision":"#, Self::number)?;
                let scale = self.field(r#","scale":"#, Self::number)?;
                self.token("}")?;
                Type::Decimal { precision, scale }
            }
            "FixedBytes" => Type::FixedBytes(self.number()?),
            "FixedString" => Type::FixedString(self.number()?),
            "Bytes" => Type::Bytes(self.number()?),
            "String" => Type::String(self.number()?),
            _ => return None,
        };
        self.token("}")?;
        Some(ty)
    }

    fn names(&mut self) -> Option<Vec<String>> {
        self.list(Self::string)
    }

    fn field<T>(&mut self, name: &str, value: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.token(name)?;
        value(self)
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.token("[")?;
        let mut items = Vec::new();
        while self.token("]").is_none() {
            if !items.is_empty() {
                self.token(",")?;
            }
            items.push(item(self)?);
        }
        Some(items)
    }

    fn flag(&mut self) -> Option<bool> {
        self.token("true").map(|()| true).or_else(|| self.token("false").map(|()| false))
    }

    fn number<T: FromStr>(&mut self) -> Option<T> {
        let len = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(len);
        let number = digits.parse().ok()?;
        self.0 = rest;
        Some(number)
    }

    fn string(&mut self) -> Option<String> {
        self.token("\"")?;
        let mut text = String::new();
        loop {
            match self.char()? {
                '"' => return Some(text),
                '\\' => text.push(self.escaped()?),
                char => text.push(char),
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        match self.char()? {
            'u' => {
                let digits = self.0.get(..4)?;
                let char = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
                self.token(digits).map(|()| char)
            }
            letter => ESCAPES.iter().find(|(escape, _)| *escape == letter).map(|(_, stands_for)| *stands_for),
        }
    }

    fn char(&mut self) -> Option<char> {
        let mut chars = self.0.chars();
        let char = chars.next()?;
        self.0 = chars.as_str();
        Some(char)
    }

    fn token(&mut self, token: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(token)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_and_name_is_read_as_written() {
        let mut def = TableDef::new("a \"b\"\\c\u{8}\u{c}\n\r\t\u{1}\u{7f} größe 表 😀")
            .primary_key(["n0", "n1"])
            .index(IndexDef::new("i", ["n2"]))
            .index(IndexDef::unique("u", ["n3", "n4"]));
        let sized = [
            Type::Decimal { precision: 38, scale: 2 },
            Type::FixedBytes(u16::MAX),
            Type::FixedString(1),
            Type::Bytes(u32::MAX),
            Type::String(0),
        ];
        for (n, ty) in SIMPLE.into_iter().chain(sized).enumerate() {
            def =
                if n % 2 == 0 { def.column(format!("n{n}"), ty) } else { def.nullable(format!("n{n}"), ty) };
        }
        assert_eq!(decode(encode(&def).as_bytes()), Ok(def));
        let empty = TableDef::new("");
        assert_eq!(decode(encode(&empty).as_bytes()), Ok(empty));
    }

    /// Databases on media hold this text.
    #[test]
    fn the_text_does_not_change() {
        let def = TableDef::new("t \"q\"\\\n\u{1f}ö")
            .column("id", Type::U64)
            .nullable("d", Type::Decimal { precision: 9, scale: 2 })
            .column("s", Type::String(40))
            .primary_key(["id"])
            .index(IndexDef::unique("by_s", ["s", "d"]));
        let text = r#"{"name":"t \"q\"\\\n\u001fö","columns":[{"name":"id","ty":"U64","nullable":false},{"name":"d","ty":{"Decimal":{"precision":9,"scale":2}},"nullable":true},{"name":"s","ty":{"String":40},"nullable":false}],"primary_key":["id"],"indexes":[{"name":"by_s","columns":["s","d"],"unique":true}]}"#;
        assert_eq!(encode(&def), text);
    }

    #[test]
    fn damaged_text_is_refused_at_its_place() {
        let def =
            TableDef::new("t").column("id", Type::U64).column("s", Type::FixedBytes(4)).primary_key(["id"]);
        let text = encode(&def);
        for end in 0..text.len() {
            assert!(decode(&text.as_bytes()[..end]).is_err(), "{end}");
        }
        assert_eq!(decode(format!("{text} ").as_bytes()), Err(text.len()));
        assert_eq!(decode(b"{\"name\":\"\xff"), Err(9));
        for (from, to) in
            [("U64", "U65"), (":4", ":65536"), ("false", "no"), ("t\"", "\\ud800\""), ("s\"", "\\q\"")]
        {
            assert!(decode(text.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
        }
    }
}
