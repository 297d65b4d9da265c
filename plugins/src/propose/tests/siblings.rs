//! Similar values beside each other: which one is meant, and what is an item.

use super::{check, queries};

#[test]
fn siblings_of_one_class_are_columns() {
    let item = |name: &str, facts: &[&str]| {
        let facts: String =
            facts.iter().map(|fact| format!("<span class=fact>{fact}</span>")).collect();
        format!("<div class=car><h3>{name}</h3><div class=facts>{facts}</div></div>")
    };
    let html = [
        item("Red one", &["2015", "80 km", "Diesel"]),
        item("Blue one", &["2017", "90 km", "Petrol"]),
        item("Green one", &["2009", "70 km"]),
        item("Grey one", &["2011", "60 km", "Petrol"]),
    ]
    .concat();
    let found = check(
        &html,
        &["Blue one", "90 km", "Petrol"],
        "Red one|80 km|Diesel\nBlue one|90 km|Petrol\nGreen one|70 km|\nGrey one|60 km|Petrol",
    );
    assert!(found.columns.iter().all(|column| !column.query.is_all), "{:?}", queries(&found));
}

#[test]
fn a_unit_selects_where_positions_vary() {
    let item = |price: &str, facts: &[&str]| {
        let facts: String =
            facts.iter().map(|fact| format!("<li class=fact>{fact}</li>")).collect();
        format!("<div class=home><b class=price>{price}</b><ul>{facts}</ul></div>")
    };
    let html = [
        item("£100", &["2 beds", "1 baths", "40 m²"]),
        item("£200", &["3 beds", "50 m²"]),
        item("£300", &["1 baths", "60 m²"]),
        item("£400", &["4 beds", "2 baths"]),
    ]
    .concat();
    check(&html, &["£100", "size=40 m²"], "£100|40 m²\n£200|50 m²\n£300|60 m²\n£400|");
}

#[test]
fn a_part_of_a_link_does_not_turn_links_into_items() {
    let item = |name: &str, stars: &str, forks: &str| {
        let link = |end: &str, count: &str| match count {
            "" => String::new(),
            count => format!("<a class=muted href=/me/{name}/{end}>{count}</a>"),
        };
        format!(
            "<li class=repo><h3><a href=/me/{name}>{name}</a></h3><p>{}{}</p></li>",
            link("stargazers", stars),
            link("forks", forks)
        )
    };
    let html = [
        item("lamp", "40", "7"),
        item("chair", "30", ""),
        item("desk", "", "5"),
        item("rug", "", ""),
    ]
    .concat();
    check(
        &format!("<ul>{html}</ul>"),
        &["name=lamp", "stars=40", "forks=7"],
        "lamp|40|7\nchair|30|\ndesk||5\nrug||",
    );
}

#[test]
fn one_name_in_two_elements_is_one_column() {
    let html = "<ul><li class=p><b class=n>Lamp</b><i class=full>24.00 zł</i>\
        <li class=p><b class=n>Chair</b><s>39.00 zł</s><i class=promo>26.00 zł</i>\
        <li class=p><b class=n>Desk</b><i class=full>86.00 zł</i></ul>";
    check(
        html,
        &["title=Lamp", "title=Chair", "price=24.00 zł", "price=26.00 zł"],
        "Lamp|24.00 zł\nChair|26.00 zł\nDesk|86.00 zł",
    );
}

#[test]
fn a_reduced_price_replaces_the_old_price() {
    let html = "<ul><li class=p><h2>Lamp</h2><span class=price>52,00 €</span>\
        <li class=p><h2>Chair</h2><span class=price><del>99,00 €</del> <ins>58,00 €</ins></span>\
        <li class=p><h2>Desk</h2><span class=price>39,00 €</span></ul>";
    let rows = "Lamp|52,00 €\nChair|58,00 €\nDesk|39,00 €";
    check(html, &["Lamp", "52,00 €"], rows);
    check(html, &["Chair", "58,00 €"], rows);
}

#[test]
fn a_head_row_of_plain_cells_is_not_an_item() {
    let html = "<table><tr><td><b>Fund</b><td><b>Price</b>\
        <tr><td>Amber<td>7.76<tr><td>Birch<td>3.58<tr><td>Copper<td>1.38</table>";
    check(html, &["fund=Birch", "nav=3.58"], "Amber|7.76\nBirch|3.58\nCopper|1.38");
}

#[test]
fn the_innermost_element_excludes_notes() {
    let html = "<table><tr><th>City<th>People<tr><th scope=row><a href=/a>Leeds</a><td>3,348\
        <tr><th scope=row><a href=/b>Bristol</a><sup>[b]</sup><td>2,857\
        <tr><th scope=row><a href=/c>Cardiff</a><td>1,427</table>";
    check(html, &["Leeds", "3,348"], "Leeds|3,348\nBristol|2,857\nCardiff|1,427");
}

#[test]
fn a_pattern_extracts_all_text_up_to_the_end() {
    let item = |title: &str, kind: &str, office: &str| {
        format!(
            "<div class=doc><h3>{title}</h3><ul><li>Type: {kind}<li>Office: {office}</ul></div>"
        )
    };
    let html = [
        item("First", "Notice", "Treasury"),
        item("Second", "Guide", "Land Office"),
        item("Third", "Notice", "Dept of Trade"),
    ]
    .concat();
    check(
        &html,
        &["title=First", "office=Treasury"],
        "First|Treasury\nSecond|Land Office\nThird|Dept of Trade",
    );
}

#[test]
fn lines_between_breaks_are_columns() {
    let item = |name: &str, street: &str, city: &str| {
        format!("<div class=branch><strong>{name}</strong><br>{street}<br>{city}<br>Tel: 1</div>")
    };
    let html = [
        item("One", "7 Amber Street", "Leeds LE1"),
        item("Two", "9 Birch Lane", "Bristol BR2"),
        item("Three", "3 Copper Way", "Cardiff CA3"),
    ]
    .concat();
    check(
        &html,
        &["name=Two", "street=9 Birch Lane", "city=Bristol BR2"],
        "One|7 Amber Street|Leeds LE1\nTwo|9 Birch Lane|Bristol BR2\nThree|3 Copper Way|Cardiff CA3",
    );
}

#[test]
fn cells_after_a_row_span_are_counted_from_the_end() {
    let html = "<table><tr><th>Day<th>Course<th>Room<tr><td rowspan=2>Mon<td>Botany<td>R1\
        <tr><td>Latin<td>R2<tr><td rowspan=2>Tue<td>Law<td>R3<tr><td>Art<td>R4</table>";
    let rows = "Botany|R1\nLatin|R2\nLaw|R3\nArt|R4";
    check(html, &["course=Botany", "room=R1"], rows);
    check(html, &["course=Latin", "room=R2"], rows);
}

#[test]
fn a_class_is_preferred_to_a_position_that_varies() {
    let item = |badge: &str, name: &str, firm: &str| {
        format!("<li class=job>{badge}<h3>{name}</h3><div class=css-1x2y3z>{firm}</div></li>")
    };
    let html = [
        item("<div class=css-9k8j7h>Sponsored by us</div>", "Cook", "Abbott"),
        item("", "Baker", "Berg"),
        item("", "Waiter", "Castro"),
    ]
    .concat();
    check(&html, &["Baker", "firm=Berg"], "Cook|Abbott\nBaker|Berg\nWaiter|Castro");
}

#[test]
fn arrays_in_json_are_rows() {
    let things = r#"[{"name":"Lamp","by":{"who":"Ann"},"fee":10},{"name":"Chair","by":{"who":"Bob"},"fee":12},{"name":"Desk","by":{"who":"Cid"}}]"#;
    let next = format!(
        r#"<div id=app></div><script id="__NEXT_DATA__" type="application/json">{{"props":{{"list":{things}}}}}</script>"#
    );
    let rows = "Lamp|Ann|10\nChair|Bob|12\nDesk|Cid|";
    let found = check(&next, &["Chair", "who=Bob", "fee=12"], rows);
    assert_eq!(found.json_block.unwrap().path, "$.props.list[*]");
    let linked = format!(
        r#"<script type="application/ld+json">{{"@type":"ItemList","itemListElement":{things}}}</script>"#
    );
    check(&linked, &["Lamp", "Ann", "10"], rows);
}
