//! Describes network errors, and decides whether a retry makes sense.

use std::error::Error;
use std::io;

use super::http::HttpSettings;
use super::{RetryAdvice, in_seconds};

/// The cause of a failed request, and whether to retry.
pub(super) fn explain(
    error: &reqwest::Error,
    host: &str,
    settings: &HttpSettings,
) -> (String, RetryAdvice) {
    let chain = chain(error);
    if error.is_dns() {
        return (format!("dns failed for host `{host}`{}", because(&chain)), RetryAdvice::Soon);
    }
    if let Some(tls) = find::<rustls::Error>(&chain) {
        return tls_trouble(tls);
    }
    if error.is_connect() && error.is_timeout() {
        let waited = in_seconds(settings.connect_timeout);
        return (format!("no connection after {waited}"), RetryAdvice::Soon);
    }
    if let Some(kind) = error.source().and_then(io_kind)
        && error.is_decode()
    {
        return decoder_trouble(kind, &chain);
    }
    if let Some(kind) = chain.iter().find_map(|e| io_kind(*e)) {
        let asked = error.is_request();
        if let Some(words) = broken(kind, asked) {
            return (words.to_owned(), RetryAdvice::Soon);
        }
    }
    if error.is_connect() {
        return (format!("no connection{}", because(&chain)), RetryAdvice::Soon);
    }
    if error.is_builder() {
        return (format!("cannot create the request{}", because(&chain)), RetryAdvice::Never);
    }
    // hyper has no public type for this case.
    if has_message(&chain, "connection closed before message completed") {
        return ("connection closed before the response".to_owned(), RetryAdvice::Soon);
    }
    (format!("the request failed{}", because(&chain)), RetryAdvice::Soon)
}

fn tls_trouble(error: &rustls::Error) -> (String, RetryAdvice) {
    match error {
        rustls::Error::InvalidCertificate(why) => {
            (format!("certificate not accepted: {why}"), RetryAdvice::Never)
        }
        other => (format!("TLS failed: {other}"), RetryAdvice::Soon),
    }
}

/// An error of the decompressor itself. Network errors have one more level.
fn decoder_trouble(kind: io::ErrorKind, chain: &[&(dyn Error + 'static)]) -> (String, RetryAdvice) {
    if kind == io::ErrorKind::UnexpectedEof {
        return ("the compressed body is cut off".to_owned(), RetryAdvice::Soon);
    }
    let cause = because(chain);
    (format!("the body cannot be decompressed{cause}"), RetryAdvice::Never)
}

fn broken(kind: io::ErrorKind, asked: bool) -> Option<&'static str> {
    match kind {
        io::ErrorKind::ConnectionRefused => Some("connection refused"),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => Some(if asked {
            "connection closed before the response"
        } else {
            "connection closed before the body was complete"
        }),
        io::ErrorKind::HostUnreachable => Some("host unreachable"),
        io::ErrorKind::NetworkUnreachable => Some("network unreachable"),
        _ => None,
    }
}

/// The error and its causes. `source` of an I/O error skips the error inside, so it is unwrapped.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut out = vec![error];
    let mut here = error;
    loop {
        let wrapped = here
            .downcast_ref::<io::Error>()
            .and_then(|e| e.get_ref())
            .map(|e| e as &(dyn Error + 'static));
        match wrapped.or_else(|| here.source()) {
            Some(next) => {
                out.push(next);
                here = next;
            }
            None => return out,
        }
    }
}

fn find<'a, E: Error + 'static>(chain: &[&'a (dyn Error + 'static)]) -> Option<&'a E> {
    chain.iter().find_map(|e| e.downcast_ref::<E>())
}

fn io_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    error.downcast_ref::<io::Error>().map(io::Error::kind)
}

fn has_message(chain: &[&(dyn Error + 'static)], words: &str) -> bool {
    chain.iter().any(|e| e.to_string() == words)
}

/// The innermost cause, which is the specific one.
fn because(chain: &[&(dyn Error + 'static)]) -> String {
    chain.last().map(|e| format!(", {e}")).unwrap_or_default()
}
