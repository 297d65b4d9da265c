//! `spoonbill query`: one query on a file or URL.

use clap::Args;
use spoonbill_plugins::html::Document;
use spoonbill_plugins::loader::charset;

use super::load::load;
use super::{CommandFailure, CommandResult, RunCommand, SettingArgs, print_out};
use crate::plan::prepare::Dialect;
use crate::steps::query::ask;

#[derive(Debug, Args)]
#[group(id = "question", required = true, multiple = false, args = ["css", "xpath"])]
pub(super) struct QueryArgs {
    /// File or URL of the page
    source: String,
    /// CSS selector, as jsoup reads it
    #[arg(long, value_name = "SELECTOR", allow_hyphen_values = true)]
    css: Option<String>,
    /// XPath 1.0 expression
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    xpath: Option<String>,
    /// Print this attribute of each element instead of its text
    #[arg(long, value_name = "NAME")]
    attr: Option<String>,
    #[command(flatten)]
    settings: SettingArgs,
}

impl RunCommand for QueryArgs {
    fn run(&self) -> CommandResult {
        let config = self.settings.resolve(None)?;
        let (dialect, question, attr) = match (&self.css, &self.xpath) {
            // A selector copied from a classic definition may end with its attribute.
            (Some(css), _) => match (css.split_once(" attribute: "), &self.attr) {
                (Some((selector, name)), None) => (Dialect::Css, selector, Some(name)),
                _ => (Dialect::Css, css.as_str(), self.attr.as_deref()),
            },
            (None, Some(xpath)) => (Dialect::Xpath, xpath.as_str(), self.attr.as_deref()),
            (None, None) => return Ok(2),
        };
        let fetched = load(&self.source, &config).map_err(|error| CommandFailure::new(4, error))?;
        let html = charset::decode(&fetched.body, fetched.content_type.as_deref());
        let limits = config.parse.tree_limits();
        let document = Document::parse_as(dialect.html_dialect(), &html, limits)
            .map_err(|error| CommandFailure::new(4, error))?;
        let answers = ask(&document, dialect, question, attr)
            .map_err(|error| CommandFailure::new(3, error))?;
        let lines = answers.iter().map(|text| format!("{}\n", serde_json::json!(text)));
        print_out(&lines.collect::<String>())
    }
}
