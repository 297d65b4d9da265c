//! Those who do not know the secret.

use std::io::ErrorKind;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

fn hasty() -> Limits {
    Limits { handshake_timeout: Duration::from_millis(150), ..Limits::default() }
}

async fn still_serves(server: &Server) {
    let link = server.link();
    assert_eq!(call(&link, "honest").await.unwrap(), b"honest");
}

/// Reads until the server closes; at most what a reply to a handshake may be.
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
        // The server may have closed before all is written.
        drop(stream.write_all(&bytes).await);
        let heard = read_to_end(&mut stream).await;
        assert!(heard.is_empty() || heard == b"spoonbill\x01\x02", "{heard:?}");
    }
    until(|| server.refusals.count() == 60).await;
    still_serves(&server).await;
    assert_eq!(server.stop().await.calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn half_a_handshake_ends_in_time() {
    let server = Server::start(hasty(), Echo::default()).await;
    let recorded = record(&server).await;
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
    let recorded = record(&server).await;
    let calls = server.echo.calls.load(Ordering::SeqCst);
    for size in [58, 59, 60, 100, recorded.len()] {
        let mut stream = TcpStream::connect(&server.address).await.unwrap();
        stream.write_all(&recorded[..size]).await.unwrap();
        // The first message is old but genuine, so it gets its reply; nothing after it opens.
        assert!(read_to_end(&mut stream).await.len() <= 59);
    }
    until(|| server.refusals.count() == 5).await;
    still_serves(&server).await;
    assert_eq!(server.stop().await.calls.load(Ordering::SeqCst), calls + 1);
}

/// What an honest client says in one conversation.
async fn record(server: &Server) -> Vec<u8> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let link = Link::new(address, credentials(), introduce(7), Limits::default());
    let server = server.address.clone();
    let proxy = async {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = TcpStream::connect(&server).await.unwrap();
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
    tokio::join!(proxy, talk).0
}

#[tokio::test]
async fn one_byte_at_a_time_is_too_slow() {
    let server = Server::start(hasty(), Echo::default()).await;
    let recorded = record(&server).await;
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let began = std::time::Instant::now();
    for byte in recorded {
        if stream.write_all(&[byte]).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    read_to_end(&mut stream).await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(server.refusals.count(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_peer_gets_few_bytes_before_it_has_proven_itself() {
    let server = Server::start(Limits::default(), Echo::default()).await;
    let recorded = record(&server).await;
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(&recorded[..58]).await.unwrap();
    // A record of the largest claimed length: given up after four kilobytes of it, not 64.
    drop(stream.write_all(&[0xff; 6000]).await);
    read_to_end(&mut stream).await;
    until(|| server.refusals.count() == 1).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_idle_strangers_do_not_keep_an_honest_peer_out() {
    let server = Server::start(Limits::default(), Echo::default()).await;
    let mut strangers = Vec::new();
    for _ in 0..2000 {
        // Where few files may be open, as many as are possible.
        match TcpStream::connect(&server.address).await {
            Ok(stream) => strangers.push(stream),
            Err(_) => break,
        }
    }
    if strangers.len() < 2000 {
        strangers.truncate(strangers.len() / 2);
    }
    still_serves(&server).await;
    let turned_away = strangers.len() as u64 - Limits::default().strangers_max() as u64;
    until(|| server.refusals.count() >= turned_away).await;
    still_serves(&server).await;
    server.stop().await;
}
