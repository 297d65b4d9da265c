//! Loads pages by HTTPS from a local site: only roots in the store of the machine are trusted.
//!
//! The key in `tls/` was made for this test, signs nothing else, and its root's key was thrown away.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::Acceptor;
use rustls::{ServerConfig, StreamOwned};
use spoonbill_plugins::loader::RetryAdvice;
use spoonbill_plugins::loader::http::{HttpLoader, HttpSettings};
use url::Url;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls/root.pem");
const CERTIFICATE: &[u8] = include_bytes!("tls/site.pem");
const KEY: &[u8] = include_bytes!("tls/site.key.pem");

/// Serves until the test process ends; the page lists the protocols that the client offers.
fn serve() -> u16 {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // A client that refuses the certificate closes the connection.
            answer(stream.unwrap(), &config).ok();
        }
    });
    port
}

fn answer(mut stream: TcpStream, config: &Arc<ServerConfig>) -> std::io::Result<()> {
    let mut acceptor = Acceptor::default();
    let accepted = loop {
        acceptor.read_tls(&mut stream)?;
        if let Some(accepted) = acceptor.accept().map_err(|_| std::io::ErrorKind::Other)? {
            break accepted;
        }
    };
    let offered = accepted.client_hello().alpn().into_iter().flatten();
    let body: Vec<String> = offered.map(|p| String::from_utf8_lossy(p).into_owned()).collect();
    let body = body.join(" ");
    let connection =
        accepted.into_connection(Arc::clone(config)).map_err(|_| std::io::ErrorKind::Other)?;
    let mut tls = StreamOwned::new(connection, stream);
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        tls.read_exact(&mut byte)?;
        request.extend(byte);
    }
    write!(tls, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    tls.flush()
}

fn loader() -> HttpLoader {
    let settings = HttpSettings {
        connect_timeout: Duration::from_millis(500),
        proxies: false,
        ..HttpSettings::default()
    };
    HttpLoader::new(&settings).unwrap()
}

#[tokio::test]
async fn an_unknown_root_is_refused() {
    let url: Url = format!("https://127.0.0.1:{}/x", serve()).parse().unwrap();
    let error = loader().load(&url).await.unwrap_err();
    let words = format!("cannot load `{url}`: certificate not accepted");
    assert!(error.message.starts_with(&words), "{error}");
    assert_eq!(error.retry, RetryAdvice::Never);
}

#[tokio::test]
async fn a_silent_handshake_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url: Url = format!("https://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let error = loader().load(&url).await.unwrap_err();
    assert_eq!(error.message, format!("cannot load `{url}`: no connection after 500 ms"));
    assert_eq!(error.retry, RetryAdvice::Soon);
}

/// Runs a test again in a child process with its own certificate store, because a process cannot
/// change its store. Returns whether this is the child.
fn in_a_child(test: &str, store: &str) -> bool {
    if std::env::var_os("TLS_CHILD").is_some() {
        return true;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("TLS_CHILD", "1")
        .env("SSL_CERT_FILE", store)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && out.contains("1 passed"), "{out}");
    false
}

#[tokio::test]
async fn roots_of_the_machine_are_trusted() {
    if !in_a_child("roots_of_the_machine_are_trusted", ROOT) {
        return;
    }
    let port = serve();
    let loader = loader();
    let url = format!("https://127.0.0.1:{port}/x").parse().unwrap();
    assert_eq!(loader.load(&url).await.unwrap().body, "h2 http/1.1");
    // A trusted root is not enough: the name must match.
    let url = format!("https://localhost:{port}/x").parse().unwrap();
    let error = loader.load(&url).await.unwrap_err();
    assert!(error.message.contains("certificate not accepted"), "{error}");
}

/// Without a certificate store, plain HTTP still works.
#[tokio::test]
async fn a_machine_without_roots_loads_plain_http() {
    if !in_a_child("a_machine_without_roots_loads_plain_http", "/dev/null") {
        return;
    }
    let loader = loader();
    let url: Url = format!("https://127.0.0.1:{}/x", serve()).parse().unwrap();
    let error = loader.load(&url).await.unwrap_err();
    assert!(error.message.contains("No CA certificates"), "{error}");
    let plain = "http://127.0.0.1:1/".parse().unwrap();
    let error = loader.load(&plain).await.unwrap_err();
    assert!(error.message.ends_with("connection refused"), "{error}");
}
