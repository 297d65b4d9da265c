//! Loads, parses, converts, encodes and appends.
//!
//! Each plugin takes a value and returns one. None of them knows jobs, runs or the cluster.

pub mod appender;
pub mod converter;
pub mod css;
pub mod data;
pub mod dates;
pub mod encoder;
pub mod filter;
pub mod follow;
pub mod html;
pub mod java_regex;
pub mod loader;
pub mod options;
pub mod page;
pub mod parser;
pub mod propose;
pub mod records;
pub mod script;
pub mod xpath;
