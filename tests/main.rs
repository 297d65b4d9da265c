//! The engine from the outside: the real binary, real servers, real signals.

mod kill;
