//! A small web service: notes over HTTP, with nothing but the standard library.
//! The example is its own client.
//!
//! Each connection has a thread, and the threads share one `Database`. A request is one
//! transaction. The response is sent when the transaction is durable.
//!
//! `cargo run -p pantile --example web_service`

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pantile::{Database, Error, Range, Result, Table, TableDef, Type};

const LONGEST: usize = 2_000;

struct Service {
    db: Database,
    notes: Table,
    ends: AtomicBool,
}

/// A status line and a body.
type Answer = (&'static str, String);

impl Service {
    fn answer(&self, method: &str, path: &str, body: &str) -> Answer {
        let outcome = match (method, path.trim_start_matches("/notes/").parse::<u64>()) {
            ("GET", Ok(id)) => self.get(id),
            ("PUT", Ok(id)) => self.put(id, body),
            ("DELETE", Ok(id)) => self.delete(id),
            ("GET", Err(_)) if path == "/notes" => self.list(),
            _ => Ok(("404 Not Found", String::new())),
        };
        outcome.unwrap_or_else(|error| {
            let status = match error {
                Error::TooLong { .. } => "400 Bad Request",
                _ if error.is_retryable() => "503 Service Unavailable",
                _ => "500 Internal Server Error",
            };
            (status, error.to_string())
        })
    }

    fn get(&self, id: u64) -> Result<Answer> {
        let txn = self.db.begin_read()?;
        let Some(row) = txn.get(&self.notes, &[id.into()])? else {
            return Ok(("404 Not Found", String::new()));
        };
        Ok(("200 OK", row.get::<&str>("text")?.to_owned()))
    }

    fn put(&self, id: u64, text: &str) -> Result<Answer> {
        let existed = self.db.run(|txn| txn.upsert(&self.notes, &[id.into(), text.into()]))?;
        Ok((if existed { "200 OK" } else { "201 Created" }, String::new()))
    }

    fn delete(&self, id: u64) -> Result<Answer> {
        let existed = self.db.run(|txn| txn.delete(&self.notes, &[id.into()]))?;
        Ok((if existed { "200 OK" } else { "404 Not Found" }, String::new()))
    }

    fn list(&self) -> Result<Answer> {
        let txn = self.db.begin_read()?;
        let ids = txn.scan(&self.notes, Range::all().limit(100))?.map(|row| row?.get::<u64>("id"));
        Ok(("200 OK", format!("{:?}", ids.collect::<Result<Vec<_>>>()?)))
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(&stream);
        let (mut line, mut header, mut length) = (String::new(), String::new(), 0);
        reader.read_line(&mut line)?;
        while reader.read_line(&mut header)? > 2 {
            if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            header.clear();
        }
        let mut body = vec![0; length.min(LONGEST + 1)];
        reader.read_exact(&mut body)?;
        let mut words = line.split_whitespace();
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let (status, text) = self.answer(method, path, &String::from_utf8_lossy(&body));
        write!(
            &stream,
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
            text.len()
        )
    }

    fn listen(&self, listener: &TcpListener) {
        thread::scope(|scope| {
            for stream in listener.incoming().flatten().take_while(|_| !self.ends.load(Ordering::Relaxed)) {
                scope.spawn(|| self.serve(stream));
            }
        });
    }
}

/// One request. Returns the status code and the body.
fn request(to: SocketAddr, method: &str, path: &str, body: &str) -> std::io::Result<(String, String)> {
    let mut stream = TcpStream::connect(to)?;
    write!(stream, "{method} {path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    Ok((head.split_whitespace().nth(1).unwrap_or("").to_owned(), body.to_owned()))
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let db = Database::open(dir.path())?;
    let notes = TableDef::new("notes").column("id", Type::U64).column("text", Type::String(LONGEST as u32));
    let notes = db.open_or_create(notes.primary_key(["id"]))?;
    let service = Service { db, notes, ends: AtomicBool::new(false) };
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let to = listener.local_addr()?;

    thread::scope(|scope| -> std::io::Result<()> {
        scope.spawn(|| service.listen(&listener));
        let clients: Vec<_> = (1..=8)
            .map(|n| scope.spawn(move || request(to, "PUT", &format!("/notes/{n}"), &format!("note {n}"))))
            .collect();
        for client in clients {
            assert_eq!(client.join().expect("a client")?.0, "201");
        }
        println!("GET /notes: {}", request(to, "GET", "/notes", "")?.1);
        assert_eq!(request(to, "GET", "/notes/3", "")?, ("200".into(), "note 3".into()));
        assert_eq!(request(to, "DELETE", "/notes/3", "")?.0, "200");
        assert_eq!(request(to, "GET", "/notes/3", "")?.0, "404");
        let (status, why) = request(to, "PUT", "/notes/9", &"x".repeat(LONGEST + 1))?;
        println!("a note that is too long: {status}, {why}");
        assert_eq!(status, "400");
        service.ends.store(true, Ordering::Relaxed);
        TcpStream::connect(to).map(|_| ())
    })?;
    Ok(service.db.close()?)
}
