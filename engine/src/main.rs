//! The `spoonbill` binary.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    spoonbill_engine::cli::main(std::env::args_os())
}
