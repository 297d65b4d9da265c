//! A single process that is killed at random times and at every named point, with power cuts, damaged
//! files and full disks. The rows are those of an undisturbed run, or an error names what is wrong.

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
