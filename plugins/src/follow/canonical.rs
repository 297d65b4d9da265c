//! One spelling for each address, so that a page is met once.

use std::borrow::Cow;
use std::fmt::Write as _;

use url::Url;

use crate::loader::{Target, escape};

/// Brings addresses into their one spelling.
///
/// The fragment goes, scheme and host are in lower case, the default port and `.`/`..` are gone,
/// an empty path is `/`, an empty query is none, escapes are in upper case and only where they must be, parameters that
/// only track the visitor are dropped; all others stay in their order.
///
/// ```
/// use spoonbill_plugins::follow::Canon;
///
/// let canon = Canon::new("utm_*, gclid");
/// let address = "HTTP://Shop.Example:80/a/../b%7e?x=1&utm_source=mail&y=%c3%bc#top";
/// assert_eq!(canon.address(address), "http://shop.example/b~?x=1&y=%C3%BC");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Canon {
    names: Vec<String>,
    beginnings: Vec<String>,
}

impl Canon {
    /// Drops the parameters of a list: names with commas or white space between them; a `*` at the
    /// end of a name stands for anything.
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

    /// The one spelling of an address as it stands in a definition. What cannot be loaded stays as
    /// it is.
    pub fn address(&self, address: &str) -> String {
        match Target::of(address) {
            Ok(Target::Http(url)) => self.url(&url),
            Ok(Target::Path(path)) => plain_path(&path),
            Err(_) => address.trim().to_owned(),
        }
    }

    /// The one spelling of an address on the web.
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

/// The address without user and password: they are no part of which page it is, and nothing to
/// print.
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

/// The text with its escapes in upper case and none where none is needed; nothing if it is so.
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

/// A path of a file without `.` and `..`, as far as they can be resolved without looking.
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
        let canon = Canon::new("utm_*, gclid _ga");
        let found = canon.address(address);
        assert_eq!(found, expect, "of `{address}`");
        assert_eq!(canon.address(&found), expect, "of `{address}` twice");
    }

    #[test]
    fn addresses_on_the_web() {
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
    fn parameters_that_track_are_dropped_and_no_others() {
        check("http://h/?utm_source=x&a=1&utm_medium=y", "http://h/?a=1");
        check("http://h/?gclid=1", "http://h/");
        check("http://h/?GCLID=1&UTM_Source=2&%67clid=3", "http://h/");
        check("http://h/?gclidx=1&autm_=2&_gat", "http://h/?gclidx=1&autm_=2&_gat");
        check("http://h/?a&&b", "http://h/?a&&b");
        check("http://h/x?", "http://h/x");
        check("http://h/x?#top", "http://h/x");
        assert_eq!(Canon::new("").address("http://h/?utm_a=1"), "http://h/?utm_a=1");
    }

    #[test]
    fn paths_of_files() {
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
