//! Finds out which commit is being built, for the records of benchmark runs.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PANTILE_COMMIT");
    // Both change with every commit; a missing file would rebuild every time.
    for file in ["../../.git/HEAD", "../../.git/logs/HEAD"] {
        if Path::new(file).exists() {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    let commit = std::env::var("PANTILE_COMMIT").ok().or_else(from_git);
    println!("cargo::rustc-env=PANTILE_BUILT_FROM={}", commit.as_deref().unwrap_or("unknown"));
}

fn from_git() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output().ok()?;
    let hash = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !hash.is_empty()).then_some(hash)
}
