//! The task behind a [`Link`](crate::wire::WireClient): makes connections, carries requests out and answers in.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tracing::debug;

use crate::wire::client::ClientShared;
use crate::wire::frame::{DecodedFrame, Frame, FrameError, FrameKind};
use crate::wire::stream::{
    ByteReader, ByteWriter, FrameReader, FrameWriter, halves, hear_hello, say_hello,
};
use crate::wire::{CallError, WireError, handshake};

const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Makes connections while there is something to send, until no [`Link`] is left.
pub(super) async fn run(shared: Arc<ClientShared>, mut letters: mpsc::Receiver<u64>) {
    let mut pause = PAUSE_MIN;
    let mut next_try = Instant::now();
    while let Some(first) = letters.recv().await {
        // Given up meanwhile: no reason to connect.
        if !shared.is_waiting(first) {
            continue;
        }
        sleep_until(next_try).await;
        let began = Instant::now();
        let connected = shared.connect().await;
        shared.fails.store(connected.is_err(), Ordering::Relaxed);
        match connected {
            Ok(mut connection) => {
                let end = connection.carry(first, &mut letters).await;
                shared.peer.send_replace(None);
                let Err(error) = end else { return };
                debug!(address = shared.address, %error, "connection ended");
                shared.fail(true, &shared.broken(error.to_string()));
            }
            Err(error) => {
                debug!(%error, "no connection");
                // Whoever asks from here on waits for the next try.
                shared.fail(false, &error);
            }
        }
        if began.elapsed() > PAUSE_MAX {
            pause = PAUSE_MIN;
        }
        next_try = Instant::now() + uneven(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Between half of `pause` and all of it, so that nodes do not start_handshake in step.
fn uneven(pause: Duration) -> Duration {
    let dice = RandomState::new().hash_one(0) % 1000;
    pause / 2 + pause / 2 * dice as u32 / 1000
}

impl ClientShared {
    async fn connect(&self) -> Result<ClientConnection<'_>, CallError> {
        let limit = self.limits.handshake_timeout;
        let Ok(tried) = timeout(limit, self.start_handshake()).await else {
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

    async fn start_handshake(&self) -> Result<ClientConnection<'_>, WireError> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (read, write) = stream.into_split();
        let (mut read, mut write): (ByteReader, ByteWriter) = (Box::new(read), Box::new(write));
        let keys = handshake::start_handshake(&mut read, &mut write, &self.credentials).await?;
        let (mut incoming, mut outgoing) = halves(read, write, keys, &self.limits);
        say_hello(&mut outgoing, &self.credentials, &(self.introduce)()).await?;
        let hello = hear_hello(&mut incoming, &self.credentials).await?;
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
    /// When the other end last gave a sign of life.
    alive_at: Instant,
    /// Since when a sign of life is wanted.
    doubt: Option<Instant>,
}

impl ClientConnection<'_> {
    /// Carries letters out and answers in. Ends well only when no [`Link`] is left.
    async fn carry(
        &mut self,
        first: u64,
        letters: &mut mpsc::Receiver<u64>,
    ) -> Result<(), WireError> {
        let mut ticks = interval(self.shared.limits.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.shared.doubt.store(false, Ordering::Relaxed);
        self.post(first);
        loop {
            while !self.outgoing.full()
                && let Ok(number) = letters.try_recv()
            {
                self.post(number);
            }
            tokio::select! {
                result = self.incoming.more() => {
                    result?;
                    self.sign_of_life();
                    self.hand_out()?;
                }
                result = self.outgoing.write(), if self.outgoing.pending() => {
                    if result? {
                        self.sign_of_life();
                    }
                }
                number = letters.recv(), if !self.outgoing.full() => match number {
                    Some(number) => self.post(number),
                    None => return Ok(()),
                },
                _ = ticks.tick() => self.look_at_clock()?,
            }
        }
    }

    fn post(&mut self, number: u64) {
        if let Some(body) = self.shared.take_request(number) {
            self.outgoing.push(Frame::new(FrameKind::Request, number, body));
        }
    }

    fn sign_of_life(&mut self) {
        self.alive_at = Instant::now();
        self.doubt = None;
    }

    fn hand_out(&mut self) -> Result<(), WireError> {
        while let Some(found) = self.incoming.next()? {
            match found {
                DecodedFrame::Frame(frame) => self.hand_out_frame(frame)?,
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

    fn hand_out_frame(&mut self, frame: Frame) -> Result<(), WireError> {
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

    fn look_at_clock(&mut self) -> Result<(), WireError> {
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
