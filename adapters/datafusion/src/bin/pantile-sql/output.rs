//! Results, as they are printed.

use std::error::Error;
use std::io::{BufWriter, ErrorKind, Write, stdout};

use clap::ValueEnum;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::Writer;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::LineDelimitedWriter;
use datafusion::arrow::util::pretty::pretty_format_batches_with_schema;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::DataFrame;
use futures::StreamExt;

/// How rows are printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Mode {
    /// Columns below each other. The result is in memory as a whole.
    Table,
    /// CSV, with the names of the columns in the first row; NULL is empty, bytes are in hexadecimal.
    Csv,
    /// A JSON object in each line, without what is NULL; bytes are in hexadecimal.
    Jsonl,
}

/// Runs a query and prints what it finds.
pub async fn print(query: DataFrame, mode: Mode) -> Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    let schema = std::sync::Arc::clone(query.schema().inner());
    let mut batches = query.execute_stream().await?;
    match mode {
        Mode::Table => {
            let mut all = Vec::new();
            while let Some(batch) = batches.next().await {
                all.push(batch?);
            }
            writeln!(out, "{}", pretty_format_batches_with_schema(schema, &all)?)?;
        }
        Mode::Csv => {
            let mut csv = Writer::new(&mut out);
            csv.write(&RecordBatch::new_empty(schema))?;
            while let Some(batch) = batches.next().await {
                csv.write(&batch?)?;
            }
        }
        Mode::Jsonl => {
            let mut lines = LineDelimitedWriter::new(&mut out);
            while let Some(batch) = batches.next().await {
                lines.write(&batch?)?;
            }
            lines.finish()?;
        }
    }
    Ok(out.flush()?)
}

/// What an error says. What Pantile refuses is said in its own words.
pub fn message(error: &DataFusionError) -> String {
    match error {
        DataFusionError::External(source) => source.to_string(),
        other => other.strip_backtrace(),
    }
}

/// Whether nobody reads what is printed any more.
pub fn is_broken_pipe(error: &DataFusionError) -> bool {
    let is_it = |error: &std::io::Error| error.kind() == ErrorKind::BrokenPipe;
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = source {
        let arrow = match error.downcast_ref() {
            Some(ArrowError::IoError(_, error)) => Some(error),
            _ => None,
        };
        if error.downcast_ref().or(arrow).is_some_and(is_it) {
            return true;
        }
        source = error.source();
    }
    false
}
