//! Pages with many rows.

use super::{check, names};

const GRID: &str = r##"<html><head><title>All products | Books</title></head><body>
<div class="container-fluid page"><nav><ul class="nav-list"><li><a href="/poetry">Poetry</a></li>
<li><a href="/travel">Travel</a></li><li><a href="/music">Music</a></li></ul></nav>
<section><ol class="row">
<li class="col-xs-6 col-md-3"><article class="product_pod"><div class="image_container"><a href="/b/1"><img src="i/1.jpg" alt="A Light in the Attic" class="thumbnail"></a></div>
<p class="star-rating Three"><i class="icon-star"></i></p><h3><a href="/b/1" title="A Light in the Attic">A Light in the ...</a></h3>
<div class="product_price"><p class="price_color">£51.77</p><p class="instock availability"><i class="icon-ok"></i> In stock</p><form><button class="btn btn-primary">Add to basket</button></form></div></article></li>
<li class="col-xs-6 col-md-3"><article class="product_pod"><div class="image_container"><a href="/b/2"><img src="i/2.jpg" alt="Tipping the Velvet" class="thumbnail"></a></div>
<p class="star-rating One"><i class="icon-star"></i></p><h3><a href="/b/2" title="Tipping the Velvet">Tipping the Velvet</a></h3>
<div class="product_price"><p class="price_color">£53.74</p><p class="instock availability"><i class="icon-ok"></i> In stock</p><form><button class="btn btn-primary">Add to basket</button></form></div></article></li>
<li class="col-xs-6 col-md-3 ad-slot"><div class="ad"><a href="/out">Buy a lamp!</a><img src="lamp.png"></div></li>
<li class="col-xs-6 col-md-3"><article class="product_pod"><div class="image_container"><a href="/b/3"><img src="i/3.jpg" alt="Soumission" class="thumbnail"></a></div>
<p class="star-rating Five"><i class="icon-star"></i></p><h3><a href="/b/3" title="Soumission">Soumission</a></h3>
<div class="product_price"><p class="price_color">£50.10</p><p class="outofstock availability"><i class="icon-no"></i> Sold out</p><form><button class="btn btn-primary">Add to basket</button></form></div></article></li>
</ol><ul class="pager"><li class="current">Page 1 of 50</li><li class="next"><a href="page-2.html">next</a></li></ul></section></div></body></html>"##;

#[test]
fn an_advertisement_in_a_product_grid_is_left_out() {
    let samples = ["A Light in the Attic", "£51.77", "In stock", "rating=Three"];
    let found = check(
        GRID,
        &samples,
        "A Light in the Attic|£51.77|In stock|Three
         Tipping the Velvet|£53.74|In stock|One
         Soumission|£50.10|Sold out|Five",
    );
    assert_eq!(found.block.as_deref(), Some(".product_pod"));
    assert_eq!(found.next_page.as_deref(), Some(".next a"));
    assert_eq!(found.details.as_deref(), Some(".product_pod h3 a"));
    assert_eq!(names(&found), ["title", "price", "availability", "rating"]);
}

#[test]
fn addresses_of_links_and_images_are_resolved() {
    check(
        GRID,
        &["https://shop.example/b/2", "https://shop.example/list/i/2.jpg", "53.74"],
        "https://shop.example/b/1|https://shop.example/list/i/1.jpg|51.77
         https://shop.example/b/2|https://shop.example/list/i/2.jpg|53.74
         https://shop.example/b/3|https://shop.example/list/i/3.jpg|50.10",
    );
}

#[test]
fn one_sample_is_enough_for_a_list() {
    let found = check(GRID, &["£53.74"], "£51.77\n£53.74\n£50.10");
    assert_eq!(found.block.as_deref(), Some(".product_pod"));
}

#[test]
fn samples_of_several_items_are_one_column() {
    let found = check(
        GRID,
        &["Tipping the Velvet", "Soumission", "£50.10"],
        "A Light in the ...|£51.77\nTipping the Velvet|£53.74\nSoumission|£50.10",
    );
    assert_eq!(names(&found), ["title", "price"]);
}

const TABLE: &str = r#"<h1>League</h1><table class="stats"><tr><th>Club<th>Played<th>Points<th>Last match
<tr><td><a href="/c/1">Northgate</a><td>38<td>81<td>2026-05-10
<tr><td><a href="/c/2">Eastham</a><td>38<td>77<td>2026-05-11
<tr><td><a href="/c/3">Port Vale</a><td>37<td>60<td>
<tr><td colspan="2">Average</td><td>72.6<td>
</table>"#;

#[test]
fn a_table_head_and_a_merged_foot_are_left_out() {
    let found = check(
        TABLE,
        &["Northgate", "81", "2026-05-10"],
        "Northgate|81|2026-05-10\nEastham|77|2026-05-11\nPort Vale|60|",
    );
    assert_eq!(names(&found), ["club", "points", "last_match"]);
    check(TABLE, &["Eastham", "37", "Port Vale"], "Northgate|38\nEastham|38\nPort Vale|37");
}

#[test]
fn thead_and_tfoot_are_left_out_and_row_headings_are_kept() {
    let html = "<table id=t><thead><tr><th>City</th><th>People</th></tr></thead><tbody>
        <tr><th>Oslo</th><td>700000</td></tr><tr><th>Bergen</th><td>290000</td></tr>
        <tr><th>Moss</th><td>50000</td></tr></tbody><tfoot><tr><th>All</th><td>1040000</td></tr></tfoot></table>";
    check(html, &["Oslo", "700000"], "Oslo|700000\nBergen|290000\nMoss|50000");
    check(html, &["290000"], "700000\n290000\n50000");
}

#[test]
fn terms_and_definitions_without_wrappers_are_items() {
    let html = "<dl class=glossary><dt>Ark</dt><dd>A boat</dd><dt>Bow</dt><dd>A weapon</dd>
        <dd>A knot</dd><dt>Cot</dt><dd>A bed</dd></dl>";
    check(html, &["Bow", "A weapon"], "Ark|A boat\nBow|A weapon\nCot|A bed");
}

#[test]
fn pairs_of_table_rows_are_items() {
    let html = r#"<table><tr class="athing"><td>1.</td><td class="title"><span class="titleline"><a href="https://a.example/">First story</a> <span class="sitebit">(<a href="from?a">a.example</a>)</span></span></td></tr>
        <tr><td></td><td class="subtext"><span class="score">101 points</span> by <a href="u?id=ann" class="hnuser">ann</a> <a href="i?1">5 comments</a></td></tr><tr class="spacer"></tr>
        <tr class="athing"><td>2.</td><td class="title"><span class="titleline"><a href="https://b.example/">Second story</a> <span class="sitebit">(<a href="from?b">b.example</a>)</span></span></td></tr>
        <tr><td></td><td class="subtext"><span class="score">7 points</span> by <a href="u?id=bob" class="hnuser">bob</a> <a href="i?2">9 comments</a></td></tr><tr class="spacer"></tr>
        <tr class="athing"><td>3.</td><td class="title"><span class="titleline"><a href="https://c.example/">Third story</a></span></td></tr>
        <tr><td></td><td class="subtext"><span class="score">3 points</span> by <a href="u?id=cy" class="hnuser">cy</a> <a href="i?3">discuss</a></td></tr></table>"#;
    check(
        html,
        &["First story", "101", "ann"],
        "First story|101|ann\nSecond story|7|bob\nThird story|3|cy",
    );
}

#[test]
fn a_heading_outside_the_articles_is_repeated_in_each_row() {
    let html = r#"<body><header><h1>My Blog</h1><p class="tagline">Words</p></header><main>
        <article class="post type-post"><header><h2 class="entry-title"><a href="/one">On rain</a></h2><span class="meta">By <a rel="author" href="/a/ann">Ann</a> on <time datetime="2026-01-05">January 5, 2026</time></span></header><div class="entry-content"><p>It rained.</p><p>And rained.</p></div><footer>Filed under <a rel="category" href="/cat/w">Weather</a></footer></article>
        <article class="post type-post sticky"><header><h2 class="entry-title"><a href="/two">On snow</a></h2><span class="meta">By <a rel="author" href="/a/bob">Bob</a> on <time datetime="2026-01-07">January 7, 2026</time></span></header><div class="entry-content"><p>It snowed.</p></div><footer>Filed under <a rel="category" href="/cat/w">Weather</a>, <a rel="category" href="/cat/x">Cold</a></footer></article>
        <article class="post type-post"><header><h2 class="entry-title"><a href="/three">On sun</a></h2><span class="meta">By <a rel="author" href="/a/ann">Ann</a> on <time datetime="2026-02-01">February 1, 2026</time></span></header><div class="entry-content"><p>Warm.</p></div></article>
        </main><aside><h2>Recent posts</h2><ul><li><a href="/three">On sun</a></li><li><a href="/two">On snow</a></li><li><a href="/one">On rain</a></li></ul></aside>
        <nav class="pagination"><a class="older" href="/page/2">Older posts</a></nav></body>"#;
    let found = check(
        html,
        &["On rain", "Ann", "January 5, 2026", "2026-01-05", "blog=My Blog"],
        "On rain|Ann|January 5, 2026|2026-01-05|My Blog
         On snow|Bob|January 7, 2026|2026-01-07|My Blog
         On sun|Ann|February 1, 2026|2026-02-01|My Blog",
    );
    assert_eq!(found.next_page.as_deref(), Some(".older"));
}

#[test]
fn optional_parts_of_jobs_may_be_empty() {
    let html = r#"<div id="jobs"><h2>42 jobs</h2><ul class="job-list">
        <li class="job"><a class="job-link" href="/j/1">Data engineer</a><div class="job-meta"><span class="company">Acme</span> · <span class="loc">Berlin</span></div><span class="salary">€70,000</span></li>
        <li class="job job--featured"><span class="badge">Featured</span><a class="job-link" href="/j/2">Rust developer</a><div class="job-meta"><span class="company">Bolt</span> · <span class="loc">Remote</span></div></li>
        <li class="job"><a class="job-link" href="/j/3">Tester</a><div class="job-meta"><span class="company">Corp</span> · <span class="loc">Oslo</span></div><span class="salary">€50,000</span></li>
        <li class="cta"><a href="/alert">Get job alerts</a></li></ul></div>"#;
    check(
        html,
        &["Data engineer", "Acme", "Berlin", "€70,000"],
        "Data engineer|Acme|Berlin|€70,000\nRust developer|Bolt|Remote|\nTester|Corp|Oslo|€50,000",
    );
    check(
        html,
        &["Rust developer", "Bolt"],
        "Data engineer|Acme\nRust developer|Bolt\nTester|Corp",
    );
}

#[test]
fn generated_classes_are_avoided() {
    let html = r#"<div id="root"><div class="css-1a2b3c"><header class="sc-bdVaJa"><span>Shop</span></header>
        <div class="css-9x8y7z"><div class="css-k1l2m3"><a class="css-q1w2e3" href="/p/red-lamp"><img class="css-i9i8i7" src="a.png"></a><div class="css-t5t6t7"><h2 class="css-h1h2h3">Red lamp</h2><span class="css-p1p2p3">$10.00</span><span class="css-s1s2s3">In stock</span></div></div>
        <div class="css-k1l2m3"><a class="css-q1w2e3" href="/p/blue-lamp"><img class="css-i9i8i7" src="b.png"></a><div class="css-t5t6t7"><h2 class="css-h1h2h3">Blue lamp</h2><span class="css-p1p2p3">$12.50</span><span class="css-s1s2s3">Sold out</span></div></div>
        <div class="css-k1l2m3 css-z0z1z2"><a class="css-q1w2e3" href="/p/green-lamp"><img class="css-i9i8i7" src="c.png"></a><div class="css-t5t6t7"><h2 class="css-h1h2h3">Green lamp</h2><span class="css-p1p2p3">$9.99</span><span class="css-s1s2s3">In stock</span></div></div></div>
        <footer class="css-f1f2f3"><span>Imprint</span></footer></div></div>"#;
    let found = check(
        html,
        &["Red lamp", "$10.00", "In stock"],
        "Red lamp|$10.00|In stock\nBlue lamp|$12.50|Sold out\nGreen lamp|$9.99|In stock",
    );
    assert!(!found.block.as_ref().unwrap().contains("css-"), "{:?}", found.block);
}

#[test]
fn a_bootstrap_grid_with_equal_classes_everywhere_gives_its_cards() {
    let card = |title: &str, text: &str, price: &str| {
        format!(
            r##"<div class="col-md-4"><div class="card h-100"><img class="card-img-top" src="x.png"><div class="card-body"><h4 class="pull-right price">{price}</h4><h4><a href="/p" class="title" title="{title} 15&quot;">{title}</a></h4><p class="card-text">{text}</p></div><div class="card-footer"><small class="text-muted">★ ★ ★</small></div></div></div>"##
        )
    };
    let html = format!(
        r##"<div class="container"><div class="row"><div class="col-md-3"><div class="card h-100"><div class="card-body"><h4>Filters</h4><p class="card-text">All</p></div></div></div><div class="col-md-9">
        <div class="row">{}{}{}</div><div class="row">{}{}</div></div></div></div>"##,
        card("Asus", "Fast", "$295.99"),
        card("Prestige", "Slow", "$299.00"),
        card("Acer", "Light", "$306.99"),
        card("Lenovo", "Heavy", "$321.94"),
        card("Dell", "Grey", "$356.49"),
    );
    check(
        &html,
        &["Asus", "$295.99", "Fast"],
        "Asus|$295.99|Fast\nPrestige|$299.00|Slow\nAcer|$306.99|Light\nLenovo|$321.94|Heavy\nDell|$356.49|Grey",
    );
}

#[test]
fn tags_inside_quotes_are_joined() {
    let html = r##"<div class="col-md-8"><div class="quote" itemscope itemtype="http://schema.org/CreativeWork"><span class="text" itemprop="text">“One.”</span><span>by <small class="author" itemprop="author">Albert Einstein</small><a href="/author/Albert-Einstein">(about)</a></span><div class="tags">Tags: <meta class="keywords" itemprop="keywords" content="change,world"><a class="tag" href="/tag/change/">change</a><a class="tag" href="/tag/world/">world</a></div></div>
        <div class="quote" itemscope itemtype="http://schema.org/CreativeWork"><span class="text" itemprop="text">“Two.”</span><span>by <small class="author" itemprop="author">Jane Austen</small><a href="/author/Jane-Austen">(about)</a></span><div class="tags">Tags: <meta class="keywords" itemprop="keywords" content="humor"><a class="tag" href="/tag/humor/">humor</a></div></div>
        <div class="quote" itemscope itemtype="http://schema.org/CreativeWork"><span class="text" itemprop="text">“Three.”</span><span>by <small class="author" itemprop="author">Albert Einstein</small><a href="/author/Albert-Einstein">(about)</a></span><div class="tags">Tags: </div></div>
        <nav><ul class="pager"><li class="next"><a href="/page/2/">Next <span>→</span></a></li></ul></nav></div>
        <div class="col-md-4 tags-box"><h2>Top Ten tags</h2><span class="tag-item"><a class="tag" href="/tag/love/">love</a></span><span class="tag-item"><a class="tag" href="/tag/change/">change</a></span></div>"##;
    let found = check(
        html,
        &["“One.”", "Albert Einstein", "change"],
        "“One.”|Albert Einstein|change\n“Two.”|Jane Austen|humor\n“Three.”|Albert Einstein|",
    );
    assert_eq!(found.next_page.as_deref(), Some(".next a"));
    check(html, &["“One.”", "tags=change,world"], "“One.”|change,world\n“Two.”|humor\n“Three.”|");
    check(html, &["“One.”", "world"], "“One.”|change, world\n“Two.”|humor\n“Three.”|");
}

#[test]
fn sponsored_search_results_are_left_out() {
    let html = r#"<div id="results"><div class="result result-sponsored"><span class="label">Ad</span><a class="t" href="/x">Cheap hats</a><span class="u">ads.example</span><p>Hats!</p></div>
        <div class="result"><a class="t" href="/1">Hat - Wikipedia</a><span class="u">wiki.example</span><p>A hat is a head covering.</p></div>
        <div class="result"><a class="t" href="/2">Hats for all</a><span class="u">hats.example</span><p>We sell hats.</p></div>
        <div class="result"><a class="t" href="/3">Hat (band)</a><span class="u">music.example</span><p>A band.</p></div></div>"#;
    check(
        html,
        &["Hat - Wikipedia", "wiki.example", "A hat is a head covering."],
        "Hat - Wikipedia|wiki.example|A hat is a head covering.
         Hats for all|hats.example|We sell hats.
         Hat (band)|music.example|A band.",
    );
}

#[test]
fn a_text_in_navigation_and_items_is_read_from_the_items() {
    let html = r#"<nav><ul><li><a href="/c/fiction">Fiction</a></li><li><a href="/c/art">Art</a></li></ul></nav>
        <div class="list"><div class="entry"><h3>Dune</h3><span>Fiction</span><em>1965</em></div>
        <div class="entry"><h3>Ways of Seeing</h3><span>Art</span><em>1972</em></div>
        <div class="entry"><h3>Solaris</h3><span>Fiction</span><em>1961</em></div></div>"#;
    check(
        html,
        &["Fiction", "Dune", "1965"],
        "Fiction|Dune|1965\nArt|Ways of Seeing|1972\nFiction|Solaris|1961",
    );
}

#[test]
fn microdata_names_the_columns() {
    let html = r#"<div><div itemscope itemtype="https://schema.org/Product"><span itemprop="name">Mug</span><div itemprop="offers" itemscope><meta itemprop="priceCurrency" content="EUR"><span itemprop="price" content="7.50">7,50 €</span></div></div>
        <div itemscope itemtype="https://schema.org/Product"><span itemprop="name">Cup</span><div itemprop="offers" itemscope><meta itemprop="priceCurrency" content="EUR"><span itemprop="price" content="6.00">6,00 €</span></div></div></div>"#;
    let found = check(html, &["Mug", "7.50", "7,50 €"], "Mug|7.50|7,50 €\nCup|6.00|6,00 €");
    assert_eq!(names(&found), ["name", "price", "price_2"]);
}

#[test]
fn a_forum_thread_gives_its_posts() {
    let post = |id: u32, user: &str, when: &str, text: &str, rank: &str| {
        format!(
            r##"<div class="post" id="p{id}"><div class="post-side"><a class="username" href="/u/{user}">{user}</a>{rank}<span class="joined">Joined: 2019</span></div><div class="post-main"><div class="post-date">{when} <a href="#p{id}">#{id}</a></div><div class="content">{text}</div><div class="signature">Bye</div></div></div>"##
        )
    };
    let html = format!(
        "<h1>How to bake</h1><div class=thread>{}{}{}</div>",
        post(1, "ann", "5 May 2026, 10:00", "I need help.", "<span class=rank>Expert</span>"),
        post(2, "bob", "5 May 2026, 11:30", "Use <b>flour</b>.", ""),
        post(3, "ann", "6 May 2026, 09:10", "Thanks!<br>Great.", "<span class=rank>Expert</span>"),
    );
    check(
        &html,
        &["ann", "I need help.", "5 May 2026, 10:00", "topic=How to bake", "2019"],
        "ann|I need help.|5 May 2026, 10:00|How to bake|2019
         bob|Use flour.|5 May 2026, 11:30|How to bake|2019
         ann|Thanks! Great.|6 May 2026, 09:10|How to bake|2019",
    );
}

#[test]
fn times_of_events_are_read_from_attributes() {
    let html = r#"<section><h2>Upcoming</h2><ol>
        <li><time datetime="2026-06-01T19:00">Mon 1 June, 7pm</time> <strong>Jazz night</strong>, <span>Blue Hall</span></li>
        <li><time datetime="2026-06-03T20:00">Wed 3 June, 8pm</time> <strong>Quiz</strong>, <span>The Crown</span></li>
        <li><time datetime="2026-06-09T18:30">Tue 9 June, 6:30pm</time> <strong>Choir</strong>, <span>St Mary</span></li></ol></section>"#;
    check(
        html,
        &["Jazz night", "Blue Hall", "2026-06-01T19:00"],
        "Jazz night|Blue Hall|2026-06-01T19:00
         Quiz|The Crown|2026-06-03T20:00
         Choir|St Mary|2026-06-09T18:30",
    );
}

#[test]
fn unclosed_items_on_a_german_page_are_found() {
    let html = "<h1>Angebote</h1><ul><li><b>Käse</b> – 3,99 €<li><b>Brötchen</b> – 0,45 €<li><b>Öl</b> – 12,00 €</ul>
        <a href='?s=2'>Nächste Seite</a>";
    let found = check(html, &["Käse", "3,99 €"], "Käse|3,99 €\nBrötchen|0,45 €\nÖl|12,00 €");
    assert!(found.next_page.is_some());
}

#[test]
fn cards_of_plain_divs_are_found() {
    let html = "<body><div><div>Top</div></div><div><div><div>Alpha</div><div>London</div><div>10</div></div>
        <div><div>Beta</div><div>Paris</div><div>20</div></div><div><div>Gamma</div><div>Rome</div><div>30</div></div></div></body>";
    check(html, &["Alpha", "London", "10"], "Alpha|London|10\nBeta|Paris|20\nGamma|Rome|30");
}

#[test]
fn an_old_price_is_not_mistaken_for_the_new_one() {
    let html = r#"<ul class="products"><li class="product"><h2>A</h2><span class="price old">$9.00</span><span class="price">$5.00</span></li>
        <li class="product sale"><h2>B</h2><span class="price">$7.00</span></li>
        <li class="product"><h2>C</h2><span class="price">$8.00</span></li></ul>"#;
    check(html, &["B", "$7.00"], "A|$5.00\nB|$7.00\nC|$8.00");
    check(html, &["A", "$5.00"], "A|$5.00\nB|$7.00\nC|$8.00");
    check(html, &["A", "$5.00", "was=$9.00"], "A|$5.00|$9.00\nB|$7.00|\nC|$8.00|");
}

#[test]
fn a_badge_is_not_part_of_the_title() {
    let html = r#"<div class=items><div class=item><h3>Kettle <span class=badge>New</span></h3><i>4</i></div>
        <div class=item><h3>Toaster</h3><i>5</i></div><div class=item><h3>Fridge</h3><i>6</i></div></div>"#;
    check(html, &["Toaster", "5"], "Kettle|4\nToaster|5\nFridge|6");
    check(html, &["Kettle", "4"], "Kettle|4\nToaster|5\nFridge|6");
}

#[test]
fn nested_comments_are_rows() {
    let html = r#"<ul class="comments"><li class="comment"><div class="head"><b class="who">ann</b></div><div class="words">First.</div>
        <ul class="replies"><li class="comment"><div class="head"><b class="who">bob</b></div><div class="words">Reply.</div></li></ul></li>
        <li class="comment"><div class="head"><b class="who">cid</b></div><div class="words">Second.</div></li></ul>"#;
    check(html, &["ann", "First."], "ann|First.\nbob|Reply.\ncid|Second.");
    check(html, &["bob", "Reply."], "ann|First.\nbob|Reply.\ncid|Second.");
}

#[test]
fn names_of_columns_distinguish_equal_texts() {
    let html = "<table><tr><th>Team<th>Won<th>Drawn<th>Lost<tr><td>A<td>3<td>3<td>3<tr><td>B<td>4<td>1<td>2<tr><td>C<td>0<td>5<td>9</table>";
    check(html, &["A", "lost=3", "won=3"], "A|3|3\nB|2|4\nC|9|0");
    check(html, &["A", "x=3", "y=3", "z=3"], "A|3|3|3\nB|4|1|2\nC|0|5|9");
}

#[test]
fn the_first_words_of_a_long_text_stand_for_all_of_it() {
    let html = "<div class=a><h2>One</h2><p>It was a dark and stormy night when the ship went down.</p></div>
        <div class=a><h2>Two</h2><p>Nobody knew what had become of the crew until the spring came.</p></div>";
    let expect = "One|It was a dark and stormy night when the ship went down.
        Two|Nobody knew what had become of the crew until the spring came.";
    check(html, &["One", "It was a dark and"], expect);
    check(html, &["One", "It was a dark..."], expect);
}

#[test]
fn an_item_may_lack_almost_everything() {
    let html = r#"<div class="grid"><a class="tile" href="/1"><h3>Vase</h3><span class="cost">5 €</span><span class="size">10 cm</span><em class="by">Ann</em></a>
        <a class="tile" href="/2"><h3>Bowl</h3></a>
        <a class="tile" href="/3"><h3>Dish</h3><span class="cost">7 €</span><span class="size">30 cm</span><em class="by">Bob</em></a></div>"#;
    check(
        html,
        &["Vase", "5 €", "10 cm", "Ann", "/1"],
        "Vase|5 €|10 cm|Ann|/1\nBowl||||/2\nDish|7 €|30 cm|Bob|/3",
    );
}

#[test]
fn divs_with_one_class_are_cells() {
    let html = r#"<div class="table"><div class="tr head"><div class="td">Name</div><div class="td">Age</div></div>
        <div class="tr"><div class="td">Ann</div><div class="td">31</div></div><div class="tr"><div class="td">Bob</div><div class="td">45</div></div></div>"#;
    check(html, &["Ann", "31"], "Ann|31\nBob|45");
}
