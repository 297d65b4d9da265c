//! Serializes the inner HTML of an element, and describes its position for messages.

use crate::html::{Document, Namespace, NodeId, NodeKind};

/// Levels in a path, counted from the innermost.
const LEVELS_MAX: usize = 12;

/// Serializes the content of an element as the HTML standard defines it.
pub(super) fn inner_html(document: &Document, element: NodeId) -> String {
    let mut out = String::new();
    let mut open: Vec<NodeId> = Vec::new();
    for node in document.descendants(element) {
        close(document, &mut open, Some(node), &mut out);
        match document.kind(node) {
            NodeKind::Element => {
                start_tag(document, node, &mut out);
                if !is_void(document, node) {
                    open.push(node);
                }
            }
            NodeKind::Text => {
                let words = document.text(node).unwrap_or_default();
                let is_code = |parent| is_html(document, parent) && is_raw(document, parent);
                if document.parent(node).is_some_and(is_code) {
                    out.push_str(words);
                } else {
                    escape(words, false, &mut out);
                }
            }
            NodeKind::Comment => {
                out.push_str("<!--");
                out.push_str(document.text(node).unwrap_or_default());
                out.push_str("-->");
            }
            NodeKind::Doctype | NodeKind::Document => {}
        }
    }
    close(document, &mut open, None, &mut out);
    out
}

/// Closes the elements that do not contain `next`, or all of them if it is `None`.
fn close(document: &Document, open: &mut Vec<NodeId>, next: Option<NodeId>, out: &mut String) {
    while let Some(last) = open.last().copied() {
        if next.is_some_and(|next| document.is_inside(next, last)) {
            break;
        }
        open.pop();
        out.push_str("</");
        out.push_str(name(document, last));
        out.push('>');
    }
}

fn start_tag(document: &Document, node: NodeId, out: &mut String) {
    out.push('<');
    out.push_str(name(document, node));
    for (key, value) in document.attributes(node) {
        out.push(' ');
        out.push_str(key);
        out.push_str("=\"");
        escape(value, true, out);
        out.push('"');
    }
    out.push('>');
}

fn escape(text: &str, in_attribute: bool, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '\u{a0}' => out.push_str("&nbsp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if in_attribute => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
}

fn name(document: &Document, node: NodeId) -> &str {
    document.name(node).map_or("", |name| &**name)
}

/// Names have other meanings in SVG and MathML.
fn is_html(document: &Document, node: NodeId) -> bool {
    document.namespace(node) == Some(&Namespace::HTML)
}

/// Elements without an end tag, including obsolete ones.
const VOID: [&str; 18] = [
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input",
    "keygen", "link", "meta", "param", "source", "track", "wbr",
];

fn is_void(document: &Document, node: NodeId) -> bool {
    is_html(document, node) && VOID.contains(&name(document, node))
}

/// Elements whose text is not escaped.
pub(super) fn is_raw(document: &Document, node: NodeId) -> bool {
    matches!(
        name(document, node),
        "script" | "style" | "xmp" | "iframe" | "noembed" | "noframes" | "plaintext"
    )
}

/// The position of a node: `html > body > div#main > span.price:nth-of-type(2)`.
pub(super) fn node_path(document: &Document, node: NodeId) -> String {
    let mut steps = Vec::new();
    let mut at = Some(node);
    while let Some(node) = at {
        if steps.len() == LEVELS_MAX {
            steps.push("...".to_owned());
            break;
        }
        match document.kind(node) {
            NodeKind::Document => break,
            NodeKind::Element => steps.push(step(document, node)),
            NodeKind::Text => steps.push("text()".to_owned()),
            NodeKind::Comment => steps.push("comment()".to_owned()),
            NodeKind::Doctype => steps.push("doctype()".to_owned()),
        }
        at = document.parent(node);
    }
    steps.reverse();
    if steps.is_empty() { "(the page)".to_owned() } else { steps.join(" > ") }
}

fn step(document: &Document, node: NodeId) -> String {
    let own = name(document, node);
    if matches!(own, "html" | "body" | "head") {
        return own.to_owned();
    }
    let mut step = own.to_owned();
    if let Some(id) = document.attribute(node, "id").filter(|id| is_word(id)) {
        step.push('#');
        step.push_str(id);
        return step;
    }
    let classes = document.attribute(node, "class").unwrap_or_default();
    if let Some(class) = classes.split_whitespace().find(|class| is_word(class)) {
        step.push('.');
        step.push_str(class);
    }
    let is_twin = |other: &NodeId| document.name(*other) == document.name(node);
    let before =
        std::iter::successors(document.prev_sibling(node), |it| document.prev_sibling(*it));
    let after = std::iter::successors(document.next_sibling(node), |it| document.next_sibling(*it));
    let place = before.filter(is_twin).count() + 1;
    if place > 1 || after.into_iter().any(|other| is_twin(&other)) {
        step.extend([":nth-of-type(", &place.to_string(), ")"]);
    }
    step
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
}
