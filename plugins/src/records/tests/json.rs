//! JSON pages, embedded JSON and JSON-LD.

use super::*;

const STORE: &str = r#"{"store": {"name": "A\u00e9 \"x\"", "open": true, "none": null, "items": [
    {"id": 1, "n": "one", "price": 8.950, "tags": ["a", "b"]},
    {"id": 2, "n": "two", "price": 12.99, "isbn": "0-553"},
    {"id": 3, "n": "three", "price": 1e2, "x-y": {"@z": 1}}
]}}"#;

#[track_caller]
fn finds(path: &str, expect: &str) {
    let all = Field { all: Some(Text::new(" ")), ..field(json(path)) };
    let found = value(all, STORE);
    assert_eq!(found.as_deref().unwrap_or("~"), expect, "{path}");
}

#[test]
fn paths_select_what_the_standard_says() {
    for (path, expect) in [
        ("$.store.name", "Aé \"x\""),
        ("store.name", "Aé \"x\""),
        ("$['store'][\"open\"]", "true"),
        ("$.store.items[0].n", "one"),
        ("store.items.1.n", "two"),
        ("$.store.items[-1].n", "three"),
        ("$.store.items[*].id", "1 2 3"),
        ("$.store.items[0,2].n", "one three"),
        ("$.store.items[1:].n", "two three"),
        ("$.store.items[::-1].n", "three two one"),
        ("$.store.items[:2].price", "8.950 12.99"),
        ("$.store.items[0:3:2].n", "one three"),
        ("$..isbn", "0-553"),
        ("$..n", "one two three"),
        ("$..tags[1]", "b"),
        ("$.store.items[0].tags", "a b"),
        ("store.items.2.x-y.@z", "1"),
        ("$.store.items[2]['x-y']['@z']", "1"),
        ("$.store.items[2]['x-y']", r#"{"@z":1}"#),
        ("$.store.none", "~"),
        ("$.store.items[9].n", "~"),
        ("$.store.items.n", "~"),
        ("$.nothing.at.all", "~"),
        ("$ .store .open", "true"),
        ("store.items[?@.tags.0 == 'a'].id", "1"),
        ("$.store.items[?@.isbn].n", "two"),
        ("$.store.items[?@.price < 10].n", "one"),
        ("$.store.items[?@.price >= 12.99 && @.id != 3].n", "two"),
        ("$.store.items[?(@.n == 'one' || @.n == \"three\")].id", "1 3"),
        ("$.store.items[?!@.isbn].id", "1 3"),
        ("$.store.items[?length(@.n) == 5].id", "3"),
        ("$.store.items[?length(@.tags) == 2].id", "1"),
        ("$.store.items[?count(@.tags[*]) > 1].id", "1"),
        ("$.store.items[?match(@.n, 't.*')].id", "2 3"),
        ("$.store.items[?search(@.n, 'o')].id", "1 2"),
        ("$.store.items[?@.id == $.store.items[1].id].n", "two"),
        ("$.store[?@ == true]", "true"),
        ("$.store[?@ == null]", "~"),
    ] {
        finds(path, expect);
    }
}

#[test]
fn problems_in_paths_have_their_position() {
    for (path, at) in [
        ("", 0),
        ("$.", 2),
        ("$.a[", 4),
        ("$.a[x]", 4),
        ("$.a['b]", 4),
        ("$.a[?]", 5),
        ("$.a[?@.b ==]", 11),
        ("$.a b", 3),
        ("$.x-y", 2),
        ("$.list.0", 7),
        ("$.a[?match(@.b, '[')]", 11),
        ("$.a[?count(@.b, @.c) > 1]", 11),
        ("$.a[?@.* == 1]", 5),
        ("$[1:2:3:4]", 7),
        ("$[99999999999999999999]", 2),
    ] {
        let query = Query { json: Some(at_line(path)), ..Query::default() };
        let record = record(None, vec![field(query)]);
        let problems = RecordPlan::compile(&record, &setup()).unwrap_err();
        assert_eq!((problems.len(), problems[0].inside), (1, Some(at)), "{path}: {problems:?}");
        assert!(problems[0].message.starts_with("field `x`: bad JSON path: "), "{problems:?}");
    }
    let deep = format!("$[?{}@.a{}]", "(".repeat(100), ")".repeat(100));
    assert!(RecordPlan::compile(&record(None, vec![field(json(&deep))]), &setup()).is_err());
}

fn at_line(text: &str) -> Text {
    at(text, 3)
}

#[test]
fn a_json_block_makes_a_row_for_each_match() {
    let named = |query, name| Field { name: Text::new(name), ..field(query) };
    let fields = || vec![named(json("id"), "id"), named(json("$.n"), "n"), named(css("."), "all")];
    let made = extract(&record(Some(json("$.store.items[:2]")), fields()), STORE);
    assert_eq!(
        lines(&made),
        [
            r#"1|one|{"id":1,"n":"one","price":8.950,"tags":["a","b"]}"#,
            r#"2|two|{"id":2,"n":"two","price":12.99,"isbn":"0-553"}"#,
        ]
    );
    let page = format!("<h1>Shop</h1><script id=d>window.data = {STORE};\nrun()</script>");
    let block = Query { css: Some(Text::new("#d")), ..json("$.store.items[*]") };
    let fields = vec![named(json("id"), "id"), named(css("h1"), "shop")];
    let made = extract(&record(Some(block), fields), &page);
    assert_eq!(lines(&made), ["1|Shop", "2|Shop", "3|Shop"]);
    let plan = plan(&record(Some(json("$[*]")), vec![field(json("id")), named(css("."), "y")]));
    assert!(!plan.needs_tree());
}

#[test]
fn embedded_json_is_found_in_scripts_and_attributes() {
    let inside = |query: Query, path: &str| field(Query { json: Some(Text::new(path)), ..query });
    for page in [
        r#"<script id=d>{"a": {"b": 5}}</script>"#,
        r#"<script id=d>var x = 1; window.__D__ = {"a": {"b": 5}}; f();</script>"#,
        r#"<script id=d>callback({"a": {"b": 5}})</script>"#,
        r#"<script id=d>function f() { return 1 } d={"a":{"b":5,},};</script>"#,
        r#"<i id=d>{"a": {"b": 5}}</i>"#,
    ] {
        check(inside(css("#d"), "$.a.b"), page, "5");
        check(inside(xpath("//*[@id='d']"), "a.b"), page, "5");
    }
    let page = r#"<i id=d data-p='{"a": ["x"]}'></i><i id=e>{"a": </i>"#;
    check(inside(with(css("#d"), "data-p"), "a[0]"), page, "x");
    check(inside(xpath("//@data-p"), "a[0]"), page, "x");
    check(inside(xpath("string(//@data-p)"), "a[0]"), page, "x");
    check(inside(css("#e"), "a"), page, "~");
    check(inside(css("#f"), "a"), page, "~");
    check(field(json("$.a")), page, "~");
    let made =
        extract(&record(Some(css("i")), vec![field(json("$.a"))]), "<i>{\"a\": 1}</i><i>x</i>");
    assert_eq!(lines(&made), ["1", "~"]);
}

#[test]
fn invalid_json_is_refused() {
    for text in [
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "[1 2]",
        "[,]",
        "{'a':1}",
        "[01x]",
        "[\"a]",
        "[\"\\",
        "[-]",
        "[1.]",
        "[1e]",
        "[tru]",
        "{\"a\":1}x",
        "",
    ] {
        assert!(json_text(None, text).is_none(), "{text}");
    }
    assert!(json_text(None, &"[".repeat(100_000)).is_none());
    assert!(json_text(None, &format!("{}{}", "[".repeat(900), "]".repeat(900))).is_some());
    assert!(json_text(Some("application/json; charset=utf-8"), "broken").is_some());
    assert!(json_text(Some("application/vnd.api+json"), "[]").is_some());
    assert!(json_text(Some("text/html"), "[1]").is_some());
    assert!(json_text(Some("text/plain"), "\u{feff} [1]").is_some());
}

#[test]
fn texts_of_json_are_unescaped() {
    let page = r#"{"a": "q\"\\\/\n\t\u00e9\ud83d\ude00\ud83dz\u12"}"#;
    check(field(json("a")), page, "q\"\\/\n\té😀\u{fffd}z\u{fffd}12");
    check(field(json("a")), "{\"a\": \"raw\nline\"}", "raw\nline");
    check(field(json("['a b']")), "{\"a b\": 1, \"a b\": 2}", "2");
    check(field(json("$")), "[1, {\"a\": \"x  y\"}]", "[1,{\"a\":\"x  y\"}]");
}

fn page(scripts: &[&str]) -> String {
    let each = |text: &&str| format!("<script type='application/ld+json'>{text}</script>");
    scripts.iter().map(each).collect()
}

#[test]
fn json_ld_is_found_by_type() {
    let product = r#"{"@type": "Product", "name": "Lamp", "image": ["a.jpg", "b.jpg"],
        "offers": [{"price": "9.90"}, {"price": 8}], "brand": {"name": "Acme"}}"#;
    let graph = format!(r#"{{"@graph": [{{"@type": "WebPage", "name": "P"}}, {product}]}}"#);
    let list = format!(r#"[{{"@type": ["Thing", "Other"]}}, {product}]"#);
    let nested = format!(r#"{{"@type": "WebPage", "name": "P", "mainEntity": {product}}}"#);
    let far = product.replace("\"Product\"", "[\"https://schema.org/Product\"]");
    let wrapped = format!("<!-- {product} -->");
    for text in [product, &graph, &list, &nested, &far, &wrapped] {
        let page = page(&["{broken", text, "{\"@type\": \"Offer\", \"price\": 3}"]);
        check(field(ld("Product.name")), &page, "Lamp");
        check(field(ld("Product.offers.price")), &page, "9.90");
        check(field(ld("Product.offers.1.price")), &page, "8");
        check(field(ld("Product.offers[1].price")), &page, "8");
        check(field(ld("Product.image")), &page, "a.jpg");
        check(field(ld("Product.brand.name")), &page, "Acme");
        check(field(ld("Product.sku")), &page, "~");
        check(field(ld("Recipe.name")), &page, "~");
        let all = Field { all: Some(Text::new(" ")), ..field(ld("Product.image")) };
        check(all, &page, "a.jpg b.jpg");
    }
    check(field(ld("name")), &page(&[&graph]), "P");
    let second = "{\"@type\": \"Product\", \"name\": \"Second\"}";
    check(field(ld("Product.name")), &page(&[product, second]), "Lamp");
    check(field(ld("Product.name")), &page(&[&nested, second]), "Second");
    check(field(ld("brand.name")), &page(&[&list]), "Acme");
    check(field(ld("name")), "<p>none here", "~");
    let made = extract(
        &record(Some(ld("Product")), vec![field(json("name"))]),
        &page(&[r#"[{"@type":"Product","name":"a"},{"@type":"Product","name":"b"}]"#]),
    );
    assert_eq!(lines(&made), ["a", "b"]);
}
