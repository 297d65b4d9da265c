//! Peers that do not have the secret.

use std::io::ErrorKind;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::*;

fn hasty() -> WireLimits {
    WireLimits { handshake_timeout: Duration::from_millis(400), ..WireLimits::default() }
}

async fn still_serves(server: &Server) {
    let link = server.link();
    assert_eq!(call(&link, "honest").await.unwrap(), b"honest");
}

/// Reads until the server closes, at most the length of a handshake.
async fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut heard = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut heard));
    if let Err(error) = read.await.expect("the server closes") {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    heard
}

#[tokio::test]
async fn random_bytes_get_no_answer() {
    let server = Server::start(hasty(), Echo::default()).await;
    let mut dice = Dice(5);
    for round in 0..60 {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        let size = dice.below(6000);
        let mut bytes: Vec<u8> = (0..size).map(|_| dice.roll() as u8).collect();
        if round % 3 == 0 {
            bytes.splice(..0, *b"spoonbill\x01");
        }
        // The server may close before all is written.
        drop(stream.write_all(&bytes).await);
        let heard = read_to_end(&mut stream).await;
        assert!(heard.is_empty() || heard == b"spoonbill\x01\x02", "{heard:?}");
    }
    until(|| server.refusals.count() == 60).await;
    still_serves(&server).await;
    assert_eq!(server.stop().await.calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_incomplete_handshake_times_out() {
    let server = Server::start(hasty(), Echo::default()).await;
    let recorded = record().await;
    let mut streams = Vec::new();
    for size in 0..58 {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream.write_all(&recorded[..size]).await.unwrap();
        streams.push(stream);
    }
    for mut stream in streams {
        assert!(read_to_end(&mut stream).await.is_empty());
    }
    until(|| server.refusals.count() == 58).await;
    still_serves(&server).await;
    server.stop().await;
}

#[tokio::test]
async fn a_replayed_conversation_does_nothing() {
    let server = Server::start(hasty(), Echo::default()).await;
    let recorded = record().await;
    let replays = [58, 59, 60, 100, recorded.len()].map(|size| {
        let (address, recorded) = (&server.address, &recorded);
        async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(&recorded[..size]).await.unwrap();
            // The first message is genuine, so it gets a reply. Nothing after it decrypts.
            assert!(read_to_end(&mut stream).await.len() <= 59);
        }
    });
    futures_util::future::join_all(replays).await;
    until(|| server.refusals.count() == 5).await;
    still_serves(&server).await;
    assert_eq!(server.stop().await.calls.load(Ordering::SeqCst), 1);
}

/// The bytes that an honest client sends in one conversation.
async fn record() -> Vec<u8> {
    let server = Server::start(WireLimits::default(), Echo::default()).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let link = WireClient::new(address, credentials(), introduce(7), WireLimits::default());
    let far_address = server.address.clone();
    let proxy = async {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = TcpStream::connect(&far_address).await.unwrap();
        let (mut near_read, mut near_write) = near.split();
        let (mut far_read, mut far_write) = far.split();
        let mut recorded = Vec::new();
        let out = async {
            let mut buffer = vec![0; 4096];
            while let Ok(got) = near_read.read(&mut buffer).await
                && got > 0
            {
                recorded.extend_from_slice(&buffer[..got]);
                far_write.write_all(&buffer[..got]).await.unwrap();
            }
            drop(far_write.shutdown().await);
        };
        let back = tokio::io::copy(&mut far_read, &mut near_write);
        drop(tokio::join!(out, back));
        recorded
    };
    let talk = async move {
        assert_eq!(call(&link, "recorded").await.unwrap(), b"recorded");
        drop(link);
    };
    let (recorded, ()) = tokio::join!(proxy, talk);
    server.stop().await;
    recorded
}

#[tokio::test]
async fn one_byte_at_a_time_is_too_slow() {
    let server = Server::start(hasty(), Echo::default()).await;
    let recorded = record().await;
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    for byte in recorded {
        if stream.write_all(&[byte]).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    read_to_end(&mut stream).await;
    assert_eq!(server.refusals.count(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_peer_may_send_few_bytes_before_its_hello() {
    let server = Server::start(WireLimits::default(), Echo::default()).await;
    let recorded = record().await;
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(&recorded[..58]).await.unwrap();
    // A record that claims 64 KiB. The server gives up after 4 KiB.
    drop(stream.write_all(&[0xff; 6000]).await);
    read_to_end(&mut stream).await;
    until(|| server.refusals.count() == 1).await;
    server.stop().await;
}

#[test]
fn a_flood_from_one_host_ends_only_its_own_handshakes() {
    let handshakes = handshakes::PendingHandshakes::default();
    let host = |last| std::net::IpAddr::from([10, 0, 0, last]);
    let mut honest = handshakes.begin(0, host(1), 4);
    let mut flood: Vec<_> = (1..20).map(|number| handshakes.begin(number, host(2), 4)).collect();
    assert_eq!(honest.try_recv(), Err(TryRecvError::Empty));
    let left: Vec<_> = flood.iter_mut().map(oneshot::Receiver::try_recv).collect();
    assert_eq!(left.iter().filter(|one| **one == Err(TryRecvError::Empty)).count(), 3);
    // With one handshake per host, the oldest ends.
    for number in 20..23 {
        drop(handshakes.begin(number, host(number as u8), 4));
    }
    drop(handshakes.begin(23, host(9), 4));
    assert_eq!(honest.try_recv(), Err(TryRecvError::Closed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_idle_peers_do_not_keep_an_honest_peer_out() {
    let server = Server::start(WireLimits::default(), Echo::default()).await;
    let mut strangers = std::collections::VecDeque::new();
    for _ in 0..2000 {
        strangers.push_back(TcpStream::connect(&server.address).await.unwrap());
        // Few files may be open at once, and the server has closed the oldest connections anyway.
        if strangers.len() > 300 {
            strangers.pop_front();
        }
    }
    still_serves(&server).await;
    let turned_away = 2000 - WireLimits::default().handshakes_max() as u64;
    until(|| server.refusals.count() >= turned_away).await;
    still_serves(&server).await;
    server.stop().await;
}
