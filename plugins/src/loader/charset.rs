//! Decodes the bytes of a page.
//!
//! The encoding comes from the first of these, as in browsers: byte order mark, HTTP header,
//! declaration in the page, detection. Decoding never fails: invalid bytes become U+FFFD.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

use super::prescan;

/// Bytes for detection, from the first one that is not ASCII.
const GUESS_MAX: usize = 64 * 1024;
/// Bytes before those, so that the sample starts with a complete word.
const GUESS_BEFORE: usize = 64;

/// Decodes a page. Valid UTF-8 is not copied.
///
/// ```
/// use spoonbill_plugins::loader::charset::decode;
///
/// assert_eq!(decode(b"caf\xe9", Some("text/html; charset=latin1")), "café");
/// assert_eq!(decode("café".as_bytes(), None), "café");
/// ```
pub fn decode<'a>(body: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    if let Some((encoding, mark)) = Encoding::for_bom(body) {
        return encoding.decode_without_bom_handling(&body[mark..]).0;
    }
    encoding_of(body, content_type).decode_without_bom_handling(body).0
}

/// The encoding that [`decode`] uses.
fn encoding_of(body: &[u8], content_type: Option<&str>) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    if let Some(encoding) = content_type.and_then(of_header) {
        return encoding;
    }
    // A text in JSON may contain a page with its own declaration.
    if !content_type.is_some_and(is_json)
        && let Some(encoding) = prescan::encoding(body)
    {
        return encoding;
    }
    guess(body)
}

/// The encoding for a label. Labels for which browsers show nothing but U+FFFD are ignored, because
/// detection gives a better result.
pub(super) fn for_label(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label)
}

fn of_header(content_type: &str) -> Option<&'static Encoding> {
    let parameters = content_type.split_once(';')?.1;
    for parameter in parameters.split(';') {
        let Some((name, value)) = parameter.split_once('=') else {
            continue;
        };
        if name.trim().eq_ignore_ascii_case("charset") {
            let label = value.trim().trim_matches(['"', '\'']);
            return for_label(label.as_bytes());
        }
    }
    None
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.len() >= 4 && essence.to_ascii_lowercase().ends_with("json")
}

fn guess(body: &[u8]) -> &'static Encoding {
    // ISO-2022-JP is pure ASCII with escape bytes.
    let telling = |byte: &u8| !byte.is_ascii() || *byte == 0x1B;
    let Some(first) = body.iter().position(telling) else {
        return UTF_8;
    };
    // This check is cheap, and nearly all pages are UTF-8.
    if !body.contains(&0x1B) && std::str::from_utf8(body).is_ok() {
        return UTF_8;
    }
    // The detector needs 100 ms for a megabyte, and a few lines are enough for it.
    let from = first.saturating_sub(GUESS_BEFORE);
    let sample = &body[from..body.len().min(first + GUESS_MAX)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    // `false` means that more follows, so a character that is cut off does not count as invalid.
    detector.feed(sample, false);
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &[u8], content_type: Option<&str>, encoding: &str, text: &str) {
        assert_eq!(encoding_of(body, content_type).name(), encoding);
        assert_eq!(decode(body, content_type), text);
    }

    #[test]
    fn the_byte_order_mark_comes_first() {
        let header = Some("text/html; charset=windows-1251");
        check(
            b"\xEF\xBB\xBF<meta charset=koi8-r>\xC3\xA9",
            header,
            "UTF-8",
            "<meta charset=koi8-r>é",
        );
        check(b"\xFF\xFEa\0\xE9\0", header, "UTF-16LE", "aé");
        check(b"\xFE\xFF\0a\0\xE9", header, "UTF-16BE", "aé");
        check(b"\xEF\xBB\xBF", None, "UTF-8", "");
    }

    #[test]
    fn the_header_comes_before_the_declaration() {
        let page = b"<meta charset=utf-8>\xE9";
        for header in [
            "text/html; charset=ISO-8859-1",
            "text/html;Charset=\"latin1\"",
            "text/html; version=1; charset = 'windows-1252' ; x",
        ] {
            check(page, Some(header), "windows-1252", "<meta charset=utf-8>é");
        }
        for header in ["text/html", "text/html; charset=", "text/html; charset=klingon", "", ";"] {
            check(page, Some(header), "UTF-8", "<meta charset=utf-8>\u{FFFD}");
        }
        check("日本".as_bytes(), Some("text/html; charset=utf8"), "UTF-8", "日本");
        check(b"\x93\xFA\x96\x7B", Some("text/html; charset=Shift_JIS"), "Shift_JIS", "日本");
    }

    #[test]
    fn the_declaration_comes_before_detection() {
        check(
            b"<meta charset=windows-1251>\xCF\xF0\xE8",
            Some("text/html"),
            "windows-1251",
            "<meta charset=windows-1251>При",
        );
        let json = b"{\"page\": \"<meta charset=windows-1251>\xC3\xA9\"}";
        check(
            json,
            Some("application/ld+JSON"),
            "UTF-8",
            "{\"page\": \"<meta charset=windows-1251>é\"}",
        );
    }

    #[test]
    fn encodings_without_a_declaration_are_detected() {
        check(b"plain", None, "UTF-8", "plain");
        check("Größe".as_bytes(), None, "UTF-8", "Größe");
        check(b"", None, "UTF-8", "");
        check(b"Gr\xF6\xDFe der Stra\xDFe", None, "windows-1252", "Größe der Straße");
        check(b"\x1B$BF|K\\8l\x1B(B", None, "ISO-2022-JP", "日本語");
        let terminal = b"\x1B[1mbold\x1B[0m caf\xC3\xA9";
        check(terminal, None, "UTF-8", "\u{1B}[1mbold\u{1B}[0m café");
    }

    #[test]
    fn detection_starts_at_the_first_byte_beyond_ascii() {
        let padding = "x ".repeat(GUESS_MAX);
        let page = [padding.as_bytes(), b"Gr\xF6\xDFe der Stra\xDFe"].concat();
        assert_eq!(encoding_of(&page, None).name(), "windows-1252");
        let cut = "Größe der Straße, ü".as_bytes();
        check(&cut[..cut.len() - 1], None, "UTF-8", "Größe der Straße, \u{FFFD}");
    }

    #[test]
    fn invalid_bytes_become_replacement_characters() {
        let header = Some("text/html; charset=utf-8");
        check(b"a\xFFb\xC3", header, "UTF-8", "a\u{FFFD}b\u{FFFD}");
        check(b"a\0b", header, "UTF-8", "a\0b");
        // Browsers replace a page with this label by a single U+FFFD.
        check(b"abc", Some("text/html; charset=iso-2022-kr"), "UTF-8", "abc");
    }

    #[test]
    fn utf8_is_not_copied() {
        for (body, header) in [
            ("<p>日本</p>", None),
            ("<p>日本</p>", Some("text/html; charset=utf-8")),
            ("<meta charset=utf-8>é", None),
            ("\u{FEFF}é", None),
            ("ascii", Some("text/html; charset=latin1")),
        ] {
            let text = decode(body.as_bytes(), header);
            assert!(matches!(text, Cow::Borrowed(_)), "copied `{body}`");
        }
    }
}
