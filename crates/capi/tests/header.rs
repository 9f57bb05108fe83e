//! The header is what the source says.

use std::path::Path;

/// Makes it anew, and compares. `PANTILE_WRITE_HEADER=1` writes it first.
#[test]
fn the_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let made = cbindgen::Builder::new().with_crate(root).with_config(config).generate().expect("a header");
    let mut text = Vec::new();
    made.write(&mut text);
    let text = String::from_utf8(text).expect("text");
    let path = root.join("include/pantile.h");
    if std::env::var_os("PANTILE_WRITE_HEADER").is_some() {
        std::fs::write(&path, &text).expect("the header is written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "include/pantile.h is not what the source says: PANTILE_WRITE_HEADER=1 cargo test -p pantile-capi"
    );
}
