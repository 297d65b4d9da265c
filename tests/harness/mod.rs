//! The parts that end-to-end tests share: a web site, a working directory, processes and clusters.

pub mod defs;
pub mod needs;
pub mod nodes;
pub mod shown;
pub mod site;
pub mod workdir;

pub use defs::{TITLE, indent, job, titled};
pub use nodes::{Cluster, Files};
pub use site::{Gate, Response, Site};
pub use workdir::{Ending, Running, Workdir, wait_until};
