//! Writes a proposal as a definition, with the reasons as comments.

use std::fmt::Write as _;

use spoonbill_plugins::propose::{FieldSource, ProposedColumn, ProposedDefinition, ValueType};

use crate::error::counted;

/// The origin of a proposal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// The address of the page, as the definition names it.
    pub url: &'a str,
    /// The name of the group.
    pub group: &'a str,
}

/// The text of a definition file.
pub(crate) fn definition(proposal: &ProposedDefinition, origin: Origin<'_>) -> String {
    let mut out = format!(
        "# Proposed by `spoonbill init` from samples; every selector was tried on the page.\n\
         # Rows go to {}.csv below the folder of each run.\n\
         groups:\n  {}:\n",
        origin.group,
        scalar(origin.group)
    );
    // An address with brackets would be read as a range in `urls`.
    if origin.url.contains('[') {
        push(&mut out, 4, &format!("locators: [ {} ]", scalar(origin.url)));
    } else {
        push(&mut out, 4, &format!("urls: {}", scalar(origin.url)));
    }
    let json = proposal.json_block.as_ref().map(|block| {
        format!("{{ selector: {}, json: {} }}", scalar(&block.selector), scalar(&block.path))
    });
    match json.or_else(|| proposal.block.as_deref().map(scalar)) {
        Some(block) => {
            let found = counted(proposal.rows as u64, "match");
            let found = found.replace("matchs", "matches");
            push(&mut out, 4, &format!("# One row for each match: {found} on this page."));
            if proposal.adverts > 0 {
                let left = counted(proposal.adverts as u64, "element");
                push(&mut out, 4, &format!("# {left} marked as advertisement left out."));
            }
            push(&mut out, 4, &format!("block: {block}"));
        }
        None => push(&mut out, 4, "# No `block`: the whole page is one row."),
    }
    push(&mut out, 4, "fields:");
    for column in &proposal.columns {
        push(&mut out, 6, &format!("# {}", reason(column, proposal.rows)));
        push(&mut out, 6, &format!("{}: {}", scalar(&column.name), field(column)));
    }
    out.push_str(&follow(proposal, origin.group));
    out
}

fn push(out: &mut String, indent: usize, line: &str) {
    // Writing to a string always succeeds.
    writeln!(out, "{:indent$}{line}", "").ok();
}

/// How the column is selected, and in how many rows it has a value.
fn reason(column: &ProposedColumn, rows: usize) -> String {
    let way = match &column.query.source {
        FieldSource::Itself => "the row's element itself",
        FieldSource::Css(selector) => how(selector),
        FieldSource::Xpath(xpath) if xpath.starts_with("following") => {
            "an element after the row's element"
        }
        FieldSource::Xpath(_) => "from the top of the page, equal in all rows",
        FieldSource::JsonLd(_) => "not on the visible page, but in its JSON-LD",
        FieldSource::Json(_) => "by its path in the row's data",
        FieldSource::Script { .. } => "not on the visible page, but in the JSON of a script",
    };
    let part = match (&column.query.regex, column.query.is_own, column.query.is_all) {
        (Some(_), ..) => "; `regex` keeps the sampled part",
        (None, true, _) => "; `text: own` leaves out the text of inner elements",
        (None, false, true) => "; a row has several, and `all` joins them",
        (None, false, false) => "",
    };
    let filled = if rows == 1 {
        String::new()
    } else {
        format!("; {} of {rows} rows have it", column.filled())
    };
    format!("{}{part}{filled}", capital(way))
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The feature of the page that a selector uses.
fn how(selector: &str) -> &'static str {
    if selector.contains(":contains(") || selector.contains(":matches(") {
        "by the label beside it"
    } else if selector.contains("itemprop") {
        "by its microdata"
    } else if selector.contains(":nth-") || selector.contains(":last-child") {
        "by its position, because it has no name"
    } else if selector.contains('#') {
        "by an id"
    } else if selector.contains('.') {
        "by a class"
    } else if selector.contains('[') {
        "by an attribute"
    } else {
        "by its tag"
    }
}

/// A field: a selector, or a mapping if it has more keys.
fn field(column: &ProposedColumn) -> String {
    let take = &column.query;
    let with = |selector: &str| match &take.attribute {
        Some(name) if selector == "." => format!("@{name}"),
        Some(name) => format!("{selector} @{name}"),
        None => selector.to_owned(),
    };
    let mut keys: Vec<(&str, String)> = match &take.source {
        FieldSource::Itself => vec![("selector", with("."))],
        FieldSource::Css(selector) if take.others.is_empty() => vec![("selector", with(selector))],
        FieldSource::Css(selector) => {
            let all = std::iter::once(selector).chain(&take.others);
            let all: Vec<String> = all.map(|each| scalar(&with(each))).collect();
            vec![("", format!("selector: [ {} ]", all.join(", ")))]
        }
        FieldSource::Xpath(xpath) => {
            let tail = take.attribute.as_ref().map_or_else(String::new, |name| format!("/@{name}"));
            vec![("xpath", format!("{xpath}{tail}"))]
        }
        FieldSource::JsonLd(path) => vec![("jsonld", path.clone())],
        FieldSource::Json(path) => vec![("json", path.clone())],
        FieldSource::Script { selector, path } => {
            vec![("selector", selector.clone()), ("json", path.clone())]
        }
    };
    keys.extend(take.is_own.then(|| ("text", "own".to_owned())));
    keys.extend(take.is_all.then(|| ("all", ", ".to_owned())));
    keys.extend(take.regex.clone().map(|regex| ("regex", regex)));
    let kind = match column.value_type {
        ValueType::Text => None,
        ValueType::Integer => Some("integer"),
        ValueType::Decimal => Some("decimal"),
        ValueType::Date => Some("date"),
        ValueType::Url => Some("url"),
    };
    keys.extend(kind.map(|kind| ("type", kind.to_owned())));
    if let [("selector", only)] = keys.as_slice() {
        return scalar(only);
    }
    let key = |(key, value): &(&str, String)| match *key {
        "" => value.clone(),
        key => format!("{key}: {}", scalar(value)),
    };
    let keys: Vec<String> = keys.iter().map(key).collect();
    format!("{{ {} }}", keys.join(", "))
}

/// Links to follow, as comments, because `init` loads one page only.
fn follow(proposal: &ProposedDefinition, group: &str) -> String {
    let mut out = String::new();
    let details = format!("{group}_details");
    let rules: Vec<(String, &str)> = [
        proposal.next_page.as_ref().map(|next| (scalar(next), "the next page of the list")),
        proposal.details.as_ref().map(|link| {
            let rule = format!("{{ selector: {}, group: {} }}", scalar(link), scalar(&details));
            (rule, "the page of each row")
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    if rules.is_empty() {
        return out;
    }
    push(&mut out, 4, "# Links on this page. Remove the `#` of those to follow:");
    push(&mut out, 4, "# follow:");
    for (rule, meaning) in rules {
        push(&mut out, 4, &format!("#   - {rule}    # {meaning}"));
    }
    if proposal.details.is_some() {
        push(&mut out, 2, &format!("# {}:    # and the fields of those pages", scalar(&details)));
        push(&mut out, 2, "#   fields:");
        push(&mut out, 2, "#     title: h1");
    }
    out
}

/// A text as YAML, quoted unless it is surely plain. `${` is escaped, because it would be a variable.
pub(crate) fn scalar(text: &str) -> String {
    const WORDS: [&str; 12] =
        ["true", "false", "yes", "no", "on", "off", "y", "n", "null", "none", "nan", "inf"];
    let text = text.replace("${", "$${");
    let is_word = WORDS.contains(&text.to_lowercase().as_str());
    let starts = text.starts_with(|c: char| c.is_alphabetic())
        || text.starts_with('.') && text[1..].starts_with(|c: char| c.is_ascii_alphabetic());
    let is_plain = starts
        && !is_word
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.to_lowercase().starts_with(".inf")
        && !text.to_lowercase().starts_with(".nan")
        && text.chars().all(|c| c.is_alphanumeric() || " ._>@/:-".contains(c));
    if is_plain {
        text
    } else if text.chars().any(char::is_control) {
        serde_json::Value::from(text).to_string()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::init::render::scalar;

    #[test]
    fn quotes_stand_where_they_are_needed() {
        for (text, expect) in [
            (".price", ".price"),
            ("h3 a @title", "h3 a @title"),
            ("#main > p", "'#main > p'"),
            ("[itemprop=price]", "'[itemprop=price]'"),
            ("dt:contains(It's) + dd", "'dt:contains(It''s) + dd'"),
            ("no", "'no'"),
            (".", "'.'"),
            ("a ${x}", "'a $${x}'"),
            ("https://a.example/list", "https://a.example/list"),
            ("https://a.example/?a=1&b=2", "'https://a.example/?a=1&b=2'"),
        ] {
            assert_eq!(scalar(text), expect);
        }
    }
}
