//! Converts a text to the value of a cell.

use std::borrow::Cow;
use std::cell::OnceCell;

use url::Url;

use super::plan::FieldFormat;
use crate::follow::{PageAddress, base_href};
use crate::html::Document;

/// Longest value in a report, in characters.
const SHOWN_MAX: usize = 80;

/// Replaces each run of white space, including no-break spaces, by one space, and trims the text.
pub(super) fn fold(text: String) -> String {
    if is_plainly_folded(text.as_bytes()) {
        return text;
    }
    let mut last = ' ';
    let is_folded = text.chars().all(|c| {
        let fits = if c == ' ' { last != ' ' } else { !c.is_whitespace() };
        last = c;
        fits
    });
    if is_folded && (last != ' ' || text.is_empty()) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Whether a text is certainly folded: it has no control character, no two spaces in a row and no
/// first byte of a space beyond ASCII. This is a fast path that compilers vectorize.
fn is_plainly_folded(text: &[u8]) -> bool {
    let [first, .., last] = text else { return false };
    let is = u8::from;
    let odd = |byte: u8| is(byte < b' ') | is(matches!(byte, 0xc2 | 0xe1..=0xe3));
    let pairs = text.iter().zip(&text[1..]);
    let odd_pairs =
        pairs.fold(0, |any, (one, two)| any | odd(*one) | is(*one == b' ') & is(*two == b' '));
    odd_pairs | odd(*last) | is(*first == b' ') | is(*last == b' ') == 0
}

/// Trims a text, without a copy if nothing changes.
pub(super) fn trim(text: String) -> String {
    let trimmed = text.trim();
    if trimmed.len() == text.len() { text } else { trimmed.to_owned() }
}

/// The start of a value, for reports.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Converts a text to the type of its field.
pub(super) fn fit(
    form: &FieldFormat,
    text: String,
    base: &AddressBase<'_>,
) -> Result<String, ValueMisfit> {
    let (fitted, why): (_, Cow<'static, str>) = match form {
        FieldFormat::Text => return Ok(text),
        FieldFormat::Number(number) => {
            let why =
                if number.fraction { "is not a decimal number" } else { "is not a whole number" };
            (number.read(&text), why.into())
        }
        FieldFormat::Boolean(meanings) => {
            (boolean(&text, meanings), "is neither true nor false".into())
        }
        FieldFormat::Date(date) => {
            let why = if date.is_iso() {
                "is not an ISO 8601 date; write its pattern in `in`"
            } else {
                "matches no date pattern in `in`"
            };
            (date.read(&text), why.into())
        }
        FieldFormat::Url => (base.resolve(&text), "is not an address".into()),
    };
    fitted.ok_or(ValueMisfit { value: text, why })
}

/// A value that does not fit its type, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueMisfit {
    pub(super) value: String,
    pub(super) why: Cow<'static, str>,
}

fn boolean(text: &str, meanings: &[Box<str>]) -> Option<String> {
    let lower = text.to_lowercase();
    let is_true = if meanings.is_empty() {
        match lower.as_str() {
            "true" | "yes" | "1" | "on" | "y" => true,
            "false" | "no" | "0" | "off" | "n" => false,
            _ => return None,
        }
    } else {
        meanings.iter().any(|meaning| meaning.to_lowercase() == lower)
    };
    Some(is_true.to_string())
}

/// Resolves relative addresses against the address of the page or its `<base href>`.
#[derive(Debug)]
pub(super) struct AddressBase<'p> {
    page: &'p str,
    tree: Option<&'p Document>,
    known: OnceCell<BaseAddress<'p>>,
}

#[derive(Debug)]
enum BaseAddress<'p> {
    Web(Url),
    Path(Cow<'p, str>),
}

impl<'p> AddressBase<'p> {
    pub(super) fn new(page: &'p str, tree: Option<&'p Document>) -> Self {
        Self { page, tree, known: OnceCell::new() }
    }

    fn resolve(&self, address: &str) -> Option<String> {
        match self.known.get_or_init(|| self.look()) {
            BaseAddress::Web(base) => base.join(address).ok().map(String::from),
            BaseAddress::Path(_) if has_scheme(address) => {
                Url::parse(address).ok().map(String::from)
            }
            BaseAddress::Path(path) => Some(join_path(path, address)),
        }
    }

    fn look(&self) -> BaseAddress<'p> {
        if let Some(tree) = self.tree
            && base_href(tree).is_some()
            && let Some(page) = PageAddress::of(self.page)
        {
            return match page.base(tree) {
                PageAddress::Web(url) => BaseAddress::Web(url),
                PageAddress::File(path) => BaseAddress::Path(path.into()),
            };
        }
        match has_scheme(self.page).then(|| Url::parse(self.page)) {
            Some(Ok(url)) => BaseAddress::Web(url),
            _ => BaseAddress::Path(self.page.into()),
        }
    }
}

/// Whether a text starts with a scheme. One letter and a colon is a drive of Windows.
fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// Resolves an address against the path of a local page.
fn join_path(base: &str, address: &str) -> String {
    if address.starts_with('/') {
        return address.to_owned();
    }
    let page = base.split(['?', '#']).next().unwrap_or_default();
    if address.starts_with(['?', '#']) {
        return format!("{page}{address}");
    }
    let folder = page.rsplit_once('/').map(|(folder, _)| folder);
    let end = address.find(['?', '#']).unwrap_or(address.len());
    let (path, tail) = address.split_at(end);
    let mut parts: Vec<&str> = folder.map(|folder| folder.split('/').collect()).unwrap_or_default();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, "" | ".." | ".")) => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    format!("{}{tail}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_path_accepts_only_folded_texts() {
        for c in (0..=0x3100).filter_map(char::from_u32) {
            for text in [format!("a{c}b"), format!("{c}ab"), format!("ab{c}"), format!("a {c}b")] {
                let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(!is_plainly_folded(text.as_bytes()) || text == folded, "{text:?}");
                assert_eq!(fold(text), folded);
            }
        }
        assert!(is_plainly_folded("Größe, čas, 東京 a b".as_bytes()));
        assert!(["", " ", "a"].iter().all(|text| !is_plainly_folded(text.as_bytes())));
    }
}
