//! The server's side: accepts connections, has them prove themselves, and serves those that do.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::debug;

use crate::threads::pause::pause;
use crate::wire::connection::{ServerConnection, ServerContext};
use crate::wire::handshakes::{PendingHandshakes, RefusedConnections};
use crate::wire::stream::{ByteReader, ByteWriter};
use crate::wire::{Credentials, Hello, HelloSource, WireError, WireLimits};

/// Pause after a failure to accept, which mostly means that the process has too many files open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What is done with requests.
pub(crate) trait RequestHandler: Send + Sync + 'static {
    /// Answers one request. Runs on the task of its connection, beside the peer's other requests:
    /// long computing belongs elsewhere. Dropped unfinished when the connection ends.
    fn call(&self, from: &Hello, request: Vec<u8>) -> BoxFuture<'static, Vec<u8>>;

    /// Whether this peer may speak at all; words for why not are told to it. Asked once for each
    /// connection.
    fn admit(&self, hello: &Hello) -> Result<(), String>;

    /// A connection of this peer has ended; it may have others.
    fn gone(&self, hello: &Hello);
}

/// A bound listener.
pub(crate) struct WireListener {
    listener: TcpListener,
    refusals: Arc<RefusedConnections>,
}

impl WireListener {
    /// Binds `host:port`; a port that a process of before has just left is free at once.
    pub(crate) async fn bind(address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { listener, refusals: Arc::default() })
    }

    /// Where it is bound.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The count of connections that were turned away.
    #[cfg(test)]
    pub(crate) fn refusals(&self) -> Arc<RefusedConnections> {
        Arc::clone(&self.refusals)
    }

    /// Serves until `stop` says so or its sender is gone; all connections have ended by then.
    pub(crate) async fn serve(
        self,
        credentials: Arc<Credentials>,
        introduce: HelloSource,
        limits: WireLimits,
        handler: Arc<dyn RequestHandler>,
        stop: watch::Receiver<bool>,
    ) {
        let strangers_max = limits.strangers_max();
        let places = Arc::new(Semaphore::new(limits.connections_max));
        let house = Arc::new(ServerContext { credentials, introduce, limits, handler, places });
        let foyer = Arc::new(PendingHandshakes::default());
        let mut tasks = JoinSet::new();
        let mut numbers = 0..;
        let mut stopping = stop.clone();
        let mut stopped = pin!(stopped(&mut stopping));
        loop {
            tokio::select! {
                accepted = accept(&self.listener) => match accepted {
                    Ok(AcceptedSocket { read, write, peer }) => {
                        let number = numbers.next().unwrap_or_default();
                        let visit = IncomingConnection {
                            number,
                            peer: peer.to_string(),
                            house: Arc::clone(&house),
                            foyer: Arc::clone(&foyer),
                            refusals: Arc::clone(&self.refusals),
                            stop: stop.clone(),
                        };
                        let leave = foyer.enter(number, peer.ip(), strangers_max);
                        tasks.spawn(async move {
                            let leave = async move { drop(leave.await) };
                            visit.run(read, write, leave).await;
                        });
                    }
                    Err(error) => {
                        debug!(%error, "connection not accepted");
                        // A peer that left at once is no reason to keep the others waiting.
                        if error.kind() != io::ErrorKind::ConnectionAborted {
                            pause(ACCEPT_PAUSE).await;
                        }
                    }
                },
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a handler of requests failed");
                    }
                }
                () = &mut stopped => break,
            }
        }
        while tasks.join_next().await.is_some() {}
    }
}

struct AcceptedSocket {
    read: ByteReader,
    write: ByteWriter,
    peer: SocketAddr,
}

/// The next one who knocks.
async fn accept(listener: &TcpListener) -> io::Result<AcceptedSocket> {
    let (stream, peer) = listener.accept().await?;
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "connection left as it came");
    }
    let (read, write) = stream.into_split();
    Ok(AcceptedSocket { read: Box::new(read), write: Box::new(write), peer })
}

/// Waits for the word to stop; a sender that is gone says it, too.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

/// One connection, from its first byte to its end.
struct IncomingConnection {
    number: u64,
    peer: String,
    house: Arc<ServerContext>,
    foyer: Arc<PendingHandshakes>,
    refusals: Arc<RefusedConnections>,
    stop: watch::Receiver<bool>,
}

impl IncomingConnection {
    async fn run(self, read: ByteReader, write: ByteWriter, leave: impl Future<Output = ()>) {
        let mut stop = self.stop.clone();
        let proven = tokio::select! {
            proven = self.prove(read, write) => proven,
            () = leave => Err(WireError::Crowded),
            () = stopped(&mut stop) => return,
        };
        self.foyer.leave(self.number);
        let mut guest = match proven {
            Ok(guest) => guest,
            Err(error) => return self.refusals.note(&self.peer, &error),
        };
        if let Err(error) = guest.serve(stop).await {
            debug!(peer = self.peer, %error, "connection ended");
        }
    }

    async fn prove(
        &self,
        read: ByteReader,
        write: ByteWriter,
    ) -> Result<ServerConnection, WireError> {
        let limit = self.house.limits.handshake_timeout;
        match timeout(limit, self.house.receive(read, write)).await {
            Ok(guest) => guest,
            Err(_) => Err(WireError::Late),
        }
    }
}
