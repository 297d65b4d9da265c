//! An attacker between two honest peers, who changes or cuts their bytes.

use futures_util::stream::{self, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

#[derive(Clone, Copy, Debug)]
enum Deed {
    Flip(usize, u8),
    Cut(usize),
}

/// Passes bytes on, and tampers once in one direction.
async fn pass_with(
    mut read: impl tokio::io::AsyncRead + Unpin,
    mut write: impl tokio::io::AsyncWrite + Unpin,
    deed: Option<Deed>,
) -> usize {
    let mut buffer = vec![0; 4096];
    let mut passed = 0;
    while let Ok(got) = read.read(&mut buffer).await
        && got > 0
    {
        let mut piece = &mut buffer[..got];
        let mut last = false;
        match deed {
            Some(Deed::Flip(at, bit)) if (passed..passed + got).contains(&at) => {
                piece[at - passed] ^= 1 << bit;
            }
            Some(Deed::Cut(at)) if at < passed + got => {
                piece = &mut piece[..at - passed];
                last = true;
            }
            _ => {}
        }
        passed += piece.len();
        if write.write_all(piece).await.is_err() || last {
            break;
        }
    }
    drop(write.shutdown().await);
    passed
}

/// One conversation through a proxy that tampers with the bytes of the client or of the server. Returns the
/// answer that the client received and the bytes of each direction.
async fn talk(
    server: &Server,
    deed: Option<Deed>,
    to_client: bool,
) -> (Result<Vec<u8>, CallError>, usize, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let patience = if deed.is_some() { Duration::from_millis(250) } else { PATIENCE };
    let limits = WireLimits { handshake_timeout: patience, ..WireLimits::default() };
    let link = WireClient::new(address, credentials(), introduce(7), limits);
    let far_address = server.address.clone();
    let proxy = async move {
        let (mut near, _) = listener.accept().await.unwrap();
        drop(listener);
        let mut far = TcpStream::connect(&far_address).await.unwrap();
        let (near_read, near_write) = near.split();
        let (far_read, far_write) = far.split();
        tokio::join!(
            pass_with(near_read, far_write, deed.filter(|_| !to_client)),
            pass_with(far_read, near_write, deed.filter(|_| to_client)),
        )
    };
    let client = async move {
        let answer = link.call(b"pay 10 to alice".to_vec(), patience).await;
        drop(link);
        answer
    };
    let (answer, (out, back)) =
        tokio::time::timeout(PATIENCE, async { tokio::join!(client, proxy) }).await.unwrap();
    (answer, out, back)
}

async fn tamper(deed: impl Fn(usize) -> Deed) {
    let server = Server::start(WireLimits::default(), Echo::default()).await;
    let (answer, out, back) = talk(&server, None, false).await;
    assert_eq!(answer.unwrap(), b"pay 10 to alice");
    for (to_client, length) in [(false, out), (true, back)] {
        // Many at once, because some time out. Not all, because the number of open files is limited.
        let talks = (0..length).map(|at| {
            let (deed, server) = (deed(at), &server);
            async move {
                let (answer, ..) = talk(server, Some(deed), to_client).await;
                assert!(answer.is_err(), "{deed:?} to client: {to_client}: {answer:?}");
            }
        });
        stream::iter(talks).buffer_unordered(40).collect::<()>().await;
        if !to_client {
            let calls = server.echo.calls.load(Ordering::SeqCst);
            assert_eq!(calls, 1, "an incomplete request was handled");
        }
    }
    assert_eq!(call(&server.link(), "honest").await.unwrap(), b"honest");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_anywhere_is_noticed() {
    tamper(|at| Deed::Flip(at, (at % 8) as u8)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_cut_anywhere_ends_the_call() {
    tamper(Deed::Cut).await;
}
