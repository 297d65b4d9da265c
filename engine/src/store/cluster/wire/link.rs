//! The client's side: one connection to one address, shared by all who have something to ask.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tracing::debug;

use super::frame::{Found, Frame, FrameError, Kind};
use super::pipe::{Incoming, Outgoing, Reader, Writer, halves, hear_hello, say_hello};
use super::secure::{self, Credentials};
use super::{Hello, Introduce, Limits, LinkError, WireError};

/// Requests that wait for the connection at most; further callers wait in their own calls.
const QUEUE_MAX: usize = 256;
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// One connection to one address: made when first needed, and made anew when it is needed after it
/// broke. Cheap to clone; many calls at once. Ends with its last clone.
#[derive(Clone)]
pub(crate) struct Link {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Letter>,
}

type Reply = Result<Vec<u8>, LinkError>;

struct Letter {
    number: u64,
    body: Vec<u8>,
}

struct Caller {
    reply: oneshot::Sender<Reply>,
    sent: bool,
}

struct Shared {
    address: String,
    credentials: Arc<Credentials>,
    introduce: Introduce,
    limits: Limits,
    /// Numbers are never used again, so that an answer meets its own caller or nobody.
    numbers: AtomicU64,
    // A lock, since a caller that gives up leaves from its own task; never held over a wait.
    callers: Mutex<HashMap<u64, Caller>>,
    peer: watch::Sender<Option<Hello>>,
    /// A call was in vain: the connection may be dead without having told.
    doubt: AtomicBool,
    /// Taken by the first call, which starts the task of the connection.
    idle: Mutex<Option<mpsc::Receiver<Letter>>>,
}

impl Link {
    /// `address` is `host:port`, or `unix:` and a path.
    pub(crate) fn new(
        address: String,
        credentials: Arc<Credentials>,
        hello: Introduce,
        limits: Limits,
    ) -> Self {
        let (queue, letters) = mpsc::channel(QUEUE_MAX);
        let shared = Shared {
            address,
            credentials,
            introduce: hello,
            limits,
            numbers: AtomicU64::new(1),
            callers: Mutex::default(),
            peer: watch::Sender::new(None),
            doubt: AtomicBool::new(false),
            idle: Mutex::new(Some(letters)),
        };
        Self { shared: Arc::new(shared), queue }
    }

    pub(crate) fn address(&self) -> &str {
        &self.shared.address
    }

    /// Who answers at the other end, while connected.
    pub(crate) fn peer(&self) -> watch::Receiver<Option<Hello>> {
        self.shared.peer.subscribe()
    }

    /// One exchange. Dropping the future gives up this exchange alone, never the connection. While
    /// there is no connection the call waits for the next try, and shares its outcome.
    pub(crate) async fn call(&self, request: Vec<u8>, timeout: Duration) -> Reply {
        let max = self.shared.limits.frame_max.min(u32::MAX as usize);
        if request.len() > max {
            let (size, max) = (request.len() as u64, max as u64);
            return Err(LinkError::RequestTooLarge { size, max });
        }
        self.start();
        let number = self.shared.numbers.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.shared.callers().insert(number, Caller { reply, sent: false });
        let place = Place { shared: &self.shared, number };
        let exchange = async {
            if self.queue.send(Letter { number, body: request }).await.is_err() {
                return Err(self.shared.unreachable("its connection was shut down".to_owned()));
            }
            match answer.await {
                Ok(answer) => answer,
                Err(_) => Err(self.shared.broken("its connection was shut down".to_owned())),
            }
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(answer) => answer,
            Err(_) if place.was_sent() => {
                self.shared.doubt.store(true, Ordering::Relaxed);
                Err(LinkError::TimedOut { address: self.shared.address.clone(), after: timeout })
            }
            Err(_) => Err(self.shared.unreachable(format!("no connection within {timeout:?}"))),
        }
    }

    fn start(&self) {
        let letters = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(letters) = letters {
            tokio::spawn(run(Arc::clone(&self.shared), letters));
        }
    }
}

/// A caller's place among those who wait; given up by dropping it.
struct Place<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Place<'_> {
    fn was_sent(&self) -> bool {
        self.shared.callers().get(&self.number).is_some_and(|caller| caller.sent)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.shared.callers().remove(&self.number);
    }
}

impl Shared {
    fn callers(&self) -> MutexGuard<'_, HashMap<u64, Caller>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unreachable(&self, reason: String) -> LinkError {
        LinkError::Unreachable { address: self.address.clone(), reason }
    }

    fn broken(&self, reason: String) -> LinkError {
        LinkError::Broken { address: self.address.clone(), reason }
    }

    /// Tells `error` to those whose request was sent, or to those whose was not.
    fn fail(&self, sent: bool, error: &LinkError) {
        for (_, caller) in self.callers().extract_if(|_, caller| caller.sent == sent) {
            // One that has given up meanwhile needs no answer.
            drop(caller.reply.send(Err(error.clone())));
        }
    }

    fn settle(&self, number: u64, reply: Reply) {
        if let Some(caller) = self.callers().remove(&number) {
            drop(caller.reply.send(reply));
        }
    }

    /// Whether somebody still waits for this number; from here on its outcome is unknown.
    fn mark_sent(&self, number: u64) -> bool {
        match self.callers().get_mut(&number) {
            Some(caller) => {
                caller.sent = true;
                true
            }
            None => false,
        }
    }

    async fn connect(&self) -> Result<Connection<'_>, LinkError> {
        let tried = timeout(self.limits.handshake_timeout, self.knock()).await;
        match tried.unwrap_or(Err(WireError::Late)) {
            Ok(connection) => Ok(connection),
            Err(
                error @ (WireError::Version { .. }
                | WireError::Secret
                | WireError::Cluster
                | WireError::Refused(_)),
            ) => {
                Err(LinkError::Refused { address: self.address.clone(), reason: error.to_string() })
            }
            Err(error) => Err(self.unreachable(error.to_string())),
        }
    }

    async fn knock(&self) -> Result<Connection<'_>, WireError> {
        let (mut read, mut write): (Reader, Writer) = match self.address.strip_prefix("unix:") {
            Some(path) => {
                let (read, write) = UnixStream::connect(path).await?.into_split();
                (Box::new(read), Box::new(write))
            }
            None => {
                let stream = TcpStream::connect(&self.address).await?;
                stream.set_nodelay(true)?;
                let (read, write) = stream.into_split();
                (Box::new(read), Box::new(write))
            }
        };
        let keys = secure::knock(&mut read, &mut write, &self.credentials).await?;
        let (mut incoming, mut outgoing) = halves(read, write, keys, &self.limits);
        say_hello(&mut outgoing, &self.credentials, &(self.introduce)()).await?;
        let hello = hear_hello(&mut incoming, &self.credentials).await?;
        incoming.trust(self.limits.frame_max);
        self.peer.send_replace(Some(hello));
        Ok(Connection { shared: self, incoming, outgoing, alive_at: Instant::now(), doubt: None })
    }
}

/// Makes connections while there is something to send, until no [`Link`] is left.
async fn run(shared: Arc<Shared>, mut letters: mpsc::Receiver<Letter>) {
    let mut pause = PAUSE_MIN;
    let mut next_try = Instant::now();
    while let Some(first) = letters.recv().await {
        sleep_until(next_try).await;
        let began = Instant::now();
        match shared.connect().await {
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

/// Between half of `pause` and all of it, so that nodes do not knock in step.
fn uneven(pause: Duration) -> Duration {
    let dice = RandomState::new().hash_one(0) % 1000;
    pause / 2 + pause / 2 * dice as u32 / 1000
}

struct Connection<'a> {
    shared: &'a Shared,
    incoming: Incoming,
    outgoing: Outgoing,
    /// When the other end last gave a sign of life.
    alive_at: Instant,
    /// Since when a sign of life is wanted.
    doubt: Option<Instant>,
}

impl Connection<'_> {
    /// Carries letters out and answers in. Ends well only when no [`Link`] is left.
    async fn carry(
        &mut self,
        first: Letter,
        letters: &mut mpsc::Receiver<Letter>,
    ) -> Result<(), WireError> {
        let mut ticks = interval(self.shared.limits.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.shared.doubt.store(false, Ordering::Relaxed);
        self.post(first);
        loop {
            while !self.outgoing.full()
                && let Ok(letter) = letters.try_recv()
            {
                self.post(letter);
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
                letter = letters.recv(), if !self.outgoing.full() => match letter {
                    Some(letter) => self.post(letter),
                    None => return Ok(()),
                },
                _ = ticks.tick() => self.look_at_clock()?,
            }
        }
    }

    fn post(&mut self, letter: Letter) {
        if self.shared.mark_sent(letter.number) {
            self.outgoing.push(Frame::new(Kind::Request, letter.number, letter.body));
        }
    }

    fn sign_of_life(&mut self) {
        self.alive_at = Instant::now();
        self.doubt = None;
    }

    fn hand_out(&mut self) -> Result<(), WireError> {
        while let Some(found) = self.incoming.next()? {
            match found {
                Found::Frame(frame) => self.hand_out_frame(frame)?,
                Found::TooLarge { number, size, .. } => {
                    let max = self.shared.limits.frame_max as u64;
                    let error = LinkError::AnswerTooLarge { size: size as u64, max };
                    self.shared.settle(number, Err(error));
                }
            }
        }
        Ok(())
    }

    fn hand_out_frame(&mut self, frame: Frame) -> Result<(), WireError> {
        let sizes = frame.read_sizes().unwrap_or_default();
        let (size, max) = sizes;
        let reply = match frame.kind {
            Kind::Answer => Ok(frame.body),
            Kind::RequestTooLarge => Err(LinkError::RequestTooLarge { size, max }),
            Kind::AnswerTooLarge => Err(LinkError::AnswerTooLarge { size, max }),
            Kind::Ping | Kind::Pong => return Ok(()),
            kind @ (Kind::Hello | Kind::Refused | Kind::Request) => {
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
            self.outgoing.push(Frame::new(Kind::Ping, 0, Vec::new()));
        }
        let silence = self.alive_at.elapsed();
        let doubted = self.doubt.is_some_and(|since| since.elapsed() > limits.doubt_max());
        if doubted || silence > limits.idle_timeout {
            return Err(WireError::Silent(silence));
        }
        if silence > limits.ping_after() && !self.outgoing.pending() {
            self.outgoing.push(Frame::new(Kind::Ping, 0, Vec::new()));
        }
        if silence > limits.tick() {
            self.incoming.rest();
            self.outgoing.rest();
        }
        Ok(())
    }
}
