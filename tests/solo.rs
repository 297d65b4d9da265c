//! From definitions to rows: everything that the examples do not cover.

mod charsets;
mod links;
mod output;
mod replay;
mod steps;
mod store;
mod values;
