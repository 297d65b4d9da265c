//! Generates malformed pages. The same seed gives the same page.

/// A xorshift generator.
struct PageRng(u64);

impl PageRng {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        ((self.roll() >> 16) % bound.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

const FORMATTING: &[&str] = &[
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];
const BLOCKS: &[&str] = &[
    "div",
    "p",
    "p",
    "ul",
    "ol",
    "li",
    "dl",
    "dd",
    "dt",
    "h1",
    "h2",
    "h3",
    "pre",
    "listing",
    "address",
    "article",
    "aside",
    "blockquote",
    "center",
    "details",
    "fieldset",
    "figure",
    "footer",
    "form",
    "header",
    "main",
    "nav",
    "section",
    "button",
    "menu",
    "summary",
    "dialog",
    "body",
    "html",
    "head",
    "plain",
    "ruby",
    "rb",
    "rt",
    "rtc",
    "rp",
    "hr",
    "marquee",
    "object",
    "applet",
    "noscript",
];
const TABLE: &[&str] = &[
    "table", "table", "tbody", "thead", "tfoot", "tr", "tr", "td", "td", "th", "caption", "col",
    "colgroup",
];
const INLINE: &[&str] = &[
    "span", "img", "br", "input", "image", "wbr", "embed", "area", "param", "source", "track",
    "label", "x-own", "sub", "var", "link", "meta", "base", "bgsound", "abbr",
];
const CONTROLS: &[&str] = &["select", "option", "optgroup", "hr", "input", "button", "datalist"];
const RAW: &[&str] =
    &["script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"];
const FRAMES: &[&str] = &["frameset", "frame", "noframes", "html", "body"];
const FOREIGN: &[&str] = &[
    "svg",
    "svg",
    "math",
    "math",
    "foreignobject",
    "desc",
    "title",
    "mi",
    "mo",
    "mtext",
    "mn",
    "ms",
    "annotation-xml",
    "mglyph",
    "malignmark",
    "g",
    "path",
    "lineargradient",
    "glyphref",
    "clippath",
    "font",
    "script",
    "style",
    "p",
    "table",
    "span",
];
const NAMES: &[&str] = &[
    "id",
    "class",
    "href",
    "HREF",
    "title",
    "type",
    "encoding",
    "color",
    "size",
    "face",
    "a",
    "a1",
    "data-x",
    "viewbox",
    "xlink:href",
    "xml:lang",
    "xmlns",
    "xmlns:xlink",
    "definitionurl",
    "refx",
    "x-very-long-attribute-name",
    "q\"",
    "<",
    "\u{e9}",
];
const VALUES: &[&str] = &[
    "1",
    "x",
    "hidden",
    "HIDDEN",
    "text/html",
    "Application/xhtml+xml",
    "a b",
    "?a=1&copy=2",
    "&amp;",
    "&lt",
    "&#65;",
    "&notit;",
    "\u{20ac}",
    "/",
    "a'b",
    "&",
    "\n",
    "&#",
    "=",
    "0&0",
];
const WORDS: &[&str] = &[
    "a",
    "word",
    " ",
    "\n",
    "  \n",
    "\t",
    "x y",
    "&amp;",
    "&lt;b&gt;",
    "&eacute",
    "&notin;",
    "&#233;",
    "&#x1F600;",
    "&#0;",
    "&#128;",
    "&",
    "&x",
    "&#;",
    "< ",
    "<",
    "<3",
    "\r\n",
    "\r",
    "\u{e9}\u{20ac}",
    "&nbsp;",
    "]]>",
    "-->",
    "&NotEqualTilde;",
    "&#13;",
    "\u{c}",
    "\"",
    "=",
    "/>",
];
const ODD: &[&str] = &[
    "<!-- c -->",
    "<!---->",
    "<!-->",
    "<!--->",
    "<!-- a -- b --!>",
    "<!--a--",
    "<!--a-",
    "<!--a--!",
    "<!-- <!-- -->",
    "<!doctype html>",
    "<!DOCTYPE>",
    "<!DOCTYPE html PUBLIC \"a>",
    "<!x>",
    "<!",
    "<?php a?>",
    "<?",
    "</>",
    "</ x>",
    "</3>",
    "</",
    "<![CDATA[a<b>&amp;]]>",
    "<![CDATA[",
    "]]>",
    "<!-",
    "<!-->x-->",
    "</br>",
    "</p>",
    "</p x='>'>",
    "<p/ a>",
    "<a =b>",
    "<a b=>",
    "<a b=c/>",
    "<a b='",
    "<a b=\"x",
    "<a b",
    "<a ",
    "<a",
    "<div/>",
    "<br/>",
    "<svg/>",
    "<script/>",
    "</script>",
    "<!--<script>",
    "<script><!--<script></script>--></script>",
    "<script><!--</script>",
    "<textarea>\n\nx</textarea>",
    "<pre>\nx",
    "<pre>&#10;x",
    "<title>&amp;</titl></title>",
    "<style></styl></style x>",
    "<template>",
    "</template>",
    "<template>",
    "</template>",
    "<plaintext>",
    "</table>",
    "</body>",
    "</html>",
    "</head>",
    "<input type=hidden>",
    "<BODY a=1 b=2>",
    "<HTML lang=en id=q>",
    "<DIV CLASS=Q>",
    "</DIV >",
    "\u{feff}",
];

/// A page of up to about 120 tokens.
pub(super) fn page(seed: u64, has_nul: bool) -> String {
    let rng = &mut PageRng::new(seed);
    let sets: [&[&str]; 8] = [FORMATTING, BLOCKS, TABLE, INLINE, CONTROLS, RAW, FRAMES, FOREIGN];
    // A page draws mostly from a few sets, so that rules of the same elements meet.
    let weights: Vec<usize> = sets.iter().map(|_| rng.below(4) * rng.below(4)).collect();
    let all: usize = weights.iter().sum::<usize>() + 1;
    let odd = rng.below(20);
    let longest = if rng.chance(20) { 120 } else { 25 };
    let count = 1 + rng.below(longest);
    let mut out = String::new();
    if rng.chance(30) {
        out.push_str("<!doctype html>");
    }
    for _ in 0..count {
        if rng.chance(odd) {
            out.push_str(rng.pick(ODD));
        }
        if rng.chance(35) {
            out.push_str(rng.pick(WORDS));
        }
        if has_nul && rng.chance(8) {
            out.push('\0');
        }
        let mut at = rng.below(all);
        let set = sets.iter().zip(&weights).find_map(|(set, weight)| {
            let is_it = at < *weight;
            at = at.saturating_sub(*weight);
            is_it.then_some(*set)
        });
        tag(rng, set.unwrap_or(BLOCKS), has_nul, &mut out);
    }
    if rng.chance(15) {
        // Cuts the page off at a random position.
        let cut = random_boundary(rng, &out);
        out.truncate(cut);
    }
    if rng.chance(20) {
        for _ in 0..=rng.below(4) {
            garble(rng, &mut out);
        }
    }
    out
}

/// A random character boundary.
fn random_boundary(rng: &mut PageRng, text: &str) -> usize {
    text.floor_char_boundary(rng.below(text.len() + 1))
}

/// Removes up to eight bytes, or inserts a character.
fn garble(rng: &mut PageRng, text: &mut String) {
    let at = random_boundary(rng, text);
    if rng.chance(50) {
        let end = text.floor_char_boundary(at + rng.below(8));
        text.replace_range(at..end.max(at), "");
    } else {
        let signs =
            ["<", ">", "/", "=", "'", "\"", "!", "-", "&", ";", "#", "[", "]", "?", " ", "A"];
        text.insert_str(at, rng.pick(&signs));
    }
}

fn tag(rng: &mut PageRng, set: &[&str], has_nul: bool, out: &mut String) {
    let name = rng.pick(set);
    if rng.chance(40) {
        out.push_str("</");
        out.push_str(name);
        out.push('>');
        return;
    }
    out.push('<');
    out.push_str(name);
    if has_nul && rng.chance(3) {
        out.push('\0');
    }
    while rng.chance(25) {
        out.push_str(rng.pick(&[" ", "\n", " / ", "  "]));
        out.push_str(rng.pick(NAMES));
        if has_nul && rng.chance(3) {
            out.push('\0');
        }
        let value = rng.pick(VALUES);
        match rng.below(5) {
            0 => {}
            1 => out.extend([" = ", value]),
            2 => out.extend(["='", value, "'"]),
            3 => out.extend(["=\"", value, "\""]),
            _ => out.extend(["=", value]),
        }
    }
    out.push_str(rng.pick(&[">", ">", ">", ">", ">", ">", "/>", " >", "/>"]));
}
