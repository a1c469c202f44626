//! Frames of HTTP/2, written by hand: no library sends what these tests send.

use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Fields as literals that no table remembers (RFC 7541, section 6.2.2).
pub fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).ok().filter(|length| *length < 127).unwrap());
            block.extend(text.as_bytes());
        }
    }
    block
}

/// The fields of a request for a path.
pub fn request(method: &str, path: &str) -> Vec<u8> {
    fields(&[(":method", method), (":scheme", "http"), (":authority", "x"), (":path", path)])
}

/// A connection that has sent its preface and these settings.
pub async fn connect(address: SocketAddr, settings: &[(u16, u32)]) -> TcpStream {
    let mut tcp = TcpStream::connect(address).await.unwrap();
    let pairs = settings.iter().flat_map(|(name, value)| {
        name.to_be_bytes().into_iter().chain(value.to_be_bytes()).collect::<Vec<_>>()
    });
    let settings = frame(SETTINGS, 0, 0, &pairs.collect::<Vec<_>>());
    tcp.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    tcp.write_all(&settings).await.unwrap();
    tcp
}
