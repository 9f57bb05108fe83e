//! Rows that others have written.

use std::io::{self, Read};

use pantile::{ColumnDef, TableChange, TableDef, Type};
use pantile_transfer::{Error, Format, Load};

use crate::home::{self, load_csv, load_json, refuses};

#[test]
fn columns_are_found_by_name() {
    let db = home::pets();
    load_csv(&db, "pets", "age,id\n-5,10\n,11\n\n\\N,12\n").expect("rows");
    load_json(
        &db,
        "pets",
        "{\"id\":20}\n\n  {\"name\" : \"A\\u00f6\\n\", \"id\":\"21\"}\r\n{\"i\\u0064\":22,\"age\":null}",
    )
    .expect("rows");
    let rows = home::rows(&db, "pets");
    let row = |n: usize| rows[n].join("|");
    assert_eq!(rows.len(), 8);
    assert_eq!((row(2), row(3)), ("UInt(10)|Null|Int(-5)".into(), "UInt(11)|Null|Null".into()));
    assert_eq!((row(5), row(6)), ("UInt(20)|Null|Null".into(), "UInt(21)|Str(\"Aö\\n\")|Null".into()));
}

#[test]
fn csv_of_others_is_read() {
    let db = home::pets();
    let text = "\u{feff}id,name\r\n10,\"a \"\"b\"\", c\r\nd\"\r\n11,\"\"\r\n12,\\N\r\n13,\\\\N\r\n14,\\n\r\n15,\"\\N\"";
    let loaded = load_csv(&db, "pets", text).expect("rows");
    assert_eq!((loaded.rows, loaded.bytes), (6, text.len() as u64));
    let names: Vec<_> = home::rows(&db, "pets")[2..].iter().map(|row| row[1].clone()).collect();
    let wanted =
        ["Str(\"a \\\"b\\\", c\\r\\nd\")", "Str(\"\")", "Null", "Str(\"\\\\N\")", "Str(\"\\\\n\")", "Null"];
    assert_eq!(names, wanted);
    let rows = "id,name\n20,\n21,\\N\n22,\"\"\n";
    Load::new(&db).null("").rows("pets", Format::Csv, rows.as_bytes()).expect("rows");
    let names: Vec<_> = home::rows(&db, "pets")[8..].iter().map(|row| row[1].clone()).collect();
    assert_eq!(names, ["Null", "Str(\"\\\\N\")", "Null"]);
}

/// Fields end where RFC 4180 says, and the line is that of the fault, whatever the lines end with.
#[test]
fn csv_that_is_not_csv_is_refused() {
    let db = home::pets();
    for (text, message) in [
        ("id,name\n10,a\n11,\"b\n12,c\n13,d\n", "line 3: a quote is not closed"),
        ("id,name\r\n10,\"a\r\nb\"\r\n11,\"b", "line 4: a quote is not closed"),
        ("id,name\n10,\"x\ny\",", "line 2: the row has 3 fields, and the header 2"),
        ("id,\"name\n10,a\n", "line 1: a quote is not closed"),
        ("id,name\n10,\"a\"b\n", "line 2: there is text behind a closing quote"),
        ("id,name\n10,\"a\" \n", "line 2: there is text behind a closing quote"),
        ("id,name\n10,\"a\"\r", "line 2: a CR is neither in quotes nor before a LF"),
        (
            "id,name\n10,\"a\n11,b\n12,\"c\"\n",
            "line 4: there is text behind a closing quote; the one that it closes is in line 2",
        ),
        ("id,name\r10,a\r", "line 1: a CR is neither in quotes nor before a LF"),
        ("id,name\n10,a\rb\n", "line 2: a CR is neither in quotes nor before a LF"),
        ("id,name\n10,a\n\r", "line 3: a CR is neither in quotes nor before a LF"),
        ("id,name\r\n10,a\r\n\r\nx,b\r\n", X_IS_NO_ID),
        ("id,name\r\n10,\"a\r\n\"\r\nx,b\r\n", X_IS_NO_ID),
        ("id,name\n10,\"a\n\"\nx,b\n", X_IS_NO_ID),
        ("\n\nid,name\nx,b\n", X_IS_NO_ID),
        ("id,name\n10,\"a\r\r\"\n11,\nx,b\n", X_IS_NO_ID),
    ] {
        refuses(&db, || load_csv(&db, "pets", text), message);
    }
    // All behind it would be one field.
    let text = format!("id,name\n10,\"a\n{}", "11,b\n".repeat(10_000));
    let message = "line 2: a quote is not closed, or the field is longer than every column takes";
    refuses(&db, || load_csv(&db, "pets", &text), message);
    // Where no field begins, a quote is a character like others.
    load_csv(&db, "pets", "id,name\n10,5\"\n11,\"a\r\"").expect("rows");
    let names: Vec<_> = home::rows(&db, "pets")[2..].iter().map(|row| row[1].clone()).collect();
    assert_eq!(names, ["Str(\"5\\\"\")", "Str(\"a\\r\")"]);
}

const X_IS_NO_ID: &str =
    "line 4, column \"id\": u32 (a whole number from 0 to 4294967295) is expected, not \"x\"";

#[test]
fn nothing_is_loaded_from_an_empty_file() {
    let db = home::pets();
    assert_eq!(load_json(&db, "pets", "").expect("no rows").rows, 0);
    assert_eq!(load_csv(&db, "pets", "id\n").expect("no rows").rows, 0);
    refuses(
        &db,
        || load_csv(&db, "pets", ""),
        "line 1: column \"id\" of table \"pets\" is missing; it has no default and does not take NULL",
    );
}

#[test]
fn columns_that_do_not_fit_are_named() {
    let db = home::pets();
    for (text, message) in [
        ("id,nam\n10,x\n", "line 1: column \"nam\" of table \"pets\" does not exist"),
        ("id,name,id\n10,x,10\n", "line 1: column \"id\" of table \"pets\" is named twice"),
        (
            "name\nx\n",
            "line 1: column \"id\" of table \"pets\" is missing; it has no default and does not take NULL",
        ),
        ("id,name\n10,\"x\ny\"\n11\n", "line 4: the row has 1 fields, and the header 2"),
        ("id,name\n10,x\n11,y,z\n", "line 3: the row has 3 fields, and the header 2"),
    ] {
        refuses(&db, || load_csv(&db, "pets", text), message);
    }
    for (text, message) in [
        ("{\"id\":10}\n{\"id\":11,\"x\":1}\n", "line 2: column \"x\" of table \"pets\" does not exist"),
        ("{\"id\":10,\"id\":11}\n", "line 1: column \"id\" of table \"pets\" is named twice"),
        (
            "{\"id\":10}\n\n{\"name\":\"x\"}",
            "line 3: column \"id\" of table \"pets\" is missing; it has no default and does not take NULL",
        ),
        ("{\"id\":10", "line 1: this is not a row: EOF while parsing an object at column 8"),
        ("{\"id\":10}{", "line 1: this is not a row: trailing characters at column 10"),
        (
            "[10]",
            "line 1: this is not a row: invalid type: sequence, expected an object with the values of a row at column 0",
        ),
    ] {
        refuses(&db, || load_json(&db, "pets", text), message);
    }
    refuses(&db, || load_csv(&db, "cats", "id\n"), "there is no table \"cats\"");
}

#[test]
fn values_that_do_not_fit_are_named() {
    let db = home::new();
    let types = [
        (Type::Bool, "maybe", "bool (true or false)"),
        (Type::I8, "128", "i8 (a whole number from -128 to 127)"),
        (
            Type::I64,
            "9223372036854775808",
            "i64 (a whole number from -9223372036854775808 to 9223372036854775807)",
        ),
        (Type::U8, "-1", "u8 (a whole number from 0 to 255)"),
        (Type::U64, "1.5", "u64 (a whole number from 0 to 18446744073709551615)"),
        (Type::F32, "1e39", "f32 (a number, NaN, inf or -inf)"),
        (Type::F64, "1e309", "f64 (a number, NaN, inf or -inf)"),
        (Type::F64, "NaN:0000000000000001", "f64 (a number, NaN, inf or -inf)"),
        (Type::F64, "", "f64 (a number, NaN, inf or -inf)"),
        (
            Type::Decimal { precision: 4, scale: 2 },
            "1.234",
            "decimal(4,2) (a decimal number, 2 digits after the point)",
        ),
        (
            Type::Decimal { precision: 4, scale: 2 },
            "100",
            "decimal(4,2) (a decimal number, 2 digits after the point)",
        ),
        (
            Type::Decimal { precision: 4, scale: 2 },
            "1e1",
            "decimal(4,2) (a decimal number, 2 digits after the point)",
        ),
        (
            Type::Decimal { precision: 4, scale: 2 },
            ".",
            "decimal(4,2) (a decimal number, 2 digits after the point)",
        ),
        (
            Type::Timestamp,
            "2026-02-30T00:00:00Z",
            "timestamp (a time like 2026-01-31T12:00:00.5Z, or microseconds since 1970)",
        ),
        (Type::FixedString(2), "abc", "fixed string(2) (at most 2 bytes, the last not zero)"),
        (Type::FixedString(2), "a\0", "fixed string(2) (at most 2 bytes, the last not zero)"),
        (Type::String(3), "öö", "string(3) (at most 3 bytes)"),
        (Type::FixedBytes(2), "AAAA", "fixed bytes(2) (at most 2 bytes, in base64)"),
        (Type::Bytes(9), "a*", "bytes(9) (at most 9 bytes, in base64)"),
    ];
    for (n, (ty, text, expected)) in types.into_iter().enumerate() {
        let table = format!("t{n}");
        let def = TableDef::new(&table).column("id", Type::U8).column("v", ty).primary_key(["id"]);
        db.create_table(def).expect("a table");
        // A message has no control characters.
        let message = format!("line 2, column \"v\": {expected} is expected, not {text:?}");
        refuses(&db, || load_csv(&db, &table, &format!("id,v\n1,{text}\n")), &message);
        let json = serde_json::to_string(text).expect("JSON");
        let message = format!("line 1, column \"v\": {expected} is expected, not {json}");
        refuses(&db, || load_json(&db, &table, &format!("{{\"id\":1,\"v\":{json}}}\n")), &message);
        let message = format!("line 1, column \"v\": {expected} is expected, not null");
        refuses(&db, || load_json(&db, &table, "{\"id\":1,\"v\":null}\n"), &message);
        let message = format!("line 1, column \"v\": {expected} is expected, not [1]");
        refuses(&db, || load_json(&db, &table, "{\"id\":1,\"v\":[1]}\n"), &message);
    }
    let pets = home::pets();
    let long = "x".repeat(100);
    let message = format!(
        "line 2, column \"name\": string(40) (at most 40 bytes) or NULL is expected, not \"{}…\"",
        &long[..60]
    );
    refuses(&pets, || load_csv(&pets, "pets", &format!("id,name\n9,{long}\n")), &message);
}

#[test]
fn numbers_of_others_are_read() {
    let db = home::new();
    let def = TableDef::new("t")
        .column("d", Type::Decimal { precision: 6, scale: 2 })
        .column("b", Type::Bool)
        .column("f", Type::F32)
        .column("at", Type::Timestamp)
        .column("s", Type::Bytes(9))
        .primary_key(["d"]);
    db.create_table(def).expect("a table");
    load_csv(&db, "t", "d,b,f,at,s\n+1.5000,1,1,1970-01-01T01:00:00+01:00,YQ\n-.5,0,-Infinity,5,YQ==\n")
        .expect("rows");
    load_json(&db, "t", "{\"d\":2.50,\"b\":true,\"f\":\"1.5\",\"at\":-1,\"s\":\"\"}").expect("a row");
    let rows: Vec<String> = home::rows(&db, "t").iter().map(|row| row.join("|")).collect();
    assert_eq!(
        rows,
        [
            "Decimal(Decimal { units: -50, scale: 2 })|Bool(false)|float fff0000000000000|Timestamp(5)|Bytes([97])",
            "Decimal(Decimal { units: 150, scale: 2 })|Bool(true)|float 3ff0000000000000|Timestamp(0)|Bytes([97])",
            "Decimal(Decimal { units: 250, scale: 2 })|Bool(true)|float 3ff8000000000000|Timestamp(-1)|Bytes([])",
        ]
    );
}

#[test]
fn text_that_is_not_utf_8_is_refused() {
    let db = home::pets();
    let load = |format, text: &'static [u8]| Load::new(&db).rows("pets", format, text);
    refuses(
        &db,
        || load(Format::JsonLines, b"{\"id\":10}\n{\"id\":11,\"name\":\"\xff\"}\n"),
        "line 2: the text is not UTF-8",
    );
    refuses(
        &db,
        || load(Format::Csv, b"id,name\n10,\xff\n"),
        "line 2, column \"name\": string(40) (at most 40 bytes) or NULL is expected, not \"\u{fffd}\", which is not UTF-8",
    );
    refuses(
        &db,
        || load(Format::Csv, b"id,\xff\n"),
        "line 1: column \"\u{fffd}\" of table \"pets\" does not exist",
    );
}

/// An input that fails in the middle.
struct Torn(&'static [u8]);

impl Read for Torn {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self.0.read(to)? {
            0 => Err(io::Error::other("torn")),
            read => Ok(read),
        }
    }
}

#[test]
fn input_that_cannot_be_read_is_a_failure() {
    let db = home::pets();
    let load = Load::new(&db);
    for format in [Format::Csv, Format::JsonLines] {
        let text: &[u8] = if format == Format::Csv { b"id\n10\n" } else { b"{\"id\":10}\n" };
        refuses(&db, || load.rows("pets", format, Torn(text)), "cannot read the input: torn");
    }
    refuses(&db, || load.dump(Torn(b"{\"pantile_dump\":1}\n")), "cannot read the input: torn");
}

/// The first line that is wrong is named, however many threads read.
#[test]
fn the_first_wrong_line_is_the_one_that_is_named() {
    let db = home::pets();
    let mut text = String::from("id,name\n");
    for id in 10..60_000 {
        let name = if matches!(id, 30_000 | 31_000 | 55_000) {
            "x".repeat(41)
        } else {
            "a name of some length".into()
        };
        text += &format!("{id},{name}\n");
    }
    for threads in [1, 2, 7] {
        let before = home::contents(&db);
        let failed =
            Load::new(&db).threads(threads).rows("pets", Format::Csv, text.as_bytes()).expect_err("long");
        assert!(matches!(&*failed.cause, Error::WrongValue { at, .. } if at.line == 29_992), "{failed}");
        assert_eq!(home::contents(&db), before);
    }
}

#[test]
fn defaults_go_along_and_stand_for_what_is_missing() {
    let db = home::pets();
    let pets = db.table("pets").expect("the table");
    let change = TableChange::new()
        .drop_column("age")
        .add_column_before("name", ColumnDef::new("legs", Type::U8).default(4u8))
        .add_column(ColumnDef::new("score", Type::F64).default(f64::NEG_INFINITY))
        .add_column(ColumnDef::new("tag", Type::Bytes(9)).nullable().default(&[0u8, 255][..]));
    db.alter_table(&pets, &change).expect("other columns");
    let copy = home::new();
    Load::new(&copy).dump(home::dump(&db).as_bytes()).expect("a dump");
    assert_eq!(home::contents(&copy), home::contents(&db));
    load_csv(&copy, "pets", "id,tag\n10,\\N\n").expect("a row");
    load_json(&copy, "pets", "{\"id\":11,\"legs\":3}").expect("a row");
    let rows: Vec<_> = home::rows(&copy, "pets")[2..].iter().map(|row| row.join("|")).collect();
    let infinity = format!("float {:016x}", f64::NEG_INFINITY.to_bits());
    assert_eq!(
        rows,
        [
            format!("UInt(10)|UInt(4)|Null|{infinity}|Null"),
            format!("UInt(11)|UInt(3)|Null|{infinity}|Bytes([0, 255])")
        ]
    );
}
