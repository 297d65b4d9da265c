//! The setting `scope` of a follow rule.

use spoonbill_defs::FollowScope;
use url::Url;

use super::address::PageAddress;
use super::reasons;

/// Returns the reason if a link is out of scope. Host and domain are compared with the page before
/// redirects, and the prefix with the start page. All files count as one host.
pub(super) fn out_of_scope(
    scope: FollowScope,
    page: &PageAddress,
    start: &PageAddress,
    link: &PageAddress,
) -> Option<&'static str> {
    let (inside, reason) = match scope {
        FollowScope::Any => return None,
        FollowScope::Host => (same_host(page, link), reasons::OUT_OF_HOST),
        FollowScope::Domain => (same_domain(page, link), reasons::OUT_OF_DOMAIN),
        FollowScope::Prefix => (below(start, link), reasons::OUT_OF_PREFIX),
    };
    (!inside).then_some(reason)
}

fn same_host(page: &PageAddress, link: &PageAddress) -> bool {
    match (page, link) {
        (PageAddress::File(_), PageAddress::File(_)) => true,
        // `http:` and `https:` of a host are the same if neither address has a port.
        (PageAddress::Web(page), PageAddress::Web(link)) => {
            host(page) == host(link) && page.port() == link.port()
        }
        (PageAddress::File(_), PageAddress::Web(_))
        | (PageAddress::Web(_), PageAddress::File(_)) => false,
    }
}

fn same_domain(page: &PageAddress, link: &PageAddress) -> bool {
    match (page, link) {
        (PageAddress::File(_), PageAddress::File(_)) => true,
        (PageAddress::Web(page), PageAddress::Web(link)) => domain(page) == domain(link),
        (PageAddress::File(_), PageAddress::Web(_))
        | (PageAddress::Web(_), PageAddress::File(_)) => false,
    }
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_end_matches('.')
}

/// The registrable domain, or the whole host if it has none.
fn domain(url: &Url) -> &str {
    let host = host(url);
    match url.host() {
        Some(url::Host::Domain(_)) => psl::domain_str(host).unwrap_or(host),
        _ => host,
    }
}

/// Whether a link starts with the address of the start page up to its last slash.
fn below(start: &PageAddress, link: &PageAddress) -> bool {
    match (start, link) {
        (PageAddress::Web(from), PageAddress::Web(to)) => {
            same_host(start, link) && to.path().starts_with(folder(from.path()))
        }
        (PageAddress::File(from), PageAddress::File(to)) => {
            let folder = folder(from);
            let outside = to.starts_with('/') || to.starts_with("../");
            to.starts_with(folder) && !(folder.is_empty() && outside)
        }
        (PageAddress::File(_), PageAddress::Web(_))
        | (PageAddress::Web(_), PageAddress::File(_)) => false,
    }
}

fn folder(path: &str) -> &str {
    path.rfind('/').map_or("", |slash| &path[..=slash])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(scope: FollowScope, page: &str, link: &str) -> bool {
        let (page, link) = (PageAddress::of(page).unwrap(), PageAddress::of(link).unwrap());
        out_of_scope(scope, &page, &page, &link).is_none()
    }

    #[test]
    fn the_host_scope_compares_hosts_and_ports() {
        let host = |page, link| inside(FollowScope::Host, page, link);
        assert!(host("http://a.example/x", "http://a.example/y"));
        assert!(host("http://a.example/x", "https://A.example./y"));
        assert!(!host("http://a.example/x", "http://b.example/y"));
        assert!(!host("http://a.example:81/x", "http://a.example:82/y"));
        assert!(!host("http://a.example/x", "http://a.example:8080/y"));
        assert!(host("a/x.html", "/b/y.html"));
        assert!(!host("a/x.html", "http://a.example/"));
    }

    #[test]
    fn the_domain_scope_compares_registrable_domains() {
        let domain = |page, link| inside(FollowScope::Domain, page, link);
        assert!(domain("http://shop.example.co.uk/", "https://www.example.co.uk:8443/"));
        assert!(!domain("http://a.co.uk/", "http://b.co.uk/"));
        assert!(domain("http://a.example.com/", "http://example.com/"));
        assert!(!domain("http://one.github.io/", "http://two.github.io/"));
        assert!(domain("http://a.b.unknowntld/", "http://c.b.unknowntld/"));
        assert!(domain("http://localhost:1/", "http://localhost:2/"));
        assert!(domain("http://127.0.0.1:1/", "http://127.0.0.1:2/"));
        assert!(!domain("http://127.0.0.1/", "http://127.0.0.2/"));
        assert!(!domain("http://a.公司.cn/", "http://b.公司.cn/"));
        assert!(domain("http://a.b.公司.cn/", "http://c.b.公司.cn/"));
    }

    #[test]
    fn the_prefix_scope_compares_with_the_folder_of_the_start_page() {
        let prefix = |page, link| inside(FollowScope::Prefix, page, link);
        assert!(prefix("http://h/docs/index.html", "https://h/docs/a/b"));
        assert!(prefix("http://h/docs/", "http://h/docs/?x"));
        assert!(!prefix("http://h/docs/index.html", "http://h/docs"));
        assert!(!prefix("http://h/docs/index.html", "http://h/other/"));
        assert!(!prefix("http://h/docs/", "http://i/docs/"));
        assert!(prefix("http://h/", "http://h/anything"));
        assert!(prefix("a/list.html", "a/b/x.html"));
        assert!(!prefix("a/list.html", "b/x.html"));
        assert!(prefix("list.html", "b/x.html"));
        assert!(!prefix("list.html", "../x.html"));
        assert!(!prefix("list.html", "/x.html"));
    }

    #[test]
    fn the_scope_any_has_no_limit() {
        assert!(inside(FollowScope::Any, "http://a/", "http://b/"));
        assert!(inside(FollowScope::Any, "x.html", "http://b/"));
    }
}
