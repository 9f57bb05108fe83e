//! Rows in words, for comparing and for reports.

use std::collections::BTreeSet;

use pantile::{Result, Row, Value};

/// Rows of a table as values in words. Long values appear by length and
/// content.
pub type Rows = BTreeSet<Vec<String>>;

pub(crate) fn words(values: &[Value<'_>]) -> Vec<String> {
    values.iter().map(word).collect()
}

fn word(value: &Value<'_>) -> String {
    match value {
        Value::Bytes(bytes) => {
            let first = bytes.first().copied().unwrap_or_default();
            let same = if bytes.iter().all(|b| *b == first) { "" } else { " and others" };
            format!("{}x{first}{same}", bytes.len())
        }
        Value::Int(n) => n.to_string(),
        Value::UInt(n) => n.to_string(),
        Value::Str(text) => (*text).to_owned(),
        other => format!("{other:?}"),
    }
}

pub(crate) fn row_words(row: &Row<'_>) -> Result<Vec<String>> {
    Ok(row.to_values()?.iter().map(|value| word(&value.as_value())).collect())
}
