//! `spoonbill query`: one query on a file or URL.

use clap::Args;
use spoonbill_plugins::html::Document;
use spoonbill_plugins::loader::charset;

use super::load::load;
use super::{SettingArgs, print_err, print_out};
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

pub(super) fn query(args: &QueryArgs) -> u8 {
    let config = match args.settings.resolve(None, None) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let (dialect, question, attr) = match (&args.css, &args.xpath) {
        // A selector copied from a classic definition may end with its attribute.
        (Some(css), _) => match (css.split_once(" attribute: "), &args.attr) {
            (Some((selector, name)), None) => (Dialect::Css, selector, Some(name)),
            _ => (Dialect::Css, css.as_str(), args.attr.as_deref()),
        },
        (None, Some(xpath)) => (Dialect::Xpath, xpath.as_str(), args.attr.as_deref()),
        (None, None) => return 2,
    };
    let fetched = match load(&args.source, &config) {
        Ok(fetched) => fetched,
        Err(message) => {
            print_err(&format!("error: {message}\n"));
            return 4;
        }
    };
    let html = charset::decode(&fetched.body, fetched.content_type.as_deref());
    let limits = config.parse.tree_limits();
    let answers = Document::parse_as(dialect.html_dialect(), &html, limits)
        .map_err(|error| (4, error.to_string()))
        .and_then(|document| {
            ask(&document, dialect, question, attr).map_err(|message| (3, message))
        });
    match answers {
        Ok(answers) => {
            let lines = answers.iter().map(|text| serde_json::Value::from(text.as_str()));
            let lines: Vec<String> = lines.map(|line| format!("{line}\n")).collect();
            u8::from(print_out(&lines.concat()).is_err())
        }
        Err((code, message)) => {
            print_err(&format!("error: {message}\n"));
            code
        }
    }
}
