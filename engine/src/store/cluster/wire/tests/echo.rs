//! Honest peers.

use futures_util::future::join_all;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_calls_of_all_sizes_meet_their_own_answers() {
    let server = Server::start(Limits::default(), Echo::default()).await;
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
async fn both_ends_learn_who_the_other_is() {
    let server = Server::start(Limits::default(), Echo::default()).await;
    let link = server.link();
    let peer = link.peer();
    assert_eq!(*peer.borrow(), None);
    assert_eq!(call(&link, "x").await.unwrap(), b"x");
    assert_eq!(*peer.borrow(), Some(hello(99)));
    server.stop().await;
    until(|| peer.borrow().is_none()).await;
}
