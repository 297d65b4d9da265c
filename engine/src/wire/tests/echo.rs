//! Honest peers.

use futures_util::future::join_all;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_calls_of_all_sizes_get_their_own_answers() {
    let server = Server::start(WireLimits::default(), Echo::default()).await;
    let link = server.link();
    let mut dice = Dice(1);
    let mut sizes: Vec<u64> = (0..4000).map(|_| dice.below(2000)).collect();
    sizes.extend([0, 1, 65_505, 65_506, 65_507, 65_519, 65_520, 131_072, 3 << 20, 20 << 20]);
    let calls = sizes.into_iter().enumerate().map(|(index, size)| {
        let mut body = vec![index as u8; size as usize];
        body.extend((index as u64).to_le_bytes());
        let link = link.clone();
        async move { assert!(call(&link, body.clone()).await.unwrap() == body) }
    });
    join_all(calls).await;
    assert_eq!(server.stop().await.gone.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn both_sides_receive_the_hello_of_their_peer() {
    let server = Server::start(WireLimits::default(), Echo::default()).await;
    let link = server.link();
    let peer = link.peer();
    assert_eq!(*peer.borrow(), None);
    assert_eq!(call(&link, "x").await.unwrap(), b"x");
    assert_eq!(*peer.borrow(), Some(hello(99)));
    server.stop().await;
    until(|| peer.borrow().is_none()).await;
}

#[tokio::test]
async fn a_late_answer_is_dropped_and_the_connection_stays_open() {
    let gate = Arc::new(Semaphore::new(0));
    let echo = Echo { gate: Some(Arc::clone(&gate)), ..Echo::default() };
    let server = Server::start(WireLimits::default(), echo).await;
    let link = server.link();
    // Connects before the timeouts are short.
    assert_eq!(call(&link, "x").await.unwrap(), b"x");
    let late = link.call(b"wait".to_vec(), Duration::from_millis(30)).await;
    assert!(matches!(late, Err(CallError::TimedOut { .. })), "{late:?}");
    let mut peer = link.peer();
    peer.mark_unchanged();
    for _ in 0..50 {
        let given_up = link.call(b"wait".to_vec(), PATIENCE);
        drop(tokio::time::timeout(Duration::from_millis(1), given_up).await);
    }
    gate.add_permits(40);
    for round in 0..200_u32 {
        assert_eq!(call(&link, round.to_le_bytes()).await.unwrap(), round.to_le_bytes());
    }
    assert!(!peer.has_changed().unwrap(), "the client connected again");
    assert_eq!(server.stop().await.gone.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_server_that_comes_back_is_found_again() {
    let server = Server::start(WireLimits::default(), Echo::default()).await;
    let link = server.link();
    assert_eq!(call(&link, "one").await.unwrap(), b"one");
    let address = server.address.clone();
    let pending = link.call(b"never".to_vec(), PATIENCE);
    let (broken, _) = tokio::join!(pending, async {
        until(|| server.echo.calls.load(Ordering::SeqCst) == 2).await;
        server.stop().await
    });
    assert!(matches!(broken, Err(CallError::Broken { .. })), "{broken:?}");
    let away = call(&link, "two").await.unwrap_err();
    assert!(matches!(away, CallError::Unreachable { .. }) && away.nothing_done(), "{away:?}");
    let server =
        Server::start_at(&address, credentials(), WireLimits::default(), Echo::default()).await;
    assert_eq!(call(&link, "three").await.unwrap(), b"three");
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_stops_writes_finished_answers_first() {
    let server = Server::start(WireLimits::default(), Echo::default()).await;
    let links: Vec<WireClient> = (0..20).map(|_| server.link()).collect();
    for link in &links {
        assert_eq!(call(link, "x").await.unwrap(), b"x");
    }
    assert_eq!(server.stop().await.gone.load(Ordering::SeqCst), 20);
    for link in &links {
        until(|| link.peer().borrow().is_none()).await;
    }
}

#[tokio::test]
async fn a_dropped_client_disconnects() {
    let server = Server::start(WireLimits::default(), Echo::default()).await;
    let link = server.link();
    assert_eq!(call(&link.clone(), "x").await.unwrap(), b"x");
    drop(link);
    until(|| server.echo.gone.load(Ordering::SeqCst) == 1).await;
    server.stop().await;
}
