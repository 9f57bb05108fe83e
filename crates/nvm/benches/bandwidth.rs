//! The bandwidth that emulated memory reaches on this machine, and how far it
//! is from what each configuration asks for.
//!
//! A busy machine gives larger deviations. Nothing fails.

use pantile_nvm::{DEVIATION_BOUND, NvmConfig, measure};

fn main() {
    println!("sequential, one thread; a deviation above {:.0} % is marked", DEVIATION_BOUND * 100.0);
    for config in NvmConfig::ALL {
        let measured = match measure(config) {
            Ok(measured) => measured,
            Err(error) => {
                println!("nvm:{:9}  {error}", config.name);
                continue;
            }
        };
        for (what, reached) in [("reads", measured.read), ("writes", measured.write)] {
            let deviation = reached.deviation();
            println!(
                "nvm:{:9}  {what:6}  {:6.0} MB/s, {:6.0} wanted, {:+5.1} %{}",
                config.name,
                reached.bytes_per_s / 1e6,
                reached.wanted_bytes_per_s / 1e6,
                deviation * 100.0,
                if deviation.abs() > DEVIATION_BOUND { "  <--" } else { "" },
            );
        }
    }
}
