//! The two halves of an encrypted connection. Every future here can be dropped without losing data, so one
//! task can read, write and check timeouts at the same time.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::wire::frame::{DecodedFrame, Decoder, Frame, FrameError, FrameKind};
use crate::wire::handshake::{
    Credentials, RECORD_HEAD, RECORD_MAX, RECORD_PLAIN_MAX, RecordOpener, RecordSealer,
    SessionKeys, closed,
};
use crate::wire::primitives::TAG;
use crate::wire::{Hello, WireError, WireLimits};

pub(super) type ByteReader = Box<dyn AsyncRead + Send + Unpin>;
pub(super) type ByteWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// Bytes that are encrypted and written at once, approximately.
const WRITE_BYTES: usize = 128 << 10;
/// Bytes of the first read. The size doubles while the peer sends more.
const READ_MIN: usize = 8 << 10;
const READ_MAX: usize = 256 << 10;

/// The half that reads.
pub(super) struct FrameReader {
    read: ByteReader,
    opener: RecordOpener,
    sealed: Vec<u8>,
    at: usize,
    decoder: Decoder,
    /// Bytes of the next read.
    read_size: usize,
    /// Bytes that the peer may still send before its hello; `None` after it.
    budget: Option<usize>,
}

impl FrameReader {
    /// The next frame, if it is complete.
    pub(super) fn next(&mut self) -> Result<Option<DecodedFrame>, WireError> {
        loop {
            if let Some(found) = self.decoder.next()? {
                return Ok(Some(found));
            }
            let have = &self.sealed[self.at..];
            let Some((head, rest)) = have.split_first_chunk::<RECORD_HEAD>() else {
                return Ok(None);
            };
            let size = usize::from(u16::from_be_bytes(*head));
            let plain = size.checked_sub(TAG).ok_or(WireError::Damaged)?;
            let Some(record) = rest.get(..size) else { return Ok(None) };
            self.opener.open(record, self.decoder.room(plain))?;
            self.at += RECORD_HEAD + size;
        }
    }

    /// Waits for further bytes.
    pub(super) async fn more(&mut self) -> Result<(), WireError> {
        self.sealed.drain(..self.at);
        self.at = 0;
        let want = self.read_size.min(self.budget.unwrap_or(usize::MAX));
        if want == 0 {
            return Err(WireError::TooManyBytes);
        }
        self.sealed.reserve(want);
        let mut window = (&mut self.read).take(want as u64);
        let got = window.read_buf(&mut self.sealed).await?;
        if got == 0 {
            return Err(closed().into());
        }
        if let Some(budget) = &mut self.budget {
            *budget = budget.saturating_sub(got);
        } else if got == want {
            self.read_size = (self.read_size * 2).min(READ_MAX);
        }
        Ok(())
    }

    /// Lifts the limit for peers that have not said hello.
    pub(super) fn trust(&mut self, frame_max: usize) {
        self.budget = None;
        self.decoder.set_frame_max(frame_max);
    }

    /// Frees memory that an idle connection does not need.
    pub(super) fn rest(&mut self) {
        self.decoder.rest();
        if self.at == self.sealed.len() {
            self.sealed = Vec::new();
            self.at = 0;
            self.read_size = READ_MIN;
        }
    }

    async fn frame(&mut self) -> Result<Frame, WireError> {
        loop {
            match self.next()? {
                Some(DecodedFrame::Frame(frame)) => return Ok(frame),
                Some(DecodedFrame::TooLarge { kind, size, .. }) => {
                    return Err(FrameError::Length(kind, size).into());
                }
                None => self.more().await?,
            }
        }
    }
}

/// The half that writes.
pub(super) struct FrameWriter {
    write: ByteWriter,
    sealer: RecordSealer,
    queue: VecDeque<Frame>,
    /// Bytes of the bodies in `queue`.
    queued: usize,
    /// Bytes of the first frame that are already encrypted, without its head.
    begun: Option<usize>,
    plain: Vec<u8>,
    /// Bytes `at..end` wait for the socket. The rest is spare room.
    sealed: Vec<u8>,
    at: usize,
    end: usize,
    /// The socket took only a part of the last write.
    was_partial: bool,
}

impl FrameWriter {
    pub(super) fn push(&mut self, frame: Frame) {
        self.queued += frame.body.len();
        self.queue.push_back(frame);
    }

    /// Frames in the queue.
    pub(super) fn frames(&self) -> usize {
        self.queue.len()
    }

    /// Bytes of the bodies in the queue.
    pub(super) fn bytes(&self) -> usize {
        self.queued
    }

    /// Whether no more frames should be queued for now.
    pub(super) fn full(&self) -> bool {
        self.queued + self.end - self.at >= WRITE_BYTES
    }

    pub(super) fn pending(&self) -> bool {
        !self.queue.is_empty() || self.at < self.end
    }

    /// Writes once, many frames if they wait. True if the socket was full before and took some bytes: the
    /// peer has read.
    pub(super) async fn write(&mut self) -> Result<bool, WireError> {
        if self.at == self.end {
            self.seal()?;
        }
        let written = self.write.write(&self.sealed[self.at..self.end]).await?;
        if written == 0 {
            return Err(closed().into());
        }
        self.at += written;
        let was_partial = self.was_partial;
        self.was_partial = self.at < self.end;
        Ok(was_partial)
    }

    pub(super) async fn flush(&mut self) -> Result<(), WireError> {
        while self.pending() {
            self.write().await?;
        }
        self.write.flush().await?;
        Ok(())
    }

    pub(super) fn rest(&mut self) {
        if !self.pending() {
            (self.at, self.end) = (0, 0);
            self.sealed = Vec::new();
            self.plain = Vec::new();
            self.queue.shrink_to_fit();
        }
    }

    fn seal(&mut self) -> Result<(), WireError> {
        (self.at, self.end) = (0, 0);
        while self.end < WRITE_BYTES
            && let Some(frame) = self.queue.front()
        {
            let begun = match self.begun {
                Some(begun) => begun,
                None if self.plain.len() + frame.head().len() > RECORD_PLAIN_MAX => {
                    self.seal_record()?;
                    continue;
                }
                None => {
                    self.plain.extend_from_slice(&frame.head());
                    0
                }
            };
            let room = RECORD_PLAIN_MAX - self.plain.len();
            let end = frame.body.len().min(begun + room);
            self.plain.extend_from_slice(&frame.body[begun..end]);
            if end == frame.body.len() {
                self.queued -= end;
                self.queue.pop_front();
                self.begun = None;
            } else {
                self.begun = Some(end);
                self.seal_record()?;
            }
        }
        self.seal_record()
    }

    fn seal_record(&mut self) -> Result<(), WireError> {
        if !self.plain.is_empty() {
            let end = self.end + RECORD_HEAD + self.plain.len() + TAG;
            if self.sealed.len() < end {
                self.sealed.resize(end, 0);
            }
            self.sealer.seal(&self.plain, &mut self.sealed[self.end..end])?;
            self.end = end;
            self.plain.clear();
        }
        Ok(())
    }
}

pub(super) fn halves(
    read: ByteReader,
    write: ByteWriter,
    keys: SessionKeys,
    limits: &WireLimits,
) -> (FrameReader, FrameWriter) {
    let (sealer, opener) = keys.split();
    let budget = limits.handshake_bytes_max;
    let incoming = FrameReader {
        read,
        opener,
        sealed: Vec::new(),
        at: 0,
        decoder: Decoder::new(budget),
        read_size: READ_MIN,
        budget: Some(budget),
    };
    let outgoing = FrameWriter {
        write,
        sealer,
        queue: VecDeque::new(),
        queued: 0,
        begun: None,
        plain: Vec::new(),
        sealed: Vec::new(),
        at: 0,
        end: 0,
        was_partial: false,
    };
    (incoming, outgoing)
}

/// Sends the hello of this process.
pub(super) async fn send_hello(
    outgoing: &mut FrameWriter,
    credentials: &Credentials,
    hello: &Hello,
) -> Result<(), WireError> {
    let body =
        postcard::to_stdvec(&(credentials.cluster(), hello)).map_err(|_| WireError::Damaged)?;
    outgoing.push(Frame::new(FrameKind::Hello, 0, body));
    outgoing.flush().await
}

/// Reads the hello of the peer. A frame that decrypts proves that the peer has the secret.
pub(super) async fn read_hello(
    incoming: &mut FrameReader,
    credentials: &Credentials,
) -> Result<Hello, WireError> {
    let frame = incoming.frame().await?;
    match frame.kind {
        FrameKind::Hello => {}
        FrameKind::Refused => {
            return Err(WireError::Refused(String::from_utf8_lossy(&frame.body).into_owned()));
        }
        kind => return Err(FrameError::Place(kind).into()),
    }
    // The cluster comes first: another version may encode its hello differently.
    let (cluster, rest) = frame.body.split_first_chunk::<32>().ok_or(WireError::Damaged)?;
    if cluster != credentials.cluster() {
        return Err(WireError::Cluster);
    }
    // Version 1 sent no list of peers. It is still read, so that the error names the version.
    let before = |_| postcard::from_bytes(&[rest, &[0]].concat());
    postcard::from_bytes(rest).or_else(before).map_err(|_| WireError::Damaged)
}

const _: () = assert!(RECORD_MAX <= u16::MAX as usize && READ_MAX > RECORD_MAX);
