//! An upstream that reads bytes, and not what an HTTP library makes of them.

use crate::support::RawUpstream;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An upstream that records each request byte by byte and answers with its target.
pub struct Recorder {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Recorded>>>,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub head: String,
    pub body: Vec<u8>,
}

impl Recorder {
    pub async fn start() -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&seen);
        let upstream = RawUpstream::start(move |mut tcp| {
            let record = Arc::clone(&record);
            async move {
                while let Some(request) = Recorded::read(&mut tcp).await {
                    let target = request.target().to_owned();
                    record.lock().unwrap().push(request);
                    let length = target.len();
                    let answer =
                        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{target}");
                    if tcp.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await;
        Self { address: upstream.address, seen }
    }

    /// Takes what came since the last call.
    pub fn take(&self) -> Vec<Recorded> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

impl Recorded {
    /// Reads a request by the one framing that its head gives. `None` when it is not whole.
    async fn read(tcp: &mut TcpStream) -> Option<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(tcp.read_u8().await.ok()?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut recorded = Self { head, body: Vec::new() };
        if let Some(length) = recorded.field("content-length").first() {
            recorded.body.resize(length.parse().unwrap(), 0);
            tcp.read_exact(&mut recorded.body).await.ok()?;
        } else if !recorded.field("transfer-encoding").is_empty() {
            while let Some(chunk) = read_chunk(tcp).await? {
                recorded.body.extend(chunk);
            }
        }
        Some(recorded)
    }

    /// The values of a field.
    pub fn field(&self, name: &str) -> Vec<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let named = fields.filter(|(field, _)| field.trim().eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.trim()).collect()
    }

    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

/// A chunk, or none at the end of all, after the trailers.
async fn read_chunk(tcp: &mut TcpStream) -> Option<Option<Vec<u8>>> {
    let size = usize::from_str_radix(&read_line(tcp).await?, 16).unwrap();
    if size == 0 {
        while !read_line(tcp).await?.is_empty() {}
        return Some(None);
    }
    let mut chunk = vec![0; size];
    tcp.read_exact(&mut chunk).await.ok()?;
    read_line(tcp).await?;
    Some(Some(chunk))
}

async fn read_line(tcp: &mut TcpStream) -> Option<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(tcp.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&line).trim_end().to_owned())
}
