//! What the examples with a simulated SSD share.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::Path;

use pantile_bench::{Error, Result};

/// Reads a number from a range.
pub fn number(text: &str, range: RangeInclusive<f64>) -> std::result::Result<f64, String> {
    let number = text.parse().map_err(|_| "it is not a number".to_owned())?;
    let (least, most) = (range.start(), range.end());
    if range.contains(&number) { Ok(number) } else { Err(format!("it must be from {least} to {most}")) }
}

/// Writes a file, if there is to be one.
pub fn write_file(
    path: Option<&Path>,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let written = File::create(path).map(BufWriter::new).and_then(|mut out| {
        write(&mut out)?;
        out.flush()
    });
    written.map_err(|error| Error::io(format!("write {}", path.display()), error))
}
