//! The parts that end-to-end tests share: a web site, a working directory, processes and clusters.

pub mod defs;
pub mod needs;
pub mod nodes;
pub mod shown;
pub mod site;
pub mod workdir;

pub use defs::{TITLE, indent, job, titled};
pub use nodes::{RunFiles, TestCluster};
pub use site::{PageGate, SiteResponse, TestSite};
pub use workdir::{ProcessOutput, Running, Workdir, wait_until};
