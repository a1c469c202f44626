use super::informational::{HeadWatch, INFORMATIONAL_MAX};
use super::read_guard::ReadCheck;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// Streams that wait for their response at once. More than a gateway sends: the limit on requests in flight is
/// lower.
const STREAMS_MAX: usize = 65_536;

/// Bytes in front of each frame of HTTP/2: length, type, flags, stream (RFC 9113, section 4.1).
const FRAME_HEAD: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_STREAM: u8 = 1;

/// Follows the frames of a server and counts the heads on each stream before its body. All of them but the last
/// are informational: only trailers come without being one, and they end the stream.
#[derive(Debug, Default)]
struct FrameScan {
    head: [u8; FRAME_HEAD],
    filled: usize,
    /// Bytes left of the payload.
    payload: usize,
    /// Heads of the streams whose body has not begun.
    heads: HashMap<u32, u32>,
}

/// The check of an HTTP/2 connection to a server. Fails when the server sends too many informational responses on
/// a stream, which the HTTP client itself reads for ever.
pub struct FrameCheck {
    watch: Arc<HeadWatch>,
    scan: FrameScan,
}

// === impl FrameScan ===

impl FrameScan {
    /// Reads on. False when a stream has too many heads.
    fn feed(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let skipped = self.payload.min(bytes.len());
            self.payload -= skipped;
            bytes = &bytes[skipped..];
            let copied = (FRAME_HEAD - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + copied].copy_from_slice(&bytes[..copied]);
            self.filled += copied;
            bytes = &bytes[copied..];
            if self.filled == FRAME_HEAD {
                self.filled = 0;
                if !self.begin_frame() {
                    return false;
                }
            }
        }
        true
    }

    fn begin_frame(&mut self) -> bool {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = self.head;
        self.payload = u32::from_be_bytes([0, l0, l1, l2]) as usize;
        let stream = u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]);
        match kind {
            HEADERS if flags & END_STREAM == 0 => {
                let heads = self.heads.entry(stream).or_default();
                *heads += 1;
                *heads <= INFORMATIONAL_MAX + 1 && self.heads.len() <= STREAMS_MAX
            }
            HEADERS | DATA | RST_STREAM if !self.heads.is_empty() => {
                self.heads.remove(&stream);
                true
            }
            _ => true,
        }
    }
}

// === impl FrameCheck ===

impl FrameCheck {
    pub fn new(watch: Arc<HeadWatch>) -> Self {
        Self { watch, scan: FrameScan::default() }
    }
}

impl ReadCheck for FrameCheck {
    fn check(&mut self, read: &[u8]) -> io::Result<()> {
        if self.scan.feed(read) { Ok(()) } else { Err(self.watch.exceed()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: usize) -> Vec<u8> {
        let mut frame = (payload as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.resize(FRAME_HEAD + payload, HEADERS);
        frame
    }

    /// The outcome of a scan, the same for the bytes at once and one by one.
    fn passes(frames: &[Vec<u8>]) -> bool {
        let bytes = frames.concat();
        let whole = FrameScan::default().feed(&bytes);
        let mut scan = FrameScan::default();
        assert_eq!(whole, bytes.iter().all(|byte| scan.feed(&[*byte])));
        whole
    }

    #[test]
    fn heads_before_the_body_are_counted_on_each_stream() {
        let heads = |stream, count| vec![frame(HEADERS, 4, stream, 5); count];
        assert!(passes(&[heads(1, 17), heads(3, 17)].concat()));
        assert!(!passes(&[heads(1, 17), heads(3, 18)].concat()));
        assert!(!passes(&heads(1, 18)));
    }

    #[test]
    fn a_body_an_end_and_a_reset_begin_anew_and_payloads_are_passed_over() {
        let heads = vec![frame(HEADERS, 4, 1, 0); 17];
        for end in [frame(DATA, 0, 1, 100), frame(HEADERS, 5, 1, 3), frame(RST_STREAM, 0, 1, 4)] {
            assert!(passes(&[heads.clone(), vec![end], heads.clone()].concat()));
        }
        assert!(!passes(&[heads, vec![frame(DATA, 0, 3, 9), frame(HEADERS, 4, 1, 0)]].concat()));
    }

    #[test]
    fn streams_that_have_answered_are_forgotten() {
        let mut scan = FrameScan::default();
        for stream in 0..1_000 {
            assert!(scan.feed(&frame(HEADERS, 4, stream, 7)));
            assert!(scan.feed(&frame(DATA, END_STREAM, stream, 2)));
        }
        assert!(scan.heads.is_empty());
    }
}
