//! Clients without the secret that connect to the port of a node.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::{PATIENT, all_rows, rows_of, same_everywhere, three_at_gate};
use crate::harness::nodes::ask;
use crate::harness::wait_until;
use crate::kill::shop::SeededRandom;

/// Connects to a node, sends something wrong and disconnects.
fn visit(address: &str, dice: &mut SeededRandom) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    let timeout = Some(Duration::from_millis(50 + dice.below(200)));
    stream.set_read_timeout(timeout).unwrap();
    stream.set_write_timeout(timeout).unwrap();
    let noise: Vec<u8> = (0..dice.below(5000)).map(|_| dice.below(256) as u8).collect();
    let mut answer = [0; 4096];
    // The node may close the connection at any time, so errors are ignored.
    match dice.below(5) {
        0 => drop(stream.write_all(&noise)),
        1 => drop(stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")),
        // An incomplete length, and a huge one.
        2 => drop(stream.write_all(&[0xff; 3])),
        3 => drop(stream.write_all(&u32::MAX.to_le_bytes())),
        // The bytes of the node, sent back to it.
        _ => {
            if let Ok(length) = stream.read(&mut answer) {
                drop(stream.write_all(&answer[..length]));
            }
        }
    }
    drop(stream.read(&mut answer));
}

#[test]
fn connections_without_the_secret_do_not_disturb_the_run() {
    let (site, mut cluster, gate) = three_at_gate(80, 5, &["job.takeLimit=3", PATIENT]);
    cluster.share_secret();
    cluster.start_all();
    let stop = Arc::new(AtomicBool::new(false));
    let visits = Arc::new(AtomicUsize::new(0));
    let strangers: Vec<_> = (0..6_u64)
        .map(|number| {
            let addresses: Vec<String> =
                cluster.seats().map(|node| cluster.address(node).to_owned()).collect();
            let (stop, visits) = (Arc::clone(&stop), Arc::clone(&visits));
            std::thread::spawn(move || {
                let mut dice = SeededRandom(number);
                // Some connections stay open and silent.
                let mut idle = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let address = &addresses[dice.below(addresses.len() as u64) as usize];
                    visit(address, &mut dice);
                    if idle.len() < 100
                        && let Ok(stream) = TcpStream::connect(address)
                    {
                        idle.push(stream);
                    }
                    visits.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    // A command without the secret.
    let refused = ask(cluster.address(1), &["cancel"], cluster.work.root(), Duration::from_mins(1));
    cluster.done(5);
    wait_until("strangers have connected often", || visits.load(Ordering::Relaxed) > 50);
    gate.open();
    let ends = cluster.ends();
    stop.store(true, Ordering::Relaxed);
    for stranger in strangers {
        stranger.join().unwrap();
    }
    println!("{} visits", visits.load(Ordering::Relaxed));
    for (ending, node) in ends.iter().zip(1..) {
        assert_eq!(ending.code, 0, "node {node}: {ending:?}");
    }
    let (code, _, words) = refused.expect("an answer");
    assert_eq!(code, 1, "{words}");
    same_everywhere(&cluster);
    assert_eq!(rows_of(&cluster, 1), all_rows(80));
    assert_eq!(site.log().len(), 80, "a page was loaded twice");
}
