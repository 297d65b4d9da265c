//! `init`: a starter project that runs offline, and definitions proposed from samples.

use crate::harness::{TestSite, Workdir};

const SHOP: &str = r#"<html><body><nav><a href="/">Home</a></nav><ul class="products">
<li class="product"><h2><a href="/p/1">Red lamp</a></h2><span class="price">£10.00</span><i class="left">3</i></li>
<li class="product"><h2><a href="/p/2">Blue "lamp", big</a></h2><span class="price">£12.50</span><i class="left">14</i></li>
<li class="banner"><a href="/sale">Sale!</a></li>
<li class="product"><h2><a href="/p/3">Green lamp</a></h2><span class="price">£9.99</span></li>
</ul><a class="next" href="shop-2.html">Next</a></body></html>"#;

const DETAIL: &str = r#"<html><body><h1>Red lamp</h1><table><tr><th>Weight</th><td>1.2 kg</td></tr>
<tr><th>SKU</th><td>L-7</td></tr></table>
<script type="application/ld+json">{"@type":"Product","brand":{"name":"Lumen"}}</script></body></html>"#;

/// The rows that `try` prints, as `name=value` separated by `|`.
fn tried(work: &Workdir, page: &str, defs: &str) -> Vec<String> {
    let ending = work.spoonbill(&["try", page, "--defs", defs]);
    assert_eq!(ending.code, 0, "{ending:?}");
    let row = |line: &str| {
        let row: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        let cell = |(name, value): (&String, &serde_json::Value)| match value {
            serde_json::Value::Null => format!("{name}="),
            serde_json::Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        };
        row.iter().map(cell).collect::<Vec<_>>().join("|")
    };
    ending.stdout.lines().map(row).collect()
}

#[test]
fn the_starter_passes_check_and_runs_offline() {
    let work = Workdir::new();
    let ending = work.spoonbill(&["init"]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert!(ending.stdout.contains("spoonbill run spoonbill-project"), "{}", ending.stdout);
    let ending = work.spoonbill(&["check", "spoonbill-project"]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert!(!ending.stderr.contains("warning"), "{}", ending.stderr);
    let ending = work.spoonbill(&["run", "spoonbill-project"]);
    assert_eq!(ending.code, 0, "{ending:?}");
    let loaves = work.read("output/latest/loaves.csv");
    for row in ["Rye sourdough,4.20,false", "Spelt and honey,4.60,true", "Oat tin,3.10,false"] {
        assert!(loaves.contains(row), "{loaves}");
    }
    let details = work.read("output/latest/details.csv");
    for row in ["850 g,\"rye, wheat\",2026-11-14", "700 g,spelt,2026-11-15", "800 g"] {
        assert!(details.contains(row), "{details}");
    }
}

#[test]
fn init_never_overwrites_a_file() {
    let work = Workdir::new();
    work.write("mine/pages/rye.html", "my own");
    let ending = work.spoonbill(&["init", "mine"]);
    assert_eq!(ending.code, 2, "{ending:?}");
    assert!(ending.stderr.contains("`mine/pages/rye.html` exists already"), "{}", ending.stderr);
    assert_eq!(work.list("mine"), ["pages"], "init wrote another file");
    work.write("shop.html", SHOP);
    work.write("two/shop.yml", "groups: {}");
    let samples = ["init", "two", "--url", "shop.html", "--sample", "Red lamp"];
    assert_eq!(work.spoonbill(&samples).code, 2);
    assert_eq!(work.read("two/shop.yml"), "groups: {}");
}

#[test]
fn a_list_is_proposed_from_samples_of_one_item() {
    let work = Workdir::new();
    work.write("shop.html", SHOP);
    let samples = ["Blue \"lamp\", big", "£12.50", "left=14", "link=/p/2"];
    let mut arguments = vec!["init", "lamps", "--url", "shop.html"];
    for sample in samples {
        arguments.extend(["--sample", sample]);
    }
    let ending = work.spoonbill(&arguments);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert!(ending.stdout.contains("3 rows on this page, block `.product`"), "{}", ending.stdout);
    assert!(ending.stdout.contains("left   2 of 3: 3, 14"), "{}", ending.stdout);
    let first = work.read("lamps/shop.yml");
    assert!(first.contains("#   - .next    # the next page of the list"), "{first}");

    let ending = work.spoonbill(&["check", "lamps"]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert!(!ending.stderr.contains("warning"), "{}", ending.stderr);
    assert_eq!(
        tried(&work, "shop.html", "lamps"),
        [
            "title=Red lamp|price=£10.00|left=3|link=/p/1",
            "title=Blue \"lamp\", big|price=£12.50|left=14|link=/p/2",
            "title=Green lamp|price=£9.99|left=|link=/p/3",
        ]
    );
    let ending = work.spoonbill(&["run", "lamps"]);
    assert_eq!(ending.code, 0, "{ending:?}");
    let rows = work.read("output/latest/shop.csv");
    assert!(rows.contains("\"Blue \"\"lamp\"\", big\",£12.50,14,/p/2"), "{rows}");

    arguments[1] = "again";
    assert_eq!(work.spoonbill(&arguments).code, 0);
    assert_eq!(work.read("again/shop.yml"), first, "the same samples gave another file");
}

#[test]
fn one_record_is_proposed_by_labels_and_embedded_data() {
    let work = Workdir::new();
    work.write("lamp.html", DETAIL);
    let ending = work.spoonbill(&[
        "init",
        "lamp",
        "--url",
        "lamp.html",
        "--sample",
        "Red lamp",
        "--sample",
        "1.2 kg",
        "--sample",
        "brand=Lumen",
    ]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert_eq!(work.spoonbill(&["check", "lamp"]).code, 0);
    let rows = tried(&work, "lamp.html", "lamp");
    assert_eq!(rows, ["title=Red lamp|weight=1.2 kg|brand=Lumen"]);
    let text = work.read("lamp/lamp.yml");
    assert!(text.contains("weight: 'th:contains(Weight) + td'"), "{text}");
    assert!(text.contains("brand: { jsonld: Product.brand.name }"), "{text}");
}

#[test]
fn init_resolves_links_and_loads_one_page() {
    let site = TestSite::start();
    let work = Workdir::new();
    site.page("/shop/list.html", SHOP);
    let url = site.url("/shop/list.html");
    let link = site.url("/p/1");
    let ending = work.spoonbill(&["init", "web", "--url", &url, "--sample", &link]);
    assert_eq!(ending.code, 0, "{ending:?}");
    assert_eq!(
        (site.hits("/shop/list.html"), site.hits("/p/1"), site.hits("/shop/shop-2.html")),
        (1, 0, 0)
    );
    let rows = tried(&work, &url, "web");
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0], format!("link={link}"));
}

#[test]
fn init_names_a_sample_that_is_not_on_the_page_and_writes_nothing() {
    let work = Workdir::new();
    work.write("shop.html", SHOP);
    let arguments =
        ["init", "lamps", "--url", "shop.html", "--sample", "Red lamp", "--sample", "Gren lamp"];
    let ending = work.spoonbill(&arguments);
    assert_eq!(ending.code, 3, "{ending:?}");
    insta::assert_snapshot!(ending.stderr, @r"
    error: `Gren lamp` is not on shop.html
      the closest text on the page: `Green lamp`
      nothing was written; a page may look different without JavaScript: see its source
    ");
    assert!(!work.exists("lamps"));
    let ending = work.spoonbill(&["init", "lamps", "--url", "gone.html", "--sample", "x"]);
    assert_eq!(ending.code, 4, "{ending:?}");
    let ending = work.spoonbill(&["init", "lamps", "--url", "shop.html"]);
    assert_eq!(ending.code, 2, "{ending:?}");
    assert!(ending.stderr.contains("--sample"), "{}", ending.stderr);
}

#[test]
fn init_refuses_arguments_that_make_no_sense() {
    let work = Workdir::new();
    work.write("shop.html", SHOP);
    work.write("file", "");
    let told = |arguments: &[&str]| {
        let ending = work.spoonbill(arguments);
        (ending.code, ending.stderr)
    };
    for sample in ["", "  ", "price="] {
        let (code, told) = told(&["init", "a", "--url", "shop.html", "--sample", sample]);
        assert_eq!((code, told.as_str()), (2, "error: sample 1 is empty\n"));
    }
    let (code, words) = told(&["init", "file"]);
    assert!(code == 2 && words.contains("`file` is a file"), "{words}");
    let (code, words) = told(&["init", "a", "--url", "localhost:1/x", "--sample", "x"]);
    assert!(code == 4 && words.contains("write http://localhost:1/x"), "{words}");
    let (code, words) = told(&["init", "a", "--url", "shop.html", "--sample", "1st=Red lamp"]);
    assert!(code == 3 && words.contains("begins with a letter"), "{words}");
}

#[test]
fn init_notes_rare_columns_and_skipped_advertisements() {
    let work = Workdir::new();
    let item = |class: &str, name: &str, more: &str| {
        format!("<li class=\"item {class}\"><h2>{name}</h2>{more}</li>")
    };
    let page = [
        item("", "One", "<i class=gift>Bow</i>"),
        item("sponsored", "Buy me", ""),
        item("", "Two", ""),
        item("", "Three", ""),
        item("", "Four", ""),
    ];
    work.write("shop.html", format!("<ul>{}</ul>", page.concat()));
    let arguments =
        ["init", "my lamps", "--url", "shop.html", "--sample", "One", "--sample", "gift=Bow"];
    let ending = work.spoonbill(&arguments);
    assert_eq!(ending.code, 0, "{ending:?}");
    for words in [
        "note: gift is found in 1 of 4 rows",
        "note: 1 element marked as advertisement left out",
        "spoonbill run 'my lamps'",
    ] {
        assert!(ending.stdout.contains(words), "{words}: {}", ending.stdout);
    }
    assert!(
        work.read("my lamps/shop.yml").contains("# 1 element marked as advertisement left out")
    );
}
