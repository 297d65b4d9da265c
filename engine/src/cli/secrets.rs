//! Secret values: they are replaced in everything that the program prints or logs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::RwLock;

use url::form_urlencoded::byte_serialize;

use crate::threads::ignore::ignore_closed;

/// The texts to hide, each with its replacement.
static SECRETS: RwLock<Vec<(String, String)>> = RwLock::new(Vec::new());

/// The least length of a secret. Hiding a single letter would garble ordinary words.
const LENGTH_MIN: usize = 2;

/// Hides these values from now on, including their encoded forms in addresses.
pub(super) fn keep(secrets: &BTreeMap<String, String>) {
    let Ok(mut known) = SECRETS.write() else { return };
    for (name, value) in secrets.iter().filter(|(_, value)| value.len() >= LENGTH_MIN) {
        let shown = format!("${{{name}}}");
        let encoded: String = byte_serialize(value.as_bytes()).collect();
        let spaced = encoded.replace('+', "%20");
        let address = url::Url::parse(&format!("http://host/?{value}")).ok();
        let in_query = address.as_ref().and_then(url::Url::query).unwrap_or(value).to_owned();
        let path = url::Url::parse(&format!("http://host/{value}")).ok();
        let in_path = path.map_or(value.clone(), |path| path.path()[1..].to_owned());
        for form in [value.clone(), encoded, spaced, in_query, in_path] {
            if form.len() >= LENGTH_MIN && !known.iter().any(|(known, _)| *known == form) {
                known.push((form, shown.clone()));
            }
        }
    }
    // Longer texts first, because one secret may contain another.
    known.sort_by_key(|(form, _)| std::cmp::Reverse(form.len()));
}

/// Replaces the secrets in a text.
pub(super) fn hide(text: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(text);
    if let Ok(known) = SECRETS.read() {
        for (form, instead) in known.iter().filter(|(form, _)| text.contains(form.as_str())) {
            shown = Cow::Owned(shown.replace(form.as_str(), instead));
        }
    }
    match without_passwords(&shown) {
        Some(shown) => Cow::Owned(shown),
        None => shown,
    }
}

/// The text with `***` for user and password in every address; `None` if there are none.
fn without_passwords(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let ends = |c: char| c.is_whitespace() || "/?#\\\"'`<>,;".contains(c);
        let host = after.find(ends).unwrap_or(after.len());
        rest = match after[..host].rfind('@') {
            Some(user) if after[..user].contains(':') => {
                out.push_str("***");
                &after[user..]
            }
            _ => after,
        };
    }
    if out.len() + rest.len() == text.len() && !out.contains("***") {
        return None;
    }
    out.push_str(rest);
    Some(out)
}

/// Standard error without secrets, for the log. Output is dropped if it cannot be written.
#[derive(Debug, Default)]
pub(super) struct HiddenStderr;

impl Write for HiddenStderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The log passes whole lines, so a secret is never split.
        let line = String::from_utf8_lossy(bytes);
        ignore_closed(io::stderr().lock().write_all(hide(&line).as_bytes()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        ignore_closed(io::stderr().flush());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        let text = "a http://me:p@w@host/x@y \"https://u:p@h\" ftp://me@h http://h:80/a:b@c";
        assert_eq!(
            hide(text),
            "a http://***@host/x@y \"https://***@h\" ftp://me@h http://h:80/a:b@c"
        );
        assert_eq!(hide("http://h:80/"), "http://h:80/");
    }
}
