//! Names for columns that the user did not name.

use super::page_view::PageView;
use super::paths::label_before;
use super::query::FieldQuery;
use super::words::{ValueShape, is_descriptive, is_in, shape, tokens};
use crate::html::NodeId;

/// Words that are good names for columns, if a class or id contains them.
const KNOWN: &str = "title name price author date rating image link description stock availability category \
    tag tags location company salary url sku brand score votes comments views email phone \
    address summary time city country user username quantity reviews quote venue headline";

/// A name for a column, derived from attributes, labels, headings, classes, tags or the sample.
pub(super) fn name(
    view: &PageView,
    root: NodeId,
    node: NodeId,
    query: &FieldQuery,
    sample: &str,
) -> String {
    let told = view.attribute(node, "itemprop").map(str::to_owned);
    let told = told.filter(|_| query.attribute.as_deref() != Some("href"));
    let by_attribute = match query.attribute.as_deref() {
        Some("href") => Some("link"),
        Some("src" | "data-src") => Some("image"),
        Some("datetime") => Some("date"),
        Some("alt") => Some("title"),
        Some(name) => name.strip_prefix("data-"),
        None => None,
    };
    let found = told
        .or_else(|| by_attribute.map(str::to_owned))
        .or_else(|| tested(view, node))
        .or_else(|| label(view, root, node))
        .or_else(|| head(view, node))
        .or_else(|| known_class(view, root, node))
        .or_else(|| by_tag(view, node))
        .or_else(|| by_shape(sample))
        .or_else(|| any_class(view, root, node))
        .unwrap_or_else(|| match view.tag(node) {
            "a" => "name".to_owned(),
            _ => "text".to_owned(),
        });
    let snake = snake(&found);
    if snake.is_empty() { "value".to_owned() } else { snake }
}

/// The value of an attribute by which tests find the element.
fn tested(view: &PageView, node: NodeId) -> Option<String> {
    const NAMES: [&str; 6] =
        ["data-testid", "data-test", "data-qa", "data-field", "data-cy", "data-hook"];
    let found = NAMES.iter().find_map(|name| view.attribute(node, name))?;
    (is_descriptive(found) && tokens(found).len() <= 3).then(|| found.to_owned())
}

/// Whether all words of a class are readable.
fn is_readable(class: &str) -> bool {
    tokens(class).iter().all(|word| {
        word.chars().count() > 1
            && word.contains(['a', 'e', 'i', 'o', 'u', 'y'])
            && !word.contains(|c: char| c.is_ascii_digit())
    })
}

/// At most four lower case words, joined by `_`.
pub(super) fn snake(text: &str) -> String {
    let words = tokens(text);
    let name = words.iter().take(4).map(String::as_str).collect::<Vec<_>>().join("_");
    if name.starts_with(|c: char| c.is_numeric()) { format!("n_{name}") } else { name }
}

fn label(view: &PageView, root: NodeId, node: NodeId) -> Option<String> {
    let is_page = root == view.document.root();
    let mut steps = std::iter::once(node).chain(view.between(root, node));
    let found = steps.find_map(|step| {
        let (label, text) = label_before(view, step, false)?;
        let is_sure =
            is_page || text.ends_with(':') || matches!(view.tag(label), "dt" | "th" | "label");
        is_sure.then_some(text)
    });
    found.filter(|text| tokens(text).len() <= 4)
}

/// The heading of the table column that contains an element.
pub(super) fn head(view: &PageView, node: NodeId) -> Option<String> {
    let cell = view.upwards(node).find(|up| matches!(view.tag(*up), "td" | "th"))?;
    let table = view.upwards(cell).find(|up| view.tag(*up) == "table")?;
    let place = view.place(cell).0;
    let row = view.inside(table).find(|row| {
        let mut cells = view.document.child_elements(*row).peekable();
        view.tag(*row) == "tr" && cells.peek().is_some() && cells.all(|cell| view.tag(cell) == "th")
    })?;
    let heading = view.document.child_elements(row).nth(place - 1)?;
    Some(view.text(heading)).filter(|text| !text.is_empty() && tokens(text).len() <= 4)
}

/// Whether a word describes the element and not its text.
fn is_doing(word: &str) -> bool {
    matches!(word, "link" | "url" | "image")
}

/// A known word in a class or id of the element, or of an ancestor with the same text.
fn known_class(view: &PageView, root: NodeId, node: NodeId) -> Option<String> {
    let text_len = view.text_len(node);
    let mut steps = vec![node];
    steps.extend(
        view.between(root, node).into_iter().take_while(|up| view.text_len(*up) == text_len),
    );
    steps.into_iter().find_map(|step| {
        let ids = view.attribute(step, "id").into_iter();
        let names: Vec<&str> = view.classes(step).into_iter().chain(ids).collect();
        names.into_iter().find_map(|class| {
            let mut words = tokens(class).into_iter().rev();
            words.find(|word| is_in(word, KNOWN) && !is_doing(word))
        })
    })
}

fn by_tag(view: &PageView, node: NodeId) -> Option<String> {
    let up = |wanted: &[&str]| view.upwards(node).take(3).any(|up| wanted.contains(&view.tag(up)));
    if up(&["h1", "h2", "h3", "h4", "h5", "h6"]) {
        Some("title".to_owned())
    } else if up(&["time"]) {
        Some("date".to_owned())
    } else {
        None
    }
}

fn by_shape(sample: &str) -> Option<String> {
    match shape(sample) {
        ValueShape::Money => Some("price".to_owned()),
        ValueShape::Date => Some("date".to_owned()),
        ValueShape::Address => Some("link".to_owned()),
        ValueShape::Number | ValueShape::Words => None,
    }
}

pub(super) fn any_class(view: &PageView, root: NodeId, node: NodeId) -> Option<String> {
    let around = view.between(root, node).into_iter().take(1);
    std::iter::once(node).chain(around).find_map(|step| {
        view.classes(step)
            .into_iter()
            .find(|class| is_descriptive(class) && is_readable(class))
            .map(str::to_owned)
    })
}
