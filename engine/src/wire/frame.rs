//! The frames inside the encrypted channel: kind (1 byte), number (8), length (4), then the body.

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// How this process introduces itself.
    Hello,
    /// The reason why the server refuses the client.
    Refused,
    Request,
    Answer,
    /// The request was too large and was not handled. Holds its size and the limit.
    RequestTooLarge,
    /// The request was handled, but the answer is too large. Holds its size and the limit.
    AnswerTooLarge,
    Ping,
    Pong,
}

const KINDS: [FrameKind; 8] = [
    FrameKind::Hello,
    FrameKind::Refused,
    FrameKind::Request,
    FrameKind::Answer,
    FrameKind::RequestTooLarge,
    FrameKind::AnswerTooLarge,
    FrameKind::Ping,
    FrameKind::Pong,
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub kind: FrameKind,
    /// Number of the request; 0 for other kinds.
    pub number: u64,
    pub body: Vec<u8>,
}

/// Bytes before the body: kind, number, length.
pub(super) const HEAD: usize = 1 + 8 + 4;

impl Frame {
    pub(super) fn new(kind: FrameKind, number: u64, body: Vec<u8>) -> Self {
        Self { kind, number, body }
    }

    pub(super) fn sizes(kind: FrameKind, number: u64, size: u64, max: u64) -> Self {
        Self { kind, number, body: [size.to_le_bytes(), max.to_le_bytes()].concat() }
    }

    /// The two numbers of [`Frame::sizes`]. Any numbers for another frame.
    pub(super) fn read_sizes(&self) -> (u64, u64) {
        let number = |at: usize| {
            let bytes = self.body.get(at..).and_then(|rest| rest.first_chunk());
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        (number(0), number(8))
    }

    pub(super) fn head(&self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[0] = self.kind as u8;
        head[1..9].copy_from_slice(&self.number.to_le_bytes());
        head[9..].copy_from_slice(&(self.body.len() as u32).to_le_bytes());
        head
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error("a frame of unknown kind {0}")]
    FrameKind(u8),
    #[error("a frame of kind {0:?} with {1} bytes")]
    Length(FrameKind, usize),
    #[error("an unexpected frame of kind {0:?}")]
    Place(FrameKind),
}

/// The position of the decoder within a frame.
enum DecoderStage {
    Head,
    Body {
        frame: Frame,
        left: usize,
    },
    /// The rest of a body that is too large to keep.
    Skip {
        left: usize,
    },
}

/// A frame, or the head of one that is too large.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DecodedFrame {
    Frame(Frame),
    /// The body is skipped, and the connection stays open.
    TooLarge {
        kind: FrameKind,
        number: u64,
        size: usize,
    },
}

/// Splits decrypted bytes into frames. Holds at most one record and one unfinished body.
pub(super) struct Decoder {
    /// Bytes `at..end` are unread. The rest is spare room.
    plain: Vec<u8>,
    at: usize,
    end: usize,
    stage: DecoderStage,
    frame_max: usize,
}

impl Decoder {
    pub(super) fn new(frame_max: usize) -> Self {
        Self { plain: Vec::new(), at: 0, end: 0, stage: DecoderStage::Head, frame_max }
    }

    pub(super) fn set_frame_max(&mut self, frame_max: usize) {
        self.frame_max = frame_max;
    }

    /// Room for `size` further bytes, which the caller fills.
    pub(super) fn room(&mut self, size: usize) -> &mut [u8] {
        self.plain.copy_within(self.at..self.end, 0);
        let start = self.end - self.at;
        (self.at, self.end) = (0, start + size);
        if self.plain.len() < self.end {
            self.plain.resize(self.end, 0);
        }
        &mut self.plain[start..self.end]
    }

    /// Frees memory that an idle connection does not need.
    pub(super) fn rest(&mut self) {
        if self.at == self.end {
            self.plain = Vec::new();
            (self.at, self.end) = (0, 0);
        }
    }

    /// The next frame, if it is complete.
    pub(super) fn next(&mut self) -> Result<Option<DecodedFrame>, FrameError> {
        loop {
            let have = &self.plain[self.at..self.end];
            match &mut self.stage {
                DecoderStage::Head => {
                    let Some(head) = have.first_chunk::<HEAD>() else { return Ok(None) };
                    let (kind, number, size) = read_head(head)?;
                    self.at += HEAD;
                    if size > self.frame_max {
                        self.stage = DecoderStage::Skip { left: size };
                        return Ok(Some(DecodedFrame::TooLarge { kind, number, size }));
                    }
                    let frame = Frame::new(kind, number, Vec::with_capacity(size));
                    self.stage = DecoderStage::Body { frame, left: size };
                }
                DecoderStage::Body { frame, left } => {
                    let take = have.len().min(*left);
                    frame.body.extend_from_slice(&have[..take]);
                    self.at += take;
                    *left -= take;
                    if *left > 0 {
                        return Ok(None);
                    }
                    let DecoderStage::Body { frame, .. } =
                        std::mem::replace(&mut self.stage, DecoderStage::Head)
                    else {
                        return Ok(None);
                    };
                    return Ok(Some(DecodedFrame::Frame(frame)));
                }
                DecoderStage::Skip { left } => {
                    let take = have.len().min(*left);
                    self.at += take;
                    *left -= take;
                    if *left > 0 {
                        return Ok(None);
                    }
                    self.stage = DecoderStage::Head;
                }
            }
        }
    }
}

fn read_head(head: &[u8; HEAD]) -> Result<(FrameKind, u64, usize), FrameError> {
    let [kind, n0, n1, n2, n3, n4, n5, n6, n7, s0, s1, s2, s3] = *head;
    let number = u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
    let size = u32::from_le_bytes([s0, s1, s2, s3]) as usize;
    let kind = *KINDS.get(usize::from(kind)).ok_or(FrameError::FrameKind(kind))?;
    let fits = match kind {
        FrameKind::Hello | FrameKind::Refused => size <= 4096,
        FrameKind::Request | FrameKind::Answer => true,
        FrameKind::RequestTooLarge | FrameKind::AnswerTooLarge => size == 16,
        FrameKind::Ping | FrameKind::Pong => size == 0,
    };
    if fits { Ok((kind, number, size)) } else { Err(FrameError::Length(kind, size)) }
}
