//! Compiles the parts of a record and collects all problems.

use spoonbill_defs::{Field, Record, Separators, Text};

use super::cut::FieldRegex;
use super::dates::{DateForm, mistake};
use super::json::JsonPath;
use super::jsonld::LdPath;
use super::number::{Grouping, NumberForm};
use super::plan::{FieldFormat, QueryTarget};
use super::value::{AddressBase, ValueMisfit, fit, shown};
use crate::css::Selector;
use crate::dates::{DatePattern, DateSetup, PatternError};
use crate::options::OptionProblem;
use crate::script::{ScriptError, check_expression};
use crate::xpath::XPath;

/// Problems of one record.
#[derive(Debug, Default)]
pub(super) struct RecordProblems {
    pub(super) found: Vec<OptionProblem>,
}

/// Detects XPath in place of a selector. No selector starts like this.
fn is_xpath(text: &str) -> bool {
    ["/", "./", "../", "(/", "(./"].iter().any(|start| text.starts_with(start))
        || text.contains("::") && ["child::", "descendant::"].iter().any(|it| text.starts_with(it))
}

/// Detects a selector in place of XPath, which would read `div.card > a` as a comparison.
fn is_css(text: &str) -> bool {
    let combines = [" > ", " + ", " ~ "].iter().any(|sign| text.contains(sign));
    let names = |c: char| c.is_alphanumeric() || c.is_whitespace() || "-_.>+~,*".contains(c);
    combines && text.chars().all(names) && Selector::parse(text).is_ok()
}

/// Compiles the selector of a follow rule, with the same help as for fields.
pub(crate) fn selector(text: &Text, found: &mut Vec<OptionProblem>) -> Option<Selector> {
    let mut problems = RecordProblems::default();
    let place = problems.css("follow", text);
    if let Some(QueryTarget::Here) = place {
        problems.add(text, "follow: the selector is empty".to_owned());
    }
    found.append(&mut problems.found);
    if let Some(QueryTarget::Css(selector)) = place { Some(selector) } else { None }
}

/// Compiles the XPath of a follow rule, with the same help as for fields.
pub(crate) fn xpath(text: &Text, found: &mut Vec<OptionProblem>) -> Option<XPath> {
    let mut problems = RecordProblems::default();
    let path = problems.xpath("follow", text);
    found.append(&mut problems.found);
    path
}

impl RecordProblems {
    fn add(&mut self, at: &Text, message: String) -> &mut OptionProblem {
        self.found.push(OptionProblem::new(at.at, message));
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    fn add_inside(&mut self, text: &Text, offset: usize, message: String) -> &mut OptionProblem {
        let problem = self.add(text, message);
        problem.inside = Some(offset);
        problem
    }

    pub(super) fn nothing_to_look_for(&mut self, field: &Field, json_block: bool) {
        let message = format!("field `{}` has no query and no value", field.name.text);
        let key = if json_block { "json" } else { "selector" };
        self.add(&field.name, message).help =
            Some(format!("add `{key}`, `xpath`, `json`, `jsonld` or `value`"));
    }

    pub(super) fn two_queries(&mut self, place: &str, second: &Text) {
        let message = format!("{place}: `{}` is a second query", second.text);
        self.add(second, message).help =
            Some("keep one of `selector`, `xpath` and `jsonld`".to_owned());
    }

    /// Checks that the columns have different names.
    pub(super) fn names(&mut self, record: &Record) {
        let mut seen: Vec<&str> = record.columns.iter().map(|column| column.name()).collect();
        for field in &record.fields {
            let name = field.name.text.as_str();
            if name.trim().is_empty() {
                self.add(&field.name, "a field has no name".to_owned());
            } else if seen.contains(&name) {
                let message = format!("two columns have the name `{name}`");
                self.add(&field.name, message).help = Some("rename one of them".to_owned());
            }
            seen.push(name);
        }
    }

    pub(super) fn css(&mut self, place: &str, text: &Text) -> Option<QueryTarget> {
        let words = text.text.trim();
        if words.is_empty() || words == "." {
            return Some(QueryTarget::Here);
        }
        if is_xpath(words) {
            let message = format!("{place}: `{words}` is XPath, but a selector is needed");
            self.add(text, message).help = Some(format!("write `{{ xpath: {words:?} }}`"));
            return None;
        }
        match Selector::parse(words) {
            Ok(selector) => Some(QueryTarget::Css(selector)),
            Err(error) => {
                let lead = text.text.chars().take_while(|c| c.is_whitespace()).count();
                let message = format!("{place}: bad selector: {}", error.message);
                let problem = self.add_inside(text, lead + error.at, message);
                if words.contains("::attr(") || words.contains("::text") {
                    let help = "write `a @href` for an attribute; the text is the default";
                    problem.help = Some(help.to_owned());
                } else if words.starts_with("$.") || words.starts_with("$[") {
                    problem.help = Some(format!("for a JSON path write `{{ json: {words:?} }}`"));
                }
                None
            }
        }
    }

    pub(super) fn xpath(&mut self, place: &str, text: &Text) -> Option<XPath> {
        match XPath::parse(&text.text) {
            Ok(_) if is_css(&text.text) => {
                let words = text.text.trim();
                let message = format!("{place}: `{words}` is a selector, but XPath is needed");
                self.add(text, message).help = Some(format!("write `selector: {words:?}`"));
                None
            }
            Ok(path) => Some(path),
            Err(error) => {
                let message = format!("{place}: bad XPath: {}", error.message);
                let problem = self.add(text, message);
                problem.inside = error.at;
                if Selector::parse(&text.text).is_ok() {
                    problem.help =
                        Some(format!("for a CSS selector write `selector: {:?}`", text.text));
                }
                None
            }
        }
    }

    pub(super) fn json(&mut self, place: &str, text: &Text) -> Option<JsonPath> {
        match JsonPath::parse(&text.text) {
            Ok(path) => Some(path),
            Err(error) => {
                self.add_inside(
                    text,
                    error.at,
                    format!("{place}: bad JSON path: {}", error.message),
                );
                None
            }
        }
    }

    pub(super) fn jsonld(&mut self, place: &str, text: &Text) -> Option<LdPath> {
        match LdPath::parse(&text.text) {
            Ok(path) => Some(path),
            Err((message, at)) => {
                let message = format!("{place}: bad JSON-LD path: {message}");
                self.add_inside(text, at, message).help =
                    Some("write it like `Product.offers.price`".to_owned());
                None
            }
        }
    }

    pub(super) fn attribute(&mut self, place: &str, text: &Text) -> Option<Box<str>> {
        let name = text.text.trim().trim_start_matches('@');
        let is_odd = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '/' | '=');
        if name.is_empty() || name.contains(is_odd) {
            self.add(text, format!("{place}: `{name}` is not an attribute name"));
            return None;
        }
        Some(name.to_ascii_lowercase().into())
    }

    pub(super) fn regex(&mut self, place: &str, text: &Text) -> Option<FieldRegex> {
        match FieldRegex::compile(&text.text) {
            Ok(regex) => Some(regex),
            Err(error) => {
                let place_inside = error.position_in(&text.text);
                self.add(text, format!("{place}: bad regex: {error}")).inside = place_inside;
                None
            }
        }
    }

    pub(super) fn script(&mut self, place: &str, text: &Text) -> Option<Box<str>> {
        match check_expression(&text.text) {
            Ok(()) => Some(text.text.as_str().into()),
            Err(ScriptError::Syntax { line, column, message, .. }) => {
                let message = format!("{place}: bad script: {message}");
                let problem = self.add(text, message);
                if line == 1 {
                    problem.inside = Some((column as usize).saturating_sub(1));
                }
                None
            }
            Err(error) => {
                self.add(text, format!("{place}: bad script: {error}"));
                None
            }
        }
    }

    pub(super) fn number(
        &mut self,
        place: &str,
        separators: &Separators,
        fraction: bool,
    ) -> NumberForm {
        let decimal = separators.decimal.as_ref();
        let decimal = decimal.and_then(|text| self.separator(place, "decimal", text));
        let grouping = match &separators.thousands {
            None => Grouping::Unsaid,
            Some(text) if text.text.is_empty() => Grouping::Forbidden,
            Some(text) => {
                self.separator(place, "thousands", text).map_or(Grouping::Unsaid, Grouping::By)
            }
        };
        let form = NumberForm::new(decimal, grouping, fraction);
        if form.is_ambiguous()
            && let Some(text) = separators.thousands.as_ref().or(separators.decimal.as_ref())
        {
            let message = format!("{place}: `{}` separates both thousands and decimals", text.text);
            self.add(text, message).help =
                Some("`decimal` and `thousands` must be different".to_owned());
        }
        form
    }

    /// Checks that a default or constant has the type of its field.
    pub(super) fn constant(&mut self, place: &str, key: &str, text: &Text, form: &FieldFormat) {
        let words = text.text.trim();
        let is_plain = match form {
            FieldFormat::Number(_) => words.parse::<f64>().is_ok_and(f64::is_finite),
            FieldFormat::Boolean(_) => matches!(words, "true" | "false"),
            FieldFormat::Date(date) => date.is_written(words),
            FieldFormat::Text | FieldFormat::Url => true,
        };
        // A default is copied to the output, so it must have the output format. Empty is allowed.
        if words.is_empty() || is_plain && key == "default" {
            return;
        }
        if let Err(ValueMisfit { value, why }) =
            fit(form, words.to_owned(), &AddressBase::new("", None))
        {
            self.add(text, format!("{place}: `{key}`: `{}` {why}", shown(&value)));
        }
    }

    fn separator(&mut self, place: &str, key: &str, text: &Text) -> Option<char> {
        let mut chars = text.text.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) if !c.is_ascii_digit() && !matches!(c, '-' | '+') => Some(c),
            _ => {
                let message =
                    format!("{place}: `{key}` must be one character, not `{}`", text.text);
                self.add(text, message).help =
                    Some(format!("write `{key}: \",\"` or `{key}: \".\"`"));
                None
            }
        }
    }

    pub(super) fn date(
        &mut self,
        place: &str,
        input: &[Text],
        output: Option<&Text>,
        dates: &DateSetup,
    ) -> DateForm {
        let patterns = input.iter().filter_map(|text| self.pattern(place, text, true)).collect();
        let output = output.and_then(|text| self.pattern(place, text, false));
        DateForm::new(patterns, output, dates)
    }

    fn pattern(&mut self, place: &str, text: &Text, reads: bool) -> Option<DatePattern> {
        if let Some((offset, words, help)) = mistake(&text.text, reads) {
            let message = format!("{place}: bad date pattern: {words}");
            self.add_inside(text, offset, message).help = Some(help.to_owned());
            return None;
        }
        match DatePattern::compile(&text.text) {
            Ok(pattern) if !text.text.trim().is_empty() => Some(pattern),
            Ok(_) => {
                let message = format!("{place}: the date pattern is blank");
                self.add(text, message).help = Some("write it like `dd.MM.yyyy`".to_owned());
                None
            }
            Err(error) => {
                let offset = match &error {
                    PatternError::UnknownLetter { offset, .. }
                    | PatternError::Reserved { offset, .. }
                    | PatternError::OpenQuote { offset }
                    | PatternError::TooLong { offset, .. } => *offset,
                };
                let message = format!("{place}: bad date pattern: {error}");
                self.add_inside(text, offset, message);
                None
            }
        }
    }
}
