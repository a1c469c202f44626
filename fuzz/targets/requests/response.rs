use bytes::BytesMut;
use http::HeaderMap;
use tidegate_server::http::client::{Chunk, ChunkScan, Framing, Malformed, ResponseHead};

/// The longest head that is read.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// A response as it was read, in a form that can be compared.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    status: u16,
    fields: HeaderMap,
    keep_alive: bool,
    framing: String,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
    ended: bool,
}

/// Reads a response of HTTP/1.1, whole and in pieces; another parser sees the same fields and the same length.
pub fn run(input: &[u8]) -> bool {
    let whole = read(input, input.len().max(1));
    for piece_bytes in [1, 2 + input.len() % 61] {
        assert_eq!(read(input, piece_bytes), whole, "in pieces of {piece_bytes} bytes");
    }
    let Ok(Some(read)) = whole else { return false };
    agrees(input, &read);
    true
}

fn read(input: &[u8], piece_bytes: usize) -> Result<Option<Read>, Malformed> {
    let (mut buffer, mut headers) = (BytesMut::new(), HeaderMap::new());
    let mut pieces = input.chunks(piece_bytes);
    let head = loop {
        let Some(piece) = pieces.next() else { return Ok(None) };
        buffer.extend_from_slice(piece);
        if let Some(head) = ResponseHead::take(&mut buffer, &mut headers, false)? {
            break head;
        }
        assert!(buffer.len() < HEAD_BYTES_MAX);
    };
    let ResponseHead { status, headers, mut framing, keep_alive, .. } = head;
    let name = match &framing {
        Framing::Length(length) => length.to_string(),
        Framing::Chunked(_) => "chunked".to_owned(),
        Framing::UntilClose => "until close".to_owned(),
    };
    let mut read = Read {
        status: status.as_u16(),
        fields: headers,
        keep_alive,
        framing: name,
        body: Vec::new(),
        trailers: None,
        ended: false,
    };
    loop {
        if let Framing::Chunked(scan) = &mut framing {
            read_chunks(scan, &mut buffer, &mut read)?;
        }
        let Some(piece) = pieces.next().filter(|_| !read.ended) else { return Ok(Some(read)) };
        buffer.extend_from_slice(piece);
    }
}

fn read_chunks(
    scan: &mut ChunkScan,
    buffer: &mut BytesMut,
    read: &mut Read,
) -> Result<(), Malformed> {
    while !read.ended {
        match scan.take(buffer)? {
            Chunk::Missing => return Ok(()),
            Chunk::Data(data) => read.body.extend_from_slice(&data),
            Chunk::End(trailers) => (read.trailers, read.ended) = (trailers, true),
        }
    }
    Ok(())
}

/// No field is lost but a `Connection` that says whether the connection stays, and no length is made up.
fn agrees(input: &[u8], read: &Read) {
    let text = String::from_utf8_lossy(input);
    let lines = text.lines().skip_while(|line| line.is_empty());
    let fields = lines.skip(1).take_while(|line| !line.is_empty());
    let fields: Vec<_> = fields.filter_map(|line| line.split_once(':')).collect();
    let connections = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("connection"));
    assert!(read.fields.len() <= fields.len());
    assert!(fields.len() - connections.count() <= read.fields.len());
    if read.framing.parse().is_ok_and(|length: u64| length > 0) {
        let lengths: Vec<_> = read.fields.get_all("content-length").iter().collect();
        assert!(!lengths.is_empty() && !read.fields.contains_key("transfer-encoding"));
        assert!(lengths.iter().all(|length| {
            let length = length.to_str().expect("digits");
            length
                .split(',')
                .all(|item| item.trim().parse().ok() == read.framing.parse::<u64>().ok())
        }));
    }
    assert!(read.body.len() <= input.len());
    assert!(!read.ended || read.framing == "chunked");
}
