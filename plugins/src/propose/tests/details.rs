//! Pages with one record.

use super::{check, names, proposal};
use crate::html::{Document, TreeLimits};
use crate::propose::{FieldSource, Sample, propose};

const PRODUCT: &str = r##"<html><head><title>Kettle 2000 | Shop</title><meta property="og:title" content="Kettle 2000"></head><body>
<ul class="breadcrumb"><li><a href="/">Home</a></li><li><a href="/kitchen">Kitchen</a></li><li class="active">Kettle 2000</li></ul>
<div class="product_page"><div class="row"><div class="col-sm-6"><img src="/img/kettle.jpg" alt="Kettle 2000"></div>
<div class="col-sm-6 product_main"><h1>Kettle 2000</h1><p class="price_color">£34.50</p><p class="instock availability">In stock (22 available)</p></div></div>
<h2>Product Description</h2><p>Boils water fast.</p>
<table class="table"><tr><th>UPC</th><td>a897fe39</td></tr><tr><th>Product Type</th><td>Kettles</td></tr><tr><th>Weight</th><td>1.2 kg</td></tr><tr><th>Tax</th><td>£0.00</td></tr><tr><th>Number of reviews</th><td>0</td></tr></table>
<div class="related"><h2>Related</h2><div class="card"><h3>Toaster</h3><p class="price_color">£20.00</p></div><div class="card"><h3>Pan</h3><p class="price_color">£15.00</p></div></div></div></body></html>"##;

#[test]
fn a_product_page_with_a_label_table_is_one_record() {
    let found = check(
        PRODUCT,
        &["Kettle 2000", "£34.50", "22", "1.2 kg", "a897fe39", "Boils water fast."],
        "Kettle 2000|£34.50|22|1.2 kg|a897fe39|Boils water fast.",
    );
    assert_eq!(found.block, None);
    assert_eq!(&names(&found)[..2], ["title", "price"]);
    assert_eq!(&names(&found)[3..5], ["weight", "upc"]);
    let label = &found.columns[3].query.source;
    assert_eq!(*label, FieldSource::Css("th:contains(Weight) + td".to_owned()));
}

#[test]
fn values_of_a_label_table_alone_are_one_record() {
    check(PRODUCT, &["1.2 kg"], "1.2 kg");
    check(PRODUCT, &["1.2 kg", "a897fe39"], "1.2 kg|a897fe39");
}

#[test]
fn a_list_of_terms_is_one_record_when_only_values_are_wanted() {
    let html =
        "<main><h1>Villa Rosa</h1><dl><dt>Price</dt><dd>€ 250.000</dd><dt>Rooms</dt><dd>5</dd>
        <dt>Net area</dt><dd>80 m²</dd><dt>Area</dt><dd>120 m²</dd></dl></main>";
    let found =
        check(html, &["Villa Rosa", "€ 250.000", "5", "120 m²"], "Villa Rosa|€ 250.000|5|120 m²");
    assert_eq!(names(&found), ["title", "price", "rooms", "area"]);
}

#[test]
fn labels_inside_the_text_become_selectors() {
    let html = "<div id=profile><h1>Ann Lee</h1><ul><li><strong>Born:</strong> 3 May 1970</li>
        <li><strong>Lives in:</strong> York</li><li>Phone: 0123 456</li></ul><p>She writes.</p></div>";
    check(
        html,
        &["Ann Lee", "3 May 1970", "York", "0123 456", "She writes."],
        "Ann Lee|3 May 1970|York|0123 456|She writes.",
    );
}

#[test]
fn an_article_with_ids_and_meta_tags_is_one_record() {
    let html = r#"<html><body><div id="content"><h1 id="headline">Flood in town</h1><div class="byline">By <span class="author">R. Reporter</span> | <time datetime="2026-03-01">1 March 2026</time></div>
        <div class="body"><p>Water rose.</p><p>It fell.</p></div><ul class="tags"><li><a href="/t/w">weather</a></li><li><a href="/t/t">town</a></li></ul></div>
        <div class="comments"><div class="comment"><span class="author">joe</span><p>Sad.</p></div><div class="comment"><span class="author">jil</span><p>Wet.</p></div></div></body></html>"#;
    let found = check(
        html,
        &["Flood in town", "R. Reporter", "2026-03-01", "Water rose. It fell."],
        "Flood in town|R. Reporter|2026-03-01|Water rose. It fell.",
    );
    assert_eq!(found.block, None);
}

#[test]
fn samples_are_found_in_json_ld_and_scripts() {
    let html = r#"<h1>Lamp</h1><script type="application/ld+json">{"@context":"https://schema.org","@graph":[{"@type":"WebSite","name":"Shop"},{"@type":"Product","name":"Lamp","sku":"L-77","offers":{"price":"19.90"}}]}</script>
        <script id="state" type="application/json">{"product":{"stock":[{"left":14}]}}</script>"#;
    let found = check(html, &["Lamp", "L-77", "19.90", "14"], "Lamp|L-77|19.90|14");
    assert_eq!(found.columns[1].query.source, FieldSource::JsonLd("Product.sku".to_owned()));
    assert_eq!(
        found.columns[2].query.source,
        FieldSource::JsonLd("Product.offers.price".to_owned())
    );
    let script = FieldSource::Script {
        selector: "script#state".into(),
        path: "$.product.stock[0].left".into(),
    };
    assert_eq!(found.columns[3].query.source, script);
    assert_eq!(names(&found), ["title", "sku", "price", "left"]);
}

#[test]
fn a_missing_sample_is_reported_with_the_most_similar_text() {
    let page = Document::parse(PRODUCT, TreeLimits::default()).unwrap();
    let missing = propose(&page, &[Sample::read("Kettel 2000")], None).unwrap_err();
    assert_eq!(missing[0].nearest.as_deref(), Some("Kettle 2000"));
}

#[test]
fn the_same_page_and_samples_give_the_same_proposal() {
    let text = || format!("{:?}", proposal(PRODUCT, &["Kettle 2000", "£34.50", "1.2 kg"]));
    assert_eq!(text(), text());
}
