//! The address of a page, and the resolution of its links.

use url::Url;

use super::canonical::plain_path;
use super::reasons;
use crate::html::{Document, NodeKind};
use crate::loader::{PageTarget, unescaped};

/// The address of a page that links are resolved against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageAddress {
    /// On the web.
    Web(Url),
    /// A file, as the definition names it.
    File(String),
}

impl PageAddress {
    /// Parses the address of a page. `None` if it cannot be loaded.
    pub fn of(address: &str) -> Option<Self> {
        Some(match PageTarget::of(address).ok()? {
            PageTarget::Http(url) => Self::Web(url),
            PageTarget::Path(path) => Self::File(plain_path(&path)),
        })
    }

    /// Links are resolved against this: the `<base href>` of the page, or its own address.
    #[must_use]
    pub(crate) fn base(self, document: &Document) -> Self {
        match base_href(document).map(|href| self.join(href)) {
            Some(Ok(base)) => base,
            _ => self,
        }
    }

    /// Resolves a link, or returns the reason why it cannot be followed.
    ///
    /// ```
    /// use spoonbill_plugins::follow::PageAddress;
    ///
    /// let page = PageAddress::of("pages/list-1.html").ok_or("no address")?;
    /// assert_eq!(page.join("item/3.html")?, PageAddress::File("pages/item/3.html".to_owned()));
    /// # Ok::<(), &'static str>(())
    /// ```
    pub fn join(&self, href: &str) -> Result<Self, &'static str> {
        let href = href.trim_matches(|letter: char| letter <= ' ');
        match self {
            Self::Web(url) => web(url, href),
            Self::File(path) => file(path, href),
        }
    }
}

/// The first `<base href>` of a page.
pub(crate) fn base_href(document: &Document) -> Option<&str> {
    document
        .all()
        .filter(|node| document.kind(*node) == NodeKind::Element)
        .filter(|node| document.name(*node).is_some_and(|name| &**name == "base"))
        .find_map(|node| document.attribute(node, "href"))
}

fn web(page: &Url, href: &str) -> Result<PageAddress, &'static str> {
    let url = page.join(href).map_err(|_| reasons::UNREADABLE)?;
    match url.scheme() {
        "http" | "https" => Ok(PageAddress::Web(url)),
        // A page on the web must not make us read local files.
        "file" => Err(reasons::FILE_OF_WEB_PAGE),
        _ => Err(reasons::NOT_WEB),
    }
}

/// Resolves a link on a local page as text, without query and fragment.
fn file(page: &str, href: &str) -> Result<PageAddress, &'static str> {
    let href: String =
        href.chars().filter(|letter| !matches!(letter, '\t' | '\n' | '\r')).collect();
    match Url::parse(&href) {
        Ok(url) if url.scheme().len() > 1 => {
            return match url.scheme() {
                "http" | "https" => Ok(PageAddress::Web(url)),
                "file" => PageAddress::of(&href).ok_or(reasons::UNREADABLE),
                _ => Err(reasons::NOT_WEB),
            };
        }
        Err(url::ParseError::RelativeUrlWithoutBase) => {}
        Ok(_) | Err(_) => return Err(reasons::UNREADABLE),
    }
    if href.starts_with("//") {
        // A host without a scheme, and a local page has none to inherit.
        return Err(reasons::UNREADABLE);
    }
    let path = unescaped(href.split(['?', '#']).next().unwrap_or_default());
    if path.is_empty() {
        return Ok(PageAddress::File(page.to_owned()));
    }
    if path.starts_with('/') {
        return Ok(PageAddress::File(plain_path(&path)));
    }
    let folder = page.rfind('/').map_or("", |slash| &page[..=slash]);
    Ok(PageAddress::File(plain_path(&format!("{folder}{path}"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::TreeLimits;

    fn check(page: &str, href: &str, expect: &str) {
        let found = match PageAddress::of(page).unwrap().join(href) {
            Ok(PageAddress::Web(url)) => url.to_string(),
            Ok(PageAddress::File(path)) => format!("file {path}"),
            Err(reason) => reason.to_owned(),
        };
        assert_eq!(found, expect, "`{href}` on `{page}`");
    }

    #[test]
    fn links_of_web_pages_resolve_as_urls() {
        check("http://h/a/b?x", "c", "http://h/a/c");
        check("http://h/a/b?x", " /c\n", "http://h/c");
        check("http://h/a/b", "?p=2", "http://h/a/b?p=2");
        check("http://h/a/b", "", "http://h/a/b");
        check("https://h/a", "//other/x", "https://other/x");
        check("http://h/a", "mailto:me@h", reasons::NOT_WEB);
        check("http://h/a", "javascript:go(1)", reasons::NOT_WEB);
        check("http://h/a", "tel:123", reasons::NOT_WEB);
        check("http://h/a", "file:///etc/passwd", reasons::FILE_OF_WEB_PAGE);
        check("http://h/a", "http://", reasons::UNREADABLE);
        check("http://h/a", "http://[x/", reasons::UNREADABLE);
    }

    #[test]
    fn links_of_local_pages_resolve_as_paths() {
        check("pages/list-1.html", "item/3.html", "file pages/item/3.html");
        check("pages/list-1.html", "../x.html", "file x.html");
        check("list.html", "a%20b.html?x=1#top", "file a b.html");
        check("list.html", "index.html%3Fpage=2", "file index.html?page=2");
        check("pages/list.html", "/x", "file /x");
        check("pages/list.html", "#top", "file pages/list.html");
        check("/abs/list.html", "x.html", "file /abs/x.html");
        check("file:pages/list.html", "x.html", "file pages/x.html");
        check("list.html", "file:///abs/x.html", "file /abs/x.html");
        check("list.html", "https://h/x", "https://h/x");
        check("list.html", "mailto:me@h", reasons::NOT_WEB);
        check("list.html", "//h/x", reasons::UNREADABLE);
    }

    #[test]
    fn the_first_base_element_with_an_address_counts() {
        let base = |page: &str, html: &str| {
            let document = Document::parse(html, TreeLimits::default()).unwrap();
            PageAddress::of(page).unwrap().base(&document)
        };
        let web = |url: &str| PageAddress::Web(Url::parse(url).unwrap());
        assert_eq!(base("http://h/a/b", "<p>"), web("http://h/a/b"));
        assert_eq!(base("http://h/a/b", "<base target=x><base href=/c/><base href=/d/>"), {
            web("http://h/c/")
        });
        assert_eq!(base("http://h/a/b", "<base href='mailto:x'>"), web("http://h/a/b"));
        assert_eq!(base("a/b.html", "<base href='c/'>"), PageAddress::File("a/c/".to_owned()));
        assert_eq!(base("a/b.html", "<base href='https://h/x/'>"), web("https://h/x/"));
    }
}
