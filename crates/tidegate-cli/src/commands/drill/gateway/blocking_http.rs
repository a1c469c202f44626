use hyper::Uri;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// Timeout of a connect, a read and a write: the peer is on this machine or nearby.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes that are read of a response; the rest is ignored.
const HEAD_BYTES_MAX: u64 = 16 * 1024;

/// Head of an HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// Value of the header `x-tidegate-mock`: the name of a mock upstream.
    pub mock: Option<String>,
    /// Beginning of the body, without control characters.
    pub body: String,
}

/// Sends one request on a new connection and blocks for the response.
pub fn request(server: &Uri, path: &str, body: Option<&str>) -> io::Result<Reply> {
    let mut stream = connect(server)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let host = server.authority().map_or("", |authority| authority.as_str());
    let text = match body {
        None => format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"),
        Some(body) => format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ),
    };
    stream.write_all(text.as_bytes())?;
    let mut response = Vec::new();
    stream.take(HEAD_BYTES_MAX).read_to_end(&mut response)?;
    read(&String::from_utf8_lossy(&response))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the response is not HTTP"))
}

/// Connects to the first address of the host that accepts.
pub fn connect(server: &Uri) -> io::Result<TcpStream> {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = server.port_u16().unwrap_or(80);
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn read(response: &str) -> Option<Reply> {
    let (head, body) = response.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    let mock = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("x-tidegate-mock").then(|| value.trim().to_owned())
    });
    let body: String = body.chars().filter(|c| !c.is_control()).take(200).collect();
    Some(Reply { status, mock, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_however_it_is_written() {
        let reply = read("HTTP/1.1 200 OK\r\nX-Tidegate-Mock: upstream-3\r\nA: b\r\n\r\n{}\n");
        let mock = Some("upstream-3".to_owned());
        assert_eq!(reply, Some(Reply { status: 200, mock, body: "{}".to_owned() }));
        assert_eq!(read("HTTP/1.0 404 No\r\n\r\n").map(|reply| reply.status), Some(404));
        for wrong in ["", "220 ftp\r\n\r\n", "HTTP/1.1 2x\r\n\r\n", "HTTP/1.1 200 OK\r\n"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
