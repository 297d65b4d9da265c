//! Pages small and quick: what a page has in common with those of its kind before it is said once.
//!
//! The first pages of a kind in a pack are its *model*, a piece of text each. A piece lies in the
//! same pack as the pages that need it and names the piece before it, so a pack goes as a whole.
//! What is left of a page is written in few bits a letter; only if it is much is it worth the time
//! of zstd.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;

use zstd::bulk::Compressor;

use crate::pages::letters::{self, Letters};
use crate::pages::likeness::{MODEL_MAX, Model, put_number, put_together, take_number};
use crate::pages::mark::{MARK, mark_of};
use crate::pages::packs::Packs;

const LEVEL: i32 = 1;
/// Models of one pack: each takes up to 256 kilobytes of memory.
const MODELS_MAX: usize = 16;
/// A page with less news than this teaches its model nothing.
const PIECE_MIN: usize = 64;
/// Less than this is left as it is.
const SQUEEZE_MIN: usize = 1024;
/// What is left of a page is squeezed if it is more than one part in so many.
const SQUEEZE_PART: usize = 4;

/// How a body is kept: its parts as they are, squeezed, with its rest in the model, or with its rest
/// in few bits a letter.
const AS_IT_IS: u8 = 0;
const SQUEEZED: u8 = 1;
const LEARNT: u8 = 2;
const IN_LETTERS: u8 = 3;

/// Bytes before a piece: its mark, the piece before it, its place in the model, its length there
/// and in the pack.
const HEAD: usize = MARK + 8 + 3 * 4;
/// The piece before the first.
const NONE: u64 = u64::MAX;

/// Where a packed page is.
pub(super) struct Packed {
    pub(super) place: u64,
    pub(super) length: u64,
    pub(super) mark: [u8; MARK],
    /// The last piece of the model that is needed to read it.
    pub(super) model: Option<u64>,
}

/// Packs and unpacks pages.
pub(super) struct Packer {
    zstd: Compressor<'static>,
    /// By kind of page.
    models: HashMap<String, Growing>,
    steps: Vec<u8>,
    rest: Vec<u8>,
    packed: Vec<u8>,
    /// Models that were read, with their pack and the places of their pieces.
    known: RefCell<Vec<Known>>,
}

#[derive(Default)]
struct Growing {
    model: Model,
    /// Where its last piece is.
    last: Option<u64>,
    /// The letters of what its pages do not have in common.
    letters: Option<Letters>,
}

struct Known {
    pack: u64,
    pieces: Vec<u64>,
    text: Vec<u8>,
}

impl Packer {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            zstd: Compressor::new(LEVEL)?,
            models: HashMap::new(),
            steps: Vec::new(),
            rest: Vec::new(),
            packed: Vec::new(),
            known: RefCell::default(),
        })
    }

    /// Forgets all models: another pack has begun.
    pub(super) fn forget(&mut self) {
        self.models.clear();
    }

    /// Forgets what was read of a pack that is gone.
    pub(super) fn forget_pack(&self, pack: u64) {
        self.known.borrow_mut().retain(|known| known.pack != pack);
    }

    /// Packs a page into the current pack; its model may learn from it.
    pub(super) fn pack(
        &mut self,
        packs: &mut Packs,
        kind: &str,
        body: &[u8],
    ) -> io::Result<Packed> {
        self.steps.clear();
        self.rest.clear();
        self.packed.clear();
        let mut needed = None;
        // A pack is to hold pages, not models alone.
        let room = MODEL_MAX.min(packs.full() as usize / 4);
        if !self.models.contains_key(kind) && self.models.len() < MODELS_MAX {
            self.models.insert(kind.to_owned(), Growing::default());
        }
        if let Some(Growing { model, last, .. }) = self.models.get_mut(kind) {
            model.take_apart(body, &mut self.steps, &mut self.rest);
            let start = model.len();
            let fits = self.rest.len() <= room.saturating_sub(start);
            if self.rest.len() >= PIECE_MIN && (fits || start == 0) {
                let piece = &self.rest[..self.rest.len().min(room)];
                *last = Some(put_piece(packs, &mut self.zstd, last.unwrap_or(NONE), start, piece)?);
                model.grow(piece);
                if fits {
                    self.packed.push(LEARNT);
                    put_number(&mut self.packed, start as u64);
                    self.packed.extend_from_slice(&self.steps);
                }
            }
            needed = *last;
        } else {
            self.rest.extend_from_slice(body);
        }
        if self.packed.is_empty() {
            self.pack_rest(kind, body.len())?;
        }
        let place = packs.add(&self.packed);
        let length = self.packed.len() as u64;
        Ok(Packed { place, length, mark: mark_of(&[&self.packed]), model: needed })
    }

    fn pack_rest(&mut self, kind: &str, size: usize) -> io::Result<()> {
        let Self { zstd, models, steps, rest, packed, .. } = self;
        packed.push(AS_IT_IS);
        put_number(packed, steps.len() as u64);
        packed.extend_from_slice(steps);
        let length = packed.len() + rest.len();
        if length < SQUEEZE_MIN {
            packed.extend_from_slice(rest);
        } else if length * SQUEEZE_PART > size {
            packed.extend_from_slice(rest);
            let squeezed = zstd.compress(&packed[1..])?;
            packed.truncate(1);
            packed[0] = SQUEEZED;
            packed.extend_from_slice(&squeezed);
        } else if let Some(Growing { letters, .. }) = models.get_mut(kind) {
            packed[0] = IN_LETTERS;
            put_number(packed, rest.len() as u64);
            letters.get_or_insert_with(|| Letters::of(rest)).write(rest, packed);
        }
        Ok(())
    }

    /// The page again, of so many bytes; nothing if it or its model is damaged.
    pub(super) fn unpack(
        &self,
        packs: &Packs,
        (pack, model): (u64, Option<u64>),
        packed: &[u8],
        size: usize,
    ) -> Option<Vec<u8>> {
        let mut all = self.known.borrow_mut();
        let text = match model {
            Some(last) => &read_model(packs, &mut all, pack, last)?[..],
            None => &[],
        };
        let (how, parts) = packed.split_first()?;
        let unsqueezed;
        let mut parts = match *how {
            SQUEEZED => {
                unsqueezed = zstd::bulk::decompress(parts, size.checked_add(64)?).ok()?;
                &unsqueezed[..]
            }
            _ => parts,
        };
        let number = usize::try_from(take_number(&mut parts)?).ok()?;
        let (steps, mut rest) = match *how {
            LEARNT => (parts, text.get(number..)?),
            _ => parts.split_at_checked(number)?,
        };
        let read;
        if *how == IN_LETTERS {
            let length = usize::try_from(take_number(&mut rest)?).ok()?;
            read = letters::read(rest, length)?;
            rest = &read;
        }
        put_together(text, steps, rest, size)
    }
}

/// Puts a piece of a model into the pack, and says where it is.
fn put_piece(
    packs: &mut Packs,
    zstd: &mut Compressor<'static>,
    before: u64,
    start: usize,
    text: &[u8],
) -> io::Result<u64> {
    let squeezed = if text.len() < SQUEEZE_MIN { text.to_vec() } else { zstd.compress(text)? };
    let kept = if squeezed.len() < text.len() { &squeezed } else { text };
    let mut head = before.to_le_bytes().to_vec();
    for number in [start, text.len(), kept.len()] {
        head.extend_from_slice(&(number as u32).to_le_bytes());
    }
    let mark = mark_of(&[&packs.end().to_le_bytes(), &head, kept]);
    Ok(packs.add(&[&mark[..], &head, kept].concat()))
}

/// A piece: the place of the one before it, where it begins in the model, and its text.
fn read_piece(packs: &Packs, pack: u64, place: u64) -> Option<(u64, usize, Vec<u8>)> {
    let head = packs.read(pack, place, HEAD as u64)?;
    let (mark, head) = head.split_at_checked(MARK)?;
    let before = u64::from_le_bytes(*head.first_chunk()?);
    let numbers = head.get(8..)?.as_chunks::<4>().0;
    let &[start, size, length] = numbers else { return None };
    let [start, size, length] = [start, size, length].map(|part| u32::from_le_bytes(part) as usize);
    if length > size || size > MODEL_MAX {
        return None;
    }
    let kept = packs.read(pack, place + HEAD as u64, length as u64)?;
    if mark_of(&[&place.to_le_bytes(), head, &kept]) != mark {
        return None;
    }
    let text = if length < size { zstd::bulk::decompress(&kept, size).ok()? } else { kept };
    (text.len() == size).then_some((before, start, text))
}

/// The model with that last piece. Models grow at their end only, so one that has grown since will
/// do, and one that is shorter is added to.
fn read_model<'a>(
    packs: &Packs,
    all: &'a mut Vec<Known>,
    pack: u64,
    last: u64,
) -> Option<&'a Vec<u8>> {
    let has = |known: &Known, piece: u64| known.pack == pack && known.pieces.contains(&piece);
    if let Some(at) = all.iter().position(|known| has(known, last)) {
        return all.get(at).map(|known| &known.text);
    }
    let (mut pieces, mut next) = (Vec::new(), last);
    let mut at = None;
    while next != NONE && at.is_none() {
        let (before, start, text) = read_piece(packs, pack, next)?;
        // Each is before the last, so this ends.
        if before != NONE && before >= next {
            return None;
        }
        pieces.push((next, start, text));
        next = before;
        at = all.iter().position(|known| known.pack == pack && known.pieces.last() == Some(&next));
    }
    let at = at.unwrap_or_else(|| {
        if all.len() >= MODELS_MAX {
            all.remove(0);
        }
        all.push(Known { pack, pieces: Vec::new(), text: Vec::new() });
        all.len() - 1
    });
    let known = all.get_mut(at)?;
    for (place, start, text) in pieces.into_iter().rev() {
        if start != known.text.len() || start + text.len() > MODEL_MAX {
            return None;
        }
        known.text.extend_from_slice(&text);
        known.pieces.push(place);
    }
    Some(&known.text)
}
