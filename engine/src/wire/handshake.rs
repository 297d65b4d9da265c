//! The handshake proves that both processes have the cluster's secret, and gives the keys of the
//! connection.
//!
//! | bytes | client sends | server sends |
//! | --- | --- | --- |
//! | 9 | `spoonbill` | `spoonbill` |
//! | 1 | version | version |
//! | 1 | | status: welcome, other version, or other secret |
//! | 48 | Noise message (pattern NNpsk0) | Noise message, only with welcome |
//!
//! All messages have a fixed length, so a peer without the secret cannot claim one. After the handshake,
//! each record is a length (2 bytes) and one encrypted Noise message.

use std::fmt;
use std::io;
use std::sync::Arc;

use snow::{Builder, HandshakeState, StatelessTransportState};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::wire::WireError;
use crate::wire::primitives::{Primitives, SUITE, TAG};

const NAME: &[u8; 9] = b"spoonbill";
/// Version of this protocol.
const VERSION: u8 = 1;
/// Bytes of a Noise message: a public key, and the tag of an empty text.
const MESSAGE: usize = 32 + TAG;
/// Bytes of the length in front of a record.
pub(super) const RECORD_HEAD: usize = 2;
pub(super) const RECORD_MAX: usize = 65_535;
pub(super) const RECORD_PLAIN_MAX: usize = RECORD_MAX - TAG;

const WELCOME: u8 = 0;
const OTHER_VERSION: u8 = 1;
const OTHER_SECRET: u8 = 2;

/// The secret and the name that both processes of a connection must share.
pub(crate) struct Credentials {
    key: [u8; 32],
    cluster: [u8; 32],
    version: u8,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl Credentials {
    /// `secret` is `None` only on loopback or with `cluster.insecure`. `cluster` names the cluster. A secret
    /// has to be long and random, because a recorded handshake allows offline guesses.
    pub(crate) fn new(secret: Option<&[u8]>, cluster: &[u8]) -> Self {
        let key = match secret {
            Some(secret) => blake3::derive_key("spoonbill wire 1: secret of a cluster", secret),
            None => blake3::derive_key("spoonbill wire 1: no secret", &[]),
        };
        let cluster = blake3::derive_key("spoonbill wire 1: name of a cluster", cluster);
        Self { key, cluster, version: VERSION }
    }

    #[cfg(test)]
    pub(super) fn with_version(mut self, version: u8) -> Self {
        self.version = version;
        self
    }

    /// Sent inside the channel, so that a wrong secret and another cluster give different errors.
    pub(super) fn cluster(&self) -> &[u8; 32] {
        &self.cluster
    }

    fn start(&self, client: bool) -> Result<HandshakeState, WireError> {
        let suite = SUITE.parse().map_err(|_| WireError::Damaged)?;
        let prologue = [NAME.as_slice(), &[self.version]].concat();
        let builder = Builder::with_resolver(suite, Box::new(Primitives))
            .psk(0, &self.key)
            .and_then(|builder| builder.prologue(&prologue))
            .map_err(|_| WireError::Damaged)?;
        let state = if client { builder.build_initiator() } else { builder.build_responder() };
        state.map_err(|_| WireError::Damaged)
    }
}

/// The client's half of the handshake.
pub(super) async fn start_handshake(
    read: &mut (impl AsyncRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
    credentials: &Credentials,
) -> Result<SessionKeys, WireError> {
    let mut state = credentials.start(true)?;
    let mut opening = [0; NAME.len() + 1 + MESSAGE];
    let (name, rest) = opening.split_at_mut(NAME.len());
    name.copy_from_slice(NAME);
    rest[0] = credentials.version;
    state.write_message(&[], &mut rest[1..]).map_err(|_| WireError::Damaged)?;
    write.write_all(&opening).await?;

    let mut reply = [0; NAME.len() + 2];
    read_all(read, &mut reply).await?;
    let [name @ .., version, status] = reply;
    if name != *NAME {
        return Err(WireError::Foreign);
    }
    match status {
        WELCOME if version == credentials.version => {}
        OTHER_VERSION => {
            return Err(WireError::Version { theirs: version, ours: credentials.version });
        }
        OTHER_SECRET => return Err(WireError::Secret),
        _ => return Err(WireError::Foreign),
    }
    let mut message = [0; MESSAGE];
    read_all(read, &mut message).await?;
    state.read_message(&message, &mut []).map_err(|_| WireError::Secret)?;
    SessionKeys::new(state)
}

/// The server's half of the handshake. It proves nothing about the client yet, which may have replayed an
/// old message. The first record that decrypts does.
pub(super) async fn answer(
    read: &mut (impl AsyncRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
    credentials: &Credentials,
) -> Result<SessionKeys, WireError> {
    let mut opening = [0; NAME.len() + 1];
    read_all(read, &mut opening).await?;
    let [name @ .., version] = opening;
    if name != *NAME {
        return Err(WireError::Foreign);
    }
    if version != credentials.version {
        refuse(read, write, credentials, OTHER_VERSION).await?;
        return Err(WireError::Version { theirs: version, ours: credentials.version });
    }
    let mut message = [0; MESSAGE];
    read_all(read, &mut message).await?;
    let mut state = credentials.start(false)?;
    if state.read_message(&message, &mut []).is_err() {
        refuse(read, write, credentials, OTHER_SECRET).await?;
        return Err(WireError::Secret);
    }
    let mut reply = [0; NAME.len() + 2 + MESSAGE];
    reply[..NAME.len() + 2].copy_from_slice(&reply_head(credentials.version, WELCOME));
    state.write_message(&[], &mut reply[NAME.len() + 2..]).map_err(|_| WireError::Damaged)?;
    write.write_all(&reply).await?;
    SessionKeys::new(state)
}

async fn read_all(read: &mut (impl AsyncRead + Unpin), into: &mut [u8]) -> io::Result<()> {
    match read.read_exact(into).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(closed()),
        result => result.map(|_| ()),
    }
}

/// A clearer message than that of the library.
pub(super) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the peer")
}

fn reply_head(version: u8, status: u8) -> [u8; NAME.len() + 2] {
    let mut head = [0; NAME.len() + 2];
    head[..NAME.len()].copy_from_slice(NAME);
    head[NAME.len()] = version;
    head[NAME.len() + 1] = status;
    head
}

async fn refuse(
    read: &mut (impl AsyncRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
    credentials: &Credentials,
    status: u8,
) -> Result<(), WireError> {
    write.write_all(&reply_head(credentials.version, status)).await?;
    write.shutdown().await?;
    // Closing with unread bytes would reset the connection, and the peer would not read the status.
    let mut rest = [0; 1024];
    for _ in 0..4 {
        if read.read(&mut rest).await? == 0 {
            break;
        }
    }
    Ok(())
}

/// The keys of one connection, one for each direction.
pub(super) struct SessionKeys(Arc<StatelessTransportState>);

impl SessionKeys {
    fn new(state: HandshakeState) -> Result<Self, WireError> {
        let state = state.into_stateless_transport_mode().map_err(|_| WireError::Damaged)?;
        Ok(Self(Arc::new(state)))
    }

    pub(super) fn split(self) -> (RecordSealer, RecordOpener) {
        (
            RecordSealer { keys: Arc::clone(&self.0), number: 0 },
            RecordOpener { keys: self.0, number: 0 },
        )
    }
}

/// Encrypts the outgoing records.
pub(super) struct RecordSealer {
    keys: Arc<StatelessTransportState>,
    number: u64,
}

impl RecordSealer {
    /// Encrypts `plain` into `record`, which is longer by [`RECORD_HEAD`] and [`TAG`].
    pub(super) fn seal(&mut self, plain: &[u8], record: &mut [u8]) -> Result<(), WireError> {
        let (head, body) = record.split_at_mut(RECORD_HEAD);
        head.copy_from_slice(&(body.len() as u16).to_be_bytes());
        self.keys.write_message(self.number, plain, body).map_err(|_| WireError::Damaged)?;
        self.number += 1;
        Ok(())
    }
}

/// Decrypts the incoming records. A changed, repeated or missing record gives an error.
pub(super) struct RecordOpener {
    keys: Arc<StatelessTransportState>,
    number: u64,
}

impl RecordOpener {
    /// Decrypts one record without its head into `plain`, which is shorter by [`TAG`].
    pub(super) fn open(&mut self, sealed: &[u8], plain: &mut [u8]) -> Result<(), WireError> {
        self.keys.read_message(self.number, sealed, plain).map_err(|_| WireError::Damaged)?;
        self.number += 1;
        Ok(())
    }
}
