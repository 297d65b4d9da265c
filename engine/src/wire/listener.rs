//! A server: accepts connections and runs one task for each.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::debug;

use crate::threads::ignore::ignore_closed;
use crate::threads::pause::pause;
use crate::wire::connection::{RequestHandler, ServerConnection, ServerContext, stopped};
use crate::wire::handshakes::{PendingHandshakes, RefusedConnections};
use crate::wire::stream::{ByteReader, ByteWriter};
use crate::wire::{Credentials, HelloSource, WireError, WireLimits};

/// Pause after a failure to accept, usually because the process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A bound listener.
pub(crate) struct WireListener {
    listener: TcpListener,
    refusals: Arc<RefusedConnections>,
}

impl WireListener {
    /// Binds `host:port`. A port that another process has just closed can be bound at once.
    pub(crate) async fn bind(address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { listener, refusals: Arc::default() })
    }

    /// Where it is bound.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The counter of refused connections.
    #[cfg(test)]
    pub(crate) fn refusals(&self) -> Arc<RefusedConnections> {
        Arc::clone(&self.refusals)
    }

    /// Serves until `stop` is true or its sender is dropped. Returns when all connections have ended.
    pub(crate) async fn serve(
        self,
        credentials: Arc<Credentials>,
        introduce: HelloSource,
        limits: WireLimits,
        handler: Arc<dyn RequestHandler>,
        stop: watch::Receiver<bool>,
    ) {
        let handshakes_max = limits.handshakes_max();
        let permits = Arc::new(Semaphore::new(limits.connections_max));
        let context = Arc::new(ServerContext { credentials, introduce, limits, handler, permits });
        let handshakes = Arc::new(PendingHandshakes::default());
        let mut tasks = JoinSet::new();
        let mut numbers = 0..;
        let mut stopping = stop.clone();
        let mut stopped = pin!(stopped(&mut stopping));
        loop {
            tokio::select! {
                accepted = accept(&self.listener) => match accepted {
                    Ok(AcceptedSocket { read, write, peer }) => {
                        let number = numbers.next().unwrap_or_default();
                        let incoming = IncomingConnection {
                            number,
                            peer: peer.to_string(),
                            context: Arc::clone(&context),
                            handshakes: Arc::clone(&handshakes),
                            refusals: Arc::clone(&self.refusals),
                            stop: stop.clone(),
                        };
                        let leave = handshakes.begin(number, peer.ip(), handshakes_max);
                        tasks.spawn(async move {
                            let leave = async move { ignore_closed(leave.await) };
                            incoming.run(read, write, leave).await;
                        });
                    }
                    Err(error) => {
                        debug!(%error, "connection not accepted");
                        // A peer that disconnected at once must not delay others.
                        if error.kind() != io::ErrorKind::ConnectionAborted {
                            pause(ACCEPT_PAUSE).await;
                        }
                    }
                },
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "the task of a connection failed");
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

async fn accept(listener: &TcpListener) -> io::Result<AcceptedSocket> {
    let (stream, peer) = listener.accept().await?;
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "TCP_NODELAY could not be set");
    }
    let (read, write) = stream.into_split();
    Ok(AcceptedSocket { read: Box::new(read), write: Box::new(write), peer })
}

/// One connection, from its first byte to its end.
struct IncomingConnection {
    number: u64,
    peer: String,
    context: Arc<ServerContext>,
    handshakes: Arc<PendingHandshakes>,
    refusals: Arc<RefusedConnections>,
    stop: watch::Receiver<bool>,
}

impl IncomingConnection {
    async fn run(self, read: ByteReader, write: ByteWriter, leave: impl Future<Output = ()>) {
        let mut stop = self.stop.clone();
        let connected = tokio::select! {
            connected = self.connect(read, write) => connected,
            () = leave => Err(WireError::TooManyHandshakes),
            () = stopped(&mut stop) => return,
        };
        self.handshakes.end(self.number);
        let mut connection = match connected {
            Ok(connection) => connection,
            Err(error) => return self.refusals.note(&self.peer, &error),
        };
        if let Err(error) = connection.serve(stop).await {
            debug!(peer = self.peer, %error, "connection ended");
        }
    }

    async fn connect(
        &self,
        read: ByteReader,
        write: ByteWriter,
    ) -> Result<ServerConnection, WireError> {
        let limit = self.context.limits.handshake_timeout;
        match timeout(limit, self.context.receive(read, write)).await {
            Ok(connection) => connection,
            Err(_) => Err(WireError::HandshakeTimeout),
        }
    }
}
