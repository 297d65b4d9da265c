//! End-to-end tests: they run the real binary against real servers and send it real signals.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value)]
#![allow(unreachable_pub, clippy::needless_raw_string_hashes, clippy::too_many_lines)]
#![allow(clippy::format_collect, clippy::duration_suboptimal_units, clippy::print_stdout)]

mod harness;

mod bad_pages;
mod cli;
mod cluster;
mod documents;
mod examples;
mod follow;
mod kill;
mod loading;
mod records;
mod signals;
mod solo;
mod tidy;
