//! Peers that are refused, and the reasons they get.

use super::*;

async fn refused(with: Credentials) -> String {
    let server = Server::start(WireLimits::default(), Echo::default()).await;
    let link = server.link_with(Arc::new(with), WireLimits::default());
    let reason = match call(&link, "x").await {
        Err(CallError::Refused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(*link.peer().borrow(), None);
    until(|| server.refusals.count() == 1).await;
    assert_eq!(server.echo.calls.load(Ordering::SeqCst), 0);
    assert_eq!(call(&server.link(), "honest").await.unwrap(), b"honest");
    server.stop().await;
    reason
}

#[tokio::test]
async fn a_wrong_or_missing_secret_is_named() {
    for secret in [Some(b"another secret".as_slice()), Some(b""), None] {
        let reason = refused(Credentials::new(secret, b"a:1,b:2")).await;
        assert_eq!(reason, "the two nodes do not have the same secret");
    }
}

#[tokio::test]
async fn another_cluster_with_the_same_secret_is_named() {
    let reason = refused(Credentials::new(Some(b"a secret of the cluster"), b"a:1,c:3")).await;
    assert_eq!(reason, "the node belongs to another cluster: its `cluster.name` differs");
}

#[tokio::test]
async fn another_version_is_named() {
    for version in [0, 2, 255] {
        let other = Credentials::new(Some(b"a secret of the cluster"), b"a:1,b:2");
        assert_eq!(
            refused(other.with_version(version)).await,
            format!(
                "the node speaks version 1 of the protocol between nodes, \
                 this one {version}"
            )
        );
    }
}

#[tokio::test]
async fn the_reason_for_a_refusal_reaches_the_client() {
    let echo = Echo { refuse: true, ..Echo::default() };
    let server = Server::start(WireLimits::default(), echo).await;
    let error = call(&server.link(), "x").await.unwrap_err();
    let words = format!("`{}` refuses this node: life 7 is fenced", server.address);
    assert_eq!(error.to_string(), words);
    assert!(error.nothing_done());
    let echo = server.stop().await;
    assert_eq!(echo.gone.load(Ordering::SeqCst), 0, "a refused peer never disconnects");
}

#[tokio::test]
async fn a_server_with_too_many_connections_says_so() {
    let limits = WireLimits { connections_max: 2, ..WireLimits::default() };
    let server = Server::start(limits, Echo::default()).await;
    let links = [server.link(), server.link(), server.link()];
    assert!(call(&links[0], "x").await.is_ok());
    assert!(call(&links[1], "x").await.is_ok());
    let error = call(&links[2], "x").await.unwrap_err();
    assert!(error.to_string().contains("too many connections"), "{error}");
    drop(links);
    until(|| server.echo.gone.load(Ordering::SeqCst) == 2).await;
    assert!(call(&server.link(), "x").await.is_ok());
    server.stop().await;
}

#[tokio::test]
async fn a_dead_silent_or_foreign_server_is_unreachable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let limits =
        WireLimits { handshake_timeout: Duration::from_millis(100), ..WireLimits::default() };
    let link = WireClient::new(address, credentials(), introduce(7), limits);
    // It listens, but sends nothing.
    let error = call(&link, "x").await.unwrap_err();
    assert!(matches!(error, CallError::Unreachable { .. }), "{error:?}");
    let error = link.call(b"x".to_vec(), Duration::from_millis(1)).await.unwrap_err();
    assert!(matches!(error, CallError::Unreachable { .. }), "{error:?}");
    drop(listener);
    let error = call(&link, "x").await.unwrap_err();
    assert!(matches!(error, CallError::Unreachable { .. }), "{error:?}");
    let nowhere = "a name without a port".to_owned();
    let link = WireClient::new(nowhere, credentials(), introduce(7), WireLimits::default());
    let error = call(&link, "x").await.unwrap_err();
    assert!(matches!(error, CallError::Unreachable { .. }), "{error:?}");
}
