//! Every key of a field.

use spoonbill_defs::{Field, FieldType, PageColumn, Record, Text, TextKind};

use super::*;

const PAGE: &str = "<title>T</title><div id=main class='a b'><p>One <b>bold</b>\n\u{a0} word</p>\
    <p data-x=' 7 ' title='two\n lines'>Two<br>lines</p><p> </p><a href='../x.html?a=1'>go</a></div>";

#[test]
fn a_selector_finds_the_first_text_and_folds_white_space() {
    check(field(css("p")), PAGE, "One bold word");
    check(field(css("#main")), PAGE, "One bold word Two lines go");
    check(field(css("#main > p:nth-child(2)")), PAGE, "Two lines");
    check(field(css("p[data-x], p")), PAGE, "One bold word");
    check(field(css("i")), PAGE, "~");
    check(field(css("title")), PAGE, "T");
    check(field(css("pre")), "<pre> a\n  b\u{a0} c </pre>", "a b c");
    check(field(css("script")), "<script> var a =  1; </script>", "var a = 1;");
}

#[test]
fn an_attribute_keeps_its_white_space() {
    check(field(with(css("p[data-x]"), "data-x")), PAGE, "7");
    check(field(with(css("p[title]"), "title")), PAGE, "two\n lines");
    check(field(with(css("a"), "HREF")), PAGE, "../x.html?a=1");
    check(field(with(css("a"), "rel")), PAGE, "~");
    check(field(with(css("svg"), "viewbox")), "<svg viewBox='0 0 1 1'>", "0 0 1 1");
}

#[test]
fn a_query_can_read_the_block_itself() {
    let page = "<ul><li data-id=1>a <b>x</b><li data-id=2>b</ul>";
    for own in [css("."), css(""), Query::default()] {
        let fields = vec![field(own.clone()), field(with(own, "data-id"))];
        let fields = fields.into_iter().zip(["t", "id"]);
        let fields = fields.map(|(field, name)| Field { name: Text::new(name), ..field }).collect();
        let made = extract(&record(Some(css("li")), fields), page);
        assert_eq!(lines(&made), ["a x|1", "b|2"]);
    }
    let own = Field { text: TextKind::Own, ..field(css(".")) };
    assert_eq!(lines(&extract(&record(Some(css("li")), vec![own]), page)), ["a", "b"]);
}

#[test]
fn queries_are_tried_until_one_is_not_blank() {
    let queries =
        |all: &[&str]| Field { queries: all.iter().map(|it| css(it)).collect(), ..field(css("p")) };
    check(queries(&["i", "p:nth-child(3)", "a", "p"]), PAGE, "go");
    check(queries(&["i", "p:nth-child(3)"]), PAGE, "~");
}

#[test]
fn xpath_replaces_a_selector() {
    check(field(xpath("//p")), PAGE, "One bold word");
    check(field(xpath("//p/b/text()")), PAGE, "bold");
    check(field(xpath("//a/@href")), PAGE, "../x.html?a=1");
    check(field(xpath("count(//p)")), PAGE, "3");
    check(field(xpath("string(//p[2])")), PAGE, "Twolines");
    check(field(xpath("boolean(//i)")), PAGE, "false");
    check(field(xpath("//i")), PAGE, "~");
    check(field(xpath("//comment()")), "<!-- a  b -->", "a b");
    check(field(with(xpath("//a"), "href")), PAGE, "../x.html?a=1");
    let made = extract(
        &record(Some(xpath("//li")), vec![field(xpath(".//b"))]),
        "<ul><li>a <b>x</b><li><b>y</b></ul><b>z</b>",
    );
    assert_eq!(lines(&made), ["x", "y"]);
}

#[test]
fn a_field_can_read_own_text_or_inner_html() {
    let kind = |text, query| Field { text, ..field(query) };
    check(kind(TextKind::Own, css("p")), PAGE, "One word");
    check(kind(TextKind::Own, xpath("//p")), PAGE, "One word");
    check(kind(TextKind::Html, css("#main p:nth-child(2)")), PAGE, "Two<br>lines");
    check(
        kind(TextKind::Html, css("div")),
        "<div><a href='?a&amp;b=\"'>1 &lt; 2&nbsp;</a><!--c--><script>a<b</script><img src=x></div>",
        "<a href=\"?a&amp;b=&quot;\">1 &lt; 2&nbsp;</a><!--c--><script>a<b</script><img src=\"x\">",
    );
    // Obsolete elements have no end tag either. In SVG and MathML, names have other meanings.
    check(
        kind(TextKind::Html, css("div")),
        "<div><param>x<svg><link>e</link><style>&amp;</style></svg></div>",
        "<param>x<svg><link>e</link><style>&amp;</style></svg>",
    );
}

#[test]
fn all_joins_all_matches() {
    let all = |joiner: &str, query| Field { all: Some(Text::new(joiner)), ..field(query) };
    check(all(", ", css("p")), PAGE, "One bold word, Two lines");
    check(all("", xpath("//p")), PAGE, "One bold wordTwo lines");
    check(all("|", with(css("p, a"), "href")), PAGE, "../x.html?a=1");
    check(all(", ", css("i")), PAGE, "~");
    check(all(" / ", json("$.tags")), r#"{"tags":["a",null,"","b"]}"#, "a / b");
    check(all(" / ", json("$.tags[*].n")), r#"{"tags":[{"n":1},{"n":2.50}]}"#, "1 / 2.50");
}

#[test]
fn a_regex_keeps_its_first_group_or_the_whole_match() {
    let by = |regex: &str| Field { regex: Some(Text::new(regex)), ..field(css("p")) };
    check(by(r"\w+$"), PAGE, "word");
    check(by(r"One (\w+)"), PAGE, "bold");
    check(by(r"(x)|One (\w+)"), PAGE, "bold");
    check(by(r"One (x)?"), PAGE, "~");
    check(by("nope"), PAGE, "~");
    let or = Field { default: Some(Text::new("none")), ..by("nope") };
    check(or, PAGE, "none");
}

#[test]
fn a_script_reads_the_text_as_value() {
    let by = |script: &str, query| Field { script: Some(Text::new(script)), ..field(query) };
    check(by("value.toUpperCase()", css("p")), PAGE, "ONE BOLD WORD");
    check(by("value.length + 1", css("i")), PAGE, "1");
    check(by("null", css("p")), PAGE, "~");
    check(by("' a '", css("p")), PAGE, "a");
    check(by("'  '", css("p")), PAGE, "~");
    let both = Field { regex: Some(Text::new("b.*d")), ..by("value + '!'", css("p")) };
    check(both, PAGE, "bold word!");
    let alone = Field { queries: vec![], ..by("document.getName()", css("p")) };
    check(alone, PAGE, "acme");
}

#[test]
fn a_script_that_throws_is_a_misfit_and_an_endless_one_an_error() {
    let by = |script: &str| Field { script: Some(Text::new(script)), ..field(css("li")) };
    let page = "<ul><li>a1<li>b";
    let made = extract(&record(Some(css("li")), vec![by("value.match(/a(.)/)[1]")]), page);
    assert_eq!(lines(&made), ["1", "~"]);
    assert_eq!((made.misfits.len(), made.misfits[0].value.as_str()), (1, "b"));
    assert!(made.misfits[0].why.starts_with("makes the script fail: "), "{:?}", made.misfits);
    let error = try_extract(&record(None, vec![by("for (;;) {}")]), page).unwrap_err();
    assert!(error.to_string().starts_with("field `x`: `script` ran longer"), "{error}");
}

#[test]
fn constants_and_defaults_fill_cells() {
    let constant = Field { value: Some(Text::new("EUR")), queries: vec![], ..field(css("p")) };
    check(constant, PAGE, "EUR");
    let default = Field { default: Some(Text::new("n/a")), ..field(css("i")) };
    check(default.clone(), PAGE, "n/a");
    let made = extract(&record(None, vec![Field { required: true, ..default }]), PAGE);
    assert_eq!(lines(&made), ["n/a"]);
    let number = FieldType::Integer(spoonbill_defs::Separators::default());
    let misfit = Field { default: Some(Text::new("0")), kind: number, ..field(css("p")) };
    let made = extract(&record(None, vec![misfit]), PAGE);
    assert_eq!((lines(&made)[0].as_str(), made.fields[0].misfits), ("0", 1));
}

#[test]
fn rows_without_a_required_value_are_dropped_and_counted() {
    let page = "<p><i>1</i><b>x</b><p><b>y</b><p><i>z</i>";
    let number = FieldType::Integer(spoonbill_defs::Separators::default());
    let fields = vec![
        Field { kind: number, required: true, ..field(css("i")) },
        Field { name: Text::new("b"), required: true, ..field(css("b")) },
    ];
    let made = extract(&record(Some(css("p")), fields), page);
    assert_eq!(lines(&made), ["1|x"]);
    let counts: Vec<_> = made.fields.iter().map(|it| (it.filled, it.misfits, it.dropped)).collect();
    assert_eq!(counts, [(1, 1, 2), (1, 0, 0)]);
    assert_eq!(made.misfits[0].why, "is not a whole number");
}

#[test]
fn standard_columns_come_first() {
    let columns = PageColumn::ALL.map(|(column, _)| column).to_vec();
    let record = Record { columns, ..record(None, vec![field(css("b"))]) };
    let made = extract(&record, "<b>1</b>");
    assert_eq!(lines(&made), ["acme|books|https://shop.example/b|2026-05-06T07:08:09Z|2|1"]);
    assert_eq!(
        plan(&record).column_names(),
        ["locator", "group", "url", "fetched_at", "depth", "x"]
    );
    assert!(made.rows[0].is_named());
    assert_eq!((&*made.rows[0].name, &*made.rows[0].group), ("acme", "books"));
}

#[test]
fn a_block_without_a_match_makes_no_row_and_a_record_without_a_block_makes_one() {
    assert!(extract(&record(Some(css("li")), vec![field(css("b"))]), "<b>1").rows.is_empty());
    assert_eq!(lines(&extract(&record(None, vec![field(css("b"))]), "")), ["~"]);
}
