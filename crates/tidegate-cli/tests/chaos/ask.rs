use serde_json::Value;
use std::io::{Error, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A stopped manager does not respond; then another is tried, or the same again.
const PATIENCE: Duration = Duration::from_secs(4);

/// One exchange on a connection of its own: the status, and the JSON. An answer that broke off is an error.
pub fn ask(at: SocketAddr, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let body = body.map(ToString::to_string).unwrap_or_default();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n");
    let head = format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all((head + &body).as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    parse(&answer).ok_or_else(|| Error::other("the answer is cut"))
}

/// Response that must have status 200.
pub fn get(at: SocketAddr, path: &str) -> Result<Value> {
    match ask(at, "GET", path, None)? {
        (200, json) => Ok(json),
        (status, json) => Err(Error::other(format!("{path}: {status}: {json}"))),
    }
}

fn parse(answer: &[u8]) -> Option<(u16, Value)> {
    let text = std::str::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).ok()?))
}
