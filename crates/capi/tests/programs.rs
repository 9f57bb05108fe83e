//! C programs that use the library, the example among them: compiled with every
//! warning as an error, linked with both kinds of library, and run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// As the linker of Rust programs has it.
const SYSTEM: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The library, beside this program.
fn library(name: &str) -> PathBuf {
    // Without this the library would not be built for the test.
    assert!(!pantile_c::pantile_version().is_null());
    let directory = std::env::current_exe().expect("this program");
    let found =
        directory.ancestors().skip(1).take(2).map(|place| place.join(name)).find(|place| place.exists());
    found.unwrap_or_else(|| panic!("{name} is not beside {}", directory.display()))
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Compiles a program, and runs it in a directory of its own.
fn run(source: &str, library: &Path) -> String {
    let place = tempfile::tempdir().expect("a directory");
    let program = place.path().join("program");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut compile = Command::new(compiler);
    compile.args([
        "-std=c99",
        "-D_POSIX_C_SOURCE=200809L",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        "-g",
    ]);
    compile.arg("-I").arg(root().join("include")).arg(root().join(source)).arg(library).args(SYSTEM);
    compile.arg(format!("-Wl,-rpath,{}", library.parent().expect("a directory").display()));
    succeed(compile.arg("-o").arg(&program));
    let output = succeed(Command::new(&program).arg(place.path().join("db")));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn changes() {
    run("tests/programs/changes.c", &library("libpantile_c.a"));
}

#[test]
fn insight() {
    run("tests/programs/insight.c", &library("libpantile_c.a"));
}

#[test]
fn rows() {
    run("tests/programs/rows.c", &library("libpantile_c.a"));
}

#[test]
fn transactions() {
    run("tests/programs/transactions.c", &library("libpantile_c.a"));
}

#[test]
fn backup() {
    run("tests/programs/backup.c", &library("libpantile_c.a"));
}

#[test]
fn the_example() {
    for name in ["libpantile_c.a", "libpantile_c.so"] {
        let told = run("examples/shop.c", &library(name));
        assert_eq!(told, "order 1: 1250\norder 3: 99\nAnn owes 13.49\n", "{name}");
    }
}
