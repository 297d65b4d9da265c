//! The engine from the outside: the real binary, real servers, real signals.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod examples;
mod tidy;
