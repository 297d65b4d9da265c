//! What a page has in common with the pages before it. Stretches that a model has too are named by
//! their place there; only what is left has to be kept.
//!
//! A page becomes *steps* and a *rest*: each step takes some bytes of the rest, then copies a
//! stretch of the model; at the end comes what is left of the rest. Whoever reads steps trusts
//! none of them.

/// Bytes a model may have.
pub(super) const MODEL_MAX: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 17;
/// Slots for places in a model, by a hash of the eight bytes there. More would find more, but half of
/// the time goes by waiting for slots that no cache holds.
const SLOT_BITS: u32 = 15;
/// A shorter stretch is not worth its step.
const SHORTEST: usize = 16;
/// How far apart a page is looked at where nothing is alike; farther, the longer nothing was.
const STRIDE: usize = 8;
/// Lengths from here on need more than their half of a step's first byte.
const LONG: usize = 15;

/// Text that pages of one kind are likely to have.
#[derive(Default)]
pub(super) struct Model {
    bytes: Vec<u8>,
    /// A place and some more bits of the hash; the first place with a hash stays.
    slots: Vec<u32>,
}

impl Model {
    /// Bytes it has.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds text at the end; what would be too much is left off.
    pub(super) fn grow(&mut self, more: &[u8]) {
        let room = MODEL_MAX - self.bytes.len();
        let from = self.bytes.len().saturating_sub(7);
        self.bytes.extend_from_slice(&more[..more.len().min(room)]);
        self.slots.resize(1 << SLOT_BITS, 0);
        for (place, word) in self.bytes[from..].windows(8).enumerate() {
            let (slot, check) = spread(word_of(word));
            let known = &mut self.slots[slot];
            if *known == 0 {
                *known = check | (from + place) as u32;
            }
        }
    }

    /// Takes a page apart.
    pub(super) fn take_apart(&self, page: &[u8], steps: &mut Vec<u8>, rest: &mut Vec<u8>) {
        let (mut at, mut done, mut next) = (0, 0, 0);
        while let Some(word) = word_at(page, at) {
            if let Some(place) = self.find(word, next + at - done) {
                let back = alike_before(&page[done..at], &self.bytes[..place]);
                let length = back + alike(&page[at..], &self.bytes[place..]);
                if length >= SHORTEST {
                    let (start, from) = (at - back, place - back);
                    rest.extend_from_slice(&page[done..start]);
                    put_step(steps, start - done, length, from as i64 - next as i64);
                    (done, next) = (start + length, from + length);
                    at = done;
                    continue;
                }
            }
            at += STRIDE + (at - done) / 64;
        }
        rest.extend_from_slice(&page[done..]);
    }

    /// A place where the model has the word: where it would go on after the last stretch, or one
    /// that is known.
    fn find(&self, word: u64, likely: usize) -> Option<usize> {
        if word_at(&self.bytes, likely) == Some(word) {
            return Some(likely);
        }
        let (slot, check) = spread(word);
        let known = *self.slots.get(slot)?;
        let place = known as usize & (MODEL_MAX - 1);
        let fits = known & !(MODEL_MAX as u32 - 1) == check;
        (fits && word_at(&self.bytes, place) == Some(word)).then_some(place)
    }
}

/// The page again, of so many bytes; nothing if its parts do not fit together.
pub(super) fn put_together(
    model: &[u8],
    mut steps: &[u8],
    mut rest: &[u8],
    size: usize,
) -> Option<Vec<u8>> {
    // A size that is a lie must not cost memory.
    let mut page = Vec::with_capacity(size.min(1 << 20));
    let mut next = 0;
    while !steps.is_empty() {
        let (skipped, length, leap) = take_step(&mut steps)?;
        let own;
        (own, rest) = rest.split_at_checked(skipped)?;
        let from = usize::try_from(i64::try_from(next).ok()?.checked_add(leap)?).ok()?;
        next = from.checked_add(length)?;
        let copied = model.get(from..next)?;
        if own.len() + copied.len() > size - page.len() {
            return None;
        }
        page.extend_from_slice(own);
        page.extend_from_slice(copied);
    }
    page.extend_from_slice(rest.get(..size - page.len())?);
    Some(page)
}

/// A step: bytes of the rest, bytes of the model, and how far those are from where the last ended.
fn put_step(steps: &mut Vec<u8>, skipped: usize, length: usize, leap: i64) {
    let more = length - SHORTEST;
    steps.push((skipped.min(LONG) << 4 | more.min(LONG)) as u8);
    for value in [skipped, more] {
        if value >= LONG {
            put_number(steps, (value - LONG) as u64);
        }
    }
    put_number(steps, (leap << 1 ^ leap >> 63) as u64);
}

fn take_step(steps: &mut &[u8]) -> Option<(usize, usize, i64)> {
    let (first, behind) = steps.split_first()?;
    *steps = behind;
    let mut value = |short: u8| match usize::from(short) {
        LONG => usize::try_from(take_number(steps)?).ok()?.checked_add(LONG),
        short => Some(short),
    };
    let (skipped, more) = (value(first >> 4)?, value(first & 15)?);
    let leap = take_number(steps)?;
    Some((skipped, more.checked_add(SHORTEST)?, (leap >> 1) as i64 ^ -((leap & 1) as i64)))
}

/// A number, seven bits a byte.
pub(super) fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The number that comes first.
pub(super) fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (byte, behind) = bytes.split_first()?;
        *bytes = behind;
        number |= u64::from(byte & 127) << shift;
        if *byte < 128 {
            return Some(number);
        }
    }
    None
}

fn word_of(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk::<8>().map(|word| u64::from_le_bytes(*word))
}

/// The slot of a word, and more of its hash where a slot has room for it.
fn spread(word: u64) -> (usize, u32) {
    let hash = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let check = (hash >> (64 - SLOT_BITS - 32 + PLACE_BITS)) as u32;
    ((hash >> (64 - SLOT_BITS)) as usize, check << PLACE_BITS)
}

/// How many bytes are the same from the start.
fn alike(one: &[u8], other: &[u8]) -> usize {
    let (ones, others) = (one.as_chunks::<16>().0, other.as_chunks::<16>().0);
    for (number, (one, other)) in ones.iter().zip(others).enumerate() {
        let differing = u128::from_le_bytes(*one) ^ u128::from_le_bytes(*other);
        if differing != 0 {
            return number * 16 + (differing.trailing_zeros() / 8) as usize;
        }
    }
    let whole = ones.len().min(others.len()) * 16;
    let tails = one[whole..].iter().zip(&other[whole..]);
    whole + tails.take_while(|(one, other)| one == other).count()
}

/// How many bytes are the same up to the end.
fn alike_before(one: &[u8], other: &[u8]) -> usize {
    let (ones, others) = (one.as_rchunks::<8>().1, other.as_rchunks::<8>().1);
    for (number, (one, other)) in ones.iter().rev().zip(others.iter().rev()).enumerate() {
        let differing = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differing != 0 {
            return number * 8 + (differing.leading_zeros() / 8) as usize;
        }
    }
    let whole = ones.len().min(others.len()) * 8;
    let heads =
        one[..one.len() - whole].iter().rev().zip(other[..other.len() - whole].iter().rev());
    whole + heads.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look like chance.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (self.0 >> 33) as usize % bound.max(1)
        }

        fn bytes(&mut self, count: usize, letters: usize) -> Vec<u8> {
            (0..count).map(|_| self.below(letters) as u8).collect()
        }
    }

    fn apart(model: &Model, page: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut steps, mut rest) = (Vec::new(), Vec::new());
        model.take_apart(page, &mut steps, &mut rest);
        (steps, rest)
    }

    #[test]
    fn any_page_is_put_together_as_it_was() {
        let mut dice = Dice(7);
        for round in 0..400 {
            let letters = [2, 4, 30, 256][round % 4];
            let mut model = Model::default();
            let (first, second) = (dice.below(5000), dice.below(300));
            model.grow(&dice.bytes(first, letters));
            model.grow(&dice.bytes(second, letters));
            // Parts of the model in any order, with text of its own between them.
            let mut page = Vec::new();
            for _ in 0..dice.below(30) {
                let from = dice.below(model.len());
                let to = from + dice.below(model.len() - from);
                page.extend_from_slice(&model.bytes[from..to]);
                let own = dice.below(40);
                page.extend(dice.bytes(own, letters));
            }
            let (steps, rest) = apart(&model, &page);
            let again = put_together(&model.bytes, &steps, &rest, page.len());
            assert!(again.as_deref() == Some(&page[..]), "round {round}");
            assert!(steps.len() + rest.len() <= page.len() + 1, "round {round}");
        }
    }

    #[test]
    fn a_page_like_its_model_leaves_little() {
        let text: Vec<String> = (0..2000).map(|line| format!("<p>{}</p>", line * line)).collect();
        let mut model = Model::default();
        model.grow(text.concat().as_bytes());
        let page = text.concat().replace("<p>250000</p>", "<p>another</p>");
        let (steps, rest) = apart(&model, page.as_bytes());
        assert!(steps.len() < 12 && rest == b"another", "{} {}", steps.len(), rest.len());
        assert_eq!(apart(&Model::default(), page.as_bytes()), (Vec::new(), page.into_bytes()));
    }

    #[test]
    fn a_model_takes_no_more_than_it_may_have() {
        let mut model = Model::default();
        let page = Dice(3).bytes(MODEL_MAX + 5000, 256);
        model.grow(&page);
        model.grow(&page);
        assert_eq!(model.len(), MODEL_MAX);
        let (steps, rest) = apart(&model, &page);
        assert!(put_together(&model.bytes, &steps, &rest, page.len()).unwrap() == page);
        assert!(rest.len() < 5100);
    }

    #[test]
    fn steps_are_not_trusted() {
        let mut dice = Dice(11);
        let mut model = Model::default();
        model.grow(&dice.bytes(3000, 256));
        let page = [&model.bytes[100..900], b"own", &model.bytes[..700]].concat();
        let (steps, rest) = apart(&model, &page);
        for _ in 0..20_000 {
            let mut bad = steps.clone();
            let at = dice.below(bad.len());
            bad[at] = dice.below(256) as u8;
            bad.truncate(1 + dice.below(bad.len()));
            let size = [page.len(), dice.below(3000), usize::MAX][dice.below(3)];
            let made = put_together(&model.bytes[..dice.below(3000)], &bad, &rest, size);
            assert!(made.is_none_or(|made| made.len() == size));
            let noise = dice.bytes(30, 256);
            let made = put_together(&model.bytes, &noise, &rest, size);
            assert!(made.is_none_or(|made| made.len() == size));
        }
        assert_eq!(put_together(&model.bytes, &[], &rest, rest.len() + 1), None);
        assert_eq!(take_number(&mut &[255; 20][..]), None);
        assert_eq!(take_number(&mut &[255; 3][..]), None);
    }
}
