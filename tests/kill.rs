//! The real binary, killed at random instants, its files damaged, its disk full: the rows are
//! those of an undisturbed run, or the run is refused with words.

mod damage;
mod full_disk;
mod kills;
mod shop;

use crate::harness::site;
