//! Filters drop rows by the value or the `match` of an axis.

use std::collections::HashMap;

use fancy_regex::Regex;
use spoonbill_defs::{DataDef, FilterSubject, ItemFilter};

use crate::data::{Axis, Row};
use crate::java_regex;
use crate::options::OptionProblem;

/// The filters of a data definition, by item name.
#[derive(Debug, Default)]
pub struct Filters {
    by_item: HashMap<String, Vec<FilterRule>>,
}

#[derive(Debug)]
struct FilterRule {
    on: FilterSubject,
    pattern: String,
    /// `None` for the pattern [`BLANK`], which is not a regular expression.
    regex: Option<Regex>,
}

/// The pattern that matches blank and absent values.
const BLANK: &str = " ";

impl Filters {
    /// Compiles all filters of a definition, or reports every invalid pattern.
    pub fn compile(def: &DataDef) -> Result<Self, Vec<OptionProblem>> {
        let mut by_item: HashMap<String, Vec<FilterRule>> = HashMap::new();
        let mut problems = Vec::new();
        for item in def.items.iter().chain(&def.dims).chain(&def.facts) {
            let mut rules = Vec::with_capacity(item.filters.len());
            for filter in &item.filters {
                match FilterRule::compile(filter) {
                    Ok(rule) => rules.push(rule),
                    Err(problem) => problems.push(problem),
                }
            }
            if !rules.is_empty() {
                by_item.entry(item.name.text.clone()).or_default().extend(rules);
            }
        }
        if problems.is_empty() { Ok(Self { by_item }) } else { Err(problems) }
    }

    /// Whether there are no filters.
    pub fn is_empty(&self) -> bool {
        self.by_item.is_empty()
    }

    /// Whether a row is kept: no filter of its axes matches.
    pub fn keep(&self, row: &Row) -> bool {
        !row.axes.iter().any(|axis| {
            let rules = self.by_item.get(&*axis.item_name);
            rules.is_some_and(|rules| rules.iter().any(|rule| rule.matches(axis)))
        })
    }
}

impl FilterRule {
    fn compile(filter: &ItemFilter) -> Result<Self, OptionProblem> {
        let pattern = &filter.pattern.text;
        let regex = if pattern == BLANK {
            None
        } else {
            let regex = java_regex::compile_whole(pattern).map_err(|error| {
                let message = format!("filter `{pattern}` is not a regular expression: {error}");
                OptionProblem::new(filter.pattern.at, message)
                    .with_help(r"put literal text between `\Q` and `\E`")
            })?;
            Some(regex)
        };
        Ok(Self { on: filter.on, pattern: pattern.clone(), regex })
    }

    fn matches(&self, axis: &Axis) -> bool {
        let subject = match self.on {
            FilterSubject::Match => axis.match_text.as_deref(),
            FilterSubject::Value => axis.value.as_deref(),
        };
        let Some(subject) = subject else {
            return self.regex.is_none();
        };
        match &self.regex {
            None => is_blank(subject),
            // Keep the row if the match exceeds its limits: users notice extra rows, not missing ones.
            Some(regex) => subject == self.pattern || regex.is_match(subject).unwrap_or(false),
        }
    }
}

/// Whether Java calls a text blank. Java excludes non-breaking spaces and includes separators.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| match c {
        '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}' => false,
        '\u{1c}'..='\u{1f}' => true,
        other => other.is_whitespace(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spoonbill_defs::{Item, Text};

    use super::*;
    use crate::data::AxisKind;

    fn def(filters: &[(FilterSubject, &str)]) -> DataDef {
        let filters = filters
            .iter()
            .map(|(on, pattern)| ItemFilter { on: *on, pattern: Text::new(*pattern) });
        DataDef {
            dims: vec![Item {
                name: Text::new("date"),
                filters: filters.collect(),
                ..Item::default()
            }],
            ..DataDef::default()
        }
    }

    fn row(value: Option<&str>, match_text: Option<&str>) -> Row {
        let axis = |name: &str, value: Option<&str>| Axis {
            kind: AxisKind::Dim,
            item_name: name.into(),
            value: value.map(str::to_owned),
            match_text: match_text.map(Arc::from),
            index: None,
            order: None,
        };
        Row { axes: vec![axis("other", Some("-")), axis("date", value)], ..Row::default() }
    }

    #[track_caller]
    fn check(pattern: &str, dropped: &[Option<&str>], kept: &[Option<&str>]) {
        let filters = Filters::compile(&def(&[(FilterSubject::Value, pattern)])).unwrap();
        for value in dropped {
            assert!(!filters.keep(&row(*value, None)), "`{pattern}` must drop {value:?}");
        }
        for value in kept {
            assert!(filters.keep(&row(*value, None)), "`{pattern}` must keep {value:?}");
        }
    }

    #[test]
    fn an_expression_matches_the_whole_value() {
        check("Dec.*|x", &[Some("Dec '16"), Some("x")], &[Some("in Dec"), Some("xy"), None]);
    }

    #[test]
    fn a_pattern_equal_to_the_value_matches() {
        let pattern = "Per share data (annualised)";
        check(pattern, &[Some(pattern), Some("Per share data annualised")], &[Some("Per share")]);
    }

    #[test]
    fn one_space_drops_blank_and_absent() {
        let dropped = [Some(""), Some(" \t\n"), None];
        check(" ", &dropped, &[Some("a"), Some("\u{a0}")]);
    }

    #[test]
    fn an_empty_pattern_drops_only_the_empty_text() {
        check("", &[Some("")], &[Some(" "), None]);
    }

    #[test]
    fn a_filter_of_type_match_reads_the_match() {
        let filters = Filters::compile(&def(&[(FilterSubject::Match, "Net.*")])).unwrap();
        assert!(!filters.keep(&row(Some("x"), Some("Net Profit"))));
        assert!(filters.keep(&row(Some("Net Profit"), Some("x"))));
        assert!(filters.keep(&row(Some("Net Profit"), None)));
    }

    #[test]
    fn one_of_several_filters_drops_a_row_but_not_by_another_axis() {
        let several = def(&[(FilterSubject::Value, "a"), (FilterSubject::Value, "b")]);
        let filters = Filters::compile(&several).unwrap();
        assert!(!filters.keep(&row(Some("b"), None)));
        assert!(filters.keep(&row(Some("c"), None)));
        let dash = Filters::compile(&def(&[(FilterSubject::Value, "-")])).unwrap();
        assert!(dash.keep(&row(Some("c"), None)), "the dash is the value of another axis");
        assert!(Filters::compile(&def(&[])).unwrap().is_empty());
    }

    #[test]
    fn every_invalid_pattern_is_reported() {
        let bad = def(&[
            (FilterSubject::Value, "a("),
            (FilterSubject::Value, "ok"),
            (FilterSubject::Match, "["),
        ]);
        let problems = Filters::compile(&bad).unwrap_err();
        assert_eq!(problems.len(), 2);
        assert!(problems[0].message.starts_with("filter `a(` is not a regular expression"));
        assert!(problems[0].help.is_some());
    }
}
