//! Normalizes addresses, so that each page is loaded once.

use std::borrow::Cow;
use std::fmt::Write as _;

use url::Url;

use crate::loader::{PageTarget, escape};

/// Normalizes addresses.
///
/// - Scheme and host become lower case.
/// - Fragment, default port, `.`, `..` and an empty query are removed. An empty path becomes `/`.
/// - Escapes are upper case, and characters that need none are unescaped.
/// - Tracking parameters are removed. Other parameters keep their order.
///
/// ```
/// use spoonbill_plugins::follow::Canonicalizer;
///
/// let canon = Canonicalizer::new("utm_*, gclid");
/// let address = "HTTP://Shop.Example:80/a/../b%7e?x=1&utm_source=mail&y=%c3%bc#top";
/// assert_eq!(canon.address(address), "http://shop.example/b~?x=1&y=%C3%BC");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Canonicalizer {
    names: Vec<String>,
    beginnings: Vec<String>,
}

impl Canonicalizer {
    /// Removes these parameters: names with commas or white space between them. A `*` at the end of
    /// a name matches any ending.
    pub fn new(drop_params: &str) -> Self {
        let mut canon = Self::default();
        let words = drop_params.split(|letter: char| letter == ',' || letter.is_whitespace());
        for word in words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase) {
            match word.strip_suffix('*') {
                Some(beginning) => canon.beginnings.push(beginning.to_owned()),
                None => canon.names.push(word),
            }
        }
        canon
    }

    /// Normalizes an address of a definition. One that cannot be loaded is only trimmed.
    pub fn address(&self, address: &str) -> String {
        match PageTarget::of(address) {
            Ok(PageTarget::Http(url)) => self.url(&url),
            Ok(PageTarget::Path(path)) => plain_path(&path),
            Err(_) => address.trim().to_owned(),
        }
    }

    /// Normalizes an address on the web.
    pub fn url(&self, url: &Url) -> String {
        let mut url = url.clone();
        escape(&mut url);
        url.set_fragment(None);
        if let Some(path) = respelt(url.path()) {
            url.set_path(&path);
        }
        if let Some(query) = url.query() {
            let kept: Vec<&str> =
                query.split('&').filter(|parameter| !self.drops(parameter)).collect();
            let query = kept.join("&");
            let query = respelt(&query).unwrap_or(query);
            url.set_query(Some(query.as_str()).filter(|query| !query.is_empty()));
        }
        url.into()
    }

    fn drops(&self, parameter: &str) -> bool {
        let name = parameter.split('=').next().unwrap_or_default();
        let name = respelt(name).unwrap_or_else(|| name.to_owned()).to_ascii_lowercase();
        self.names.contains(&name)
            || self.beginnings.iter().any(|beginning| name.starts_with(beginning))
    }
}

/// Removes user and password, which do not identify a page and must not be printed.
///
/// ```
/// use spoonbill_plugins::follow::without_user;
///
/// assert_eq!(without_user("http://me:pw@host/x?a=@"), "http://host/x?a=@");
/// assert_eq!(without_user("pages/a@b.html"), "pages/a@b.html");
/// ```
pub fn without_user(address: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = address.split_once("://") else {
        return Cow::Borrowed(address);
    };
    let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) if is_scheme => Cow::Owned(format!("{scheme}://{}", &rest[at + 1..])),
        _ => Cow::Borrowed(address),
    }
}

/// Normalizes the escapes of a text. `None` if it has none.
fn respelt(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 3);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                out.push(char::from(byte));
            } else {
                // Writing to a string cannot fail.
                write!(out, "%{byte:02X}").ok();
            }
            rest = &rest[at + 3..];
        } else {
            out.push('%');
            rest = &rest[at + 1..];
        }
    }
    out.push_str(rest);
    Some(out)
}

/// Removes `.` and `..` from a path without reading the disk. A leading `..` stays.
pub(super) fn plain_path(path: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if absolute => {}
            part => parts.push(part),
        }
    }
    let slash = if absolute { "/" } else { "" };
    let end = if path.ends_with('/') && !parts.is_empty() { "/" } else { "" };
    format!("{slash}{}{end}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, expect: &str) {
        let canon = Canonicalizer::new("utm_*, gclid _ga");
        let found = canon.address(address);
        assert_eq!(found, expect, "of `{address}`");
        assert_eq!(canon.address(&found), expect, "of `{address}` twice");
    }

    #[test]
    fn web_addresses_are_normalized() {
        check("HTTP://Example.COM", "http://example.com/");
        check("https://h:443/x#top", "https://h/x");
        check("http://h:8080/x", "http://h:8080/x");
        check("http://h/a/./b/../c", "http://h/a/c");
        check("http://h/%7euser/%e2%82%ac/a%2fb", "http://h/~user/%E2%82%AC/a%2Fb");
        check("http://h/€", "http://h/%E2%82%AC");
        check("http://h/100%", "http://h/100%25");
        check("http://h/a b|c", "http://h/a%20b%7Cc");
        check("http://h/?b=2&a=1", "http://h/?b=2&a=1");
        check("http://h/?a=%2b&b=+", "http://h/?a=%2B&b=+");
        check("http://bücher.example/", "http://xn--bcher-kva.example/");
    }

    #[test]
    fn only_tracking_parameters_are_removed() {
        check("http://h/?utm_source=x&a=1&utm_medium=y", "http://h/?a=1");
        check("http://h/?gclid=1", "http://h/");
        check("http://h/?GCLID=1&UTM_Source=2&%67clid=3", "http://h/");
        check("http://h/?gclidx=1&autm_=2&_gat", "http://h/?gclidx=1&autm_=2&_gat");
        check("http://h/?a&&b", "http://h/?a&&b");
        check("http://h/x?", "http://h/x");
        check("http://h/x?#top", "http://h/x");
        assert_eq!(Canonicalizer::new("").address("http://h/?utm_a=1"), "http://h/?utm_a=1");
    }

    #[test]
    fn paths_are_normalized() {
        check("pages/./a/../list.html", "pages/list.html");
        check("/pages//x.html", "/pages/x.html");
        check("file:pages/x%20y.html#top", "pages/x y.html");
        check("../x.html", "../x.html");
        check("a/../../x.html", "../x.html");
        check("/../x.html", "/x.html");
        check("a/", "a/");
        check("ftp://h/x", "ftp://h/x");
    }
}
