//! Bodies of saved pages, packed in zstd frames.
//!
//! Pages of a site resemble each other, so a frame holds many bodies and zstd finds in it what they
//! share. A frame lies within one pack. It is flushed with each commit, so committed pages are
//! readable while the frame grows. A frame has no end mark: a reader stops at the page it wants.
//!
//! A reader unpacks a frame from its start to the end of the page. [`FrameReader`] keeps the frame
//! it read last and continues it, so pages that are read in order unpack each frame once.

use std::io;

use bytes::Bytes;
use zstd::stream::raw::{CParameter, DParameter, Decoder, Encoder, InBuffer, Operation, OutBuffer};

use super::packs::PackFiles;

/// Level and match search of zstd; `docs/decisions/page-compression.md` has the figures.
const LEVEL: i32 = -7;
const MIN_MATCH: u32 = 7;
const HASH_LOG: u32 = 17;
/// The reader refuses a larger window, so a damaged frame costs no more memory than this.
const WINDOW_LOG: u32 = 22;
/// Most bytes of the bodies in a frame. A larger body is alone in its frame.
const FRAME_BYTES: u64 = 2 << 20;
/// Most pages in a frame. A damaged byte makes all later pages of its frame unreadable.
const FRAME_PAGES: u32 = 200;
/// Bytes of a pack that are read, and of a frame that are packed, at a time.
const CHUNK: usize = 32 << 10;

/// A part of a pack: a frame from its start to where the encoder was flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameExtent {
    /// Number of the pack.
    pub(super) pack: u64,
    /// Where the frame starts in the pack.
    pub(super) offset: u64,
    /// Packed bytes from there on.
    pub(super) length: u64,
}

/// Where a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BodyPosition {
    /// The part of the pack that must be unpacked to read the body.
    pub(super) frame: FrameExtent,
    /// Where the body starts in the unpacked frame.
    pub(super) offset: u64,
    /// Bytes of the body.
    pub(super) size: u64,
}

/// Packs bodies into frames of the current pack.
pub(super) struct FrameWriter {
    encoder: Encoder<'static>,
    /// The frame that grows; `None` after an error, too.
    open: Option<OpenFrame>,
    chunk: Vec<u8>,
}

struct OpenFrame {
    /// Where it starts in the pack.
    offset: u64,
    pages: u32,
    /// Bytes of its bodies.
    bytes: u64,
}

impl FrameWriter {
    pub(super) fn new() -> io::Result<Self> {
        let mut encoder = Encoder::new(LEVEL)?;
        encoder.set_parameter(CParameter::MinMatch(MIN_MATCH))?;
        encoder.set_parameter(CParameter::HashLog(HASH_LOG))?;
        encoder.set_parameter(CParameter::WindowLog(WINDOW_LOG))?;
        Ok(Self { encoder, open: None, chunk: Vec::with_capacity(CHUNK) })
    }

    /// Whether a body of this size goes into the open frame.
    pub(super) fn has_room(&self, size: usize) -> bool {
        self.open.as_ref().is_some_and(|frame| {
            frame.pages < FRAME_PAGES && frame.bytes + size as u64 <= FRAME_BYTES
        })
    }

    /// Ends the open frame: the next body starts a new one.
    pub(super) fn end(&mut self) {
        self.open = None;
    }

    /// Packs a body and returns its offset in the unpacked frame. The body is readable after the
    /// next [`flush`](Self::flush).
    pub(super) fn add(&mut self, packs: &mut PackFiles, body: &[u8]) -> io::Result<u64> {
        let mut frame = self.open.take().map_or_else(|| self.begin(packs.end()), Ok)?;
        let mut input = InBuffer::around(body);
        while input.pos() < body.len() {
            self.step(packs, |encoder, output| encoder.run(&mut input, output))?;
        }
        let offset = frame.bytes;
        frame.pages += 1;
        frame.bytes += body.len() as u64;
        self.open = Some(frame);
        Ok(offset)
    }

    fn begin(&mut self, offset: u64) -> io::Result<OpenFrame> {
        self.encoder.reinit()?;
        Ok(OpenFrame { offset, pages: 0, bytes: 0 })
    }

    /// Puts everything added into the pack, and returns where the open frame is.
    pub(super) fn flush(&mut self, packs: &mut PackFiles) -> io::Result<FrameExtent> {
        let (Some(frame), Some(pack)) = (self.open.take(), packs.current()) else {
            return Err(io::Error::other("no frame is open"));
        };
        while self.step(packs, Operation::flush)? > 0 {}
        let extent = FrameExtent { pack, offset: frame.offset, length: packs.end() - frame.offset };
        self.open = Some(frame);
        Ok(extent)
    }

    /// Calls the encoder once and adds its output to the pack.
    fn step(
        &mut self,
        packs: &mut PackFiles,
        call: impl FnOnce(&mut Encoder<'static>, &mut OutBuffer<'_, Vec<u8>>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.chunk.clear();
        let left = call(&mut self.encoder, &mut OutBuffer::around(&mut self.chunk))?;
        packs.add(&self.chunk);
        Ok(left)
    }
}

/// Reads bodies from frames.
pub(super) struct FrameReader {
    decoder: Decoder<'static>,
    last: Option<UnpackedFrame>,
}

/// The frame that was read last, unpacked in part; the decoder continues it.
struct UnpackedFrame {
    pack: u64,
    offset: u64,
    /// Packed bytes that the decoder has taken.
    taken: u64,
    bytes: Vec<u8>,
}

impl FrameReader {
    pub(super) fn new() -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
        Ok(Self { decoder, last: None })
    }

    /// Forgets what was read of a pack that is removed.
    pub(super) fn forget_pack(&mut self, pack: u64) {
        self.last.take_if(|frame| frame.pack == pack);
    }

    /// Reads a body; `None` if its frame cannot be unpacked that far.
    pub(super) fn read(&mut self, packs: &PackFiles, body: BodyPosition) -> Option<Bytes> {
        let FrameExtent { pack, offset, length } = body.frame;
        let end = usize::try_from(body.offset.checked_add(body.size)?).ok()?;
        // Taken out, so that a frame with an error is not continued.
        let last = self.last.take();
        let known = last.filter(|last| (last.pack, last.offset) == (pack, offset));
        let mut frame = known.map_or_else(|| self.begin(pack, offset), Some)?;
        frame.unpack(&mut self.decoder, packs, length, end)?;
        let read = frame.bytes.get(body.offset as usize..end).map(Bytes::copy_from_slice);
        // A larger body is not kept: it would take memory until the next read.
        self.last = Some(frame).filter(|frame| frame.bytes.len() as u64 <= FRAME_BYTES);
        read
    }

    fn begin(&mut self, pack: u64, offset: u64) -> Option<UnpackedFrame> {
        self.decoder.reinit().ok()?;
        let bytes = Vec::with_capacity(FRAME_BYTES as usize);
        Some(UnpackedFrame { pack, offset, taken: 0, bytes })
    }
}

impl UnpackedFrame {
    /// Unpacks the frame further, up to `length` packed bytes, until it has `end` bytes.
    fn unpack(
        &mut self,
        decoder: &mut Decoder<'static>,
        packs: &PackFiles,
        length: u64,
        end: usize,
    ) -> Option<()> {
        self.bytes.try_reserve_exact(end.saturating_sub(self.bytes.len())).ok()?;
        while self.bytes.len() < end {
            let next = length.saturating_sub(self.taken).min(CHUNK as u64);
            let chunk = packs.read(self.pack, self.offset.checked_add(self.taken)?, next)?;
            let mut input = InBuffer::around(&chunk);
            let before = self.bytes.len();
            decoder.run(&mut input, &mut OutBuffer::around_pos(&mut self.bytes, before)).ok()?;
            if input.pos() == 0 && self.bytes.len() == before {
                return None;
            }
            self.taken += input.pos() as u64;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text of a size that differs with the number, with little that zstd could find in it.
    fn body(number: usize, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut bytes);
        bytes
    }

    /// Packs bodies in memory, flushed after every `commit` of them.
    fn pack(bodies: &[Vec<u8>], commit: usize) -> (PackFiles, Vec<BodyPosition>) {
        let mut packs = PackFiles::open(None, 1 << 30).unwrap();
        packs.begin(0).unwrap();
        let mut writer = FrameWriter::new().unwrap();
        let (mut positions, mut added) = (Vec::new(), Vec::new());
        let mut flush = |writer: &mut FrameWriter, packs: &mut PackFiles, added: &mut Vec<_>| {
            if !added.is_empty() {
                let frame = writer.flush(packs).unwrap();
                let position = |(offset, size)| BodyPosition { frame, offset, size };
                positions.extend(added.drain(..).map(position));
            }
        };
        for body in bodies {
            if !writer.has_room(body.len()) || added.len() == commit {
                flush(&mut writer, &mut packs, &mut added);
            }
            if !writer.has_room(body.len()) {
                writer.end();
            }
            added.push((writer.add(&mut packs, body).unwrap(), body.len() as u64));
        }
        flush(&mut writer, &mut packs, &mut added);
        packs.flush().unwrap();
        (packs, positions)
    }

    #[test]
    fn bodies_are_read_in_any_order() {
        let sizes = [0, 1, 44_000, 700, 3 << 20, 0, 131_072, 900_000];
        let bodies: Vec<_> = (0..120).map(|at| body(at % 30, sizes[at % sizes.len()])).collect();
        for commit in [1, 7, 200] {
            let (packs, positions) = pack(&bodies, commit);
            let ahead = (0..bodies.len()).collect::<Vec<_>>();
            let back = ahead.iter().rev().copied().collect();
            let mixed = ahead.iter().map(|at| at * 77 % bodies.len()).collect();
            for order in [ahead, back, mixed] {
                let mut reader = FrameReader::new().unwrap();
                for at in order {
                    let read = reader.read(&packs, positions[at]);
                    assert!(read.is_some_and(|read| read == bodies[at]), "body {at} of {commit}");
                }
            }
        }
    }

    #[test]
    fn a_frame_ends_before_it_is_too_large() {
        let mega = 1 << 20;
        for (sizes, frames) in [
            (vec![10; 200], 1),
            (vec![10; 201], 2),
            (vec![mega, mega], 1),
            (vec![mega, mega, 1], 2),
            (vec![1, 3 * mega, 1], 3),
        ] {
            let bodies: Vec<_> =
                sizes.iter().enumerate().map(|(at, size)| body(at, *size)).collect();
            let (_, positions) = pack(&bodies, 1);
            let mut offsets: Vec<_> = positions.iter().map(|body| body.frame.offset).collect();
            offsets.dedup();
            assert_eq!(offsets.len(), frames, "{} bodies", sizes.len());
        }
    }

    #[test]
    fn what_one_page_has_is_not_kept_again_for_the_next() {
        let shared = body(0, 40_000);
        let bodies: Vec<_> = (1..=40).map(|at| [&shared[..], &body(at, 100)].concat()).collect();
        let (packs, _) = pack(&bodies, 4);
        assert!(packs.end() < 40_000 + 40 * 200, "{} bytes", packs.end());
    }

    #[test]
    fn a_wrong_position_reads_nothing_and_takes_no_memory() {
        let bodies = [body(1, 5000), body(2, 5000)];
        let (packs, positions) = pack(&bodies, 1);
        let BodyPosition { frame, offset, size } = positions[1];
        let whole = |length| FrameExtent { length, ..frame };
        for wrong in [
            BodyPosition { frame, offset, size: size + 1 },
            BodyPosition { frame, offset, size: 1 << 60 },
            BodyPosition { frame, offset, size: u64::MAX },
            BodyPosition { frame, offset: 1 << 50, size },
            BodyPosition { frame: whole(0), offset, size },
            BodyPosition { frame: whole(frame.length - 1), offset, size },
            BodyPosition { frame: FrameExtent { offset: 3, ..frame }, offset, size },
            BodyPosition { frame: FrameExtent { offset: u64::MAX, ..frame }, offset, size },
            BodyPosition { frame: FrameExtent { pack: 7, ..frame }, offset, size },
        ] {
            let mut reader = FrameReader::new().unwrap();
            assert_eq!(reader.read(&packs, wrong), None, "{wrong:?}");
            let read = reader.read(&packs, positions[1]);
            assert!(read.is_some_and(|read| read == bodies[1]), "after {wrong:?}");
        }
    }
}
