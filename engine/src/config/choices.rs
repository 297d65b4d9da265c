//! Settings whose value is one of some words.

use super::value::{FromValue, Value};
use crate::ledger::OnError;

/// An enum whose variants are the words of a setting.
macro_rules! choices {
    ($($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            pub(super) const WORDS: &[&str] = &[$($word),*];
        }

        impl FromValue for $name {
            fn from_value(value: Option<&Value>) -> Option<Self> {
                match String::from_value(value)?.as_str() {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    )*};
}

choices! {
    /// The order of rows in an output.
    OutputOrder {
        /// As jobs finish.
        Arrival = "arrival",
        /// Always the same for the same pages.
        Canonical = "canonical",
    }

    /// Whether a commit waits for the disk.
    Durability {
        /// The disk.
        Strict = "strict",
        /// The operating system only.
        None = "none",
    }

    /// Which pages are saved.
    PagesKeep {
        /// Pages from the network.
        Web = "web",
        /// Files too.
        All = "all",
    }

    /// How a node takes part in a cluster.
    ClusterRole {
        /// It keeps the ledger and votes.
        Voter = "voter",
        /// It only works.
        Worker = "worker",
    }

    /// Which of several waiting nodes gets jobs first.
    Placement {
        /// The first to ask.
        Any = "any",
        /// The first in the list of peers.
        Listed = "listed",
        /// The node with the fewest jobs in flight.
        LeastLoaded = "leastLoaded",
        /// The node with the most jobs in flight.
        MostLoaded = "mostLoaded",
    }
}

impl FromValue for OnError {
    fn from_value(value: Option<&Value>) -> Option<Self> {
        match String::from_value(value)?.as_str() {
            "fail" => Some(Self::Fail),
            "quarantine" => Some(Self::Quarantine),
            "halt" => Some(Self::Halt),
            _ => None,
        }
    }
}
