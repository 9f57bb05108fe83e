//! A key-value store on several nodes, each a process with a database of its own.
//!
//! ```console
//! cargo run --example replicated -- start 1 127.0.0.1:7001 data/1
//! cargo run --example replicated -- start 2 127.0.0.1:7002 data/2
//! cargo run --example replicated -- start 3 127.0.0.1:7003 data/3
//! cargo run --example replicated -- init 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
//! cargo run --example replicated -- put 127.0.0.1:7001 colour green
//! cargo run --example replicated -- get 127.0.0.1:7002 colour
//! cargo run --example replicated -- status 127.0.0.1:7003
//! ```
//!
//! Kill one of the three, and the others go on; start it again with the same arguments, and it catches up.

mod service;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match service::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("replicated: {failure}");
            ExitCode::FAILURE
        }
    }
}
