//! Full
