//! What a client gets.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pantile::{Database, MediumKind, Options};
use pantile_exporter::{Exporter, serve};

fn served() -> (Database, Exporter) {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let exporter = serve(&db, ("127.0.0.1", 0)).expect("a port");
    (db, exporter)
}

/// Status line, headers, body.
fn ask(address: SocketAddr, request: &str) -> (String, String, String) {
    let mut stream = TcpStream::connect(address).expect("connect");
    stream.set_read_timeout(Some(Duration::from_secs(600))).expect("a limit");
    stream.write_all(request.as_bytes()).expect("ask");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let (status, headers) = head.split_once("\r\n").expect("headers");
    (status.to_owned(), headers.to_owned(), body.to_owned())
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n")
}

#[test]
fn prometheus_gets_what_the_database_counts() {
    let (db, exporter) = served();
    let commit = || db.begin().and_then(|txn| txn.commit()).expect("commit");
    (0..5).for_each(|_| _ = commit());
    let (status, headers, body) = ask(exporter.address(), &get("/metrics"));
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(headers.contains("Content-Type: text/plain; version=0.0.4"), "{headers}");
    assert!(headers.contains(&format!("Content-Length: {}", body.len())), "{headers}");
    let values = body.lines().filter(|line| !line.starts_with('#'));
    let parsed: Vec<(&str, f64)> = values
        .map(|line| line.rsplit_once(' ').map(|(name, value)| (name, value.parse().expect("a number"))))
        .map(|pair| pair.expect("a name and a value"))
        .collect();
    assert!(parsed.contains(&("pantile_commits_total", 5.0)), "{body}");
    assert!(parsed.len() > 25 && parsed.iter().all(|(name, _)| name.starts_with("pantile_")), "{body}");
    // The next one sees what has happened since.
    commit();
    assert!(ask(exporter.address(), &get("/metrics?x=1")).2.contains("\npantile_commits_total 6\n"));
}

#[test]
fn other_requests_are_refused() {
    let (_db, exporter) = served();
    let address = exporter.address();
    assert_eq!(ask(address, &get("/")).0, "HTTP/1.1 404 Not Found");
    assert_eq!(ask(address, "POST /metrics HTTP/1.1\r\n\r\n").0, "HTTP/1.1 405 Method Not Allowed");
    let (status, headers, body) = ask(address, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(status.ends_with("200 OK") && headers.contains("Content-Length: ") && body.is_empty());
    // One that asks for nothing, and one that never stops asking, end no thread.
    drop(TcpStream::connect(address).expect("connect"));
    let mut endless = TcpStream::connect(address).expect("connect");
    endless.set_write_timeout(Some(Duration::from_secs(600))).expect("a limit");
    let ended = (0..100_000).find_map(|_| endless.write_all(&[b'x'; 4096]).err()).map(|error| error.kind());
    let is_silent = matches!(ended, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut));
    assert!(ended.is_some() && !is_silent, "it is listened to, or waits, for ever: {ended:?}");
    assert!(ask(address, &get("/metrics")).0.ends_with("200 OK"));
}

/// Clients that say nothing keep nobody waiting, neither who asks nor who drops it.
#[test]
fn silent_clients_are_in_nobodys_way() {
    let (_db, exporter) = served();
    let address = exporter.address();
    let silent: Vec<_> = (0..20).map(|_| TcpStream::connect(address).expect("connect")).collect();
    assert!(ask(address, &get("/metrics")).0.ends_with("200 OK"));
    assert!(ask(address, &get("http://localhost:1/metrics")).0.ends_with("200 OK"), "as by a proxy");
    assert!(ask(address, &get("http://localhost")).0.ends_with("404 Not Found"));
    drop(exporter);
    drop(silent);
}

#[test]
fn dropping_it_frees_the_port_and_the_database() {
    let (db, exporter) = served();
    let address = exporter.address();
    assert!(serve(&db, address).is_err(), "the port is taken");
    drop(exporter);
    assert!(TcpStream::connect(address).is_err(), "nobody listens");
    drop(serve(&db, address).expect("the port is free"));
    db.close().expect("close");
}
