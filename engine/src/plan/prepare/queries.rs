//! Checks queries without a page: sample values replace the variables.

use spoonbill_defs::{DataDef, Item, Span, StepKind, Text};
use spoonbill_plugins::css::Selector;
use spoonbill_plugins::html::HtmlDialect;
use spoonbill_plugins::xpath::XPath;

use crate::plan::prepare::PlanCompiler;

/// The language of a task's queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// CSS selectors as jsoup reads them.
    Css,
    /// XPath 1.0.
    Xpath,
}

impl Dialect {
    pub(super) fn of(kind: StepKind) -> Self {
        match kind {
            StepKind::XpathParser | StepKind::XpathAnalyzer => Self::Xpath,
            _ => Self::Css,
        }
    }

    /// The HTML parser's rules for the dialect.
    pub(crate) fn html_dialect(self) -> HtmlDialect {
        match self {
            Self::Css => HtmlDialect::Jsoup,
            Self::Xpath => HtmlDialect::Standard,
        }
    }

    /// Checks a query. Returns the problem and its character.
    fn fault(self, query: &str) -> Option<(String, usize)> {
        match self {
            Self::Css => Selector::parse(query).err().map(|error| (error.message, error.at)),
            Self::Xpath => {
                XPath::parse(query).err().map(|error| (error.message, error.at.unwrap_or(0)))
            }
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Css => "selector",
            Self::Xpath => "XPath",
        }
    }
}

/// The text with sample values for its variables: 1 for an index.
pub(super) fn sample(text: &str, words: &str) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("%{") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let name = &rest[start + 2..start + length];
        filled.push_str(&rest[..start]);
        let property = name.rsplit('.').next().unwrap_or_default();
        filled.push_str(if matches!(property, "index" | "order") { "1" } else { words });
        rest = &rest[start + length + 1..];
    }
    filled.push_str(rest);
    filled
}

impl PlanCompiler<'_> {
    /// Checks the definitions that no valid task uses. A query is wrong if it is wrong in both dialects.
    pub(super) fn check_orphans(&mut self) {
        for def in &self.published.defs.data_defs {
            if !self.tried.contains(&def.name.text) {
                self.try_queries(def, &[Dialect::Css, Dialect::Xpath]);
                self.check_scripts(def);
            }
        }
    }

    /// Checks every query of a definition. A query with `%{item.match}` is checked with each match.
    pub(super) fn check_queries(&mut self, def: &DataDef, dialect: Dialect) {
        self.tried.insert(def.name.text.clone());
        self.try_queries(def, &[dialect]);
    }

    fn try_queries(&mut self, def: &DataDef, dialects: &[Dialect]) {
        let axes: Vec<&Item> = def.items.iter().chain(&def.dims).collect();
        let mut samples: Vec<&str> =
            axes.iter().filter_map(|item| item.match_text.as_ref().map(Text::as_str)).collect();
        if samples.is_empty() {
            samples.push("x");
        }
        let shared = [Some(&def.query.block), def.query.selector.as_ref()];
        let own = axes.iter().map(|item| item.selector.as_ref());
        for text in shared.into_iter().chain(own).flatten() {
            self.check_query(text, &samples, dialects);
        }
    }

    fn check_query(&mut self, text: &Text, samples: &[&str], dialects: &[Dialect]) {
        if text.at == Span::default() && text.text.is_empty() {
            // The placeholder of a missing query, which is reported already.
            return;
        }
        let query = text.text.split(" attribute: ").next().unwrap_or_default();
        let has_variables = query.contains("%{");
        for words in samples.iter().take(if has_variables { samples.len() } else { 1 }) {
            let filled = sample(query, words);
            let mut faults = dialects.iter().map(|dialect| (dialect, dialect.fault(&filled)));
            let Some((dialect, Some((message, offset)))) = faults.next() else { continue };
            if faults.any(|(_, fault)| fault.is_none()) {
                continue;
            }
            let at = if has_variables { text.at } else { self.inside(text.at, offset) };
            let with = if has_variables { format!(" (as `{filled}`)") } else { String::new() };
            self.error(at, format!("bad {}: {message}{with}", dialect.word()), None);
            return;
        }
    }

    /// The place of a character inside a scalar. It is exact for a scalar on one line without escapes.
    pub(super) fn inside(&self, at: Span, offset: usize) -> Span {
        let Some(line) = self.sources.line(at.file, at.line) else {
            return at;
        };
        let letters: Vec<char> = line.chars().skip(at.column as usize - 1).collect();
        let alone = line.chars().take(at.column as usize - 1).all(char::is_whitespace);
        if alone && !matches!(letters.first(), Some('"' | '\'')) {
            return self.inside_lines(at, offset);
        }
        let written = letters.iter().take(at.width as usize);
        let quote = u32::from(matches!(letters.first(), Some('"' | '\'')));
        let offset = offset as u32 + quote;
        if written.clone().any(|letter| *letter == '\\') || offset >= at.width {
            return at;
        }
        Span { column: at.column + offset, width: 1, ..at }
    }

    /// The place of a character in a text of several lines. A line break counts as one character.
    fn inside_lines(&self, at: Span, offset: usize) -> Span {
        const LINES_MAX: u32 = 1_000;
        let mut left = offset;
        for line in at.line..at.line.saturating_add(LINES_MAX) {
            let Some(text) = self.sources.line(at.file, line) else { break };
            let length = text.trim_end().chars().count().saturating_sub(at.column as usize - 1);
            if left < length || left == length && length > 0 {
                return Span { line, column: at.column + left as u32, width: 1, ..at };
            }
            left = left.saturating_sub(length + 1);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::prepare::queries::sample;

    #[test]
    fn variables_get_samples() {
        assert_eq!(sample("tr:nth-child(%{item.index}) > td", "x"), "tr:nth-child(1) > td");
        assert_eq!(
            sample("div:matchesOwn(^%{item.match}) + div", "P/E"),
            "div:matchesOwn(^P/E) + div"
        );
        assert_eq!(sample("no end %{item", "x"), "no end %{item");
    }
}
