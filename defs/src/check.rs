//! Cross-references; collects, never stops at the first.
