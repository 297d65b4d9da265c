//! Which texts fit a type, and their output.

use spoonbill_defs::{Field, FieldType, Separators, Text};

use super::*;

fn separators(decimal: &str, thousands: &str) -> Separators {
    let text = |it: &str| (it != "-").then(|| Text::new(it));
    Separators { decimal: text(decimal), thousands: text(thousands) }
}

/// Checks texts against one type; `~` means that it does not fit.
#[track_caller]
fn fits(kind: &FieldType, cases: &[(&str, &str)]) {
    for (text, expect) in cases {
        let constant = Field {
            value: Some(Text::new(*text)),
            queries: vec![],
            kind: kind.clone(),
            // Without a regex the compiler would check the constant.
            regex: Some(Text::new("(?s).*")),
            ..field(css("p"))
        };
        let made = extract(&record(None, vec![constant]), "");
        let value = made.rows[0].axes[0].value.as_deref().unwrap_or("~");
        assert_eq!(value, *expect, "{text:?} as {kind:?}");
        assert_eq!(made.misfits.len(), usize::from(*expect == "~"), "{text:?}");
    }
}

#[test]
fn whole_numbers_have_groups_and_currencies() {
    let cases = [
        ("12", "12"),
        ("1,234", "1234"),
        ("1,234,567", "1234567"),
        ("1,23,456", "123456"),
        ("-5", "-5"),
        ("\u{2212}1,000", "-1000"),
        ("+7", "7"),
        ("007", "7"),
        ("0", "0"),
        ("-0", "0"),
        ("$ 12", "12"),
        ("12\u{a0}EUR", "12"),
        ("85 %", "85"),
        ("12.0", "~"),
        ("1,234,56", "~"),
        ("12,34", "~"),
        ("1 234", "~"),
        ("12 pieces", "~"),
        ("about 12", "~"),
        ("1-2", "~"),
        ("--1", "~"),
        ("NaN", "~"),
        ("1e3", "~"),
        ("٣", "~"),
        (",5", "~"),
        ("usd 5", "~"),
        ("USD EUR 5", "~"),
    ];
    fits(&FieldType::Integer(Separators::default()), &cases);
    let by_space = FieldType::Integer(separators("-", " "));
    fits(&by_space, &[("1\u{202f}234", "1234"), ("12 345 678", "12345678"), ("1,234", "~")]);
    let by_dot = FieldType::Integer(separators("-", "."));
    fits(&by_dot, &[("1.234", "1234"), ("1.23", "~"), ("1,5", "~")]);
    let none = FieldType::Integer(separators("-", ""));
    fits(&none, &[("1234", "1234"), ("1,234", "~")]);
    let huge = "9".repeat(500);
    fits(&none, &[(huge.as_str(), "~")]);
}

#[test]
fn decimal_numbers_have_a_fraction_and_separators() {
    let cases = [
        ("12.50", "12.50"),
        ("€\u{a0}1,234.56", "1234.56"),
        ("$1,234.56", "1234.56"),
        ("-$5.00", "-5.00"),
        ("$-5.00", "-5.00"),
        ("CHF 5.25", "5.25"),
        ("5.25 USD", "5.25"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("0.00", "0.00"),
        ("-0.00", "0.00"),
        ("12", "12"),
        ("99.5%", "99.5"),
        ("5.", "~"),
        ("1.2.3", "~"),
        ("1.234,56", "~"),
        ("12,50", "~"),
        ("1,234,56", "~"),
        ("£12.50 each", "~"),
        ("12.50-13.00", "~"),
        ("free", "~"),
        ("$", "~"),
        ("Infinity", "~"),
    ];
    fits(&FieldType::Decimal(Separators::default()), &cases);
    let german = FieldType::Decimal(separators(",", "-"));
    fits(&german, &[("1.234,56 €", "1234.56"), ("0,5", "0.5"), ("1,234.56", "~"), ("7", "7")]);
    let swiss = FieldType::Decimal(separators(".", "'"));
    fits(&swiss, &[("1'234.50", "1234.50"), ("1\u{2019}234.50", "1234.50")]);
    let french = FieldType::Decimal(separators(",", " "));
    fits(&french, &[("1\u{a0}234,50 €", "1234.50"), ("1 23,5", "~")]);
}

#[test]
fn booleans_have_usual_texts_or_those_of_the_field() {
    let plain = FieldType::Boolean { true_when: vec![] };
    let cases = [
        ("true", "true"),
        ("YES", "true"),
        ("1", "true"),
        ("on", "true"),
        ("Off", "false"),
        ("n", "false"),
        ("0", "false"),
        ("maybe", "~"),
    ];
    fits(&plain, &cases);
    let stock = FieldType::Boolean { true_when: vec![Text::new("In stock"), Text::new("Few")] };
    fits(&stock, &[("in Stock", "true"), ("Few", "true"), ("true", "false"), ("sold", "false")]);
    check(Field { kind: stock, ..field(css("i")) }, "<p>", "~");
}

#[test]
fn dates_are_read_by_iso_or_pattern() {
    let date = |input: &[&str], output: Option<&str>| FieldType::Date {
        input: input.iter().map(|it| Text::new(*it)).collect(),
        output: output.map(Text::new),
    };
    let iso = [
        ("2024-05-01", "2024-05-01"),
        ("2024-05-01T23:30:00Z", "2024-05-01"),
        ("2024-05-01T23:30:00-05:00", "2024-05-01"),
        ("2024-05-01 10:00", "2024-05-01"),
        ("20240501", "2024-05-01"),
        ("2024-02-31", "~"),
        ("1 May 2024", "~"),
        ("yesterday", "~"),
    ];
    fits(&date(&[], None), &iso);
    let two = date(&["dd.MM.yyyy", "MMM d, yyyy"], Some("yyyy/MM/dd"));
    let cases = [
        ("01.02.2024", "2024/02/01"),
        ("1.2.2024", "2024/02/01"),
        ("Mar 3, 2024", "2024/03/03"),
        ("31.02.2024", "~"),
        ("01.13.2024", "~"),
        ("2024-02-01", "~"),
    ];
    fits(&two, &cases);
    fits(
        &date(&["dd/MM/yy HH:mm"], Some("yyyy-MM-dd'T'HH:mm")),
        &[
            ("05/06/24 00:05", "2024-06-05T00:05"),
            ("05/06/2024 10:00", "2024-06-05T10:00"),
            ("05/06/24 24:61", "~"),
        ],
    );
    fits(
        &date(&[], Some("d MMM yyyy HH:mm Z")),
        &[("2024-05-01T23:30:00-05:00", "1 May 2024 23:30 -0500")],
    );
}

#[test]
fn addresses_resolve_against_the_page() {
    let cases = [
        ("../x.html?a=1#b", "https://shop.example/x.html?a=1#b"),
        ("img/a b.png", "https://shop.example/books/img/a%20b.png"),
        ("//cdn.example/a.js", "https://cdn.example/a.js"),
        ("HTTP://Other.example", "http://other.example/"),
        ("?q=1", "https://shop.example/books/page.html?q=1"),
        ("http://", "~"),
    ];
    fits(&FieldType::Url, &cases);
}

#[test]
fn addresses_on_local_pages_resolve_as_paths() {
    let at = |base: &str, address: &str| {
        let plan = plan(&record(None, vec![Field { kind: FieldType::Url, ..field(css("a")) }]));
        on_page(&format!("<a>{address}</a>"), |page| {
            let page = RecordPage { base, ..*page };
            let made = plan.extract(&page, &mut NoScripts, &RecordLimits::default()).unwrap();
            made.rows[0].axes[0].value.clone().unwrap_or_default()
        })
    };
    assert_eq!(at("/data/pages/x.html", "../img/a.png?x"), "/data/img/a.png?x");
    assert_eq!(at("pages/x.html", "./y.html#z"), "pages/y.html#z");
    assert_eq!(at("x.html", "../y.html"), "../y.html");
    assert_eq!(at("x.html", "/abs/y.html"), "/abs/y.html");
    assert_eq!(at("x.html", "#top"), "x.html#top");
    assert_eq!(at("/x.html", "../../y"), "/../../y");
    assert_eq!(at("x.html", "https://a.example/b"), "https://a.example/b");
    assert_eq!(at("file:///a/x.html", "y.html"), "file:///a/y.html");
}

#[test]
fn each_match_is_converted_alone() {
    let kind = FieldType::Decimal(Separators::default());
    let all = Field { all: Some(Text::new("; ")), kind, ..field(css("p")) };
    let made = extract(&record(None, vec![all.clone()]), "<p>$1,200.50<p>none<p>7");
    assert_eq!(lines(&made), ["1200.50; 7"]);
    assert_eq!((made.fields[0].misfits, made.misfits[0].value.as_str()), (1, "none"));
    let script = Some(Text::new("'<' + value + '>'"));
    let regex = Some(Text::new("[a-z]"));
    let words = Field { script, regex, kind: FieldType::Text, ..all };
    check(words, "<p>1a<p>2<p>3b", "<a>; <b>");
}

#[test]
fn addresses_resolve_against_the_base_element() {
    let link = || Field { kind: FieldType::Url, ..field(with(css("a"), "href")) };
    let page = "<base href='/other/'><a href='x?q=1'>";
    check(link(), page, "https://shop.example/other/x?q=1");
    check(link(), "<base href='mailto:x'><a href=y>", "https://shop.example/books/y");
}
