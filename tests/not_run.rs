//! Prints the tests that this machine could not run. It is the last target of the last crate, so the
//! list is the end of `cargo test --workspace`.

#![allow(clippy::print_stderr)]

use std::collections::BTreeSet;

fn main() {
    let list = concat!(env!("CARGO_TARGET_TMPDIR"), "/not-run");
    let Ok(names) = std::fs::read_to_string(list) else { return };
    eprintln!("\nnot run on this machine:");
    // The end-to-end tests may have run several times since the list was printed.
    for name in names.lines().collect::<BTreeSet<_>>() {
        eprintln!("  {name}");
    }
    // The next run makes its own list.
    if let Err(error) = std::fs::remove_file(list) {
        eprintln!("cannot remove {list}: {error}");
    }
}
