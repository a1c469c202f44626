use super::read_buffer;
use crate::http::client::Malformed;
use bytes::{Buf, Bytes, BytesMut};
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Bytes of chunk extensions in one body, all of which are read and dropped.
const EXTENSIONS_MAX: usize = 16 * 1024;

/// Bytes and fields of trailers.
const TRAILERS_MAX: usize = 16 * 1024;
const TRAILER_FIELDS_MAX: usize = 100;

/// Undoes the chunked transfer coding (RFC 9112, section 7.1). As strict as the HTTP server is with requests:
/// lines end with CRLF, and a size is hexadecimal digits and nothing else.
#[derive(Debug, Default)]
pub struct ChunkScan {
    state: State,
    /// The size of a chunk while it is read, then the bytes left of the chunk.
    size: u64,
    extension_bytes: usize,
    trailers: Vec<u8>,
    trailer_fields: usize,
}

/// The position in a chunked body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    FirstDigit,
    Size,
    SizeSpace,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the beginning of a line behind the last chunk.
    LastLine,
    Trailer,
    TrailerLf,
    EndLf,
    End,
}

/// A piece of a chunked body.
#[derive(Debug)]
pub enum Chunk {
    /// The next piece is not here yet.
    Missing,
    /// Bytes of the body.
    Data(Bytes),
    /// The end of the body, with its trailers if it has any.
    End(Option<HeaderMap>),
}

// === impl ChunkScan ===

impl ChunkScan {
    /// Takes the next piece out of what was read.
    ///
    /// # Errors
    ///
    /// When the body is not chunked as it should be. Nothing after that can be read.
    pub fn take(&mut self, read: &mut BytesMut) -> Result<Chunk, Malformed> {
        let mut used = 0;
        while self.state != State::Data && self.state != State::End {
            let Some(&byte) = read.get(used) else {
                read.clear();
                return Ok(Chunk::Missing);
            };
            used += 1;
            self.state = self.step(byte)?;
        }
        read.advance(used);
        if self.state == State::End {
            let trailers = std::mem::take(&mut self.trailers);
            return Ok(Chunk::End(parse_trailers(&trailers)?));
        }
        if read.is_empty() {
            return Ok(Chunk::Missing);
        }
        let len = read.len().min(usize::try_from(self.size).unwrap_or(usize::MAX));
        self.size -= len as u64;
        let piece = read_buffer::piece(read, len);
        if self.size == 0 {
            self.state = State::DataCr;
            self.skip_line_end(read);
        }
        Ok(Chunk::Data(piece))
    }

    /// Steps over the end of a chunk's data that is here: alone it would look like more of the body, which goes
    /// with the piece before it whether the client has room or not.
    fn skip_line_end(&mut self, read: &mut BytesMut) {
        for (state, byte, next) in
            [(State::DataCr, b'\r', State::DataLf), (State::DataLf, b'\n', State::FirstDigit)]
        {
            if self.state == state && read.first() == Some(&byte) {
                read.advance(1);
                self.state = next;
            }
        }
    }

    fn step(&mut self, byte: u8) -> Result<State, Malformed> {
        Ok(match (self.state, byte) {
            (State::FirstDigit | State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                let size =
                    self.size.checked_mul(16).and_then(|size| size.checked_add(digit.into()));
                self.size = size.ok_or(Malformed("a chunk is too long"))?;
                State::Size
            }
            (State::Size | State::SizeSpace, b' ' | b'\t') => State::SizeSpace,
            (State::Size | State::SizeSpace, b';') => State::Extension,
            (State::Size | State::SizeSpace | State::Extension, b'\r') => State::SizeLf,
            (State::Extension, byte) if byte != b'\n' => {
                self.extension_bytes += 1;
                if self.extension_bytes > EXTENSIONS_MAX {
                    return Err(Malformed("the chunk extensions are too long"));
                }
                State::Extension
            }
            (State::SizeLf, b'\n') if self.size == 0 => State::LastLine,
            (State::SizeLf, b'\n') => State::Data,
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::FirstDigit,
            (State::LastLine, b'\r') => State::EndLf,
            (State::LastLine | State::Trailer, byte) => {
                self.trailers.push(byte);
                if self.trailers.len() > TRAILERS_MAX {
                    return Err(Malformed("the trailers are too long"));
                }
                if byte == b'\r' { State::TrailerLf } else { State::Trailer }
            }
            (State::TrailerLf, b'\n') => {
                self.trailers.push(byte);
                self.trailer_fields += 1;
                if self.trailer_fields > TRAILER_FIELDS_MAX {
                    return Err(Malformed("there are too many trailers"));
                }
                State::LastLine
            }
            (State::EndLf, b'\n') => State::End,
            _ => return Err(Malformed("a chunk does not begin or end as it should")),
        })
    }
}

fn parse_trailers(lines: &[u8]) -> Result<Option<HeaderMap>, Malformed> {
    if lines.is_empty() {
        return Ok(None);
    }
    let wrong = Malformed("the trailers are no fields");
    let whole = [lines, b"\r\n"].concat();
    let mut fields = [httparse::EMPTY_HEADER; TRAILER_FIELDS_MAX];
    let httparse::Status::Complete((_, fields)) =
        httparse::parse_headers(&whole, &mut fields).map_err(|_| wrong)?
    else {
        return Err(wrong);
    };
    let mut trailers = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| wrong)?;
        trailers.append(name, HeaderValue::from_bytes(field.value).map_err(|_| wrong)?);
    }
    Ok(Some(trailers))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body and its trailers; `None` without its end.
    type Decoded = Result<Option<(Vec<u8>, Option<HeaderMap>)>, Malformed>;

    /// The body of what comes in pieces of this size.
    fn read(wire: &[u8], step: usize) -> Decoded {
        let (mut scan, mut body, mut buffer) = (ChunkScan::default(), Vec::new(), BytesMut::new());
        for piece in wire.chunks(step) {
            buffer.extend_from_slice(piece);
            loop {
                match scan.take(&mut buffer)? {
                    Chunk::Missing => break,
                    Chunk::Data(data) => body.extend_from_slice(&data),
                    Chunk::End(trailers) => return Ok(Some((body, trailers))),
                }
            }
        }
        Ok(None)
    }

    #[test]
    fn a_whole_chunk_leaves_nothing_that_looks_like_more_of_the_body() {
        let (mut scan, mut buffer) = (ChunkScan::default(), BytesMut::new());
        for _ in 0..3 {
            buffer.extend_from_slice(b"4\r\nbody\r\n");
            assert!(matches!(scan.take(&mut buffer), Ok(Chunk::Data(data)) if data == "body"));
            assert!(buffer.is_empty());
        }
        buffer.extend_from_slice(b"4\r\nbodyX");
        assert!(matches!(scan.take(&mut buffer), Ok(Chunk::Data(_))));
        assert!(scan.take(&mut buffer).is_err(), "the data was whole, what follows is not");
    }

    /// The same, whatever the size of the pieces.
    fn decoded(wire: &str) -> Decoded {
        let whole = read(wire.as_bytes(), usize::MAX);
        for step in 1..8 {
            assert_eq!(read(wire.as_bytes(), step), whole, "{wire:?} in pieces of {step}");
        }
        whole
    }

    #[test]
    fn chunks_are_joined_and_extensions_dropped() {
        for wire in ["5\r\nhello\r\n0\r\n\r\n", "2;a=b\r\nhe\r\n3 \t;c\r\nllo\r\n00;d\r\n\r\n"] {
            assert_eq!(decoded(wire), Ok(Some((b"hello".to_vec(), None))), "{wire:?}");
        }
        let long = "A\r\n0123456789\r\n000\r\n\r\n";
        assert_eq!(decoded(long), Ok(Some((b"0123456789".to_vec(), None))));
    }

    #[test]
    fn trailers_are_fields() {
        let (body, trailers) = decoded("0\r\nx-sum: 1\r\nx-sum: 2\r\n\r\n").unwrap().unwrap();
        let trailers = trailers.unwrap();
        assert!(body.is_empty());
        assert_eq!(trailers.get_all("x-sum").iter().collect::<Vec<_>>(), ["1", "2"]);
        for wrong in ["0\r\nno colon\r\n\r\n", "0\r\n folded: 1\r\n\r\n", "0\r\nx y: 1\r\n\r\n"] {
            assert!(decoded(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_two_readers_could_take_for_two_sizes_is_malformed() {
        for wrong in [
            "\r\nhello",
            "0x5\r\nhello\r\n",
            "+5\r\nhello\r\n",
            "-1\r\n",
            "5\nhello\n",
            " 5\r\nhello\r\n",
            "5;a\n\r\nhello\r\n",
            "5 5\r\n",
            "10000000000000005\r\n",
            "5\r\nhelloX\r\n",
            "5\r\nhello0\r\n",
            "5\r\r\nhello",
            "0\r\n\rx",
            "G\r\n",
        ] {
            assert!(decoded(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_read_and_dropped_is_bounded() {
        let extensions = "1;aaaaaaaa\r\nx\r\n".repeat(EXTENSIONS_MAX / 8 + 1);
        assert!(read(extensions.as_bytes(), 4096).is_err());
        let trailers = format!("0\r\nx: {}", "y".repeat(TRAILERS_MAX));
        assert!(read(trailers.as_bytes(), 4096).is_err());
        let fields = format!("0\r\n{}", "x: y\r\n".repeat(TRAILER_FIELDS_MAX + 1));
        assert!(read(fields.as_bytes(), 4096).is_err());
    }

    #[test]
    fn a_body_without_its_end_is_not_over() {
        for cut in ["", "5", "5\r\nhel", "5\r\nhello", "5\r\nhello\r\n", "0\r\n", "0\r\nx: y\r\n"] {
            assert_eq!(decoded(cut), Ok(None), "{cut:?}");
        }
    }
}
