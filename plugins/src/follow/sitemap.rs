//! Reads sitemaps: XML or plain lists, both also as gzip. An index has the addresses of further
//! sitemaps.

use std::borrow::Cow;
use std::io::Read;

use crate::html::xml_reader::{XmlPart, XmlReader, resolved};
use crate::loader::charset;

/// The addresses in a sitemap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sitemap {
    /// Addresses of pages.
    pub pages: Vec<String>,
    /// Addresses of further sitemaps.
    pub sitemaps: Vec<String>,
    /// Number of addresses beyond `urls_max`.
    pub beyond: u64,
}

/// Limits on one sitemap.
#[derive(Debug, Clone, Copy)]
pub struct SitemapLimits {
    /// Decompressed bytes.
    pub bytes_max: u64,
    /// Addresses to keep.
    pub urls_max: usize,
}

/// Nested elements.
const DEPTH_MAX: usize = 64;

/// An address of at least this many bytes ignores further text.
const URL_BYTES_MAX: usize = 64 * 1024;

/// Paths to the address of a page, and to that of a further sitemap.
const PAGE_ADDRESS: [&str; 3] = ["urlset", "url", "loc"];
const INDEX_ADDRESS: [&str; 3] = ["sitemapindex", "sitemap", "loc"];

impl Sitemap {
    /// Reads a sitemap. Fails if the body is something else, cut off or too large.
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
            sitemap.xml(text, limits.urls_max)?;
        } else {
            sitemap.lines(text, limits.urls_max)?;
        }
        Ok(sitemap)
    }

    fn xml(&mut self, xml: &str, urls_max: usize) -> Result<(), String> {
        let mut reader = XmlReader::new(xml);
        // Local names of the open elements.
        let mut open: Vec<&str> = Vec::new();
        let mut root = None;
        let mut url = String::new();
        loop {
            let part = reader.next();
            if reader.is_cut {
                return Err(String::from("the sitemap is cut off in the middle of a tag"));
            }
            let is_index = root == Some("sitemapindex");
            let is_address = open == if is_index { INDEX_ADDRESS } else { PAGE_ADDRESS };
            match part {
                Some(XmlPart::Start { name, is_empty }) => {
                    let name = name.rsplit(':').next().unwrap_or_default();
                    let root = *root.get_or_insert(name);
                    if !matches!(root, "urlset" | "sitemapindex") {
                        return Err(format!("not a sitemap: it starts with `<{root}>`"));
                    }
                    if !is_empty && open.len() >= DEPTH_MAX {
                        return Err(String::from("the sitemap is nested too deeply"));
                    }
                    if !is_empty {
                        open.push(name);
                    }
                }
                Some(XmlPart::Text(text)) if is_address && url.len() < URL_BYTES_MAX => {
                    url.push_str(&resolved(&xml[text], true));
                }
                Some(XmlPart::CData(text)) if is_address && url.len() < URL_BYTES_MAX => {
                    url.push_str(&xml[text]);
                }
                Some(XmlPart::End { .. }) => {
                    if is_address {
                        self.add(is_index, url.trim(), urls_max);
                        url.clear();
                    }
                    open.pop();
                    if open.is_empty() {
                        return Ok(());
                    }
                }
                Some(_) => {}
                None => break,
            }
        }
        match root {
            Some(root) => Err(format!("the sitemap is cut off: `<{root}>` is not closed")),
            None => Err(String::from("not a sitemap: it has no element")),
        }
    }

    fn lines(&mut self, text: &str, urls_max: usize) -> Result<(), String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        for (number, line) in lines.enumerate() {
            let is_address = line.starts_with("http://") || line.starts_with("https://");
            if number == 0 && !is_address {
                return Err(String::from("not a sitemap: neither XML nor a list of addresses"));
            }
            self.add(false, line, urls_max);
        }
        if self.pages.is_empty() {
            return Err(String::from("not a sitemap: it is empty"));
        }
        Ok(())
    }

    fn add(&mut self, is_sitemap: bool, url: &str, urls_max: usize) {
        if url.is_empty() {
            return;
        }
        if self.pages.len() + self.sitemaps.len() >= urls_max {
            self.beyond += 1;
        } else if is_sitemap {
            self.sitemaps.push(url.to_owned());
        } else {
            self.pages.push(url.to_owned());
        }
    }
}

/// Decompresses a gzip body within the limit.
fn unpacked(body: &[u8], bytes_max: u64) -> Result<Cow<'_, [u8]>, String> {
    if !body.starts_with(&[0x1f, 0x8b]) {
        return Ok(Cow::Borrowed(body));
    }
    let mut bytes = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(body).take(bytes_max.saturating_add(1));
    reader
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot decompress the sitemap: {error}"))?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!(
            "the decompressed sitemap is larger than {bytes_max} bytes (setting `loader.body.max`)"
        ));
    }
    Ok(Cow::Owned(bytes))
}

#[cfg(test)]
mod tests;
