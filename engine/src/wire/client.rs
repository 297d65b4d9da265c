//! A client: one connection to one address, shared by all callers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use crate::wire::client_task::{self, ClientShared, Reply, WaitingCaller};
use crate::wire::{CallError, Credentials, Hello, HelloSource, WireLimits};

/// Requests that wait for the connection. Further callers wait for a place in the queue.
const QUEUE_MAX: usize = 256;

/// One connection to one address. The first call opens it, and a call after it broke opens it again. Many
/// calls may be in flight. Cheap to clone; the connection closes with the last clone.
#[derive(Clone)]
pub(crate) struct WireClient {
    shared: Arc<ClientShared>,
    queue: mpsc::Sender<u64>,
}

impl WireClient {
    /// `address` is `host:port`.
    pub(crate) fn new(
        address: String,
        credentials: Arc<Credentials>,
        hello: HelloSource,
        limits: WireLimits,
    ) -> Self {
        let (queue, calls) = mpsc::channel(QUEUE_MAX);
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
            idle: Mutex::new(Some(calls)),
        };
        Self { shared: Arc::new(shared), queue }
    }

    pub(crate) fn address(&self) -> &str {
        &self.shared.address
    }

    /// The hello of the server while connected.
    pub(crate) fn peer(&self) -> watch::Receiver<Option<Hello>> {
        self.shared.peer.subscribe()
    }

    /// Whether the last try to connect failed. The next one may start up to a second later.
    pub(crate) fn fails(&self) -> bool {
        self.shared.fails.load(Ordering::Relaxed)
    }

    /// Sends a request and returns the answer. Dropping the future gives up this call, not the connection.
    /// Without a connection the call waits for the next try to connect, and shares its outcome.
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
        let pending = PendingCall { shared: &self.shared, number };
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
            Err(_) if pending.take_back() => {
                Err(self.shared.unreachable(format!("not sent within {timeout:?}")))
            }
            Err(_) => {
                self.shared.doubt.store(true, Ordering::Relaxed);
                Err(CallError::TimedOut { address: self.shared.address.clone(), after: timeout })
            }
        }
    }

    fn start(&self) {
        let calls = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(calls) = calls {
            tokio::spawn(client_task::run(Arc::clone(&self.shared), calls));
        }
    }
}

/// Removes the caller when it is dropped.
struct PendingCall<'a> {
    shared: &'a ClientShared,
    number: u64,
}

impl PendingCall<'_> {
    /// Whether the request was not sent. It never will be.
    fn take_back(&self) -> bool {
        // Checked and removed under one lock: otherwise the task could send it in between.
        self.shared.callers().remove(&self.number).is_some_and(|caller| caller.request.is_some())
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        self.shared.callers().remove(&self.number);
    }
}
