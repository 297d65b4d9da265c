//! Loads pages over a real socket from a site with all kinds of faults.

#![allow(clippy::unwrap_used)]

#[path = "../../tests/harness/site.rs"]
mod site;

use std::time::Duration;

use site::{SiteResponse, TestSite};
use spoonbill_plugins::loader::http::{HttpLoader, HttpSettings, LaneOutcome, RedirectChain};
use spoonbill_plugins::loader::{FetchedPage, LoadError, PageTarget, RetryAdvice, charset};

fn settings() -> HttpSettings {
    HttpSettings {
        // Long enough for a busy machine. Tests of timeouts have their own.
        connect_timeout: Duration::from_secs(20),
        idle_timeout: Duration::from_secs(20),
        total_timeout: Duration::from_mins(1),
        redirects_max: 3,
        body_max: 1024 * 1024,
        proxies: false,
        ..HttpSettings::default()
    }
}

async fn load_with(settings: &HttpSettings, url: &str) -> Result<FetchedPage, LoadError> {
    let PageTarget::Http(url) = PageTarget::of(url)? else {
        panic!("`{url}` is not on the web");
    };
    HttpLoader::new(settings)?.load(&url).await
}

async fn load(url: &str) -> Result<FetchedPage, LoadError> {
    load_with(&settings(), url).await
}

/// Loads a page that must fail, and compares the message without the address of the site.
async fn fails(site: &TestSite, path: &str, cause: &str, retry: RetryAdvice, status: Option<u16>) {
    let url = site.url(path);
    let error = load(&url).await.unwrap_err();
    let root = site.url("");
    let words = error.message.replace(&root, "SITE");
    assert_eq!(words, format!("cannot load `SITE{path}`: {cause}"));
    assert_eq!((error.retry, error.status), (retry, status), "of {words}");
}

#[tokio::test]
async fn a_page_has_status_headers_and_address() {
    let site = TestSite::start();
    site.page("/x", "<p>é");
    let page = load(&site.url("/x")).await.unwrap();
    assert_eq!(charset::decode(&page.body, page.content_type.as_deref()), "<p>é");
    assert_eq!((page.status, page.wire_bytes), (200, 5));
    assert_eq!(page.final_url, site.url("/x"));
    assert_eq!(page.content_type.as_deref(), Some("text/html; charset=utf-8"));
    assert!(page.headers.lines().any(|line| line == "content-length: 5"), "{}", page.headers);
}

#[tokio::test]
async fn requests_have_the_configured_headers() {
    let site = TestSite::start();
    site.otherwise(|request, _| {
        let lines = request.headers.iter().map(|(k, v)| format!("{}: {v}\n", k.to_lowercase()));
        SiteResponse::html(lines.collect::<String>() + &request.path)
    });
    let page = load(&site.url("/a b?q=|&r=%41")).await.unwrap();
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert!(text.contains(&format!("user-agent: Spoonbill/{version} (")), "{text}");
    for part in ["accept: text/html,", "gzip", "br", "zstd", "/a%20b?q=%7C&r=%41"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains("cookie"));

    let own = HttpSettings {
        user_agent: "mine".to_owned(),
        headers: vec![("Accept".to_owned(), "text/plain".to_owned())],
        ..settings()
    };
    let page = load_with(&own, &site.url("/")).await.unwrap();
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(text.contains("user-agent: mine\n") && text.contains("accept: text/plain\n"), "{text}");

    let bad = HttpSettings { user_agent: "a\nb".to_owned(), ..settings() };
    let error = HttpLoader::new(&bad).unwrap_err();
    assert_eq!(error.message, "header `user-agent` of the settings is not valid");
}

#[tokio::test]
async fn one_connection_serves_many_pages() {
    let site = TestSite::start();
    site.page("/x", "page");
    site.answer("/chunked", SiteResponse::html("page").chunked());
    let loader = HttpLoader::new(&settings()).unwrap();
    for path in ["/x", "/chunked", "/x", "/no", "/x"] {
        let url = site.url(path).parse().unwrap();
        assert_eq!(loader.load(&url).await.is_ok(), path != "/no");
    }
    assert_eq!((site.hits("/x"), site.connections(), site.max_parallel()), (3, 1, 1));
}

#[tokio::test]
async fn cookies_are_not_kept() {
    let site = TestSite::start();
    site.on("/x", |request, _| {
        SiteResponse::html(format!("{:?}", request.header("cookie"))).header("Set-Cookie", "a=b")
    });
    let loader = HttpLoader::new(&settings()).unwrap();
    let url = site.url("/x").parse().unwrap();
    for _ in 0..2 {
        assert_eq!(loader.load(&url).await.unwrap().body, "None");
    }
}

#[tokio::test]
async fn the_status_decides_about_a_retry() {
    let site = TestSite::start();
    site.otherwise(|request, _| SiteResponse::status(request.path[1..].parse().unwrap()));
    for (status, words, retry) in [
        (204, "204 No Content, so there is no page", RetryAdvice::Never),
        (205, "205 Reset Content, so there is no page", RetryAdvice::Never),
        (302, "302 Found", RetryAdvice::Never),
        (304, "304 Not Modified", RetryAdvice::Never),
        (403, "403 Forbidden", RetryAdvice::Never),
        (404, "404 Not Found", RetryAdvice::Never),
        (408, "408 Request Timeout", RetryAdvice::Soon),
        (429, "429 Too Many Requests", RetryAdvice::Soon),
        (500, "500 Internal Server Error", RetryAdvice::Soon),
        (503, "503 Service Unavailable", RetryAdvice::Soon),
        (599, "599", RetryAdvice::Soon),
    ] {
        fails(&site, &format!("/{status}"), &format!("status {words}"), retry, Some(status)).await;
    }
    assert_eq!(load(&site.url("/203")).await.unwrap().status, 203);
}

#[tokio::test]
async fn retry_after_pauses_the_whole_host() {
    let site = TestSite::start();
    let at = "Mon, 16 Nov 2026 10:00:30 GMT";
    site.answer("/429", SiteResponse::busy(429, "7"));
    site.answer(
        "/date",
        SiteResponse::busy(503, at).header("Date", "Mon, 16 Nov 2026 10:00:00 GMT"),
    );
    site.answer("/long", SiteResponse::busy(503, "86400"));
    site.answer("/zero", SiteResponse::busy(429, "0"));
    site.answer("/past", SiteResponse::busy(429, "Mon, 16 Nov 1998 10:00:00 GMT"));
    site.answer("/odd", SiteResponse::busy(429, "later"));
    site.answer("/404", SiteResponse::busy(404, "7"));
    let after = |seconds| RetryAdvice::HostAfter(Duration::from_secs(seconds));
    let asks = "the host asks for a pause of";
    let (many, away) = ("status 429 Too Many Requests", "status 503 Service Unavailable");
    fails(&site, "/429", &format!("{many}, {asks} 7 s"), after(7), Some(429)).await;
    fails(&site, "/date", &format!("{away}, {asks} 30 s"), after(30), Some(503)).await;
    let long = "86400 s, and the limit is 3600 s";
    fails(&site, "/long", &format!("{away}, {asks} {long}"), after(3600), Some(503)).await;
    for path in ["/zero", "/past", "/odd"] {
        fails(&site, path, many, RetryAdvice::Soon, Some(429)).await;
    }
    fails(&site, "/404", "status 404 Not Found", RetryAdvice::Never, Some(404)).await;
}

#[tokio::test]
async fn a_page_loads_after_a_failure() {
    let site = TestSite::start();
    site.recovers("/x", 2, SiteResponse::status(500), SiteResponse::html("well"));
    for _ in 0..2 {
        assert_eq!(load(&site.url("/x")).await.unwrap_err().retry, RetryAdvice::Soon);
    }
    assert_eq!(load(&site.url("/x")).await.unwrap().body, "well");
    assert_eq!(site.hits("/x"), 3);
}

#[tokio::test]
async fn redirects_are_followed_up_to_their_limit() {
    let (site, other) = (TestSite::start(), TestSite::start_on("127.0.0.2"));
    other.page("/end", "end");
    site.answer("/1", SiteResponse::redirect("2?a b"));
    site.answer("/2", SiteResponse::redirect(&other.url("/3")).with_status(301));
    other.answer("/3", SiteResponse::redirect("/end").with_status(308));
    let page = load(&site.url("/1")).await.unwrap();
    assert_eq!((&page.body[..], page.final_url), (&b"end"[..], other.url("/end")));
    assert_eq!(site.hits("/2?a%20b"), 1);

    site.answer("/0", SiteResponse::redirect("/1"));
    site.answer("/loop", SiteResponse::redirect("/loop"));
    fails(&site, "/0", "more than 3 redirects", RetryAdvice::Never, None).await;
    fails(&site, "/loop", "more than 3 redirects", RetryAdvice::Never, None).await;
    assert_eq!(site.hits("/loop"), 4);

    for (to, cause) in [
        (
            "file:///etc/passwd",
            "redirect to `file:///etc/passwd` refused, only `http` and `https` are followed",
        ),
        ("data:,x", "redirect to `data:,x` refused, only `http` and `https` are followed"),
        ("http://", "redirect to the invalid address `http://`, empty host"),
    ] {
        site.answer("/off", SiteResponse::redirect(to));
        fails(&site, "/off", cause, RetryAdvice::Never, Some(302)).await;
    }
    site.answer("/gone", SiteResponse::redirect("/nowhere"));
    let cause = "redirected to `SITE/nowhere`: status 404 Not Found";
    fails(&site, "/gone", cause, RetryAdvice::Never, Some(404)).await;
}

#[tokio::test]
async fn a_load_stops_at_a_redirect_to_another_lane() {
    let (site, other) = (TestSite::start(), TestSite::start_on("127.0.0.2"));
    site.answer("/1", SiteResponse::redirect("/2"));
    site.answer("/2", SiteResponse::redirect(&other.url("/3")).with_status(301));
    other.answer("/3", SiteResponse::redirect("/4"));
    other.recovers("/4", 1, SiteResponse::busy(429, "7"), SiteResponse::html("end"));
    let loader = HttpLoader::new(&settings()).unwrap();
    let mut way = RedirectChain::to(&site.url("/1").parse().unwrap());

    assert_eq!(loader.load_in_lane(&mut way).await, Ok(LaneOutcome::Moved));
    assert_eq!((way.here.as_str(), way.redirects), (other.url("/3").as_str(), 2));
    assert_eq!(way.statuses, [302, 301]);
    assert_eq!(other.log().len(), 0, "asked before its turn");

    let moved = way.clone();
    let error = loader.load_in_lane(&mut way).await.unwrap_err();
    let (from, to) = (site.url("/1"), other.url("/4"));
    let words = format!("cannot load `{from}`: redirected to `{to}`: status 429 Too Many Requests");
    assert!(error.message.starts_with(&words), "{error}");
    assert_eq!(error.retry, RetryAdvice::HostAfter(Duration::from_secs(7)));
    assert_eq!((way.redirects, &way.statuses[..]), (3, &[302][..]));

    let Ok(LaneOutcome::Page(page)) = loader.load_in_lane(&mut moved.clone()).await else {
        panic!("no page the second time");
    };
    assert_eq!((&page.body[..], page.final_url), (&b"end"[..], to));
    assert_eq!(site.log().len(), 2, "the first host is not asked again");

    let mut way = RedirectChain { redirects: 3, ..moved };
    let error = loader.load_in_lane(&mut way).await.unwrap_err();
    assert_eq!(error.message, format!("cannot load `{from}`: more than 3 redirects"));
    assert_eq!((error.retry, &way.statuses[..]), (RetryAdvice::Never, &[302][..]));
}

#[tokio::test]
async fn empty_bodies_fail() {
    let site = TestSite::start();
    site.page("/x", "");
    site.answer("/chunked", SiteResponse::html("").chunked());
    fails(&site, "/x", "the body is empty", RetryAdvice::Never, Some(200)).await;
    fails(&site, "/chunked", "the body is empty", RetryAdvice::Never, Some(200)).await;
}

#[tokio::test]
async fn broken_connections_are_worth_a_retry() {
    let site = TestSite::start();
    let page = || SiteResponse::html("x".repeat(1000));
    site.answer("/hang-up", SiteResponse::hang_up());
    site.answer("/cut", page().cut_after(500));
    site.answer("/cut-at-once", page().cut_after(0));
    site.answer("/short", page().claim_length(2000));
    site.answer("/chunk", page().chunked().cut_after(500));
    site.answer("/half-chunk", naked_chunk("400\r\nabc"));
    site.answer("/bad-chunk", naked_chunk("zz\r\nabc\r\n0\r\n\r\n"));
    site.answer("/head", SiteResponse::raw_bytes("HTTP/1.1 200 OK\r\nContent-Le"));
    let silent = "connection closed before the response";
    let part = "connection closed before the body was complete";
    fails(&site, "/hang-up", silent, RetryAdvice::Soon, None).await;
    fails(&site, "/head", silent, RetryAdvice::Soon, None).await;
    for path in ["/cut", "/cut-at-once", "/short", "/chunk", "/half-chunk"] {
        fails(&site, path, part, RetryAdvice::Soon, Some(200)).await;
    }
    let error = load(&site.url("/bad-chunk")).await.unwrap_err();
    assert_eq!(error.retry, RetryAdvice::Soon, "{error}");

    site.answer("/garbage", SiteResponse::raw_bytes("SSH-2.0-hello\r\n\r\n"));
    let error = load(&site.url("/garbage")).await.unwrap_err();
    assert_eq!(error.retry, RetryAdvice::Soon, "{error}");

    site.answer("/close", page().until_close());
    assert_eq!(load(&site.url("/close")).await.unwrap().body.len(), 1000);
    site.answer("/long", page().claim_length(10));
    assert_eq!(load(&site.url("/long")).await.unwrap().body, "xxxxxxxxxx");
}

fn naked_chunk(body: &str) -> SiteResponse {
    SiteResponse::raw_bytes(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"))
}

#[tokio::test]
async fn unreachable_hosts_are_worth_a_retry() {
    let url = TestSite::dead_url("/x");
    let error = load(&url).await.unwrap_err();
    assert_eq!(error.message, format!("cannot load `{url}`: connection refused"));
    assert_eq!((error.retry, error.status), (RetryAdvice::Soon, None));

    // The top level `invalid` is reserved for names that never exist.
    let error = load("http://no.such.host.invalid/").await.unwrap_err();
    let words = "cannot load `http://no.such.host.invalid/`: dns failed for host \
                 `no.such.host.invalid`";
    assert!(error.message.starts_with(words), "{error}");
    assert_eq!(error.retry, RetryAdvice::Soon);
}

#[tokio::test]
async fn passwords_stay_out_of_messages() {
    let url = TestSite::dead_url("/x").replace("http://", "http://me:secret@");
    let error = load(&url).await.unwrap_err();
    assert!(error.message.contains("me@") && !error.message.contains("secret"), "{error}");
}

#[tokio::test]
async fn silence_times_out_and_slowness_does_not() {
    let site = TestSite::start();
    let ms = Duration::from_millis;
    site.answer("/never", SiteResponse::silence());
    site.answer("/late", SiteResponse::html("late").delay(ms(20_000)));
    site.answer("/stall", SiteResponse::html("ab").drip(1, ms(20_000)));
    site.answer("/slow", SiteResponse::html("abcdefghijkl").drip(1, ms(100)));
    site.answer("/drip", SiteResponse::html("x".repeat(1000)).drip(1, ms(50)));
    let hasty = HttpSettings { idle_timeout: ms(300), ..settings() };
    for (path, status) in [("/never", None), ("/late", None), ("/stall", Some(200))] {
        let error = load_with(&hasty, &site.url(path)).await.unwrap_err();
        assert!(error.message.ends_with("timed out after 300 ms without data"), "{error}");
        assert_eq!((error.retry, error.status), (RetryAdvice::Soon, status), "{path}");
    }

    // Longer in total than the idle timeout, but never silent for that long.
    let patient = HttpSettings { idle_timeout: ms(1000), ..settings() };
    assert_eq!(load_with(&patient, &site.url("/slow")).await.unwrap().body, "abcdefghijkl");

    let hasty = HttpSettings { total_timeout: ms(500), ..settings() };
    let error = load_with(&hasty, &site.url("/drip")).await.unwrap_err();
    assert!(error.message.ends_with("timed out, not complete after 500 ms"), "{error}");
    assert_eq!(error.retry, RetryAdvice::Soon);
}

#[tokio::test]
async fn bodies_stop_at_the_size_limit() {
    let site = TestSite::start();
    let cap = settings().body_max;
    let cause = "body larger than 1 MiB";
    site.answer("/exact", SiteResponse::huge(cap));
    site.answer("/over", SiteResponse::huge(cap + 1));
    site.answer("/stream", SiteResponse::huge(1 << 40).chunked());
    site.answer("/close", SiteResponse::huge(1 << 40).until_close());
    assert_eq!(load(&site.url("/exact")).await.unwrap().body.len() as u64, cap);
    for path in ["/over", "/stream", "/close"] {
        fails(&site, path, cause, RetryAdvice::Never, Some(200)).await;
    }
}

/// A zstd frame of blocks that each repeat one byte 128 Ki times, in four bytes.
fn zstd_bomb(blocks: u32) -> Vec<u8> {
    let mut out = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38];
    for nth in 1..=blocks {
        let header = (131_072_u32 << 3) | (1 << 1) | u32::from(nth == blocks);
        out.extend(&header.to_le_bytes()[..3]);
        out.push(b'x');
    }
    out
}

fn encoded(name: &str, body: impl Into<Vec<u8>>) -> SiteResponse {
    SiteResponse::raw(&[("Content-Encoding", name)], body)
}

#[tokio::test]
async fn compressed_bodies_are_decompressed() {
    let site = TestSite::start();
    let page = "hello".repeat(30_000);
    site.answer("/gzip", SiteResponse::gzip(page.as_bytes()));
    site.answer("/gzip-chunked", SiteResponse::gzip(page.as_bytes()).chunked());
    site.answer("/br", encoded("br", *b"\x0b\x02\x80hello\x03"));
    site.answer("/zstd", encoded("zstd", zstd_bomb(2)));
    site.answer("/identity", encoded("identity", "hello"));
    for path in ["/gzip", "/gzip-chunked"] {
        assert_eq!(load(&site.url(path)).await.unwrap().body, page);
    }
    for path in ["/br", "/identity"] {
        assert_eq!(load(&site.url(path)).await.unwrap().body, "hello");
    }
    assert_eq!(load(&site.url("/zstd")).await.unwrap().body.len(), 262_144);
}

#[tokio::test]
async fn faulty_compressed_bodies_are_refused() {
    let site = TestSite::start();
    // 32 KiB that decompress to a gigabyte.
    site.answer("/bomb", encoded("zstd", zstd_bomb(8192)));
    fails(&site, "/bomb", "body larger than 1 MiB", RetryAdvice::Never, Some(200)).await;

    for (name, path) in [("deflate", "/deflate"), ("gzip, br", "/both"), ("klingon", "/klingon")] {
        site.answer(path, encoded(name, "hello"));
        let cause = format!("unsupported content-encoding `{name}`");
        fails(&site, path, &cause, RetryAdvice::Never, Some(200)).await;
    }

    let whole = site::gzip(&b"hello".repeat(1000));
    let cut = &whole[..2000];
    site.answer("/lie", encoded("gzip", "<p>this is no gzip at all"));
    site.answer("/cut", encoded("gzip", whole.clone()).cut_after(2000));
    site.answer("/short", encoded("gzip", cut));
    site.answer("/empty", encoded("gzip", site::gzip(b"")));
    site.answer("/nothing", encoded("gzip", ""));
    let part = "connection closed before the body was complete";
    fails(&site, "/cut", part, RetryAdvice::Soon, Some(200)).await;
    fails(&site, "/empty", "the body is empty", RetryAdvice::Never, Some(200)).await;
    fails(&site, "/nothing", "the body is empty", RetryAdvice::Never, Some(200)).await;
    let part = "the compressed body is cut off";
    fails(&site, "/short", part, RetryAdvice::Soon, Some(200)).await;
    let cause = "the body cannot be decompressed, Invalid gzip header";
    fails(&site, "/lie", cause, RetryAdvice::Never, Some(200)).await;
}

#[tokio::test]
async fn the_site_tells_how_politely_it_was_asked() {
    let site = TestSite::start();
    let ms = Duration::from_millis;
    site.otherwise(move |_, _| SiteResponse::html("page").delay(ms(400)));
    let loader = HttpLoader::new(&settings()).unwrap();
    let urls: Vec<url::Url> = (0..3).map(|n| site.url(&format!("/{n}")).parse().unwrap()).collect();
    for url in &urls {
        loader.load(url).await.unwrap();
    }
    assert_eq!(site.max_parallel(), 1);
    assert!(site.shortest_gap().unwrap() >= ms(400));
    let (a, b, c) = (loader.load(&urls[0]), loader.load(&urls[1]), loader.load(&urls[2]));
    let (a, b, c) = tokio::join!(a, b, c);
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!((site.max_parallel(), site.hits("/0"), site.log().len()), (3, 2, 6));
    assert!(site.log().iter().all(|hit| hit.end - hit.at >= ms(400)));
}
