//! The task behind a [`WireClient`](crate::wire::WireClient): opens connections, sends requests and returns
//! answers.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tracing::debug;

use crate::threads::ignore::ignore_closed;
use crate::wire::frame::{DecodedFrame, Frame, FrameError, FrameKind};
use crate::wire::stream::{
    ByteReader, ByteWriter, FrameReader, FrameWriter, halves, read_hello, send_hello,
};
use crate::wire::{CallError, Credentials, Hello, HelloSource, WireError, WireLimits, handshake};

/// Pause after the first failure to connect; it doubles with each further one.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(20);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);

pub(super) type Reply = Result<Vec<u8>, CallError>;

pub(super) struct WaitingCaller {
    /// `None` once it is sent. It is kept here and not in the queue, so that a caller that gives up
    /// takes it away.
    pub(super) request: Option<Vec<u8>>,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// The state that the callers and the task share.
pub(super) struct ClientShared {
    pub(super) address: String,
    pub(super) credentials: Arc<Credentials>,
    pub(super) introduce: HelloSource,
    pub(super) limits: WireLimits,
    /// A number is never reused, so an answer reaches its own caller or none.
    pub(super) numbers: AtomicU64,
    // A lock, because a caller that gives up removes itself. It is never held across an await.
    pub(super) callers: Mutex<HashMap<u64, WaitingCaller>>,
    pub(super) peer: watch::Sender<Option<Hello>>,
    /// The last try to connect failed.
    pub(super) fails: AtomicBool,
    /// A call timed out: the connection may be dead.
    pub(super) doubt: AtomicBool,
    /// Taken by the first call, which starts the task.
    pub(super) idle: Mutex<Option<mpsc::Receiver<u64>>>,
}

/// Connects while there is something to send, until no `WireClient` is left.
pub(super) async fn run(shared: Arc<ClientShared>, mut calls: mpsc::Receiver<u64>) {
    let mut pause = RETRY_PAUSE_MIN;
    let mut next_try = Instant::now();
    while let Some(first) = calls.recv().await {
        // The caller has given up, so there is no reason to connect.
        if !shared.is_waiting(first) {
            continue;
        }
        sleep_until(next_try).await;
        let began = Instant::now();
        let connected = shared.connect().await;
        shared.fails.store(connected.is_err(), Ordering::Relaxed);
        match connected {
            Ok(mut connection) => {
                let end = connection.run(first, &mut calls).await;
                shared.peer.send_replace(None);
                let Err(error) = end else { return };
                debug!(address = shared.address, %error, "connection ended");
                shared.fail(true, &shared.broken(error.to_string()));
            }
            Err(error) => {
                debug!(%error, "no connection");
                // Callers from here on wait for the next try.
                shared.fail(false, &error);
            }
        }
        if began.elapsed() > RETRY_PAUSE_MAX {
            pause = RETRY_PAUSE_MIN;
        }
        next_try = Instant::now() + with_jitter(pause);
        pause = (pause * 2).min(RETRY_PAUSE_MAX);
    }
}

/// A random duration between half of `pause` and all of it, so that nodes do not connect in step.
fn with_jitter(pause: Duration) -> Duration {
    let dice = RandomState::new().hash_one(0) % 1000;
    pause / 2 + pause / 2 * dice as u32 / 1000
}

impl ClientShared {
    async fn connect(&self) -> Result<ClientConnection<'_>, CallError> {
        let limit = self.limits.handshake_timeout;
        let Ok(tried) = timeout(limit, self.open()).await else {
            return Err(self.unreachable(format!("no answer within {limit:?}")));
        };
        match tried {
            Ok(connection) => Ok(connection),
            Err(
                error @ (WireError::Version { .. }
                | WireError::Secret
                | WireError::Cluster
                | WireError::Refused(_)),
            ) => {
                Err(CallError::Refused { address: self.address.clone(), reason: error.to_string() })
            }
            Err(error) => Err(self.unreachable(error.to_string())),
        }
    }

    async fn open(&self) -> Result<ClientConnection<'_>, WireError> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (read, write) = stream.into_split();
        let (mut read, mut write): (ByteReader, ByteWriter) = (Box::new(read), Box::new(write));
        let keys = handshake::start_handshake(&mut read, &mut write, &self.credentials).await?;
        let (mut incoming, mut outgoing) = halves(read, write, keys, &self.limits);
        send_hello(&mut outgoing, &self.credentials, &(self.introduce)()).await?;
        let hello = read_hello(&mut incoming, &self.credentials).await?;
        incoming.trust(self.limits.frame_max);
        self.peer.send_replace(Some(hello));
        Ok(ClientConnection {
            shared: self,
            incoming,
            outgoing,
            alive_at: Instant::now(),
            doubt: None,
        })
    }
}

struct ClientConnection<'a> {
    shared: &'a ClientShared,
    incoming: FrameReader,
    outgoing: FrameWriter,
    /// When the server last sent or read something.
    alive_at: Instant,
    /// When a ping was sent because a call had timed out.
    doubt: Option<Instant>,
}

impl ClientConnection<'_> {
    /// Sends calls and returns answers. Returns `Ok` only when no `WireClient` is left.
    async fn run(&mut self, first: u64, calls: &mut mpsc::Receiver<u64>) -> Result<(), WireError> {
        let mut ticks = interval(self.shared.limits.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.shared.doubt.store(false, Ordering::Relaxed);
        self.post(first);
        loop {
            while !self.outgoing.full()
                && let Ok(number) = calls.try_recv()
            {
                self.post(number);
            }
            tokio::select! {
                result = self.incoming.more() => {
                    result?;
                    self.note_life();
                    self.return_answers()?;
                }
                result = self.outgoing.write(), if self.outgoing.pending() => {
                    if result? {
                        self.note_life();
                    }
                }
                number = calls.recv(), if !self.outgoing.full() => match number {
                    Some(number) => self.post(number),
                    None => return Ok(()),
                },
                _ = ticks.tick() => self.check_timeouts()?,
            }
        }
    }

    fn post(&mut self, number: u64) {
        if let Some(body) = self.shared.take_request(number) {
            self.outgoing.push(Frame::new(FrameKind::Request, number, body));
        }
    }

    fn note_life(&mut self) {
        self.alive_at = Instant::now();
        self.doubt = None;
    }

    fn return_answers(&mut self) -> Result<(), WireError> {
        while let Some(found) = self.incoming.next()? {
            match found {
                DecodedFrame::Frame(frame) => self.return_frame(frame)?,
                DecodedFrame::TooLarge { kind: FrameKind::Answer, number, size } => {
                    let max = self.shared.limits.frame_max as u64;
                    let error = CallError::AnswerTooLarge { size: size as u64, max };
                    self.shared.settle(number, Err(error));
                }
                DecodedFrame::TooLarge { kind, .. } => return Err(FrameError::Place(kind).into()),
            }
        }
        Ok(())
    }

    fn return_frame(&mut self, frame: Frame) -> Result<(), WireError> {
        let (size, max) = frame.read_sizes();
        let reply = match frame.kind {
            FrameKind::Answer => Ok(frame.body),
            FrameKind::RequestTooLarge => Err(CallError::RequestTooLarge { size, max }),
            FrameKind::AnswerTooLarge => Err(CallError::AnswerTooLarge { size, max }),
            FrameKind::Ping | FrameKind::Pong => return Ok(()),
            kind @ (FrameKind::Hello | FrameKind::Refused | FrameKind::Request) => {
                return Err(FrameError::Place(kind).into());
            }
        };
        self.shared.settle(frame.number, reply);
        Ok(())
    }

    fn check_timeouts(&mut self) -> Result<(), WireError> {
        let limits = &self.shared.limits;
        if self.shared.doubt.swap(false, Ordering::Relaxed) && self.doubt.is_none() {
            self.doubt = Some(Instant::now());
            self.outgoing.push(Frame::new(FrameKind::Ping, 0, Vec::new()));
        }
        let silence = self.alive_at.elapsed();
        let doubted = self.doubt.is_some_and(|since| since.elapsed() > limits.doubt_max());
        if doubted || silence > limits.idle_timeout {
            return Err(WireError::Silent(silence));
        }
        if silence > limits.ping_after() && !self.outgoing.pending() {
            self.outgoing.push(Frame::new(FrameKind::Ping, 0, Vec::new()));
        }
        if silence > limits.tick() {
            self.incoming.rest();
            self.outgoing.rest();
        }
        Ok(())
    }
}

impl ClientShared {
    pub(super) fn callers(&self) -> MutexGuard<'_, HashMap<u64, WaitingCaller>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn unreachable(&self, reason: String) -> CallError {
        CallError::Unreachable { address: self.address.clone(), reason }
    }

    pub(super) fn broken(&self, reason: String) -> CallError {
        CallError::Broken { address: self.address.clone(), reason }
    }

    /// Fails the calls that were sent, or those that were not.
    pub(super) fn fail(&self, sent: bool, error: &CallError) {
        for (_, caller) in self.callers().extract_if(|_, caller| caller.request.is_none() == sent) {
            ignore_closed(caller.reply.send(Err(error.clone())));
        }
    }

    pub(super) fn settle(&self, number: u64, reply: Reply) {
        if let Some(caller) = self.callers().remove(&number) {
            ignore_closed(caller.reply.send(reply));
        }
    }

    pub(super) fn is_waiting(&self, number: u64) -> bool {
        self.callers().contains_key(&number)
    }

    /// The request of a caller that still waits. From here on the server may act on it.
    pub(super) fn take_request(&self, number: u64) -> Option<Vec<u8>> {
        self.callers().get_mut(&number)?.request.take()
    }
}
