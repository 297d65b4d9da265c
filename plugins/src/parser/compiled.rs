//! Compiled queries by text, kept from page to page.
//!
//! `%{index}` makes one query many texts, so the number kept is limited. When the young half is
//! full, it replaces the old half. A query that is used again moves to the young half.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

/// Queries kept by default.
const QUERIES_MAX: usize = 4096;

/// A cache of compiled queries with a limit. Each parsing thread has its own.
#[derive(Debug)]
pub struct CompiledQueries<T> {
    young: HashMap<Box<str>, Arc<T>>,
    old: HashMap<Box<str>, Arc<T>>,
    half: usize,
}

impl<T> Default for CompiledQueries<T> {
    fn default() -> Self {
        Self::new(QUERIES_MAX)
    }
}

impl<T> CompiledQueries<T> {
    /// A cache for `queries_max` queries, but at least two.
    fn new(queries_max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), half: (queries_max / 2).max(1) }
    }

    /// The compiled query of this text. It is compiled if the cache does not have it. Errors are
    /// not cached.
    pub(super) fn get<E>(
        &mut self,
        text: &str,
        compile: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        if let Some(known) = self.young.get(text) {
            return Ok(Arc::clone(known));
        }
        let (key, query) = match self.old.remove_entry(text) {
            Some(known) => known,
            None => (text.into(), Arc::new(compile(text)?)),
        };
        if self.young.len() >= self.half {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, Arc::clone(&query));
        Ok(query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_in_use_stay_and_the_rest_is_dropped() {
        let mut made = Vec::new();
        let mut compiled = CompiledQueries::new(4);
        let mut get = |text: &str| {
            let query = compiled.get(text, |text| {
                made.push(text.to_owned());
                Ok::<_, ()>(text.len())
            });
            assert_eq!(*query.unwrap(), text.len());
        };
        for text in ["a", "bb", "a", "ccc", "a", "dd", "a", "ee", "a", "bb"] {
            get(text);
        }
        assert_eq!(made, ["a", "bb", "ccc", "dd", "ee", "bb"]);
        assert!(compiled.young.len() + compiled.old.len() <= 4);
    }

    #[test]
    fn errors_are_not_cached() {
        let mut compiled = CompiledQueries::new(4);
        assert_eq!(compiled.get("a", |_| Err::<u8, _>("no")), Err("no"));
        assert_eq!(compiled.get("a", |_| Ok::<_, ()>(1)).as_deref(), Ok(&1));
    }
}
