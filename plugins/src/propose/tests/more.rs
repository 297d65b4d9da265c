//! Further types of pages.

use super::check;

#[test]
fn states_and_hidden_words_of_auctions_are_ignored() {
    let html = r#"<div id="ResultSet"><ul id="ListView"><li class="sresult lvresult clearfix" listingid="1"><div class="lvpic"><a href="/itm/1"><img src="1.jpg" alt="Camera"></a></div><h3 class="lvtitle"><a href="/itm/1" class="vip">Old camera</a></h3><ul class="lvprices"><li class="lvprice prc"><span class="bold">$20.50</span></li><li class="lvformat"><span>3 bids</span></li><li class="lvshipping"><span class="ship">+$5.00 shipping</span></li></ul></li>
        <li class="sresult lvresult clearfix li shic" listingid="2"><div class="lvpic"><a href="/itm/2"><img src="2.jpg" alt="Lens"></a></div><h3 class="lvtitle"><a href="/itm/2" class="vip"><span class="newly">New listing</span>Big lens</a></h3><ul class="lvprices"><li class="lvprice prc"><span class="bold">$99.00</span></li><li class="lvformat"><span>Buy it now</span></li><li class="lvshipping"><span class="ship">Free shipping</span></li></ul></li>
        <li class="sresult lvresult clearfix li" listingid="3"><div class="lvpic"><a href="/itm/3"><img src="3.jpg" alt="Bag"></a></div><h3 class="lvtitle"><a href="/itm/3" class="vip">Bag</a></h3><ul class="lvprices"><li class="lvprice prc"><span class="bold">$7.00</span></li><li class="lvformat"><span>0 bids</span></li></ul></li></ul></div>"#;
    check(
        html,
        &["Old camera", "$20.50", "3 bids", "+$5.00 shipping", "/itm/1"],
        "Old camera|$20.50|3 bids|+$5.00 shipping|/itm/1
         New listingBig lens|$99.00|Buy it now|Free shipping|/itm/2
         Bag|$7.00|0 bids||/itm/3",
    );
}

#[test]
fn flights_in_spans_without_classes_are_found() {
    let html = r#"<section><h1>Flights</h1><div><p><span>BA 123</span><span>London</span><span>08:15</span><span>On time</span></p><p><span>LH 45</span><span>Berlin</span><span>09:00</span><span>Delayed</span></p><p><span>AF 7</span><span>Paris</span><span>09:30</span><span>On time</span></p></div></section>"#;
    check(
        html,
        &["LH 45", "Berlin", "09:00", "Delayed"],
        "BA 123|London|08:15|On time\nLH 45|Berlin|09:00|Delayed\nAF 7|Paris|09:30|On time",
    );
    check(html, &["LH 45", "Delayed"], "BA 123|On time\nLH 45|Delayed\nAF 7|On time");
}

#[test]
fn news_of_two_sections_are_one_list() {
    let t = |title: &str, when: &str| {
        format!(
            r#"<div class="teaser"><span class="kicker">News</span><h3 class="teaser__title"><a href="/x">{title}</a></h3><time class="teaser__time">{when}</time></div>"#
        )
    };
    let html = format!(
        r#"<main><section class="top"><h2>Top</h2>{}{}</section><section class="world"><h2>World</h2>{}{}</section></main><aside class="sidebar">{}</aside>"#,
        t("A wins", "10:00"),
        t("B falls", "11:00"),
        t("C grows", "12:00"),
        t("D ends", "12:30"),
        t("Old story", "01:00"),
    );
    check(&html, &["A wins", "10:00"], "A wins|10:00\nB falls|11:00\nC grows|12:00\nD ends|12:30");
}

#[test]
fn a_book_page_with_a_breadcrumb_is_one_record() {
    let html = r#"<html><head><meta name="author" content="J. Doe"><meta property="og:isbn" content="978-1"></head><body><div class="crumbs"><a href="/">Home</a> › <a href="/p">Poetry</a> › <span>Leaves</span></div>
        <div id="bookInfo"><h1 itemprop="name">Leaves</h1><a class="authorName" itemprop="url" href="/a/1"><span itemprop="name">J. Doe</span></a><span itemprop="ratingValue">4.12</span><div id="details"><div class="row">Paperback, <span itemprop="numberOfPages">145 pages</span></div><div class="row">Published May 1st 2001 by Penguin</div></div></div></body></html>"#;
    check(
        html,
        &["Leaves", "J. Doe", "4.12", "145", "publisher=Penguin", "978-1", "genre=Poetry"],
        "Leaves|J. Doe|4.12|145|Penguin|978-1|Poetry",
    );
}

#[test]
fn a_company_page_with_line_breaks_is_one_record() {
    let html = r#"<body><h1>Acme GmbH</h1><p>Main street 5<br>10115 Berlin<br>Tel: +49 30 1234<br>Web: <a href="https://acme.example/">acme.example</a></p><p>Founded in 1998</p></body>"#;
    check(
        html,
        &["Acme GmbH", "phone=+49 30 1234", "acme.example", "1998", "https://acme.example/"],
        "Acme GmbH|+49 30 1234|acme.example|1998|https://acme.example/",
    );
}

#[test]
fn offices_with_a_table_each_are_items() {
    let card = |city: &str, phone: &str, open: &str| {
        format!(
            "<div class=office><h3>{city}</h3><table><tr><td>Phone</td><td>{phone}</td></tr><tr><td>Open</td><td>{open}</td></tr></table></div>"
        )
    };
    let html = format!(
        "<div>{}{}{}</div>",
        card("Rome", "111", "9-5"),
        card("Oslo", "222", "8-4"),
        card("Bern", "333", "10-6")
    );
    check(&html, &["Rome", "111", "9-5"], "Rome|111|9-5\nOslo|222|8-4\nBern|333|10-6");
}

#[test]
fn classes_of_stripes_and_groups_are_ignored() {
    let html = r#"<table class="prices"><caption>Fees</caption><colgroup><col></colgroup><thead><tr><th rowspan=2>Service</th><th colspan=2>Price</th></tr><tr><th>Adult</th><th>Child</th></tr></thead><tbody>
        <tr class="group"><td colspan=3>Pool</td></tr><tr class="odd"><td>Day</td><td>10.00</td><td>5.00</td></tr><tr class="even"><td>Week</td><td>50.00</td><td>25.00</td></tr>
        <tr class="group"><td colspan=3>Gym</td></tr><tr class="odd"><td>Month</td><td>90.00</td><td>-</td></tr></tbody></table>"#;
    check(html, &["Day", "10.00", "5.00"], "Day|10.00|5.00\nWeek|50.00|25.00\nMonth|90.00|-");
    check(html, &["Day", "10.00", "area=Pool"], "Day|10.00|Pool\nWeek|50.00|Pool\nMonth|90.00|Gym");
}

#[test]
fn cards_inside_links_are_items() {
    let c = |id: u32, extra: &str, addr: &str, price: &str, beds: &str| {
        format!(
            r#"<a href="/home/{id}" class="property-card{extra}" data-id="{id}"><div class="photo" style="background-image:url(/img/{id}.jpg)"></div><div class="info"><span class="property-card__price">{price}</span><address>{addr}</address><ul><li><b>{beds}</b> bds</li><li><b>2</b> ba</li></ul></div></a>"#
        )
    };
    let html = format!(
        r#"<div class="search-page"><div class="results">{}{}<div class="property-card property-card--ad"><p>Mortgage?</p></div>{}</div></div>"#,
        c(11, "", "1 Elm St", "$300,000", "3"),
        c(12, " is-new", "2 Oak St", "$410,000", "4"),
        c(13, "", "3 Ash St", "$99,500", "1"),
    );
    check(
        &html,
        &["1 Elm St", "$300,000", "beds=3", "id=11", "/home/11", "photo=/img/11.jpg"],
        "1 Elm St|$300,000|3|11|/home/11|/img/11.jpg\n2 Oak St|$410,000|4|12|/home/12|/img/12.jpg\n3 Ash St|$99,500|1|13|/home/13|/img/13.jpg",
    );
}

#[test]
fn definition_lists_inside_packages_are_columns() {
    let p = |n: &str, v: &str, l: &str| {
        format!(
            "<section><h2><a href='/{n}'>{n}</a> <small>{v}</small></h2><dl><dt>Licence</dt><dd>{l}</dd><dt>Size</dt><dd>3 kB</dd></dl></section>"
        )
    };
    let html = format!(
        "<div id=pk>{}{}{}</div>",
        p("serde", "1.0", "MIT"),
        p("tokio", "1.5", "MIT"),
        p("rand", "0.9", "Apache")
    );
    check(&html, &["serde", "1.0", "MIT"], "serde|1.0|MIT\ntokio|1.5|MIT\nrand|0.9|Apache");
}

#[test]
fn a_japanese_page_gives_its_rows() {
    let html = r#"<div class="一覧"><div class="商品"><p class="名前">赤いランプ</p><p class="値段">1,200円</p></div><div class="商品"><p class="名前">青いランプ</p><p class="値段">980円</p></div></div><a href="?p=2">次へ</a>"#;
    check(html, &["赤いランプ", "1,200円"], "赤いランプ|1,200円\n青いランプ|980円");
}

#[test]
fn numbers_in_titles_are_not_columns() {
    let html = r#"<div class="episodes"><div class="episode" id="ep-12"><div class="episode-number">#12</div><h4 class="episode-title">Bees</h4><div class="episode-meta"><span>Mar 3, 2026</span><span>45 min</span></div></div>
        <div class="episode" id="ep-11"><div class="episode-number">#11</div><h4 class="episode-title">Ants</h4><div class="episode-meta"><span>Feb 24, 2026</span><span>38 min</span></div></div>
        <div class="episode" id="ep-10"><div class="episode-number">#10</div><h4 class="episode-title">Wasps</h4><div class="episode-meta"><span>Feb 17, 2026</span></div></div></div>"#;
    check(
        html,
        &["Bees", "number=12", "Mar 3, 2026", "45 min"],
        "Bees|12|Mar 3, 2026|45 min\nAnts|11|Feb 24, 2026|38 min\nWasps|10|Feb 17, 2026|",
    );
}

#[test]
fn four_hundred_items_are_all_found() {
    let item = |n: usize| {
        format!(
            "<li class=row><div><div><h3><a href='/{n}'>Item {n}</a></h3><p><span>by</span> <b class=who>User {n}</b></p></div><div><i>{n}</i><u>x</u><em>y</em></div></div></li>"
        )
    };
    let html = format!("<ul>{}</ul>", (0..400).map(item).collect::<String>());
    let found = super::proposal(&html, &["Item 7", "User 7"]);
    assert_eq!((found.rows, found.columns[1].filled()), (400, 400));
}

#[test]
fn an_element_without_classes_is_found_among_classes() {
    let html = "<ul><li><b class=price>5</b><b class=s>In stock</b></li><li><b class=price>6</b><b class=s>Sold out</b></li></ul>";
    check(html, &["In stock"], "In stock\nSold out");
}
