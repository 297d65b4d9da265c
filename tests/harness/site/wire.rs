//! Serves one connection: reads requests and sends answers with their faults.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

use super::response::{Framing, SiteRequest, SiteResponse};
use super::{RequestEntry, SiteShared};

pub(super) fn serve(mut stream: TcpStream, shared: &SiteShared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let from = stream.peer_addr().ok().map(|peer| peer.ip());
    while let Some(request) = read_request(&mut reader)? {
        let flight = Flight::start(shared, &request, from);
        let response = flight.decide(&request);
        if response.silent {
            // The read ends when the client gives up or the site stops.
            return io::copy(&mut reader, &mut io::sink()).map(drop);
        }
        if !shared.pause(response.delay) || !wait_at_gate(shared, &response) {
            return Ok(());
        }
        let head_only = request.method == "HEAD";
        send(&mut stream, &response, head_only, flight)?;
        if !response.keeps_alive() || request.header("connection") == Some("close") {
            return Ok(());
        }
    }
    Ok(())
}

/// Waits until the gate lets the answer through. Returns false if the site stops meanwhile.
fn wait_at_gate(shared: &SiteShared, response: &SiteResponse) -> bool {
    const POLL_INTERVAL: Duration = Duration::from_millis(10);
    while response.held.as_ref().is_some_and(|(gate, number)| gate.holds(*number)) {
        if !shared.pause(POLL_INTERVAL) {
            return false;
        }
    }
    true
}

fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<SiteRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None => break,
        }
    }
    let request = SiteRequest { method, path, headers };
    let length = request.header("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    io::copy(&mut reader.take(length), &mut io::sink())?;
    Ok(Some(request))
}

/// A request without a complete answer. It ends before the last byte is sent: a client that has its
/// answer may send the next request at once, and the two must not overlap in the log.
struct Flight<'a> {
    shared: &'a SiteShared,
    hit: usize,
    nth: usize,
}

impl<'a> Flight<'a> {
    fn start(shared: &'a SiteShared, request: &SiteRequest, from: Option<IpAddr>) -> Self {
        let mut state = shared.state();
        state.in_flight += 1;
        let in_flight = state.in_flight;
        let count = state.counts.entry(request.path.clone()).or_default();
        *count += 1;
        let nth = *count;
        let (path, at) = (request.path.clone(), Instant::now());
        state.hits.push(RequestEntry { path, at, end: None, in_flight, from });
        let hit = state.hits.len() - 1;
        Self { shared, hit, nth }
    }

    /// Asks the behaviour for the answer. The lock is free, because a behaviour may use the site.
    fn decide(&self, request: &SiteRequest) -> SiteResponse {
        let bare = request.path.split('?').next().unwrap_or_default();
        let behaviour = {
            let state = self.shared.state();
            let known = state.behaviours.get(&request.path).or_else(|| state.behaviours.get(bare));
            known.or(state.otherwise.as_ref()).cloned()
        };
        behaviour.map_or_else(|| SiteResponse::status(404), |b| b(request, self.nth))
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.in_flight -= 1;
        state.hits[self.hit].end = Some(Instant::now());
    }
}

fn send(
    stream: &mut TcpStream,
    response: &SiteResponse,
    head_only: bool,
    flight: Flight,
) -> io::Result<()> {
    const PIECE: usize = 64 * 1024;
    let length = if head_only { 0 } else { response.length() };
    let end = response.cut_after.map_or(length, |cut| cut.min(length));
    let whole = end == length;
    let chunked = response.framing == Framing::Chunked && !head_only;
    let shared = flight.shared;
    let mut flight = Some(flight);
    let (most, pause) = response.drip.unwrap_or((PIECE, Duration::ZERO));
    let mut wire = response.head();
    let mut at = 0;
    loop {
        let size = (end - at).min(most as u64) as usize;
        if size > 0 && !pause.is_zero() {
            // Bytes that are ready are sent before the pause.
            stream.write_all(&wire)?;
            wire.clear();
            if !shared.pause(pause) {
                return Ok(());
            }
        }
        let piece = response.piece(at, size);
        at += size as u64;
        if chunked && size > 0 {
            wire.extend(format!("{size:x}\r\n").into_bytes());
            wire.extend(piece);
            wire.extend(b"\r\n");
        } else {
            wire.extend(piece);
        }
        if at < end {
            stream.write_all(&wire)?;
            wire.clear();
            continue;
        }
        if chunked && whole {
            wire.extend(b"0\r\n\r\n");
        }
        drop(flight.take());
        return stream.write_all(&wire);
    }
}
