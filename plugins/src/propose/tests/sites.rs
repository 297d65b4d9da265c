//! Pages that resemble well-known types of sites.

use super::{check, names};

#[test]
fn notes_in_an_encyclopedia_table_are_left_out() {
    let html = r##"<div class="mw-parser-output"><p>Mountains.</p><table class="wikitable sortable"><caption>Highest</caption><tbody><tr><th>Rank</th><th>Mountain</th><th>Height (m)</th><th>First ascent</th></tr>
        <tr><td>1</td><th scope="row"><a href="/wiki/Everest" title="Mount Everest">Mount Everest</a><sup class="reference"><a href="#n1">[1]</a></sup></th><td>8,849</td><td>1953</td></tr>
        <tr><td>2</td><th scope="row"><a href="/wiki/K2" title="K2">K2</a></th><td>8,611</td><td>1954</td></tr>
        <tr><td>3</td><th scope="row"><a href="/wiki/Kang" title="Kangchenjunga">Kangchenjunga</a></th><td>8,586</td><td>1955</td></tr></tbody></table>
        <table class="navbox"><tbody><tr><th>Lists</th><td><a href="/a">Mount Everest</a> <a href="/b">K2</a></td></tr></tbody></table></div>"##;
    check(
        html,
        &["Mount Everest", "8,849", "1953"],
        "Mount Everest|8,849|1953\nK2|8,611|1954\nKangchenjunga|8,586|1955",
    );
}

#[test]
fn sponsored_results_of_a_shop_with_utility_classes_are_left_out() {
    let item = |asin: &str, extra: &str, title: &str, price: &str, stars: &str| {
        let (whole, part) = price.split_once('.').unwrap();
        format!(
            r#"<div data-asin="{asin}" class="sg-col-4-of-24 s-result-item s-asin {extra} sg-col" data-component-type="s-search-result"><div class="sg-col-inner"><div class="a-section">{}<h2 class="a-size-mini a-spacing-none"><a class="a-link-normal s-link-style" href="/dp/{asin}"><span class="a-size-base-plus a-color-base a-text-normal">{title}</span></a></h2><div class="a-row a-size-small"><span aria-label="{stars} out of 5 stars"><i class="a-icon a-icon-star-small"><span class="a-icon-alt">{stars} out of 5 stars</span></i></span></div><span class="a-price" data-a-size="xl"><span class="a-offscreen">${price}</span><span aria-hidden="true"><span class="a-price-symbol">$</span><span class="a-price-whole">{whole}<span class="a-price-decimal">.</span></span><span class="a-price-fraction">{part}</span></span></span></div></div></div>"#,
            if extra == "AdHolder" {
                "<span class=\"a-color-secondary\">Sponsored</span>"
            } else {
                ""
            }
        )
    };
    let html = format!(
        r#"<div id="search"><div class="s-main-slot s-result-list"><div class="s-result-item s-messaging"><h2>Results</h2></div>{}{}{}<div class="s-result-item s-widget"><div class="sg-col-inner"><h2><span>More results</span></h2></div></div>{}</div></div>"#,
        item("B00", "AdHolder", "Promoted pot", "99.00", "3.0"),
        item("B01", "", "Red pot", "19.99", "4.5"),
        item("B02", "", "Blue pot", "24.50", "4.0"),
        item("B03", "", "Green pot", "7.25", "3.9"),
    );
    check(
        &html,
        &["Red pot", "$19.99", "4.5 out of 5 stars", "asin=B01"],
        "Red pot|$19.99|4.5 out of 5 stars|B01\nBlue pot|$24.50|4.0 out of 5 stars|B02\nGreen pot|$7.25|3.9 out of 5 stars|B03",
    );
}

#[test]
fn several_values_in_one_cell_are_columns() {
    let row = |rank: u32, title: &str, year: u32, score: &str| {
        format!(
            r#"<tr><td class="posterColumn"><a href="/t/{rank}"><img src="p{rank}.jpg" alt="{title}"></a></td><td class="titleColumn">{rank}. <a href="/t/{rank}" title="dir.">{title}</a> <span class="secondaryInfo">({year})</span></td><td class="ratingColumn imdbRating"><strong title="{score} based on 1,000 votes">{score}</strong></td><td class="watchlistColumn"><button>+</button></td></tr>"#
        )
    };
    let html = format!(
        r#"<table class="chart full-width"><thead><tr><th></th><th>Rank &amp; Title</th><th>Rating</th><th></th></tr></thead><tbody class="lister-list">{}{}{}</tbody></table>"#,
        row(1, "The Walls", 1994, "9.2"),
        row(2, "The Boss", 1972, "9.1"),
        row(3, "Dark Night", 2008, "9.0"),
    );
    check(
        &html,
        &["The Walls", "1994", "9.2", "rank=1"],
        "The Walls|1994|9.2|1\nThe Boss|1972|9.1|2\nDark Night|2008|9.0|3",
    );
}

#[test]
fn white_space_around_repository_names_is_collapsed() {
    let html = r#"<div class="Box"><article class="Box-row"><div class="float-right d-flex"><a class="btn btn-sm">Star</a></div><h2 class="h3 lh-condensed"><a href="/rust-lang/rust"><span class="text-normal">rust-lang /</span>
          rust</a></h2><p class="col-9 color-fg-muted my-1 pr-4">A language.</p><div class="f6 color-fg-muted mt-2"><span class="d-inline-block ml-0 mr-3"><span class="repo-language-color"></span><span itemprop="programmingLanguage">Rust</span></span><a class="Link--muted d-inline-block mr-3" href="/rust-lang/rust/stargazers">90,123</a><a class="Link--muted d-inline-block mr-3" href="/rust-lang/rust/forks">12,001</a><span class="d-inline-block float-sm-right">55 stars today</span></div></article>
        <article class="Box-row"><div class="float-right d-flex"><a class="btn btn-sm">Star</a></div><h2 class="h3 lh-condensed"><a href="/a/b"><span class="text-normal">a /</span>
          b</a></h2><div class="f6 color-fg-muted mt-2"><a class="Link--muted d-inline-block mr-3" href="/a/b/stargazers">5</a><a class="Link--muted d-inline-block mr-3" href="/a/b/forks">2</a><span class="d-inline-block float-sm-right">1 star today</span></div></article>
        <article class="Box-row"><div class="float-right d-flex"><a class="btn btn-sm">Star</a></div><h2 class="h3 lh-condensed"><a href="/py/py"><span class="text-normal">py /</span>
          py</a></h2><p class="col-9 color-fg-muted my-1 pr-4">Snake.</p><div class="f6 color-fg-muted mt-2"><span class="d-inline-block ml-0 mr-3"><span class="repo-language-color"></span><span itemprop="programmingLanguage">Python</span></span><a class="Link--muted d-inline-block mr-3" href="/py/py/stargazers">70</a><a class="Link--muted d-inline-block mr-3" href="/py/py/forks">9</a><span class="d-inline-block float-sm-right">3 stars today</span></div></article></div>"#;
    check(
        html,
        &["rust-lang / rust", "A language.", "Rust", "90,123", "12,001", "today=55"],
        "rust-lang / rust|A language.|Rust|90,123|12,001|55
         a / b|||5|2|1
         py / py|Snake.|Python|70|9|3",
    );
}

#[test]
fn counts_and_tags_of_questions_are_columns() {
    let q = |id: u32, votes: i32, answers: u32, title: &str, tags: &[&str], user: &str| {
        let tags: String = tags.iter().map(|t| format!(r#"<li class="d-inline mr4 js-post-tag-list-item"><a href="/questions/tagged/{t}" class="s-tag post-tag">{t}</a></li>"#)).collect();
        format!(
            r#"<div id="question-summary-{id}" class="s-post-summary js-post-summary" data-post-id="{id}"><div class="s-post-summary--stats"><div class="s-post-summary--stats-item s-post-summary--stats-item__emphasized"><span class="s-post-summary--stats-item-number">{votes}</span><span class="s-post-summary--stats-item-unit">votes</span></div><div class="s-post-summary--stats-item"><span class="s-post-summary--stats-item-number">{answers}</span><span class="s-post-summary--stats-item-unit">answers</span></div></div><div class="s-post-summary--content"><h3 class="s-post-summary--content-title"><a href="/q/{id}" class="s-link">{title}</a></h3><ul class="ml0 list-ls-none">{tags}</ul><div class="s-user-card--link"><a href="/u/{user}">{user}</a></div></div></div>"#
        )
    };
    let html = format!(
        r#"<div id="questions" class="flush-left">{}{}{}</div>"#,
        q(1, 5, 2, "How to sort?", &["python", "sorting"], "ann"),
        q(2, 0, 1, "Why crash?", &["c"], "bob"),
        q(3, -1, 0, "What is it?", &["rust", "traits", "async"], "cat"),
    );
    check(
        &html,
        &["How to sort?", "votes=5", "answers=2", "ann", "python"],
        "How to sort?|5|2|ann|python\nWhy crash?|0|1|bob|c\nWhat is it?|-1|0|cat|rust",
    );
}

#[test]
fn hotels_with_only_utility_classes_are_found() {
    let card = |name: &str, place: &str, price: &str, score: &str| {
        format!(
            r#"<div class="flex p-4 mb-4 rounded-lg shadow-md bg-white"><img class="w-32 h-32 object-cover" src="/{name}.webp"><div class="ml-4 flex-1"><h3 class="text-lg font-bold">{name}</h3><p class="text-sm text-gray-500">{place}</p><div class="flex mt-2"><span class="px-2 py-1 bg-blue-600 text-white">{score}</span></div></div><div class="text-right"><p class="text-xl font-bold">{price}</p><p class="text-xs">per night</p></div></div>"#
        )
    };
    let html = format!(
        r#"<div class="container mx-auto"><div class="flex justify-between"><h1 class="text-2xl font-bold">Hotels in Rome</h1></div><div class="mt-6">{}{}{}</div></div>"#,
        card("Roma Inn", "Centro", "€120", "8.9"),
        card("Villa Bella", "Trastevere", "€210", "9.4"),
        card("Termini Stay", "Esquilino", "€75", "7.1"),
    );
    check(
        &html,
        &["Villa Bella", "Trastevere", "€210", "9.4"],
        "Roma Inn|Centro|€120|8.9\nVilla Bella|Trastevere|€210|9.4\nTermini Stay|Esquilino|€75|7.1",
    );
}

#[test]
fn values_before_their_labels_are_found() {
    let html = r#"<div class="listing-page"><h1 class="address">12 Hill Road</h1><div class="price-tag">$450,000</div><ul class="facts"><li><span class="value">3</span> <span class="label">Beds</span></li><li><span class="value">2</span> <span class="label">Baths</span></li><li><span class="value">1,450</span> <span class="label">Sqft</span></li></ul>
        <div class="row"><div class="label">Year built</div><div class="value">1987</div></div><div class="row"><div class="label">Heating</div><div class="value">Gas</div></div></div>"#;
    check(
        html,
        &["12 Hill Road", "$450,000", "beds=3", "sqft=1,450", "1987", "Gas"],
        "12 Hill Road|$450,000|3|1,450|1987|Gas",
    );
}

#[test]
fn labels_in_paragraphs_of_a_job_page_become_selectors() {
    let html = r#"<article><h1>Nurse</h1><p><strong>Location:</strong> Leeds</p><p><strong>Salary:</strong> £30,000 - £35,000</p><p><strong>Closing date:</strong> <span>1 June 2026</span></p><h3>About</h3><p>Care for people.</p></article>
        <section class="similar-jobs"><h2>Similar</h2><article><h3>Doctor</h3><p><strong>Location:</strong> York</p></article><article><h3>Porter</h3><p><strong>Location:</strong> Hull</p></article></section>"#;
    check(
        html,
        &["Nurse", "Leeds", "£30,000 - £35,000", "1 June 2026"],
        "Nurse|Leeds|£30,000 - £35,000|1 June 2026",
    );
}

#[test]
fn a_bold_head_of_a_layout_table_is_left_out() {
    let html = r##"<table width=100%><tr><td bgcolor=#ccc><a href=/>Home</a> | <a href=/x>Links</a></td></tr><tr><td><table border=1><tr><td><b>Part</b></td><td><b>Price</b></td><td><b>Qty</b></td></tr>
        <tr><td><font size=2><a href=p1.htm>Bolt M4</a></font></td><td><font size=2>$0.10</font></td><td><font size=2>500</font></td></tr>
        <tr><td><font size=2><a href=p2.htm>Nut M4</a></font></td><td><font size=2>$0.05</font></td><td><font size=2>900</font></td></tr>
        <tr><td><font size=2><a href=p3.htm>Washer</a></font></td><td><font size=2>$0.02</font></td><td><font size=2>0</font></td></tr></table></td></tr></table>"##;
    check(
        html,
        &["Bolt M4", "$0.10", "500"],
        "Bolt M4|$0.10|500\nNut M4|$0.05|900\nWasher|$0.02|0",
    );
}

#[test]
fn events_below_each_day_are_rows() {
    let html = r#"<div class="program"><div class="day"><h2>Monday</h2><div class="talk"><b>Opening</b><i>Room A</i></div><div class="talk"><b>Rust</b><i>Room B</i></div></div>
        <div class="day"><h2>Tuesday</h2><div class="talk"><b>Async</b><i>Room A</i></div></div><div class="day"><h2>Friday</h2><div class="talk"><b>Closing</b><i>Hall</i></div></div></div>"#;
    check(
        html,
        &["Opening", "Room A", "day=Monday"],
        "Opening|Room A|Monday\nRust|Room B|Monday\nAsync|Room A|Tuesday\nClosing|Hall|Friday",
    );
}

#[test]
fn mail_addresses_are_columns() {
    let html = r#"<div class="staff"><div class="person"><img src="a.jpg" alt=""><h4>Ann Ash</h4><p>Director</p><p><a href="mailto:ann@x.example">ann@x.example</a></p></div>
        <div class="person"><img src="b.jpg" alt=""><h4>Bob Birch</h4><p>Clerk</p><p><a href="mailto:bob@x.example">bob@x.example</a></p></div>
        <div class="person"><img src="c.jpg" alt=""><h4>Cid Cedar</h4><p>Porter</p></div></div>"#;
    check(
        html,
        &["Ann Ash", "Director", "ann@x.example"],
        "Ann Ash|Director|ann@x.example\nBob Birch|Clerk|bob@x.example\nCid Cedar|Porter|",
    );
}

#[test]
fn ranks_that_occur_everywhere_are_found() {
    let html = r#"<ol class="chart"><li><span class="pos">1</span><div><a class="song" href="/1">1</a><span class="artist">Metallica</span></div><span class="weeks">12</span></li>
        <li><span class="pos">2</span><div><a class="song" href="/2">Hello</a><span class="artist">Adele</span></div><span class="weeks">1</span></li>
        <li><span class="pos">3</span><div><a class="song" href="/3">Help!</a><span class="artist">The Beatles</span></div><span class="weeks">2</span></li></ol>"#;
    let found = check(
        html,
        &["Hello", "Adele", "pos=2", "weeks=1"],
        "1|Metallica|1|12\nHello|Adele|2|1\nHelp!|The Beatles|3|2",
    );
    assert_eq!(names(&found), ["song", "artist", "pos", "weeks"]);
}

#[test]
fn addresses_of_lazy_pictures_are_found() {
    let html = r#"<div class="gallery"><figure><img data-src="/img/1.jpg" src="blank.gif"><figcaption>Dawn <small>2019</small></figcaption></figure>
        <figure><img data-src="/img/2.jpg" src="blank.gif"><figcaption>Dusk <small>2020</small></figcaption></figure></div>"#;
    check(html, &["Dawn", "/img/1.jpg", "2019"], "Dawn|/img/1.jpg|2019\nDusk|/img/2.jpg|2020");
}

#[test]
fn ingredients_form_a_list() {
    let html = r#"<h1>Pancakes</h1><p>Prep time: 10 mins</p><h2>Ingredients</h2><ul class="ingredients"><li>2 eggs</li><li>200 g flour</li><li>300 ml milk</li></ul><h2>Steps</h2><ol><li>Mix.</li><li>Fry.</li></ol>"#;
    check(html, &["2 eggs", "200 g flour"], "2 eggs\n200 g flour\n300 ml milk");
    check(html, &["Pancakes", "10 mins"], "Pancakes|10 mins");
}

#[test]
fn the_stable_part_of_a_css_module_class_is_used() {
    let html = r#"<main class="Page_main__x1Y2z"><div class="List_root__9aB8c"><div class="Card_root__1Qw2e"><p class="Card_title__3Er4t">Fig</p><p class="Card_price__5Ty6u">3</p></div><div class="Card_root__1Qw2e Card_hot__7Ui8o"><p class="Card_title__3Er4t">Nut</p><p class="Card_note__0Op1a">Hot!</p><p class="Card_price__5Ty6u">4</p></div><div class="Promo_root__2As3d"><p>Join!</p></div></div></main>"#;
    check(html, &["Fig", "3"], "Fig|3\nNut|4");
}
