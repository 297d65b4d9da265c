//! The real binary, killed at random instants and at every named point, its power cut, its files
//! damaged, its disk full: the rows are those of an undisturbed run, or it is refused with words.

mod again;
mod damage;
mod failpoints;
pub(crate) mod full_disk;
mod judged;
mod kills;
mod lost;
pub(crate) mod power;
pub(crate) mod sets;
pub(crate) mod shop;

use crate::harness::site;
