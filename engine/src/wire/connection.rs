//! One connection of a server. One task does the handshake, reads requests, has them handled in parallel,
//! and writes the answers.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::threads::pause::wait_at_most;
use crate::wire::frame::{DecodedFrame, Frame, FrameError, FrameKind};
use crate::wire::handshake::{self, Credentials};
use crate::wire::stream::{
    ByteReader, ByteWriter, FrameReader, FrameWriter, halves, read_hello, send_hello,
};
use crate::wire::{Hello, HelloSource, WireError, WireLimits};

/// How long a server that stops may take to write finished answers.
const LAST_FLUSH_TIMEOUT: Duration = Duration::from_millis(200);

/// Bytes of the reason for a refusal. A client reads little before it has received a hello.
const REASON_BYTES_MAX: usize = 1024;

/// Handles the requests of a server.
pub(crate) trait RequestHandler: Send + Sync + 'static {
    /// Answers one request. It runs on the task of its connection together with other requests, so it must
    /// not block. When the connection ends, the future is dropped.
    fn call(&self, from: &Hello, request: Vec<u8>) -> BoxFuture<'static, Vec<u8>>;

    /// Called once for each connection. An error is the reason why the peer is refused, and is sent to it.
    fn admit(&self, hello: &Hello) -> Result<(), String>;

    /// An admitted connection of this peer has ended; it may have others.
    fn gone(&self, hello: &Hello);
}

/// Waits until the server stops, or the sender is dropped.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

/// The state that all connections of a server share.
pub(super) struct ServerContext {
    pub credentials: Arc<Credentials>,
    pub introduce: HelloSource,
    pub limits: WireLimits,
    pub handler: Arc<dyn RequestHandler>,
    /// One permit for each connection after its hello.
    pub permits: Arc<Semaphore>,
}

/// The connection of a peer that has said hello and was admitted.
pub(super) struct ServerConnection {
    hello: Hello,
    handler: Arc<dyn RequestHandler>,
    incoming: FrameReader,
    outgoing: FrameWriter,
    limits: WireLimits,
    work: FuturesUnordered<RunningRequest>,
    /// Bytes of the requests that are being handled.
    work_bytes: usize,
    pong_due: bool,
    read_at: Instant,
    wrote_at: Instant,
    _permit: OwnedSemaphorePermit,
}

impl ServerContext {
    /// Does the handshake and exchanges hellos.
    pub(super) async fn receive(
        &self,
        mut read: ByteReader,
        mut write: ByteWriter,
    ) -> Result<ServerConnection, WireError> {
        let keys = handshake::answer(&mut read, &mut write, &self.credentials).await?;
        let (mut incoming, mut outgoing) = halves(read, write, keys, &self.limits);
        let admitted = match read_hello(&mut incoming, &self.credentials).await {
            Ok(hello) => self.admit(hello),
            Err(error @ WireError::Cluster) => Err(error.to_string()),
            Err(error) => return Err(error),
        };
        let (hello, permit) = match admitted {
            Ok(admitted) => admitted,
            Err(reason) => {
                let body = reason.bytes().take(REASON_BYTES_MAX).collect();
                outgoing.push(Frame::new(FrameKind::Refused, 0, body));
                outgoing.flush().await?;
                return Err(WireError::RefusedPeer(reason));
            }
        };
        // From here on the handler learns of the end of the connection, even if the next line fails.
        let mut connection = ServerConnection {
            hello,
            handler: Arc::clone(&self.handler),
            incoming,
            outgoing,
            limits: self.limits.clone(),
            work: FuturesUnordered::new(),
            work_bytes: 0,
            pong_due: false,
            read_at: Instant::now(),
            wrote_at: Instant::now(),
            _permit: permit,
        };
        send_hello(&mut connection.outgoing, &self.credentials, &(self.introduce)()).await?;
        connection.incoming.trust(self.limits.frame_max);
        Ok(connection)
    }

    fn admit(&self, hello: Hello) -> Result<(Hello, OwnedSemaphorePermit), String> {
        let permit = Arc::clone(&self.permits)
            .try_acquire_owned()
            .map_err(|_| "it has too many connections already")?;
        self.handler.admit(&hello)?;
        Ok((hello, permit))
    }
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        self.handler.gone(&self.hello);
    }
}

impl ServerConnection {
    /// Serves the peer until it disconnects, breaks a rule, or the server stops.
    pub(super) async fn serve(&mut self, mut stop: watch::Receiver<bool>) -> Result<(), WireError> {
        let mut stopped = pin!(stopped(&mut stop));
        let mut ticks = interval(self.limits.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.take_requests()?;
            self.gather_answers();
            tokio::select! {
                result = self.incoming.more(), if !self.is_full() => {
                    result?;
                    self.read_at = Instant::now();
                }
                Some(done) = self.work.next(), if !self.work.is_empty() => self.finish(done),
                result = self.outgoing.write(), if self.outgoing.pending() => {
                    result?;
                    self.wrote_at = Instant::now();
                }
                _ = ticks.tick() => self.check_timeouts()?,
                () = &mut stopped => {
                    // A peer that does not read in time loses the answers.
                    wait_at_most(LAST_FLUSH_TIMEOUT, self.outgoing.flush()).await;
                    return Ok(());
                }
            }
        }
    }

    /// Whether to stop reading requests for now. Waiting answers count, too, so a peer that does not read
    /// them cannot send more.
    fn is_full(&self) -> bool {
        self.work.len() + self.outgoing.frames() >= self.limits.in_flight_max.max(1)
            || self.work_bytes + self.outgoing.bytes() >= self.limits.frame_max
    }

    fn take_requests(&mut self) -> Result<(), WireError> {
        while !self.is_full()
            && let Some(found) = self.incoming.next()?
        {
            match found {
                DecodedFrame::Frame(Frame { kind: FrameKind::Request, number, body }) => {
                    let size = body.len();
                    self.work_bytes += size;
                    let answer = self.handler.call(&self.hello, body);
                    self.work.push(RunningRequest { number, size, answer });
                }
                DecodedFrame::Frame(Frame { kind: FrameKind::Ping, .. }) => self.pong_due = true,
                DecodedFrame::Frame(Frame { kind: FrameKind::Pong, .. }) => {}
                DecodedFrame::Frame(frame) => return Err(FrameError::Place(frame.kind).into()),
                DecodedFrame::TooLarge { kind: FrameKind::Request, number, size } => {
                    let max = self.limits.frame_max as u64;
                    let frame = Frame::sizes(FrameKind::RequestTooLarge, number, size as u64, max);
                    self.outgoing.push(frame);
                }
                DecodedFrame::TooLarge { kind, .. } => return Err(FrameError::Place(kind).into()),
            }
        }
        if std::mem::take(&mut self.pong_due) {
            self.outgoing.push(Frame::new(FrameKind::Pong, 0, Vec::new()));
        }
        Ok(())
    }

    /// Queues all finished answers, so that they go out in one write.
    fn gather_answers(&mut self) {
        while !self.work.is_empty()
            && let Some(Some(done)) = self.work.next().now_or_never()
        {
            self.finish(done);
        }
    }

    fn finish(&mut self, done: FinishedRequest) {
        let FinishedRequest { number, size, answer } = done;
        self.work_bytes -= size;
        let max = self.limits.frame_max;
        self.outgoing.push(if answer.len() > max {
            Frame::sizes(FrameKind::AnswerTooLarge, number, answer.len() as u64, max as u64)
        } else {
            Frame::new(FrameKind::Answer, number, answer)
        });
    }

    fn check_timeouts(&mut self) -> Result<(), WireError> {
        let idle = self.limits.idle_timeout;
        if self.outgoing.pending() {
            return if self.wrote_at.elapsed() > idle {
                Err(WireError::NotReading)
            } else {
                Ok(())
            };
        }
        // The timeout counts from the moment when there is something to write.
        self.wrote_at = Instant::now();
        if self.is_full() {
            // While no frames are read, the peer's pings get no answer, so this end sends pings itself.
            self.read_at = Instant::now();
            self.outgoing.push(Frame::new(FrameKind::Ping, 0, Vec::new()));
            return Ok(());
        }
        if self.read_at.elapsed() > idle {
            return Err(WireError::Silent(idle));
        }
        if self.read_at.elapsed() > self.limits.tick() {
            self.incoming.rest();
            self.outgoing.rest();
        }
        Ok(())
    }
}

/// A request that is being handled.
struct RunningRequest {
    number: u64,
    size: usize,
    answer: BoxFuture<'static, Vec<u8>>,
}

struct FinishedRequest {
    number: u64,
    size: usize,
    answer: Vec<u8>,
}

impl Future for RunningRequest {
    type Output = FinishedRequest;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<FinishedRequest> {
        let answer = ready!(self.answer.as_mut().poll(context));
        Poll::Ready(FinishedRequest { number: self.number, size: self.size, answer })
    }
}
