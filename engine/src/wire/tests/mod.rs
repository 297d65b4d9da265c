//! Real sockets on this machine, with honest peers and attackers.

mod bounds;
mod echo;
mod fuzz;
mod refusal;
mod stranger;
mod tamper;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::*;

const PATIENCE: Duration = Duration::from_mins(2);

fn hello(life: u64) -> Hello {
    let (version, role, cluster_id) = (3, PeerRole::Voter, Some(4));
    Hello { version, role, seat: 1, raft_id: 2, cluster_id, life, peers: "1=a:1".to_owned() }
}

fn introduce(life: u64) -> HelloSource {
    Arc::new(move || hello(life))
}

fn credentials() -> Arc<Credentials> {
    Arc::new(Credentials::new(Some(b"a secret of the cluster"), b"a:1,b:2"))
}

/// Answers with the request. `wait` first waits for a permit of the gate, `huge` gets an answer that is too
/// large, and `never` gets none.
#[derive(Default)]
struct Echo {
    gate: Option<Arc<Semaphore>>,
    refuse: bool,
    calls: AtomicUsize,
    gone: AtomicU64,
}

impl RequestHandler for Echo {
    fn call(&self, from: &Hello, request: Vec<u8>) -> BoxFuture<'static, Vec<u8>> {
        assert_eq!(from.raft_id, 2);
        self.calls.fetch_add(1, Ordering::SeqCst);
        match (&self.gate, request.as_slice()) {
            (Some(gate), b"wait") => {
                let gate = Arc::clone(gate);
                async move {
                    gate.acquire().await.unwrap().forget();
                    request
                }
                .boxed()
            }
            (_, b"huge") => std::future::ready(vec![7; 3 << 20]).boxed(),
            (_, b"never") => std::future::pending().boxed(),
            _ => std::future::ready(request).boxed(),
        }
    }

    fn admit(&self, hello: &Hello) -> Result<(), String> {
        if self.refuse { Err(format!("life {} is fenced", hello.life)) } else { Ok(()) }
    }

    fn gone(&self, _hello: &Hello) {
        self.gone.fetch_add(1, Ordering::SeqCst);
    }
}

/// A running listener.
struct Server {
    address: String,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    refusals: Arc<RefusedConnections>,
    echo: Arc<Echo>,
}

impl Server {
    async fn start(limits: WireLimits, echo: Echo) -> Self {
        Self::start_at("127.0.0.1:0", credentials(), limits, echo).await
    }

    async fn start_at(
        address: &str,
        credentials: Arc<Credentials>,
        limits: WireLimits,
        echo: Echo,
    ) -> Self {
        let listener = WireListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = watch::channel(false);
        let refusals = listener.refusals();
        let echo = Arc::new(echo);
        let handler = Arc::clone(&echo);
        let serve = listener.serve(credentials, introduce(99), limits, handler, stopped);
        Self { address, stop, task: tokio::spawn(serve), refusals, echo }
    }

    fn link(&self) -> WireClient {
        self.link_with(credentials(), WireLimits::default())
    }

    fn link_with(&self, credentials: Arc<Credentials>, limits: WireLimits) -> WireClient {
        WireClient::new(self.address.clone(), credentials, introduce(7), limits)
    }

    async fn stop(self) -> Arc<Echo> {
        self.stop.send_replace(true);
        tokio::time::timeout(PATIENCE, self.task).await.unwrap().unwrap();
        self.echo
    }
}

async fn call(link: &WireClient, body: impl Into<Vec<u8>>) -> Result<Vec<u8>, CallError> {
    link.call(body.into(), PATIENCE).await
}

/// Waits until `fact` holds.
async fn until(mut fact: impl FnMut() -> bool) {
    let wait = async {
        while !fact() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap();
}

/// Random numbers from a seed, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }
}

/// A peer that has said hello and then sends what the test wants.
async fn raw_peer(address: &str) -> (stream::FrameReader, stream::FrameWriter) {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let keys = handshake::start_handshake(&mut read, &mut write, &credentials()).await.unwrap();
    let (mut incoming, mut outgoing) =
        stream::halves(Box::new(read), Box::new(write), keys, &WireLimits::default());
    stream::send_hello(&mut outgoing, &credentials(), &hello(7)).await.unwrap();
    assert_eq!(stream::read_hello(&mut incoming, &credentials()).await.unwrap(), hello(99));
    (incoming, outgoing)
}

/// Passes bytes between a client and a server. While it is cut, it drops them.
struct Cable {
    address: String,
    cut: watch::Sender<bool>,
}

impl Cable {
    async fn new(server: &str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (cut, is_cut) = watch::channel(false);
        let server = server.to_owned();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = tokio::net::TcpStream::connect(&server).await else { return };
                let (near_read, near_write) = near.into_split();
                let (far_read, far_write) = far.into_split();
                tokio::spawn(pass(near_read, far_write, is_cut.clone()));
                tokio::spawn(pass(far_read, near_write, is_cut.clone()));
            }
        });
        Self { address, cut }
    }
}

async fn pass(
    mut read: tokio::net::tcp::OwnedReadHalf,
    mut write: tokio::net::tcp::OwnedWriteHalf,
    cut: watch::Receiver<bool>,
) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut buffer = vec![0; 65_536];
    while let Ok(got) = read.read(&mut buffer).await
        && got > 0
    {
        if !*cut.borrow() && write.write_all(&buffer[..got]).await.is_err() {
            return;
        }
    }
}
