//! Table definitions as the catalog stores them (docs/format.md, "Tables"): JSON
//! without spaces, with fields in this order. Defaults and the history of columns
//! are left out where there are none.

use std::str::FromStr;

use crate::types::history::{ColumnHistory, Definition, Form};
use crate::types::owned_value::OwnedValue;
use crate::types::schema::{ColumnDef, IndexDef, TableDef, Type};
use crate::types::value::Decimal;

/// The text of a definition.
pub(crate) fn encode(definition: &Definition) -> String {
    let def = &definition.def;
    let column = |column: &ColumnDef| {
        let ColumnDef { name, ty, nullable, default } = column;
        let default = match default {
            OwnedValue::Null => String::new(),
            value => format!(r#","default":{}"#, value_text(value)),
        };
        format!(r#"{{"name":{},"ty":{},"nullable":{nullable}{default}}}"#, quoted(name), type_text(*ty))
    };
    let index = |index: &IndexDef| {
        let IndexDef { name, columns, unique } = index;
        format!(r#"{{"name":{},"columns":{},"unique":{unique}}}"#, quoted(name), names(columns))
    };
    format!(
        r#"{{"name":{},"columns":{},"primary_key":{},"indexes":{}{}}}"#,
        quoted(&def.name),
        list(&def.columns, column),
        names(&def.primary_key),
        list(&def.indexes, index),
        history_text(definition)
    )
}

fn history_text(definition: &Definition) -> String {
    if definition.is_first() {
        return String::new();
    }
    let form = |form: &Form| format!("[{},{},{}]", form.since, type_text(form.ty), form.nullable);
    let column = |column: &ColumnHistory| {
        if let Some(n) = column.position
            && *column == ColumnHistory::of_first(n, &definition.def.columns[n])
        {
            return n.to_string();
        }
        let number = |n: Option<usize>| n.map_or("null".into(), |n| n.to_string());
        let (at, forms) = (number(column.position), list(&column.forms, form));
        let (until, before) = (number(column.until.map(usize::from)), value_text(&column.before));
        format!(r#"{{"at":{at},"forms":{forms},"until":{until},"before":{before}}}"#)
    };
    let Definition { version, layout, columns, .. } = definition;
    format!(r#","version":{version},"layout":{layout},"history":{}"#, list(columns, column))
}

fn value_text(value: &OwnedValue) -> String {
    match value {
        OwnedValue::Null => "null".into(),
        OwnedValue::Bool(v) => format!(r#"{{"Bool":{v}}}"#),
        OwnedValue::Int(v) => format!(r#"{{"Int":{v}}}"#),
        OwnedValue::UInt(v) => format!(r#"{{"UInt":{v}}}"#),
        // The bits, so that every number is read as it was.
        OwnedValue::Float(v) => format!(r#"{{"Float":{}}}"#, v.to_bits()),
        OwnedValue::Decimal(v) => format!(r#"{{"Decimal":[{},{}]}}"#, v.units, v.scale),
        OwnedValue::Str(v) => format!(r#"{{"Str":{}}}"#, quoted(v)),
        OwnedValue::Bytes(v) => format!(r#"{{"Bytes":{}}}"#, list(v, u8::to_string)),
        OwnedValue::Timestamp(v) => format!(r#"{{"Timestamp":{v}}}"#),
    }
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
pub(crate) fn decode(bytes: &[u8]) -> Result<Definition, usize> {
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
    fn table(&mut self) -> Option<Definition> {
        let name = self.field(r#"{"name":"#, Self::string)?;
        let columns = self.field(r#","columns":"#, |r| r.list(Self::column))?;
        let primary_key = self.field(r#","primary_key":"#, Self::names)?;
        let indexes = self.field(r#","indexes":"#, |r| r.list(Self::index))?;
        let def = TableDef { name, columns, primary_key, indexes };
        let mut definition = Definition::from(def);
        if self.token(r#","version":"#).is_some() {
            definition.version = self.number()?;
            definition.layout = self.field(r#","layout":"#, Self::number)?;
            let columns = &definition.def.columns;
            definition.columns = self.field(r#","history":"#, |r| r.list(|r| r.history(columns)))?;
        }
        self.token("}")?;
        Some(definition)
    }

    fn history(&mut self, columns: &[ColumnDef]) -> Option<ColumnHistory> {
        if let Some(n) = self.number() {
            return Some(ColumnHistory::of_first(n, columns.get(n)?));
        }
        let position = self.field(r#"{"at":"#, |r| r.optional(Self::number))?;
        let forms = self.field(r#","forms":"#, |r| r.list(Self::form))?;
        let until = self.field(r#","until":"#, |r| r.optional(Self::number))?;
        let before = self.field(r#","before":"#, Self::value)?;
        self.token("}")?;
        Some(ColumnHistory { position, forms, until, before })
    }

    fn form(&mut self) -> Option<Form> {
        let since = self.field("[", Self::number)?;
        let ty = self.field(",", Self::ty)?;
        let nullable = self.field(",", Self::flag)?;
        self.token("]")?;
        Some(Form { since, ty, nullable })
    }

    fn value(&mut self) -> Option<OwnedValue> {
        if self.token("null").is_some() {
            return Some(OwnedValue::Null);
        }
        self.token("{")?;
        let kind = self.string()?;
        self.token(":")?;
        let value = match kind.as_str() {
            "Bool" => OwnedValue::Bool(self.flag()?),
            "Int" => OwnedValue::Int(self.number()?),
            "UInt" => OwnedValue::UInt(self.number()?),
            "Float" => OwnedValue::Float(f64::from_bits(self.number()?)),
            "Decimal" => {
                let units = self.field("[", Self::number)?;
                let scale = self.field(",", Self::number)?;
                self.token("]")?;
                OwnedValue::Decimal(Decimal { units, scale })
            }
            "Str" => OwnedValue::Str(self.string()?),
            "Bytes" => OwnedValue::Bytes(self.list(Self::number)?),
            "Timestamp" => OwnedValue::Timestamp(self.number()?),
            _ => return None,
        };
        self.token("}")?;
        Some(value)
    }

    fn optional<T>(&mut self, value: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.token("null") {
            Some(()) => Some(None),
            None => value(self).map(Some),
        }
    }

    fn column(&mut self) -> Option<ColumnDef> {
        let name = self.field(r#"{"name":"#, Self::string)?;
        let ty = self.field(r#","ty":"#, Self::ty)?;
        let nullable = self.field(r#","nullable":"#, Self::flag)?;
        let default = match self.token(r#","default":"#) {
            Some(()) => self.value()?,
            None => OwnedValue::Null,
        };
        self.token("}")?;
        Some(ColumnDef { name, ty, nullable, default })
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
            return Type::PLAIN.into_iter().find(|ty| format!("{ty:?}") == name);
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
        let sign = usize::from(self.0.starts_with('-'));
        let len = sign + self.0.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
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
    use crate::types::table_change::TableChange;

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
        for (n, ty) in Type::PLAIN.into_iter().chain(sized).enumerate() {
            def =
                if n % 2 == 0 { def.column(format!("n{n}"), ty) } else { def.nullable(format!("n{n}"), ty) };
        }
        for def in [def, TableDef::new("")] {
            let definition = Definition::from(def);
            assert_eq!(decode(encode(&definition).as_bytes()), Ok(definition));
        }
    }

    #[test]
    fn defaults_and_histories_are_read_as_written() {
        let defaults = [
            OwnedValue::from(true),
            OwnedValue::from(i64::MIN),
            OwnedValue::from(u64::MAX),
            OwnedValue::from(f64::NAN),
            OwnedValue::from(-0.0),
            OwnedValue::from(Decimal { units: i128::MIN, scale: 38 }),
            OwnedValue::from("a \"b\""),
            OwnedValue::from(&[0u8, 255][..]),
            OwnedValue::Timestamp(-1),
        ];
        let def = TableDef::new("t").column("id", Type::U64).nullable("a", Type::U8).primary_key(["id"]);
        let mut change = TableChange::new().rename_column("id", "key").drop_column("a");
        for (n, default) in defaults.into_iter().enumerate() {
            let mut column = ColumnDef::new(format!("c{n}"), Type::F64);
            column.default = default;
            change = change.add_column_before("key", column);
        }
        let definition = Definition::from(def).changed(&change).expect("a change that can be made");
        let text = encode(&definition);
        let decoded = decode(text.as_bytes());
        // Decimals with other scales are equal.
        assert_eq!(decoded.as_ref().map(encode), Ok(text));
        assert_eq!(decoded, Ok(definition));
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
        assert_eq!(encode(&def.into()), text);
    }

    #[test]
    fn damaged_text_is_refused_at_its_place() {
        let def =
            TableDef::new("t").column("id", Type::U64).column("s", Type::FixedBytes(4)).primary_key(["id"]);
        let text = encode(&def.into());
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
