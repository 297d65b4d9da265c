//! Sitemaps as sites publish them, and bodies that are not sitemaps.

use std::io::Write;

use super::*;

const LIMITS: SitemapLimits = SitemapLimits { bytes_max: 10_000, urls_max: 100 };

fn read(text: &str) -> String {
    shown(Sitemap::read(text.as_bytes(), None, LIMITS))
}

fn shown(read: Result<Sitemap, String>) -> String {
    match read {
        Ok(Sitemap { pages, sitemaps, beyond }) => {
            let sitemaps = sitemaps.iter().map(|url| format!("map {url}"));
            let all: Vec<String> = pages.into_iter().chain(sitemaps).collect();
            let beyond = if beyond > 0 { format!(" +{beyond}") } else { String::new() };
            all.join(" ") + &beyond
        }
        Err(error) => error,
    }
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text).unwrap();
    packer.finish().unwrap()
}

#[test]
fn pages_are_found_among_all_other_parts_of_xml() {
    let xml = r#"<?xml version="1.0" encoding="UTF-8"?>
        <!-- <url><loc>http://h/no</loc></url> --><!DOCTYPE urlset [ <!ELEMENT x (y)> ]>
        <sm:urlset xmlns:sm="http://www.sitemaps.org/schemas/sitemap/0.9" a='>'>
        <sm:url><sm:loc>
            http://h/1?a=1&amp;b=&#50;&#x33;&nix;&
        </sm:loc><lastmod>2020</lastmod>
        <xhtml:link rel="alternate" href="http://h/de"/>
        <image:image><image:loc>http://h/image</image:loc></image:image></sm:url>
        <sm:url><sm:loc><![CDATA[http://h/2?a&b]]></sm:loc></sm:url>
        <sm:url><sm:loc/></sm:url><sm:url></sm:url>
        <sm:url><sm:loc>http://h/3?a=1&copy=2<b>x</b>4</sm:loc></sm:url>
        </sm:urlset> trailing"#;
    assert_eq!(read(xml), "http://h/1?a=1&b=23&nix;& http://h/2?a&b http://h/3?a=1&copy=24");
}

#[test]
fn an_index_lists_further_sitemaps() {
    let xml = "<sitemapindex><sitemap><loc>http://h/a.xml.gz</loc></sitemap>
        <sitemap><loc>http://h/b.xml</loc></sitemap><url><loc>http://h/no</loc></url>
        </sitemapindex>";
    assert_eq!(read(xml), "map http://h/a.xml.gz map http://h/b.xml");
    assert_eq!(read("<urlset></urlset>"), "");
}

#[test]
fn a_plain_list_has_one_address_per_line() {
    assert_eq!(read("\u{feff}http://h/1\r\n\r\nhttps://h/2\n"), "http://h/1 https://h/2");
    let words = "not a sitemap: neither XML nor a list of addresses";
    assert_eq!(read("Not found"), words);
    assert_eq!(read(" \n"), "not a sitemap: it is empty");
}

#[test]
fn gzip_is_decompressed_up_to_the_limit() {
    let list = packed(b"http://h/1\n");
    assert_eq!(shown(Sitemap::read(&list, None, LIMITS)), "http://h/1");
    let twice = [list.clone(), packed(b"http://h/2\n")].concat();
    assert_eq!(shown(Sitemap::read(&twice, None, LIMITS)), "http://h/1 http://h/2");
    let bomb = packed(&vec![b' '; 1_000_000]);
    let words = shown(Sitemap::read(&bomb, None, LIMITS));
    assert!(words.contains("larger than 10000 bytes"), "{words}");
    let words = shown(Sitemap::read(&list[..list.len() - 6], None, LIMITS));
    assert!(words.starts_with("cannot decompress the sitemap: "), "{words}");
}

#[test]
fn other_bodies_are_refused_with_their_reason() {
    assert_eq!(read("<!DOCTYPE html><html></html>"), "not a sitemap: it starts with `<html>`");
    assert_eq!(read("<rss><channel/></rss>"), "not a sitemap: it starts with `<rss>`");
    let cut = "the sitemap is cut off: `<urlset>` is not closed";
    assert_eq!(read("<urlset><url><loc>http://h/1</loc></url>"), cut);
    assert_eq!(read("<urlset><url"), "the sitemap is cut off in the middle of a tag");
    assert_eq!(read("<!-- x"), "the sitemap is cut off in the middle of a tag");
    assert_eq!(read("<?xml version='1.0'?>"), "not a sitemap: it has no element");
    let deep = format!("<urlset>{}", "<a>".repeat(100));
    assert_eq!(read(&deep), "the sitemap is nested too deeply");
}

#[test]
fn addresses_beyond_the_limit_are_counted() {
    let xml =
        "<urlset><url><loc>a</loc></url><url><loc>b</loc></url><url><loc>c</loc></url></urlset>";
    let limits = SitemapLimits { urls_max: 2, ..LIMITS };
    assert_eq!(shown(Sitemap::read(xml.as_bytes(), None, limits)), "a b +1");
}
