//! The protocols between threads of the engine, one model each. The first lines
//! of a model state what must hold.

use std::process::ExitCode;

#[cfg(pantile_shuttle)]
mod cleanup;
#[cfg(pantile_shuttle)]
mod definitions;
#[cfg(pantile_shuttle)]
mod index;
#[cfg(pantile_shuttle)]
mod moving;
#[cfg(pantile_shuttle)]
mod prepared;
#[cfg(pantile_shuttle)]
mod reclaim;
#[cfg(pantile_shuttle)]
mod registry;
#[cfg(pantile_shuttle)]
mod slots;
#[cfg(pantile_shuttle)]
mod support;
#[cfg(pantile_shuttle)]
mod transactions;

#[cfg(pantile_shuttle)]
fn main() -> ExitCode {
    let transactions = [
        registry::MODELS,
        transactions::MODELS,
        moving::MODELS,
        index::MODELS,
        cleanup::MODELS,
        definitions::MODELS,
        prepared::MODELS,
    ];
    let space = [reclaim::MODELS, slots::MODELS];
    pantile_interleavings::main(&[transactions.concat(), space.concat()].concat())
}

#[cfg(not(pantile_shuttle))]
fn main() -> ExitCode {
    println!("models need the model checker's atomics; run scripts/interleave [SECONDS] [MODEL]");
    ExitCode::SUCCESS
}
