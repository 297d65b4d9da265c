//! Parses the address of a locator: a page on the web or a file.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use url::Url;

use super::LoadError;

/// Where a page is loaded from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageTarget {
    /// An `http:` or `https:` address, escaped for a request.
    Http(Url),
    /// A path, as written in the definition.
    Path(String),
}

impl PageTarget {
    /// Parses an address of a definition.
    ///
    /// ```
    /// use spoonbill_plugins::loader::PageTarget;
    ///
    /// assert_eq!(PageTarget::of("/defs/x.html")?, PageTarget::Path("/defs/x.html".to_owned()));
    /// assert_eq!(PageTarget::of("https://Example.com/a b")?.lane(), "example.com:443");
    /// assert!(PageTarget::of("ftp://example.com/x").is_err());
    /// # Ok::<(), spoonbill_plugins::loader::LoadError>(())
    /// ```
    pub fn of(url: &str) -> Result<Self, LoadError> {
        let url = url.trim();
        if url.is_empty() {
            return Err(LoadError::never(url, "the address is empty"));
        }
        let Some((scheme, rest)) = split_scheme(url) else {
            return Ok(Self::Path(url.to_owned()));
        };
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => web(url).map(Self::Http),
            "file" => file(url, rest).map(Self::Path),
            _ => Err(LoadError::never(url, unknown_scheme(scheme, url, rest))),
        }
    }

    /// Whether an address has the scheme `http` or `https`.
    pub fn is_web(url: &str) -> bool {
        let scheme = url.trim_start().split(':').next().unwrap_or_default();
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    }

    /// The lane of an address. `None` if it cannot be loaded.
    ///
    /// ```
    /// use spoonbill_plugins::loader::PageTarget;
    ///
    /// assert_eq!(PageTarget::lane_of("http://example.com/a").as_deref(), Some("example.com:80"));
    /// assert_eq!(PageTarget::lane_of("pages/a.html").as_deref(), Some("local"));
    /// ```
    pub fn lane_of(url: &str) -> Option<String> {
        plain_lane(url).or_else(|| Self::of(url).ok().map(|target| target.lane()))
    }

    /// The lane: `host:port`, or `local` for files. Requests of one lane share its pauses.
    pub fn lane(&self) -> String {
        match self {
            Self::Http(url) => lane(url),
            Self::Path(_) => "local".to_owned(),
        }
    }
}

/// The lane of an address with a plain host. A fast path, because a page may have thousands of
/// links. `None` if the address needs a parser.
fn plain_lane(url: &str) -> Option<String> {
    let (rest, port) = match url.strip_prefix("http://") {
        Some(rest) => (rest, "80"),
        None => (url.strip_prefix("https://")?, "443"),
    };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let (host, port) = authority.split_once(':').unwrap_or((authority, port));
    let last = host.rsplit('.').next().unwrap_or_default();
    // A host that ends in a number is an IPv4 address, which has several spellings.
    let is_numbers = || host.parse::<Ipv4Addr>().is_ok_and(|parts| parts.to_string() == host);
    let is_plain = host.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
        && (last.starts_with(|c: char| c.is_ascii_lowercase()) || is_numbers())
        && !host.starts_with('.')
        && !host.contains("xn--")
        && !host.contains("..");
    let is_port = port.parse::<u16>().is_ok_and(|number| number.to_string() == port);
    (is_plain && is_port).then(|| format!("{host}:{port}"))
}

/// The lane of an address on the web.
pub(super) fn lane(url: &Url) -> String {
    format!(
        "{}:{}",
        url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase(),
        url.port_or_known_default().unwrap_or_default()
    )
}

/// Splits an address after its scheme. One letter is a drive, not a scheme.
fn split_scheme(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once(':')?;
    let mut letters = scheme.bytes();
    let is_scheme = scheme.len() > 1
        && letters.next().is_some_and(|b| b.is_ascii_alphabetic())
        && letters.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    is_scheme.then_some((scheme, rest))
}

fn unknown_scheme(scheme: &str, url: &str, rest: &str) -> String {
    let port = rest.split('/').next().unwrap_or_default();
    if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) {
        return format!("scheme `{scheme}` is not supported, did you mean `http://{url}`?");
    }
    format!("scheme `{scheme}` is not supported, only `http`, `https` and `file` are")
}

fn web(address: &str) -> Result<Url, LoadError> {
    let mut url = Url::parse(address)
        .map_err(|e| LoadError::never(address, format_args!("not a valid address, {e}")))?;
    escape(&mut url);
    Ok(url)
}

/// Escapes characters that the URL standard accepts and strict servers refuse.
pub(crate) fn escape(url: &mut Url) {
    if let Some(path) = escaped(url.path()) {
        url.set_path(&path);
    }
    if let Some(query) = url.query().and_then(escaped) {
        url.set_query(Some(&query));
    }
}

/// Escapes illegal characters. `None` if there are none.
fn escaped(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let illegal = |at: usize| match bytes[at] {
        b'%' => !is_escape(bytes, at),
        byte => matches!(byte, b'|' | b'^' | b'[' | b']' | b'{' | b'}' | b'`' | b'\\'),
    };
    if !(0..bytes.len()).any(illegal) {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 8);
    for (at, letter) in text.char_indices() {
        if illegal(at) {
            // Writing to a string cannot fail.
            write!(out, "%{:02X}", bytes[at]).ok();
        } else {
            out.push(letter);
        }
    }
    Some(out)
}

fn is_escape(bytes: &[u8], at: usize) -> bool {
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_hexdigit);
    digit(at + 1) && digit(at + 2)
}

/// The path of a `file:` address. `file:x` is relative, `file:/x` and `file:///x` are absolute.
fn file(url: &str, rest: &str) -> Result<String, LoadError> {
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(after) => {
            let host = after.split('/').next().unwrap_or_default();
            if !(host.is_empty() || host.eq_ignore_ascii_case("localhost")) {
                return Err(LoadError::never(
                    url,
                    format_args!(
                        "`{host}` is another machine, write a local file as `file:/path` or `file:path`"
                    ),
                ));
            }
            &after[host.len()..]
        }
    };
    let path = unescaped(path);
    if path.is_empty() {
        return Err(LoadError::never(url, "the address has no path"));
    }
    Ok(without_drive_slash(path))
}

/// Turns `/c:/x` into `c:/x`, because a `file:` address has a slash before the drive.
fn without_drive_slash(path: String) -> String {
    match path.as_bytes() {
        [b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => path[1..].to_owned(),
        _ => path,
    }
}

/// Resolves the escapes of a text. Unchanged if the result is not UTF-8.
pub(crate) fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%' && is_escape(bytes, at))
            .then(|| u8::from_str_radix(&text[at + 1..at + 3], 16).ok())
            .flatten();
        if let Some(code) = code {
            out.push(code);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, expect: &str) {
        let found = match PageTarget::of(address) {
            Ok(PageTarget::Http(url)) => format!("http {url}"),
            Ok(PageTarget::Path(path)) => format!("path {path}"),
            Err(error) => format!("error {error}"),
        };
        assert_eq!(found, expect, "of `{address}`");
    }

    #[test]
    fn the_fast_path_finds_the_same_lane_as_the_parser() {
        for url in [
            "http://example.com/a:b",
            "https://example.com?q",
            "https://a-b.c1.example.org:8443#x",
            "http://example.com:80/",
            "http://example.com:080/",
            "http://example.com:99999/",
            "http://Example.com./",
            "http://127.0.0.1:8080/x",
            "http://127.1/",
            "http://0x7f.0.0.1/",
            "http://me:pass@example.com/",
            "http://xn--bcher-kva.example/",
            "http://b\u{fc}cher.example/",
            "http://a..b/",
            "http://.a/",
            "http:///a",
            "http://[::1]/",
            "http://exa mple.com/",
            "HTTP://example.com/",
            "pages/a.html",
            "ftp://example.com/",
        ] {
            let parsed = PageTarget::of(url).ok().map(|target| target.lane());
            assert_eq!(PageTarget::lane_of(url), parsed, "{url}");
            assert_eq!(PageTarget::is_web(url), url.to_lowercase().starts_with("http"), "{url}");
        }
    }

    #[test]
    fn an_address_without_a_scheme_is_a_path() {
        check("/defs/x.html", "path /defs/x.html");
        check("defs/x.html", "path defs/x.html");
        check("c:/x", "path c:/x");
        check("C:\\x\\y.html", "path C:\\x\\y.html");
        check(" x.html ", "path x.html");
        check("dir/a:b.html", "path dir/a:b.html");
        check("1:b.html", "path 1:b.html");
        check("saved/index.html?page=2", "path saved/index.html?page=2");
        check("/a b/ü.html", "path /a b/ü.html");
        check(":x", "path :x");
    }

    #[test]
    fn file_addresses_become_paths() {
        check("file:rel/x.html", "path rel/x.html");
        check("file:./x.html", "path ./x.html");
        check("file:/abs/x.html", "path /abs/x.html");
        check("file:///abs/x.html", "path /abs/x.html");
        check("FILE:///abs/x.html", "path /abs/x.html");
        check("file://localhost/abs/x.html", "path /abs/x.html");
        check("file:///a%20b/%C3%BC.html", "path /a b/ü.html");
        check("file:/100%.html", "path /100%.html");
        check("file:/a%FF.html", "path /a%FF.html");
        check("file:/a%é1.html", "path /a%é1.html");
        check("file:/x.html#top", "path /x.html");
        check("file:///c:/x.html", "path c:/x.html");
        check(
            "file://host/x",
            "error cannot load `file://host/x`: `host` is another machine, write a local file \
             as `file:/path` or `file:path`",
        );
        check("file:", "error cannot load `file:`: the address has no path");
    }

    #[test]
    fn errors_name_the_scheme() {
        check(
            "ftp://example.com/x",
            "error cannot load `ftp://example.com/x`: scheme `ftp` is not supported, only `http`, \
             `https` and `file` are",
        );
        check(
            "localhost:8080/x",
            "error cannot load `localhost:8080/x`: scheme `localhost` is not supported, did you \
             mean `http://localhost:8080/x`?",
        );
        check("", "error cannot load ``: the address is empty");
        check("http://", "error cannot load `http://`: not a valid address, empty host");
        check(
            "http://a b/",
            "error cannot load `http://a b/`: not a valid address, invalid international domain \
             name",
        );
    }

    #[test]
    fn illegal_characters_are_escaped_and_escapes_are_kept() {
        check("http://h/a b?c d", "http http://h/a%20b?c%20d");
        check("http://h/%41%20?q=%7e", "http http://h/%41%20?q=%7e");
        check("http://h/100%?q=5%&r=%zz", "http http://h/100%25?q=5%25&r=%25zz");
        check("http://h/a|b^c?d[]={e}", "http http://h/a%7Cb%5Ec?d%5B%5D=%7Be%7D");
        check("http://h/ü?ü", "http http://h/%C3%BC?%C3%BC");
        check("http://h/%ü1", "http http://h/%25%C3%BC1");
        check("http://H.example", "http http://h.example/");
        check("HTTPS://h:443/x#top", "http https://h/x#top");
        check("http://bücher.example/", "http http://xn--bcher-kva.example/");
    }

    #[test]
    fn a_lane_is_a_host_with_its_port() {
        let lane = |address: &str| PageTarget::of(address).unwrap().lane();
        assert_eq!(lane("http://Example.COM/x"), "example.com:80");
        assert_eq!(lane("https://example.com./x"), "example.com:443");
        assert_eq!(lane("http://user:pw@127.0.0.1:8080/x"), "127.0.0.1:8080");
        assert_eq!(lane("http://[::1]/x"), "[::1]:80");
        assert_eq!(lane("file:x"), "local");
        assert_eq!(lane("/x"), "local");
    }
}
