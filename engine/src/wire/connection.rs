//! One connection of a server: proves the peer, then reads its requests, has them handled side by
//! side and writes the answers, all in one task.

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
use crate::wire::listener::{RequestHandler, stopped};
use crate::wire::stream::{
    ByteReader, ByteWriter, FrameReader, FrameWriter, halves, hear_hello, say_hello,
};
use crate::wire::{Hello, HelloSource, WireError, WireLimits};

/// Time to write what is ready when the node stops.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Bytes of the words for one who may not come in: the other end reads little before it trusts us.
const WORDS_MAX: usize = 1024;

/// What every connection of a door is given.
pub(super) struct ServerContext {
    pub credentials: Arc<Credentials>,
    pub introduce: HelloSource,
    pub limits: WireLimits,
    pub handler: Arc<dyn RequestHandler>,
    /// Places for peers that have proven themselves.
    pub places: Arc<Semaphore>,
}

/// A peer that has proven itself and been admitted.
pub(super) struct ServerConnection {
    hello: Hello,
    handler: Arc<dyn RequestHandler>,
    incoming: FrameReader,
    outgoing: FrameWriter,
    limits: WireLimits,
    work: FuturesUnordered<RunningRequest>,
    /// Bytes of the requests in the works.
    work_bytes: usize,
    pong_due: bool,
    read_at: Instant,
    wrote_at: Instant,
    _place: OwnedSemaphorePermit,
}

impl ServerContext {
    /// Has a peer prove itself.
    pub(super) async fn receive(
        &self,
        mut read: ByteReader,
        mut write: ByteWriter,
    ) -> Result<ServerConnection, WireError> {
        let keys = handshake::answer(&mut read, &mut write, &self.credentials).await?;
        let (mut incoming, mut outgoing) = halves(read, write, keys, &self.limits);
        let admitted = match hear_hello(&mut incoming, &self.credentials).await {
            Ok(hello) => self.admit(hello),
            Err(error @ WireError::Cluster) => Err(error.to_string()),
            Err(error) => return Err(error),
        };
        let (hello, place) = match admitted {
            Ok(admitted) => admitted,
            Err(words) => {
                let body = words.bytes().take(WORDS_MAX).collect();
                outgoing.push(Frame::new(FrameKind::Refused, 0, body));
                outgoing.flush().await?;
                return Err(WireError::TurnedAway(words));
            }
        };
        // From here on its end is told, whatever happens.
        let mut guest = ServerConnection {
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
            _place: place,
        };
        say_hello(&mut guest.outgoing, &self.credentials, &(self.introduce)()).await?;
        guest.incoming.trust(self.limits.frame_max);
        Ok(guest)
    }

    fn admit(&self, hello: Hello) -> Result<(Hello, OwnedSemaphorePermit), String> {
        let place = Arc::clone(&self.places)
            .try_acquire_owned()
            .map_err(|_| "it has too many connections already")?;
        self.handler.admit(&hello)?;
        Ok((hello, place))
    }
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        self.handler.gone(&self.hello);
    }
}

impl ServerConnection {
    /// Serves the peer until it leaves, breaks a rule, or `stop` says so.
    pub(super) async fn serve(&mut self, mut stop: watch::Receiver<bool>) -> Result<(), WireError> {
        let mut stopped = pin!(stopped(&mut stop));
        let mut ticks = interval(self.limits.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.take_requests()?;
            self.gather_answers();
            tokio::select! {
                result = self.incoming.more(), if !self.holding() => {
                    result?;
                    self.read_at = Instant::now();
                }
                Some(done) = self.work.next(), if !self.work.is_empty() => self.finish(done),
                result = self.outgoing.write(), if self.outgoing.pending() => {
                    result?;
                    self.wrote_at = Instant::now();
                }
                _ = ticks.tick() => self.look_at_clock()?,
                () = &mut stopped => {
                    // A peer that does not read them in time does without.
                    wait_at_most(LAST_WORDS, self.outgoing.flush()).await;
                    return Ok(());
                }
            }
        }
    }

    /// Whether no further request is read for now. Counts the answers that wait, too: a peer that
    /// does not read them gets no more.
    fn holding(&self) -> bool {
        self.work.len() + self.outgoing.frames() >= self.limits.in_flight_max.max(1)
            || self.work_bytes + self.outgoing.bytes() >= self.limits.frame_max
    }

    fn take_requests(&mut self) -> Result<(), WireError> {
        while !self.holding()
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

    /// Takes all answers that are ready, so that they go out in one write.
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

    fn look_at_clock(&mut self) -> Result<(), WireError> {
        let idle = self.limits.idle_timeout;
        if self.outgoing.pending() {
            return if self.wrote_at.elapsed() > idle { Err(WireError::Choked) } else { Ok(()) };
        }
        // So that "not written for long" is measured from when there was something to write.
        self.wrote_at = Instant::now();
        if self.holding() {
            // Our silence would look like death to a peer whose pings we do not read for now.
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

/// A request in the works.
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
