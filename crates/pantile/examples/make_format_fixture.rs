//! Makes the stored database that the tests in `tests/engine/format` read. Run it when the format
//! and its version change.
//!
//! `cargo run -p pantile --example make_format_fixture -- FILE` writes the
//! database, without its zeros, to FILE.

use std::path::PathBuf;

use pantile::Options;

#[path = "../tests/engine/format/fixture.rs"]
mod fixture;
#[allow(dead_code)] // only the tests read it
#[path = "../tests/engine/format/image_file.rs"]
mod image_file;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(target) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err(
            "name the file to write, as in crates/pantile/tests/engine/format/data/format-3.image".into()
        );
    };
    let place = tempfile::tempdir()?;
    let path = place.path().join("db");
    fixture::make(&path)?;
    let mut data = std::fs::read(path.join("pantile.data"))?;
    // Space that was written ahead of use is not part of the database.
    let used = data.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
    data.truncate(used.next_multiple_of(2 << 20));
    let stored = image_file::encode(&data);
    if image_file::decode(&stored).bytes != data {
        return Err("what was written cannot be read back".into());
    }
    if let Some(wrong) = fixture::compare(&Options::new().create(false).open(&path)?)? {
        return Err(format!("{wrong} cannot be read back").into());
    }
    std::fs::write(&target, &stored)?;
    println!("{}: {} bytes for a database of {}", target.display(), stored.len(), data.len());
    Ok(())
}
