//! Classifies texts: shapes of values, and whether a class name describes content.

/// Collapses white space, trims, and drops invisible characters.
pub(super) fn fold(text: &str) -> String {
    let seen: String = text.chars().filter(|c| !matches!(c, '\u{200b}' | '\u{ad}')).collect();
    seen.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The number of visible characters. Texts with different numbers cannot be equal.
pub(super) fn text_len(text: &str) -> u32 {
    text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '\u{200b}' | '\u{ad}')).count()
        as u32
}

/// The type of value that a text looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueShape {
    Number,
    Money,
    Date,
    Address,
    Words,
}

pub(super) fn shape(text: &str) -> ValueShape {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    if text.starts_with("http://") || text.starts_with("https://") || text.starts_with('/') {
        ValueShape::Address
    } else if digits > 0 && letters <= 4 && text.chars().any(is_currency) {
        ValueShape::Money
    } else if digits > 0 && text.chars().all(|c| c.is_ascii_digit() || ".,+-% \u{a0}".contains(c)) {
        if is_iso_date(text) { ValueShape::Date } else { ValueShape::Number }
    } else if digits > 0 && text.chars().count() <= 40 && (is_iso_date(text) || has_month(text)) {
        ValueShape::Date
    } else {
        ValueShape::Words
    }
}

/// The unit in a text of one number and one word: `4 beds` gives `bed`.
pub(super) fn unit(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit() || ".,+-~".contains(c));
    let word = rest.trim();
    let is_unit = rest.len() < text.len()
        && (1..=12).contains(&word.chars().count())
        && word.starts_with(char::is_alphabetic)
        && word.chars().all(|c| c.is_alphabetic() || matches!(c, '²' | '³'));
    is_unit.then(|| if word.len() > 2 { word.trim_end_matches('s') } else { word })
}

/// Whether a text begins like `2026-11-16`.
pub(super) fn is_iso_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 10
        && bytes[..10].iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

fn has_month(text: &str) -> bool {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let lower = text.to_lowercase();
    lower
        .split(|c: char| !c.is_alphabetic())
        .any(|word| MONTHS.iter().any(|month| word.starts_with(month)))
}

pub(super) fn is_currency(c: char) -> bool {
    matches!(c, '$' | '¢'..='¥' | '₠'..='⃀' | '฿' | '﷼')
}

/// The words in a class, id or label, lower case: `productTitle-main` is `product title main`.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut last_is_lower = false;
    for c in text.chars() {
        let starts = !c.is_alphanumeric() || (c.is_uppercase() && last_is_lower);
        if starts && found.last().is_some_and(|word| !word.is_empty()) {
            found.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), found.last_mut()) {
            word.extend(c.to_lowercase());
        }
        last_is_lower = c.is_lowercase() || c.is_numeric();
    }
    found.retain(|word| !word.is_empty());
    found
}

/// Whether `word` is one of `words`, which are separated by spaces.
pub(super) fn is_in(word: &str, words: &str) -> bool {
    words.split(' ').any(|each| each == word)
}

/// Whether a class, id or label has one of `words`, which are separated by spaces.
pub(super) fn has_word(name: &str, words: &str) -> bool {
    tokens(name).iter().any(|word| is_in(word, words))
}

/// Whether a class or id needs no escapes in a selector.
pub(super) fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
}

/// Whether a class or id looks generated, so that it may change with the next build of the site.
pub(super) fn is_generated(name: &str) -> bool {
    const PREFIXES: [&str; 7] = ["css-", "sc-", "jss", "jsx-", "svelte-", "emotion-", "styles__"];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix) && name.len() > prefix.len())
        || name.split(['-', '_']).any(is_noise)
        || name.chars().filter(char::is_ascii_digit).count() >= 5
}

/// Whether a part of a name cannot be a word: `1x2y3z`, `bdVaJa`, `kqzxw`.
fn is_noise(part: &str) -> bool {
    let length = part.chars().count();
    if length < 5 || !part.is_ascii() {
        return false;
    }
    let letters: Vec<char> = part.chars().collect();
    let to_letter =
        letters.windows(2).filter(|pair| pair[0].is_ascii_digit() && pair[1].is_alphabetic());
    let rises = letters.windows(2).filter(|pair| pair[0].is_lowercase() && pair[1].is_uppercase());
    let vowels = letters.iter().filter(|c| "aeiouyAEIOUY".contains(**c)).count();
    let (to_letter, rises) = (to_letter.count(), rises.count());
    to_letter > 0 || (rises >= 2 && length <= 8) || vowels == 0
}

/// The stable part of a class of CSS modules: `Card_title__3xY9k` gives `Card_title__`.
pub(super) fn module_stem(class: &str) -> Option<&str> {
    let at = class.rfind("__")?;
    let (stem, tail) = (&class[..at + 2], &class[at + 2..]);
    let is_hash = tail.len() >= 4 && tail.chars().all(char::is_alphanumeric) && is_plain(stem);
    (is_hash
        && (is_noise(tail) || tail.chars().any(|c| c.is_ascii_digit()))
        && !is_generated(&stem[..at]))
    .then_some(stem)
}

/// Cost of a class in a selector: 0 if it describes content, more for layout, states and generated
/// names.
pub(super) fn class_cost(class: &str) -> f64 {
    if is_generated(class) {
        return 5.0;
    }
    let words = tokens(class);
    let first = words.first().map_or("", String::as_str);
    if words.iter().any(|word| is_in(word, STATES)) && words.len() <= 2 {
        return 1.0;
    }
    let is_measured = words
        .iter()
        .skip(1)
        .all(|word| is_in(word, MEASURES) || word.chars().all(|c| c.is_ascii_digit()));
    let is_layout = (is_in(first, LAYOUT) && is_measured)
        || (words.len() > 1 && is_in(first, UTILITIES))
        || class.chars().count() <= 2;
    if is_layout { 0.8 } else { 0.0 }
}

/// Whether a class describes content.
pub(super) fn is_descriptive(class: &str) -> bool {
    is_plain(class) && class_cost(class) < 0.5
}

const STATES: &str = "active odd even first last selected hidden visible new sale open closed current featured \
    highlight highlighted alt lazy loaded instock outofstock in out is has js";
const LAYOUT: &str = "col cols column columns row rows container wrapper wrap inner outer flex grid clearfix \
    cf pull float left right center block inline hidden box cell small large h w mt mb py px \
    d m p mr ml mx my";
const UTILITIES: &str = "text bg border rounded shadow align justify items font fw fs btn order offset gap space \
    overflow";
const MEASURES: &str = "xs sm md lg xl xxl auto none fluid full flex block inline grid left right center start \
    end";

/// Whether a name marks a part beside the main content: navigation, recommendations.
pub(super) fn is_secondary(name: &str) -> bool {
    const WORDS: &str = "related recent recently similar recommended recommendation recommendations viewed \
        also sponsored trending popular sidebar aside widget footer nav navbar navigation \
        breadcrumb breadcrumbs menu crumbs bestsellers cart";
    has_word(name, WORDS)
}

/// Whether a name marks an advertisement.
pub(super) fn is_advert(name: &str) -> bool {
    const WORDS: &str = "ad ads advert adverts advertisement advertising sponsored sponsor promoted banner \
        adslot";
    has_word(name, WORDS)
}

/// Similarity of two texts from 0 to 1: the fraction of adjacent letter pairs that they share.
pub(super) fn likeness(one: &str, other: &str) -> f64 {
    let pairs = |text: &str| -> Vec<(char, char)> {
        let letters: Vec<char> =
            text.to_lowercase().chars().filter(|c| !c.is_whitespace()).collect();
        letters.windows(2).map(|pair| (pair[0], pair[1])).collect()
    };
    let (ours, mut theirs) = (pairs(one), pairs(other));
    let all = ours.len() + theirs.len();
    if all == 0 {
        return if one.trim() == other.trim() { 1.0 } else { 0.0 };
    }
    let mut shared = 0;
    for pair in ours {
        if let Some(at) = theirs.iter().position(|their| *their == pair) {
            theirs.swap_remove(at);
            shared += 1;
        }
    }
    2.0 * f64::from(shared) / all as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_differ_from_words() {
        for name in
            ["css-1x2y3z", "sc-bdVaJa", "kJxEQp", "_3xY9k", "a1b2c3", "item-829371", "jss123"]
        {
            assert!(is_generated(name), "{name}");
        }
        for name in [
            "price",
            "product_pod",
            "price_color",
            "star-rating",
            "productTitle",
            "h3",
            "col-md-4",
            "btn",
            "athing",
        ] {
            assert!(!is_generated(name), "{name}");
        }
        assert_eq!(module_stem("Card_title__3xY9k"), Some("Card_title__"));
        assert_eq!(module_stem("card__title"), None);
    }

    #[test]
    fn values_have_a_shape() {
        for (text, expect) in [
            ("£51.77", ValueShape::Money),
            ("1.234,50 €", ValueShape::Money),
            ("51.77", ValueShape::Number),
            ("2026-11-16", ValueShape::Date),
            ("5 May 2026", ValueShape::Date),
            ("/book/1", ValueShape::Address),
            ("A Light in the Attic", ValueShape::Words),
        ] {
            assert_eq!(shape(text), expect, "{text}");
        }
    }

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(tokens("productTitle-main_2"), ["product", "title", "main", "2"]);
        assert!(likeness("A Light in the Attic", "A light in the attic!") > 0.9);
        assert!(likeness("abc", "xyz") < 0.1);
    }
}
