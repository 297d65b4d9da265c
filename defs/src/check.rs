//! Cross-references; collects, never stops at the first.
pub(crate) fn check(_defs: &crate::Defs, _findings: &mut crate::findings::Findings<'_>) {}
