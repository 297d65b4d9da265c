//! Sitemaps: XML with addresses of pages, or of further sitemaps; plain lists of addresses; either
//! of them packed.

use std::borrow::Cow;
use std::io::Read;

use crate::loader::charset;

/// What a sitemap says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sitemap {
    /// Addresses of pages.
    pub pages: Vec<String>,
    /// Addresses of further sitemaps.
    pub sitemaps: Vec<String>,
    /// Addresses beyond the bound.
    pub beyond: u64,
}

/// Bounds on one sitemap.
#[derive(Debug, Clone, Copy)]
pub struct SitemapLimits {
    /// Bytes once it is unpacked.
    pub bytes_max: u64,
    /// Addresses taken from it.
    pub urls_max: usize,
}

/// Elements inside each other that a sitemap may have.
const DEPTH_MAX: usize = 64;

impl Sitemap {
    /// Reads a sitemap, or tells why it is none.
    ///
    /// ```
    /// use spoonbill_plugins::follow::{Sitemap, SitemapLimits};
    ///
    /// let limits = SitemapLimits { bytes_max: 1000, urls_max: 10 };
    /// let xml = b"<urlset><url><loc> http://h/?a=1&amp;b=2 </loc></url></urlset>";
    /// let sitemap = Sitemap::read(xml, None, limits)?;
    /// assert_eq!(sitemap.pages, ["http://h/?a=1&b=2"]);
    /// # Ok::<(), String>(())
    /// ```
    pub fn read(
        body: &[u8],
        content_type: Option<&str>,
        limits: SitemapLimits,
    ) -> Result<Self, String> {
        let body = unpacked(body, limits.bytes_max)?;
        let text = charset::decode(&body, content_type);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let mut sitemap = Self::default();
        if text.starts_with('<') {
            let mut scanner = Scanner { text, at: 0, open: Vec::new() };
            scanner.scan(&mut sitemap, limits.urls_max)?;
        } else {
            sitemap.lines(text, limits.urls_max)?;
        }
        Ok(sitemap)
    }

    fn lines(&mut self, text: &str, urls_max: usize) -> Result<(), String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        for (number, line) in lines.enumerate() {
            let is_address = line.starts_with("http://") || line.starts_with("https://");
            if number == 0 && !is_address {
                return Err(String::from(
                    "this is no sitemap: neither XML nor a list of addresses",
                ));
            }
            self.add(false, line.to_owned(), urls_max);
        }
        if self.pages.is_empty() {
            return Err(String::from("this is no sitemap: it is empty"));
        }
        Ok(())
    }

    fn add(&mut self, is_sitemap: bool, url: String, urls_max: usize) {
        if self.pages.len() + self.sitemaps.len() >= urls_max {
            self.beyond += 1;
        } else if is_sitemap {
            self.sitemaps.push(url);
        } else {
            self.pages.push(url);
        }
    }
}

/// The bytes of a packed body, within bounds.
fn unpacked(body: &[u8], bytes_max: u64) -> Result<Cow<'_, [u8]>, String> {
    if !body.starts_with(&[0x1f, 0x8b]) {
        return Ok(Cow::Borrowed(body));
    }
    let mut bytes = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(body).take(bytes_max.saturating_add(1));
    reader
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot unpack the sitemap: {error}"))?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!(
            "the sitemap is larger than {bytes_max} bytes once unpacked (setting `loader.body.max`)"
        ));
    }
    Ok(Cow::Owned(bytes))
}

/// Goes once through the text of a sitemap.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Local names of the elements that are open.
    open: Vec<&'a str>,
}

/// A piece of XML.
enum Piece<'a> {
    Start { name: &'a str, empty: bool },
    End,
    Text(Cow<'a, str>),
}

impl<'a> Scanner<'a> {
    fn scan(&mut self, sitemap: &mut Sitemap, urls_max: usize) -> Result<(), String> {
        let mut url = String::new();
        let mut root = None;
        while let Some(piece) = self.next()? {
            match piece {
                Piece::Start { name, empty } => {
                    let root = *root.get_or_insert(name);
                    if !matches!(root, "urlset" | "sitemapindex") {
                        return Err(format!("this is no sitemap: it begins with `<{root}>`"));
                    }
                    if !empty && self.open.len() >= DEPTH_MAX {
                        return Err(String::from("the sitemap is nested too deeply"));
                    }
                    if !empty {
                        self.open.push(name);
                    }
                }
                Piece::Text(text) => {
                    if self.is_address() && url.len() < 64 * 1024 {
                        url.push_str(&text);
                    }
                }
                Piece::End => {
                    if self.is_address() {
                        let found = std::mem::take(&mut url);
                        let found = found.trim();
                        if !found.is_empty() {
                            let is_sitemap = root == Some("sitemapindex");
                            sitemap.add(is_sitemap, found.to_owned(), urls_max);
                        }
                    }
                    self.open.pop();
                    if self.open.is_empty() {
                        return Ok(());
                    }
                }
            }
        }
        match root {
            Some(root) => Err(format!("the sitemap is cut off: `<{root}>` does not end")),
            None => Err(String::from("this is no sitemap: it has no element")),
        }
    }

    /// Whether an address stands here: `urlset/url/loc` or `sitemapindex/sitemap/loc`.
    fn is_address(&self) -> bool {
        matches!(self.open[..], ["urlset", "url", "loc"] | ["sitemapindex", "sitemap", "loc"])
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Result<Option<Piece<'a>>, String> {
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return Ok(None);
            }
            if !rest.starts_with('<') {
                let end = rest.find('<').unwrap_or(rest.len());
                self.at += end;
                return Ok(Some(Piece::Text(resolved(&rest[..end]))));
            }
            if let Some(data) = rest.strip_prefix("<![CDATA[") {
                let end = data.find("]]>").ok_or_else(cut)?;
                self.at += end + "<![CDATA[".len() + "]]>".len();
                return Ok(Some(Piece::Text(Cow::Borrowed(&data[..end]))));
            }
            let skipped = if rest.starts_with("<!--") {
                Some(rest.find("-->").ok_or_else(cut)? + 3)
            } else if rest.starts_with("<?") {
                Some(rest.find("?>").ok_or_else(cut)? + 2)
            } else if rest.starts_with("<!") {
                Some(doctype_end(rest).ok_or_else(cut)?)
            } else {
                None
            };
            if let Some(length) = skipped {
                self.at += length;
                continue;
            }
            return self.tag(rest).map(Some);
        }
    }

    fn tag(&mut self, rest: &'a str) -> Result<Piece<'a>, String> {
        let length = tag_end(rest).ok_or_else(cut)?;
        self.at += length;
        let inner = &rest[1..length - 1];
        if inner.starts_with('/') {
            return Ok(Piece::End);
        }
        let name = inner.split(|letter: char| letter.is_whitespace() || letter == '/').next();
        let name = name.unwrap_or_default();
        let local = name.rsplit(':').next().unwrap_or_default();
        Ok(Piece::Start { name: local, empty: inner.ends_with('/') })
    }
}

fn cut() -> String {
    String::from("the sitemap is cut off in the middle of a tag")
}

/// The length of a tag, its quoted values skipped.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

/// The length of a doctype, with the declarations inside it.
fn doctype_end(doctype: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in doctype.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            b'>' if depth == 0 => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The text with its entities replaced; an unknown one stays as it is.
fn resolved(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = rest.bytes().take(12).position(|byte| byte == b';');
        if let Some((letter, end)) = known.and_then(|end| Some((entity(&rest[1..end])?, end))) {
            out.push(letter);
            rest = &rest[end + 1..];
        } else {
            out.push('&');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn entity(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests;
