//! The real binary, killed at random instants, its files damaged, its disk full: the rows are
//! those of an undisturbed run, or the run is refused with words.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod damage;
mod full_disk;
mod kills;
mod shop;

use crate::harness::site;
