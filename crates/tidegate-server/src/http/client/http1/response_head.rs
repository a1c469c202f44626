use super::ChunkScan;
use crate::http::client::Malformed;
use crate::http::wire::UPSTREAM_BUFFER_MAX;
use bytes::BytesMut;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{StatusCode, Version};
use std::mem::MaybeUninit;

/// Fields of a head.
const FIELDS_MAX: usize = 100;

/// The head of a response, and what it says of the message and of the connection.
#[derive(Debug)]
pub struct ResponseHead {
    /// The status.
    pub status: StatusCode,
    /// HTTP/1.1 or HTTP/1.0.
    pub version: Version,
    /// The fields, without a `Connection` that only says whether the connection stays.
    pub headers: HeaderMap,
    /// The end of the body.
    pub framing: Framing,
    /// True if the connection can take another request after the body.
    pub keep_alive: bool,
}

/// The end of a body (RFC 9112, section 6.3).
#[derive(Debug)]
pub enum Framing {
    /// After this many bytes.
    Length(u64),
    /// After the last chunk.
    Chunked(ChunkScan),
    /// At the end of the connection.
    UntilClose,
}

/// The positions of a field's name and value in its head.
#[derive(Clone, Copy, Default)]
struct Field {
    name: (u16, u16),
    value: (u16, u16),
}

/// The framing of a message, by the fields of its head.
struct Fields {
    length: Option<u64>,
    /// True if the last transfer coding is `chunked`.
    chunked: Option<bool>,
    invalid_length: bool,
    keep_alive: bool,
    closes: bool,
}

// === impl ResponseHead ===

impl ResponseHead {
    /// Takes one head out of what was read; `None` while it is not complete. `headers` is an empty map, whose
    /// memory is used again. An informational head is one as well.
    ///
    /// # Errors
    ///
    /// When it is no head, is too long, or could be framed in two ways.
    pub fn take(
        read: &mut BytesMut,
        headers: &mut HeaderMap,
        answers_head: bool,
    ) -> Result<Option<Self>, Malformed> {
        let mut positions = [Field::default(); FIELDS_MAX];
        let Some((len, status, version, count)) = locate(read, &mut positions)? else {
            return match read.len() >= UPSTREAM_BUFFER_MAX {
                true => Err(Malformed("its head is too long")),
                false => Ok(None),
            };
        };
        let head = read.split_to(len).freeze();
        headers.reserve(count);
        let mut fields = Fields::new(version);
        for Field { name, value } in &positions[..count] {
            let name = &head[usize::from(name.0)..usize::from(name.1)];
            let name = HeaderName::from_bytes(name).map_err(|_| Malformed("a field's name"))?;
            let value = head.slice(usize::from(value.0)..usize::from(value.1));
            let value =
                HeaderValue::from_maybe_shared(value).map_err(|_| Malformed("a field's value"))?;
            if fields.note(&name, &value) {
                headers.append(name, value);
            }
        }
        let bodiless = answers_head || has_no_body(status);
        let framing = if bodiless { Framing::Length(0) } else { fields.framing(version)? };
        Ok(Some(Self {
            status,
            version,
            headers: std::mem::take(headers),
            framing,
            keep_alive: fields.keep_alive && !fields.has_two_framings(),
        }))
    }
}

/// Finds the fields of a head; returns its length, its status, its version and the number of its fields.
fn locate(
    read: &[u8],
    positions: &mut [Field; FIELDS_MAX],
) -> Result<Option<(usize, StatusCode, Version, usize)>, Malformed> {
    let mut slots = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        read,
        &mut slots,
    );
    let len = match parsed {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Malformed("it has too many fields")),
        Err(_) => return Err(Malformed("its head is no HTTP/1.1")),
    };
    if len > UPSTREAM_BUFFER_MAX {
        return Err(Malformed("its head is too long"));
    }
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(Malformed("its status"))?;
    let version = if response.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let position = |part: &[u8]| {
        // A head is shorter than 64 KiB.
        let start = (part.as_ptr() as usize - read.as_ptr() as usize) as u16;
        (start, start + part.len() as u16)
    };
    for (field, found) in positions.iter_mut().zip(&*response.headers) {
        *field = Field { name: position(found.name.as_bytes()), value: position(found.value) };
    }
    Ok(Some((len, status, version, response.headers.len())))
}

fn has_no_body(status: StatusCode) -> bool {
    status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
}

// === impl Fields ===

impl Fields {
    fn new(version: Version) -> Self {
        let keep_alive = version == Version::HTTP_11;
        Self { length: None, chunked: None, invalid_length: false, keep_alive, closes: false }
    }

    /// Learns from a field. False if it says nothing more and need not be passed on.
    fn note(&mut self, name: &HeaderName, value: &HeaderValue) -> bool {
        if *name == header::CONTENT_LENGTH {
            let length = length_of(value);
            self.invalid_length |=
                length.is_none() || self.length.is_some_and(|l| Some(l) != length);
            self.length = length;
        } else if *name == header::TRANSFER_ENCODING {
            self.chunked = Some(ends_in_chunked(value));
        } else if *name == header::CONNECTION {
            return self.note_connection(value.as_bytes());
        }
        true
    }

    fn note_connection(&mut self, value: &[u8]) -> bool {
        let has = |option: &[u8]| {
            value
                .split(|byte| *byte == b',')
                .any(|item| item.trim_ascii().eq_ignore_ascii_case(option))
        };
        // One that closes is not undone by another that does not.
        self.closes |= has(b"close");
        self.keep_alive = !self.closes && (self.keep_alive || has(b"keep-alive"));
        !(value.eq_ignore_ascii_case(b"keep-alive") || value.eq_ignore_ascii_case(b"close"))
    }

    fn framing(&self, version: Version) -> Result<Framing, Malformed> {
        match (self.chunked, self.length) {
            (Some(_), _) if version == Version::HTTP_10 => {
                Err(Malformed("HTTP/1.0 has no transfer codings"))
            }
            (Some(true), _) => Ok(Framing::Chunked(ChunkScan::default())),
            (Some(false), _) => Ok(Framing::UntilClose),
            (None, _) if self.invalid_length => Err(Malformed("its length")),
            (None, Some(length)) => Ok(Framing::Length(length)),
            (None, None) => Ok(Framing::UntilClose),
        }
    }

    /// Returns true if the message has a length and a transfer coding: another reader may see another end of it.
    fn has_two_framings(&self) -> bool {
        self.chunked.is_some() && (self.length.is_some() || self.invalid_length)
    }
}

/// The length that a field says, once or several times.
fn length_of(value: &HeaderValue) -> Option<u64> {
    let mut items = value.as_bytes().split(|byte| *byte == b',').map(digits);
    let first = items.next()??;
    items.all(|item| item == Some(first)).then_some(first)
}

fn digits(item: &[u8]) -> Option<u64> {
    let item = item.trim_ascii();
    if item.is_empty() {
        return None;
    }
    item.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

fn ends_in_chunked(value: &HeaderValue) -> bool {
    let last = value.as_bytes().rsplit(|byte| *byte == b',').next();
    last.is_some_and(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(text: &str) -> Result<Option<ResponseHead>, Malformed> {
        ResponseHead::take(&mut BytesMut::from(text), &mut HeaderMap::new(), false)
    }

    fn parsed(text: &str) -> ResponseHead {
        take(text).unwrap_or_else(|error| panic!("{text:?}: {error}")).expect("a whole head")
    }

    /// A response with these fields.
    fn with(fields: &str) -> String {
        format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")
    }

    #[test]
    fn a_head_is_taken_whole_and_leaves_the_body() {
        let mut read =
            BytesMut::from("HTTP/1.1 200 OK\r\ncontent-length: 3\r\nx: y\r\n\r\nok\nHTTP");
        let mut headers = HeaderMap::new();
        let head = ResponseHead::take(&mut read, &mut headers, false).unwrap().unwrap();
        assert_eq!((head.status, head.version), (StatusCode::OK, Version::HTTP_11));
        assert_eq!(head.headers["x"], "y");
        assert!(matches!(head.framing, Framing::Length(3)) && head.keep_alive);
        assert_eq!(read, "ok\nHTTP");
    }

    #[test]
    fn a_head_in_pieces_is_awaited() {
        let whole = with("content-length: 3");
        for cut in 0..whole.len() {
            assert!(take(&whole[..cut]).unwrap().is_none(), "{:?}", &whole[..cut]);
        }
        assert!(take(&whole).unwrap().is_some());
    }

    #[test]
    fn the_framing_is_the_coding_the_length_or_the_end_of_the_connection() {
        let chunked = |fields| matches!(parsed(&with(fields)).framing, Framing::Chunked(_));
        let length = |fields| match parsed(&with(fields)).framing {
            Framing::Length(length) => Some(length),
            _ => None,
        };
        assert!(
            chunked("transfer-encoding: Chunked") && chunked("transfer-encoding: gzip, chunked")
        );
        assert!(matches!(parsed(&with("transfer-encoding: gzip")).framing, Framing::UntilClose));
        assert!(matches!(parsed(&with("x: y")).framing, Framing::UntilClose));
        assert_eq!(length("content-length: 5"), Some(5));
        assert_eq!(length("content-length: 5\r\ncontent-length: 5"), Some(5));
        assert_eq!(length("content-length: 5, 5"), Some(5));
        let both = parsed(&with("content-length: 3\r\ntransfer-encoding: chunked"));
        assert!(matches!(both.framing, Framing::Chunked(_)) && !both.keep_alive);
    }

    #[test]
    fn some_responses_have_no_body_whatever_they_say() {
        for status in
            ["100 Continue", "101 Switching Protocols", "204 No Content", "304 Not Modified"]
        {
            let head = parsed(&format!("HTTP/1.1 {status}\r\ncontent-length: 5\r\n\r\n"));
            assert!(matches!(head.framing, Framing::Length(0)), "{status}");
        }
        let mut read = BytesMut::from(&*with("content-length: 5"));
        let head = ResponseHead::take(&mut read, &mut HeaderMap::new(), true).unwrap().unwrap();
        assert!(matches!(head.framing, Framing::Length(0)));
        assert_eq!(head.headers["content-length"], "5");
    }

    #[test]
    fn what_could_be_framed_in_two_ways_is_malformed() {
        for fields in [
            "content-length: 5\r\ncontent-length: 6",
            "content-length: 5, 6",
            "content-length: +5",
            "content-length: -5",
            "content-length: 5 5",
            "content-length: 0x5",
            "content-length:",
            "content-length: 5,",
            "content-length: 18446744073709551621",
            "content-length : 5",
            "content-length:\r\n 5",
            "x: y\r\n content-length: 5",
            "transfer-encoding\n: chunked",
            "x: a\0b",
            "x: a\rb",
            "x y: a",
            "no colon",
            ": a",
        ] {
            assert!(take(&with(fields)).is_err(), "{fields:?}");
        }
        for head in [
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            "HTTP/1.2 200 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 099 No\r\n\r\n",
            "not http at all\r\n\r\n",
            "ICY 200 OK\r\n\r\n",
        ] {
            assert!(take(head).is_err(), "{head:?}");
        }
    }

    #[test]
    fn a_connection_stays_unless_one_of_both_sides_ends_it() {
        let stays = |head: &str| parsed(head).keep_alive;
        assert!(stays(&with("x: y")) && stays(&with("connection: keep-alive")));
        assert!(!stays(&with("connection: close")) && !stays(&with("connection: x, Close")));
        assert!(!stays(&with("connection: close\r\nconnection: keep-alive")));
        assert!(!stays("HTTP/1.0 200 OK\r\n\r\n"));
        assert!(stays("HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\n\r\n"));
        assert!(parsed(&with("connection: keep-alive")).headers.is_empty());
        assert_eq!(parsed(&with("connection: close, x-hop")).headers.len(), 1, "it names another");
    }

    #[test]
    fn a_head_is_bounded_in_bytes_and_fields() {
        assert!(take(&with("x: y\r\n".repeat(99).trim_end())).unwrap().is_some());
        assert!(take(&with("x: y\r\n".repeat(101).trim_end())).is_err());
        let long = format!("x: {}", "y".repeat(UPSTREAM_BUFFER_MAX));
        assert!(take(&with(&long)).is_err());
        assert!(take(&with(&long)[..UPSTREAM_BUFFER_MAX]).is_err(), "no end within the bound");
    }
}
