use super::{FrameError, FrameLimits, HEADER_BYTES, PROTOCOL_VERSION, RawFrame};
use bytes::{Buf, Bytes};

/// Prefix of a frame with its length and version, in bytes.
const PREFIX_BYTES: usize = 5;

/// Initial capacity for a partial frame, in bytes.
const PARTIAL_BYTES_MIN: usize = 512;

/// Reassembles frames from chunks of any size.
///
/// Feed it with [`push`](Self::push), then take frames with [`next`](Self::next) until `None`. It holds the last
/// chunk and at most one partial frame; a frame within one chunk is not copied. Memory for a frame is allocated as
/// its bytes arrive, not by its announced length.
#[derive(Debug)]
pub struct Reassembler {
    limits: FrameLimits,
    /// Bytes of a frame that began in an earlier chunk.
    partial: Vec<u8>,
    chunk: Bytes,
    broken: Option<FrameError>,
}

// === impl Reassembler ===

impl Reassembler {
    /// Creates the reassembler of a new connection.
    #[must_use]
    pub fn new(limits: FrameLimits) -> Self {
        Self { limits, partial: Vec::new(), chunk: Bytes::new(), broken: None }
    }

    /// Replaces the limits, from the next frame on: a peer that has proven its identity may send longer ones.
    pub fn set_limits(&mut self, limits: FrameLimits) {
        self.limits = limits;
    }

    /// Adds a chunk, split anywhere and of any size: only frames are limited.
    ///
    /// Take all frames of a chunk before the next one is pushed: otherwise the rest is copied, and both are held.
    pub fn push(&mut self, chunk: Bytes) {
        if self.broken.is_some() {
            return;
        }
        if self.chunk.is_empty() {
            self.chunk = chunk;
        } else if !chunk.is_empty() {
            self.chunk = [&self.chunk[..], &chunk[..]].concat().into();
        }
    }

    /// Next complete frame, or `None` if more input is needed.
    ///
    /// # Errors
    ///
    /// If the input is no frame. After an error that [breaks the framing](FrameError::breaks_framing) every later
    /// call returns the same error, and all memory is released; otherwise that frame is skipped, and the next call
    /// continues after it.
    #[allow(clippy::should_implement_trait, reason = "an iterator that ends would not go on")]
    pub fn next(&mut self) -> Result<Option<RawFrame>, FrameError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        match self.next_whole() {
            Ok(Some(mut whole)) => {
                let (kind, class) = (whole[PREFIX_BYTES], whole[PREFIX_BYTES + 1]);
                whole.advance(HEADER_BYTES);
                RawFrame::read(kind, class, whole).map(Some)
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.partial = Vec::new();
                self.chunk = Bytes::new();
                self.broken = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Bytes held: the chunk, and the partial frame.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.partial.capacity() + self.chunk.len()
    }

    /// True within a partial frame: at the end of a connection, the frame was truncated.
    #[must_use]
    pub fn is_within_frame(&self) -> bool {
        !self.partial.is_empty() || !self.chunk.is_empty()
    }

    fn next_whole(&mut self) -> Result<Option<Bytes>, FrameError> {
        if self.partial.is_empty() {
            let bytes = frame_bytes(&self.chunk, &self.limits)?;
            if let Some(bytes) = bytes.filter(|bytes| *bytes <= self.chunk.len()) {
                return Ok(Some(self.chunk.split_to(bytes)));
            }
            self.keep(self.chunk.len(), bytes.unwrap_or(PREFIX_BYTES));
            return Ok(None);
        }
        self.keep(PREFIX_BYTES.saturating_sub(self.partial.len()), PREFIX_BYTES);
        let Some(bytes) = frame_bytes(&self.partial, &self.limits)? else { return Ok(None) };
        self.keep(bytes - self.partial.len(), bytes);
        if self.partial.len() < bytes {
            return Ok(None);
        }
        Ok(Some(std::mem::take(&mut self.partial).into()))
    }

    /// Moves up to `wanted` bytes of the chunk to the partial frame, which will have `frame_bytes` in all.
    fn keep(&mut self, wanted: usize, frame_bytes: usize) {
        let count = wanted.min(self.chunk.len());
        let length = self.partial.len() + count;
        if length > self.partial.capacity() {
            // Capacity grows with the received bytes: an announced length alone allocates nothing.
            let room = (2 * length).max(PARTIAL_BYTES_MIN).min(frame_bytes.max(length));
            self.partial.reserve_exact(room - self.partial.len());
        }
        self.partial.extend_from_slice(&self.chunk[..count]);
        self.chunk.advance(count);
        if self.chunk.is_empty() {
            // Released and not only empty: a slice would keep the whole read alive.
            self.chunk = Bytes::new();
        }
    }
}

/// Length of the frame that begins here, once known.
fn frame_bytes(start: &[u8], limits: &FrameLimits) -> Result<Option<usize>, FrameError> {
    let Some((&length, rest)) = start.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(length);
    let length_max = limits.length_max();
    if length > length_max {
        return Err(FrameError::TooLong { length, length_max });
    }
    if (length as usize) < HEADER_BYTES - 4 {
        return Err(FrameError::TooShort { length });
    }
    match rest.first() {
        Some(&PROTOCOL_VERSION) => Ok(Some(length as usize + 4)),
        Some(&given) => Err(FrameError::UnknownVersion { given }),
        None => Ok(None),
    }
}
