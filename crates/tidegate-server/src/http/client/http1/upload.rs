use crate::http::client::{ClientError, UploadBody};
use crate::http::request::{has, values};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http_body::Body;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// A longer piece of a body is written from where it is, in place of a copy behind what goes out before it.
const COPY_MAX: usize = 4 * 1024;

/// The body of a request, and its end as the head says it.
pub struct Upload {
    body: UploadBody,
    framing: Framing,
}

enum Framing {
    /// Bytes that are left.
    Length(u64),
    /// Chunks, and behind them those trailers that the head announces.
    Chunked(Vec<HeaderName>),
}

// === impl Upload ===

impl Upload {
    /// Frames a body, and writes the framing into the head of its request. `None` for an empty body.
    pub fn frame(headers: &mut HeaderMap, body: UploadBody) -> Option<Self> {
        let is_coded = has(headers, &header::TRANSFER_ENCODING);
        if body.is_end_stream() {
            if is_coded {
                headers.remove(header::TRANSFER_ENCODING);
            }
            // A body that does not come would be looked for in the next request.
            if values(headers, &header::CONTENT_LENGTH).any(|length| length != "0") {
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
            return None;
        }
        let framing = match body.size_hint().exact() {
            Some(length) if !is_coded => {
                let value = HeaderValue::from(length);
                if !values(headers, &header::CONTENT_LENGTH).eq([&value]) {
                    headers.insert(header::CONTENT_LENGTH, value);
                }
                Framing::Length(length)
            }
            _ => {
                headers.remove(header::CONTENT_LENGTH);
                headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
                Framing::Chunked(announced(headers))
            }
        };
        Some(Self { body, framing })
    }

    /// Moves the next piece of the body behind what goes out, or into `piece` when it is long. False at the end.
    ///
    /// # Errors
    ///
    /// When the body breaks off, or is not as long as its head says.
    pub fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        piece: &mut Bytes,
    ) -> Poll<Result<bool, ClientError>> {
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
            return Poll::Ready(self.end(out, None));
        };
        let Ok(frame) = frame else { return Poll::Ready(Err(ClientError::Upload)) };
        match frame.into_data() {
            Err(frame) => return Poll::Ready(self.end(out, frame.trailers_ref())),
            Ok(data) if data.is_empty() => {}
            Ok(data) => match &mut self.framing {
                Framing::Length(left) => {
                    *left = left.checked_sub(data.len() as u64).ok_or(ClientError::Upload)?;
                    if data.len() > COPY_MAX {
                        *piece = data;
                    } else {
                        out.extend_from_slice(&data);
                    }
                }
                Framing::Chunked(_) => {
                    // Writing to memory does not fail.
                    let _ = write!(out, "{:x}\r\n", data.len());
                    out.extend_from_slice(&data);
                    out.extend_from_slice(b"\r\n");
                }
            },
        }
        Poll::Ready(if self.body.is_end_stream() { self.end(out, None) } else { Ok(true) })
    }

    fn end(&self, out: &mut Vec<u8>, trailers: Option<&HeaderMap>) -> Result<bool, ClientError> {
        match &self.framing {
            Framing::Length(0) => {}
            Framing::Length(_) => return Err(ClientError::Upload),
            Framing::Chunked(announced) => {
                out.extend_from_slice(b"0\r\n");
                for (name, value) in trailers.into_iter().flatten() {
                    if announced.contains(name) && may_follow(name) {
                        out.extend_from_slice(name.as_str().as_bytes());
                        out.extend_from_slice(b": ");
                        out.extend_from_slice(value.as_bytes());
                        out.extend_from_slice(b"\r\n");
                    }
                }
                out.extend_from_slice(b"\r\n");
            }
        }
        Ok(false)
    }
}

/// The fields that a head announces as trailers.
fn announced(headers: &HeaderMap) -> Vec<HeaderName> {
    values(headers, &header::TRAILER)
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect()
}

/// Returns true if a field may be a trailer: none that frames, routes or authorizes the message (RFC 9110, section
/// 6.5.1).
fn may_follow(name: &HeaderName) -> bool {
    const NEVER: [HeaderName; 12] = [
        header::AUTHORIZATION,
        header::CACHE_CONTROL,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::CONTENT_TYPE,
        header::HOST,
        header::MAX_FORWARDS,
        header::SET_COOKIE,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
    ];
    !NEVER.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn framed(
        fields: &[(&'static str, &'static str)],
        pieces: &[&'static str],
    ) -> (HeaderMap, Option<Upload>) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let pieces = pieces.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect();
        let upload = Upload::frame(&mut headers, UploadBody::of_pieces(pieces, None));
        (headers, upload)
    }

    fn written(upload: &mut Upload) -> Vec<u8> {
        let (mut out, mut cx) = (Vec::new(), Context::from_waker(Waker::noop()));
        loop {
            let mut piece = Bytes::new();
            let polled = upload.poll_next(&mut cx, &mut out, &mut piece);
            out.extend_from_slice(&piece);
            match polled {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => return out,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_known_length_is_told_once() {
        for fields in [
            &[][..],
            &[("content-length", "5")],
            &[("content-length", "5"), ("content-length", "5")],
        ] {
            let (headers, upload) = framed(fields, &["hel", "lo"]);
            assert_eq!(headers.get_all("content-length").iter().collect::<Vec<_>>(), ["5"]);
            assert_eq!(written(&mut upload.unwrap()), b"hello");
        }
    }

    #[test]
    fn a_coded_body_has_no_length_beside_its_coding() {
        let fields = [("content-length", "5"), ("transfer-encoding", "chunked")];
        let (headers, upload) = framed(&fields, &["hel", "", "lo"]);
        assert!(!headers.contains_key("content-length"));
        assert_eq!(written(&mut upload.unwrap()), b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n");
    }

    #[test]
    fn an_empty_body_has_no_coding() {
        let (headers, upload) = framed(&[("transfer-encoding", "chunked")], &[]);
        assert!(upload.is_none() && headers.is_empty());
    }

    #[test]
    fn an_empty_body_has_no_length_but_none_or_zero() {
        for (length, sent) in [("0", "0"), ("5", "0")] {
            let (headers, upload) = framed(&[("content-length", length)], &[]);
            assert!(upload.is_none());
            assert_eq!(headers["content-length"], sent);
        }
    }

    #[test]
    fn a_body_that_differs_from_its_length_is_not_sent_as_if_it_did_not() {
        let (_, upload) = framed(&[], &["hello"]);
        for length in [4, 6] {
            let mut upload =
                Upload { framing: Framing::Length(length), ..framed(&[], &["hello"]).1.unwrap() };
            let mut cx = Context::from_waker(Waker::noop());
            let polled = upload.poll_next(&mut cx, &mut Vec::new(), &mut Bytes::new());
            assert!(
                matches!(polled, Poll::Ready(Err(ClientError::Upload))),
                "{length}: {polled:?}"
            );
        }
        assert_eq!(written(&mut upload.unwrap()), b"hello");
    }

    #[test]
    fn only_announced_trailers_follow_and_none_that_frames() {
        let fields = [("transfer-encoding", "chunked"), ("trailer", "x-sum, content-length")];
        let (_, upload) = framed(&fields, &["a"]);
        let mut trailers = HeaderMap::new();
        for name in ["x-sum", "x-other", "content-length"] {
            trailers.insert(name, HeaderValue::from_static("1"));
        }
        let mut out = Vec::new();
        assert!(!upload.unwrap().end(&mut out, Some(&trailers)).unwrap());
        assert_eq!(out, b"0\r\nx-sum: 1\r\n\r\n");
    }
}
