//! Character references: `&amp;`, `&eacute`, `&#8364;`, `&#x20AC;`.

/// Every named reference of the HTML standard, one per line, sorted by bytes: the name, with its
/// semicolon if it needs one, then one or two code points in hexadecimal.
static ENTITIES: &str = include_str!("entities.txt");

const COUNT: usize = 2231;

/// Characters of the longest name that needs no semicolon.
const BARE_MAX: usize = 6;

/// Characters of the longest name, semicolon included.
const NAME_MAX: usize = 32;

/// The offset of each line of [`ENTITIES`].
static LINES: [u16; COUNT] = {
    let bytes = ENTITIES.as_bytes();
    let mut lines = [0; COUNT];
    let (mut at, mut line) = (0, 1);
    while line < COUNT {
        if bytes[at] == b'\n' {
            lines[line] = at as u16 + 1;
            line += 1;
        }
        at += 1;
    }
    lines
};

/// The characters that a reference stands for, and its length in bytes with the ampersand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) first: char,
    pub(super) second: Option<char>,
    pub(super) len: usize,
}

impl Reference {
    fn one(first: char, len: usize) -> Self {
        Self { first, second: None, len }
    }
}

/// The reference at the start of `text`, which starts with an ampersand. `None` if that is a plain
/// ampersand.
pub(super) fn reference(text: &[u8], in_attribute: bool) -> Option<Reference> {
    let name = text.get(1..)?;
    if name.first() == Some(&b'#') {
        return numeric(name.get(1..)?);
    }
    let common = match name {
        [b'a', b'm', b'p', b';', ..] => Some(Reference::one('&', 5)),
        [b'l', b't', b';', ..] => Some(Reference::one('<', 4)),
        [b'g', b't', b';', ..] => Some(Reference::one('>', 4)),
        [b'n', b'b', b's', b'p', b';', ..] => Some(Reference::one('\u{a0}', 6)),
        [b'q', b'u', b'o', b't', b';', ..] => Some(Reference::one('"', 6)),
        _ => None,
    };
    common.or_else(|| named(name, in_attribute))
}

fn named(name: &[u8], in_attribute: bool) -> Option<Reference> {
    let letters =
        name.iter().take(NAME_MAX).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    if name.get(letters) == Some(&b';')
        && let Some(found) = look_up(&name[..=letters])
    {
        return Some(found);
    }
    let found = (2..=BARE_MAX.min(letters)).rev().find_map(|letters| look_up(&name[..letters]))?;
    let next = name.get(found.len - 1);
    let continues = next.is_some_and(|byte| *byte == b'=' || byte.is_ascii_alphanumeric());
    (!in_attribute || !continues).then_some(found)
}

fn look_up(name: &[u8]) -> Option<Reference> {
    let line = LINES.binary_search_by(|line| line_name(*line).cmp(name)).ok()?;
    let start = LINES[line] as usize + name.len() + 1;
    let rest = ENTITIES.get(start..)?;
    let mut points = rest
        .lines()
        .next()?
        .split(' ')
        .map(|point| u32::from_str_radix(point, 16).ok().and_then(char::from_u32));
    let first = points.next()??;
    Some(Reference { first, second: points.next().flatten(), len: name.len() + 1 })
}

fn line_name(line: u16) -> &'static [u8] {
    let rest = &ENTITIES.as_bytes()[line as usize..];
    let len = rest.iter().position(|byte| *byte == b' ').unwrap_or(0);
    &rest[..len]
}

/// A numeric reference; `digits` is the text after `&#`.
fn numeric(digits: &[u8]) -> Option<Reference> {
    let (radix, prefix) = match digits.first() {
        Some(b'x' | b'X') => (16, 1),
        _ => (10, 0),
    };
    let digits = digits.get(prefix..)?;
    let mut value = 0_u32;
    let mut count = 0;
    for byte in digits {
        let Some(digit) = char::from(*byte).to_digit(radix) else {
            break;
        };
        // A number above the last code point stays above it, however many digits follow.
        value = value.saturating_mul(radix).saturating_add(digit);
        count += 1;
    }
    if count == 0 {
        return None;
    }
    let semicolon = usize::from(digits.get(count) == Some(&b';'));
    Some(Reference::one(character(value), 2 + prefix + count + semicolon))
}

fn character(value: u32) -> char {
    /// Windows-1252 for the numbers 80 to 9F, which the standard prescribes; 0 where the number
    /// itself is meant.
    const WINDOWS: [u16; 32] = [
        0x20ac, 0, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039,
        0x0152, 0, 0x017d, 0, 0, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc,
        0x2122, 0x0161, 0x203a, 0x0153, 0, 0x017e, 0x0178,
    ];
    let value = match value {
        0 => return char::REPLACEMENT_CHARACTER,
        0x80..=0x9f if WINDOWS[value as usize - 0x80] != 0 => {
            u32::from(WINDOWS[value as usize - 0x80])
        }
        _ => value,
    };
    char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, &str)> {
        reference(text.as_bytes(), false).map(|found| {
            let mut value = found.first.to_string();
            value.extend(found.second);
            (value, &text[found.len..])
        })
    }

    #[test]
    fn every_named_reference_resolves() {
        assert_eq!(ENTITIES.lines().count(), COUNT);
        assert!(ENTITIES.lines().all(|line| line.len() < 64));
        let names: Vec<&str> =
            ENTITIES.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert!(names.is_sorted());
        for name in &names {
            let text = format!("&{name}");
            assert_eq!(read(&text).unwrap().1, "", "{name}");
        }
        assert_eq!(names.iter().map(|name| name.len()).max(), Some(NAME_MAX));
        let bare = names.iter().filter(|name| !name.ends_with(';'));
        assert_eq!(bare.map(|name| name.len()).max(), Some(BARE_MAX));
    }

    #[test]
    fn references_resolve_as_in_browsers() {
        let whole = |text: &str, value: &str, rest: &str| {
            let (got, left) = read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((&*got, left), (value, rest), "{text}");
        };
        whole("&amp;x", "&", "x");
        whole("&notit;", "\u{ac}", "it;");
        whole("&notin;", "\u{2209}", "");
        whole("&NotEqualTilde;", "\u{2242}\u{338}", "");
        whole("&#8364;", "\u{20ac}", "");
        whole("&#x80z", "\u{20ac}", "z");
        whole("&#99999999999999999999;", "\u{fffd}", "");
        whole("&#xD800;", "\u{fffd}", "");
        for none in ["&", "& ", "&#", "&#x", "&#xg", "&nosuch;", "&a", "&;"] {
            assert_eq!(read(none), None, "{none}");
        }
    }

    #[test]
    fn url_parameters_in_attributes_are_not_references() {
        assert_eq!(reference(b"&copy=1", true), None);
        assert_eq!(reference(b"&copyx", true), None);
        assert!(reference(b"&copy;=1", true).is_some());
        assert!(reference(b"&copy&", true).is_some());
        assert!(reference(b"&copy=1", false).is_some());
    }
}
