//! Definitions to rows: everything that no example of the classic sets pins down.

mod charsets;
mod links;
mod output;
mod replay;
mod steps;
mod store;
mod values;
