//! The real binary, killed at random instants, its files damaged, its disk full: the rows are
//! those of an undisturbed run, or the run is refused with words.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "kill/damage.rs"]
mod damage;
#[path = "kill/full_disk.rs"]
mod full_disk;
#[path = "kill/kills.rs"]
mod kills;
#[path = "kill/shop.rs"]
mod shop;
#[path = "harness/site.rs"]
mod site;
