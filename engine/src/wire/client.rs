//! The client's side: one connection to one address, shared by all who have something to ask.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use crate::threads::ignore::ignore_closed;
use crate::wire::{CallError, Credentials, Hello, HelloSource, WireLimits, client_task};

/// Requests that wait for the connection at most; further callers wait in their own calls.
const QUEUE_MAX: usize = 256;

/// One connection to one address: made when first needed, and made anew when it is needed after it
/// broke. Cheap to clone; many calls at once. Ends with its last clone.
#[derive(Clone)]
pub(crate) struct WireClient {
    shared: Arc<ClientShared>,
    queue: mpsc::Sender<u64>,
}

type Reply = Result<Vec<u8>, CallError>;

struct WaitingCaller {
    /// Taken out when it is sent. Kept here rather than in the queue, so that it goes with a
    /// caller that gives up.
    request: Option<Vec<u8>>,
    reply: oneshot::Sender<Reply>,
}

/// What callers and the task of the connection have in common.
pub(super) struct ClientShared {
    pub(super) address: String,
    pub(super) credentials: Arc<Credentials>,
    pub(super) introduce: HelloSource,
    pub(super) limits: WireLimits,
    /// Numbers are never used again, so that an answer meets its own caller or nobody.
    numbers: AtomicU64,
    // A lock, since a caller that gives up leaves from its own task; never held over a wait.
    callers: Mutex<HashMap<u64, WaitingCaller>>,
    pub(super) peer: watch::Sender<Option<Hello>>,
    /// The last attempt to connect failed.
    pub(super) fails: AtomicBool,
    /// A call got no answer: the connection may be dead without an error.
    pub(super) doubt: AtomicBool,
    /// Taken by the first call, which starts the task of the connection.
    idle: Mutex<Option<mpsc::Receiver<u64>>>,
}

impl WireClient {
    /// `address` is `host:port`.
    pub(crate) fn new(
        address: String,
        credentials: Arc<Credentials>,
        hello: HelloSource,
        limits: WireLimits,
    ) -> Self {
        let (queue, letters) = mpsc::channel(QUEUE_MAX);
        let shared = ClientShared {
            address,
            credentials,
            introduce: hello,
            limits,
            numbers: AtomicU64::new(1),
            callers: Mutex::default(),
            peer: watch::Sender::new(None),
            fails: AtomicBool::new(false),
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

    /// Whether nobody was reached at the last try; the next one may be a while away.
    pub(crate) fn fails(&self) -> bool {
        self.shared.fails.load(Ordering::Relaxed)
    }

    /// One exchange. Dropping the future gives up this exchange alone, never the connection. While
    /// there is no connection the call waits for the next try, and shares its outcome.
    pub(crate) async fn call(&self, request: Vec<u8>, timeout: Duration) -> Reply {
        let max = self.shared.limits.frame_max.min(u32::MAX as usize);
        if request.len() > max {
            let (size, max) = (request.len() as u64, max as u64);
            return Err(CallError::RequestTooLarge { size, max });
        }
        self.start();
        let number = self.shared.numbers.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.shared.callers().insert(number, WaitingCaller { request: Some(request), reply });
        let place = PendingCall { shared: &self.shared, number };
        let exchange = async {
            if self.queue.send(number).await.is_err() {
                return Err(self.shared.unreachable("its connection was shut down".to_owned()));
            }
            match answer.await {
                Ok(answer) => answer,
                Err(_) => Err(self.shared.broken("its connection was shut down".to_owned())),
            }
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(answer) => answer,
            Err(_) if place.take_back() => {
                Err(self.shared.unreachable(format!("not sent within {timeout:?}")))
            }
            Err(_) => {
                self.shared.doubt.store(true, Ordering::Relaxed);
                Err(CallError::TimedOut { address: self.shared.address.clone(), after: timeout })
            }
        }
    }

    fn start(&self) {
        let letters = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(letters) = letters {
            tokio::spawn(client_task::run(Arc::clone(&self.shared), letters));
        }
    }
}

/// A caller's place among those who wait; given up by dropping it.
struct PendingCall<'a> {
    shared: &'a ClientShared,
    number: u64,
}

impl PendingCall<'_> {
    /// Whether the request has not been sent and never will be.
    fn take_back(&self) -> bool {
        // Looked at and removed under one lock: a moment later it might be on its way.
        self.shared.callers().remove(&self.number).is_some_and(|caller| caller.request.is_some())
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        self.shared.callers().remove(&self.number);
    }
}

impl ClientShared {
    fn callers(&self) -> MutexGuard<'_, HashMap<u64, WaitingCaller>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn unreachable(&self, reason: String) -> CallError {
        CallError::Unreachable { address: self.address.clone(), reason }
    }

    pub(super) fn broken(&self, reason: String) -> CallError {
        CallError::Broken { address: self.address.clone(), reason }
    }

    /// Tells `error` to those whose request was sent, or to those whose was not.
    pub(super) fn fail(&self, sent: bool, error: &CallError) {
        for (_, caller) in self.callers().extract_if(|_, caller| caller.request.is_none() == sent) {
            // One that has given up meanwhile needs no answer.
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

    /// The request of a caller that still waits; from here on its outcome is unknown.
    pub(super) fn take_request(&self, number: u64) -> Option<Vec<u8>> {
        self.callers().get_mut(&number)?.request.take()
    }
}
