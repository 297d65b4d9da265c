//! Names of elements and attributes. Inside the tree a name is a 32-bit number, so comparing names
//! is comparing numbers.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use super::names::{self, KNOWN, NAMES, SVG_COUNT, SVG_ELEMENTS, SVG_FIRST, TEXTS};

/// Number of names in the table of known names.
pub(super) const KNOWN_NAMES: usize = KNOWN;

/// The number of a name. Below [`KNOWN`] it means the same name in all pages; above, it is
/// [`KNOWN`] plus an index into the page's own names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct NameId(u32);

impl NameId {
    pub(super) const fn known(index: u16) -> Self {
        Self(index as u32)
    }

    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) const fn is_known(self) -> bool {
        self.index() < KNOWN
    }

    pub(super) const fn raw(self) -> u32 {
        self.0
    }

    pub(super) const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    const fn svg_index(self) -> u32 {
        self.0.wrapping_sub(SVG_FIRST)
    }

    /// The spelling that SVG gives to the name of an element.
    pub(super) const fn as_svg_element(self) -> Self {
        if self.svg_index() <= SVG_ELEMENTS { Self(self.0 + SVG_COUNT) } else { self }
    }

    /// The spelling that SVG gives to the name of an attribute.
    pub(super) const fn as_svg_attribute(self) -> Self {
        let index = self.svg_index();
        if index >= SVG_ELEMENTS && index < SVG_COUNT { Self(self.0 + SVG_COUNT) } else { self }
    }

    /// The lower-case name that the tokenizer reads, for a name in SVG's spelling.
    pub(super) const fn lower(self) -> Self {
        let index = self.svg_index();
        if index >= SVG_COUNT && index < 2 * SVG_COUNT { Self(self.0 - SVG_COUNT) } else { self }
    }
}

/// The name of an element or attribute. Two known names are compared as numbers, others as text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LocalName(NameRepr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum NameRepr {
    Known(u16),
    Other(Arc<str>),
}

impl LocalName {
    pub(crate) const BR: Self = Self::of(names::BR);
    pub(crate) const CLASS: Self = Self::of(names::CLASS);
    pub(crate) const ID: Self = Self::of(names::ID);
    pub(crate) const PLAINTEXT: Self = Self::of(names::PLAINTEXT);
    pub(crate) const PRE: Self = Self::of(names::PRE);
    pub(crate) const SCRIPT: Self = Self::of(names::SCRIPT);
    pub(crate) const STYLE: Self = Self::of(names::STYLE);
    pub(crate) const TEXTAREA: Self = Self::of(names::TEXTAREA);
    pub(crate) const TITLE: Self = Self::of(names::TITLE);

    const fn of(id: NameId) -> Self {
        Self::known(id.0 as u16)
    }

    pub(super) const fn known(index: u16) -> Self {
        Self(NameRepr::Known(index))
    }

    /// The number of a known name; `None` for any other.
    pub(super) fn number(&self) -> Option<u16> {
        match self.0 {
            NameRepr::Known(index) => Some(index),
            NameRepr::Other(_) => None,
        }
    }
}

impl Deref for LocalName {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            NameRepr::Known(index) => TEXTS[*index as usize],
            NameRepr::Other(text) => text,
        }
    }
}

impl From<&str> for LocalName {
    fn from(text: &str) -> Self {
        match find(text) {
            Some(index) => Self::known(index),
            None => Self(NameRepr::Other(text.into())),
        }
    }
}

impl From<String> for LocalName {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl PartialEq<str> for LocalName {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for LocalName {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl AsRef<str> for LocalName {
    fn as_ref(&self) -> &str {
        self
    }
}

impl fmt::Display for LocalName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self)
    }
}

impl fmt::Debug for LocalName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, out)
    }
}

/// The markup language of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Namespace(NamespaceKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum NamespaceKind {
    Html,
    MathMl,
    Svg,
    Xml,
}

impl Namespace {
    /// HTML.
    pub(crate) const HTML: Self = Self(NamespaceKind::Html);
    /// MathML.
    pub(crate) const MATHML: Self = Self(NamespaceKind::MathMl);
    /// SVG.
    pub(crate) const SVG: Self = Self(NamespaceKind::Svg);
    /// A page parsed as XML. Its namespace declarations are not looked at.
    pub(crate) const XML: Self = Self(NamespaceKind::Xml);
}

impl Deref for Namespace {
    type Target = str;

    fn deref(&self) -> &str {
        match self.0 {
            NamespaceKind::Html => "http://www.w3.org/1999/xhtml",
            NamespaceKind::MathMl => "http://www.w3.org/1998/Math/MathML",
            NamespaceKind::Svg => "http://www.w3.org/2000/svg",
            NamespaceKind::Xml => "",
        }
    }
}

/// Longest name, in bytes, that is looked up as two numbers.
const PACKED_MAX: usize = 16;

/// The bytes of a short name as two little-endian numbers, padded with zeros.
type Packed = (u64, u64);

/// Slots of the hash table of short known names. A power of two, well above the number of names.
const SLOTS: usize = 2048;
const EMPTY: u16 = u16::MAX;

const fn slot_of(packed: Packed) -> usize {
    let mixed =
        packed.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ packed.1.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    (mixed >> 53) as usize & (SLOTS - 1)
}

const fn pack_text(bytes: &[u8]) -> Packed {
    let (mut low, mut high, mut at) = (0, 0, 0);
    while at < bytes.len() {
        let byte = bytes[at] as u64;
        if at < 8 {
            low |= byte << (8 * at);
        } else {
            high |= byte << (8 * (at - 8));
        }
        at += 1;
    }
    (low, high)
}

static PACKED: [Packed; KNOWN] = {
    let mut all = [(0, 0); KNOWN];
    let mut index = 0;
    while index < KNOWN {
        if TEXTS[index].len() <= PACKED_MAX {
            all[index] = pack_text(TEXTS[index].as_bytes());
        }
        index += 1;
    }
    all
};

static TABLE: [u16; SLOTS] = {
    let mut table = [EMPTY; SLOTS];
    let mut index = 0;
    while index < KNOWN {
        if TEXTS[index].len() <= PACKED_MAX {
            let mut slot = slot_of(PACKED[index]);
            while table[slot] != EMPTY {
                slot = (slot + 1) & (SLOTS - 1);
            }
            table[slot] = index as u16;
        }
        index += 1;
    }
    table
};

/// Known names that are too long for the table.
static LONG: LazyLock<HashMap<&str, u16>> = LazyLock::new(|| {
    let long = TEXTS.iter().zip(0..).filter(|(text, _)| text.len() > PACKED_MAX);
    long.map(|(text, index)| (*text, index)).collect()
});

fn find_packed(packed: Packed) -> Option<u16> {
    let mut slot = slot_of(packed);
    loop {
        let index = TABLE[slot];
        if index == EMPTY {
            return None;
        }
        if PACKED[index as usize] == packed {
            return Some(index);
        }
        slot = (slot + 1) & (SLOTS - 1);
    }
}

fn find(text: &str) -> Option<u16> {
    if text.len() > PACKED_MAX {
        return LONG.get(text).copied();
    }
    find_packed(pack_text(text.as_bytes()))
}

/// Gives each distinct name of one page its number.
#[derive(Debug, Default)]
pub(super) struct NameInterner {
    others: Vec<LocalName>,
    numbers: HashMap<Arc<str>, u32>,
    /// A cache by hash: the last short unknown name with that hash, and its number.
    recent: Vec<(Packed, u32)>,
}

/// Entries of [`NameInterner::recent`]; a power of two.
const RECENT: usize = 64;

impl NameInterner {
    /// The number of the name at `page[start..end]`, which must be in lower case.
    pub(super) fn number_at(&mut self, page: &str, start: usize, end: usize) -> NameId {
        let len = end - start;
        match page.as_bytes().get(start..start + PACKED_MAX) {
            Some(window) if len <= PACKED_MAX => {
                self.number_packed(pack_window(window, len), || &page[start..end])
            }
            _ => self.number(&page[start..end]),
        }
    }

    /// The number of a name, which must be in lower case.
    pub(super) fn number(&mut self, name: &str) -> NameId {
        if name.len() <= PACKED_MAX {
            return self.number_packed(pack_text(name.as_bytes()), || name);
        }
        match LONG.get(name) {
            Some(index) => NameId::known(*index),
            None => NameId(self.other(name)),
        }
    }

    fn number_packed<'n>(&mut self, packed: Packed, name: impl Fn() -> &'n str) -> NameId {
        if let Some(index) = find_packed(packed) {
            return NameId::known(index);
        }
        let slot = slot_of(packed) & (RECENT - 1);
        if let Some((known, number)) = self.recent.get(slot)
            && *known == packed
        {
            return NameId(*number);
        }
        let number = self.other(name());
        if self.recent.is_empty() {
            // An entry of zeros matches no name.
            self.recent = vec![((0, 0), 0); RECENT];
        }
        self.recent[slot] = (packed, number);
        NameId(number)
    }

    fn other(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = (KNOWN + self.others.len()) as u32;
        let text: Arc<str> = name.into();
        self.others.push(LocalName(NameRepr::Other(Arc::clone(&text))));
        self.numbers.insert(text, number);
        number
    }

    /// The names that are not known ones. The first has the number [`KNOWN`].
    pub(super) fn into_others(self) -> Vec<LocalName> {
        self.others
    }
}

fn pack_window(window: &[u8], len: usize) -> Packed {
    let part = |from: usize| {
        window
            .get(from..from + 8)
            .and_then(|part| part.try_into().ok())
            .map_or(0, u64::from_le_bytes)
    };
    if len <= 8 { (part(0) & mask(len), 0) } else { (part(0), part(8) & mask(len - 8)) }
}

/// A mask for the lowest `len` bytes of a number; `len` is 1 to 8.
fn mask(len: usize) -> u64 {
    u64::MAX >> (64 - 8 * len.clamp(1, 8))
}

/// The name with this number. `others` are the page's own names.
pub(super) fn name_of(id: NameId, others: &[LocalName]) -> &LocalName {
    NAMES.get(id.index()).unwrap_or_else(|| &others[id.index() - KNOWN])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_has_one_number() {
        for (text, index) in TEXTS.iter().zip(0..) {
            assert_eq!(find(text), Some(index), "{text}");
            assert_eq!(&*LocalName::from(*text), *text);
        }
        assert_eq!(find("no-such-name"), None);
        assert_eq!(find(""), None);
    }

    #[test]
    fn svg_names_get_capitals_by_element_and_attribute() {
        let mut names = NameInterner::default();
        let name = |id: NameId| NAMES[id.index()].to_string();
        let both = names.number("glyphref");
        assert_eq!(name(both.as_svg_element()), "glyphRef");
        assert_eq!(name(both.as_svg_attribute()), "glyphRef");
        let element = names.number("textpath");
        assert_eq!(name(element.as_svg_element()), "textPath");
        assert_eq!(element.as_svg_attribute(), element);
        let attribute = names.number("viewbox");
        assert_eq!(attribute.as_svg_element(), attribute);
        assert_eq!(attribute.as_svg_attribute().lower(), attribute);
        assert_eq!(name(names.number("attributename").as_svg_attribute()), "attributeName");
    }

    #[test]
    fn each_unknown_name_gets_one_number() {
        let mut names = NameInterner::default();
        let first = names.number("x-first");
        let long = names.number("a-name-of-more-than-sixteen-letters");
        assert_eq!(names.number_at("<x-first and some more text>", 1, 8), first);
        assert_ne!(first, long);
        let others = names.into_others();
        assert_eq!(name_of(long, &others), &LocalName::from("a-name-of-more-than-sixteen-letters"));
    }
}
