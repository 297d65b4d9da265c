//! Limits on what admitted peers can use.

use futures_util::future::join_all;

use super::*;

fn small() -> WireLimits {
    WireLimits { frame_max: 1 << 20, ..WireLimits::default() }
}

#[tokio::test]
async fn a_frame_that_is_too_large_fails_only_its_own_call() {
    let server = Server::start(small(), Echo::default()).await;
    let strict = server.link_with(credentials(), small());
    let sizes = (2 << 20, 1 << 20);
    let too_large = vec![1; 2 << 20];
    let error = call(&strict, too_large.clone()).await.unwrap_err();
    assert_eq!(error, CallError::RequestTooLarge { size: sizes.0, max: sizes.1 });
    // The server's own limit.
    let link = server.link();
    let (large, other) = tokio::join!(call(&link, too_large), call(&link, "other"));
    let error = large.unwrap_err();
    assert_eq!(error, CallError::RequestTooLarge { size: sizes.0, max: sizes.1 });
    assert!(error.nothing_done());
    assert_eq!(other.unwrap(), b"other");
    let (huge, other) = tokio::join!(call(&link, "huge"), call(&link, "other"));
    let error = huge.unwrap_err();
    assert_eq!(error, CallError::AnswerTooLarge { size: 3 << 20, max: 1 << 20 });
    assert!(!error.nothing_done());
    assert_eq!(other.unwrap(), b"other");
    let echo = server.stop().await;
    assert_eq!(echo.gone.load(Ordering::SeqCst), 1, "the connection stayed open");
    // The client's own limit.
    let server = Server::start(WireLimits::default(), Echo::default()).await;
    let strict = server.link_with(credentials(), small());
    let error = call(&strict, "huge").await.unwrap_err();
    assert_eq!(error, CallError::AnswerTooLarge { size: 3 << 20, max: 1 << 20 });
    assert_eq!(call(&strict, "other").await.unwrap(), b"other");
    assert_eq!(server.stop().await.gone.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_number_of_requests_in_flight_is_limited() {
    let gate = Arc::new(Semaphore::new(0));
    let echo = Echo { gate: Some(Arc::clone(&gate)), ..Echo::default() };
    let limits = WireLimits { in_flight_max: 5, ..WireLimits::default() };
    let server = Server::start(limits, echo).await;
    let link = server.link();
    let calls = tokio::spawn({
        let link = link.clone();
        async move { join_all((0..100).map(|_| call(&link, "wait"))).await }
    });
    until(|| server.echo.calls.load(Ordering::SeqCst) == 5).await;
    // Another connection is served in the meantime.
    assert_eq!(call(&server.link(), "other").await.unwrap(), b"other");
    assert_eq!(server.echo.calls.load(Ordering::SeqCst), 6);
    gate.add_permits(1);
    until(|| server.echo.calls.load(Ordering::SeqCst) == 7).await;
    gate.add_permits(99);
    assert!(calls.await.unwrap().iter().all(|answer| answer.as_deref() == Ok(b"wait")));
    server.stop().await;
}

#[tokio::test]
async fn a_slow_handler_delays_no_other_request_and_does_not_look_dead() {
    let gate = Arc::new(Semaphore::new(0));
    let echo = Echo { gate: Some(Arc::clone(&gate)), ..Echo::default() };
    let short = WireLimits {
        idle_timeout: Duration::from_secs(2),
        in_flight_max: 2,
        ..WireLimits::default()
    };
    let server = Server::start(short.clone(), echo).await;
    let link = server.link_with(credentials(), short);
    let slow = tokio::spawn({
        let link = link.clone();
        async move { call(&link, "wait").await }
    });
    for _ in 0..10 {
        assert_eq!(call(&link, "quick").await.unwrap(), b"quick");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    // At the limit, the server reads nothing for longer than the idle timeout.
    let second = tokio::spawn({
        let link = link.clone();
        async move { call(&link, "wait").await }
    });
    until(|| server.echo.calls.load(Ordering::SeqCst) == 12).await;
    let unanswered = link.call(b"third".to_vec(), Duration::from_secs(4)).await;
    assert!(matches!(unanswered, Err(CallError::TimedOut { .. })), "{unanswered:?}");
    gate.add_permits(2);
    assert_eq!(slow.await.unwrap().unwrap(), b"wait");
    assert_eq!(second.await.unwrap().unwrap(), b"wait");
    assert_eq!(server.stop().await.gone.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_idle_connection_stays_open_and_a_dead_one_is_noticed() {
    let limits = WireLimits { idle_timeout: Duration::from_secs(2), ..WireLimits::default() };
    let server = Server::start(limits.clone(), Echo::default()).await;
    let cable = Cable::new(&server.address).await;
    let link = WireClient::new(cable.address.clone(), credentials(), introduce(7), limits);
    assert!(call(&link, "x").await.is_ok());
    let mut peer = link.peer();
    peer.mark_unchanged();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(!peer.has_changed().unwrap(), "pings keep an idle connection open");
    cable.cut.send_replace(true);
    let error = call(&link, "x").await.unwrap_err();
    assert!(matches!(error, CallError::Broken { .. }), "{error:?}");
    until(|| server.echo.gone.load(Ordering::SeqCst) == 1).await;
    cable.cut.send_replace(false);
    assert_eq!(call(&link, "x").await.unwrap(), b"x");
    server.stop().await;
}

#[tokio::test]
async fn a_call_that_times_out_reveals_a_dead_connection() {
    let idle_timeout = Duration::from_secs(20);
    let limits = WireLimits { idle_timeout, ..WireLimits::default() };
    let server = Server::start(limits.clone(), Echo::default()).await;
    let cable = Cable::new(&server.address).await;
    let link = WireClient::new(cable.address.clone(), credentials(), introduce(7), limits);
    assert!(call(&link, "x").await.is_ok());
    cable.cut.send_replace(true);
    let began = std::time::Instant::now();
    let error = link.call(b"x".to_vec(), Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
    until(|| link.peer().borrow().is_none()).await;
    assert!(began.elapsed() < idle_timeout, "it waited for the idle timeout");
    server.stop().await;
}

#[tokio::test]
async fn a_peer_that_never_reads_is_disconnected() {
    let limits = WireLimits {
        idle_timeout: Duration::from_millis(300),
        frame_max: 1 << 20,
        ..WireLimits::default()
    };
    let server = Server::start(limits, Echo::default()).await;
    let (mut incoming, mut outgoing) = raw_peer(&server.address).await;
    incoming.trust(1 << 20);
    let flood = async {
        for number in 0..1000 {
            outgoing.push(frame::Frame::new(frame::FrameKind::Request, number, vec![9; 1 << 19]));
            outgoing.flush().await?;
        }
        Ok::<(), WireError>(())
    };
    assert!(tokio::time::timeout(PATIENCE, flood).await.unwrap().is_err());
    let calls = server.echo.calls.load(Ordering::SeqCst);
    assert!(calls < 100, "{calls} requests were read from a peer that reads no answers");
    assert_eq!(call(&server.link(), "other").await.unwrap(), b"other");
    until(|| server.echo.gone.load(Ordering::SeqCst) >= 1).await;
    server.stop().await;
}
