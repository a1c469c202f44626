use super::{FrameError, FrameLimits, HEADER_BYTES, PROTOCOL_VERSION, RawFrame};
use bytes::{Buf, Bytes};

/// As much of a frame as says how long it is, and whether it is one of ours.
const PREFIX_BYTES: usize = 5;

/// Room for the beginning of a frame before more of it has come.
const PARTIAL_BYTES_MIN: usize = 512;

/// Puts frames together that the network cut.
///
/// Give it what was read with [`push`](Self::push), then take frames with [`next`](Self::next) until there is
/// none. It holds the chunk it was given and at most one frame that has begun; a frame that lies in one chunk is
/// not copied. What a length promises is not allocated before it comes.
#[derive(Debug)]
pub struct Reassembler {
    limits: FrameLimits,
    /// What has come of a frame that began in an earlier chunk.
    partial: Vec<u8>,
    chunk: Bytes,
    broken: Option<FrameError>,
}

// === impl Reassembler ===

impl Reassembler {
    /// For a new connection.
    #[must_use]
    pub fn new(limits: FrameLimits) -> Self {
        Self { limits, partial: Vec::new(), chunk: Bytes::new(), broken: None }
    }

    /// Takes what was read, cut anywhere. Of any size: only a frame has a limit, not a read.
    ///
    /// Take all frames of a chunk before the next one is pushed: otherwise what is left is copied, and both are
    /// held.
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

    /// The next whole frame, or `None` when more must be pushed first.
    ///
    /// # Errors
    ///
    /// When what came is no frame. If that [breaks the framing](FrameError::breaks_framing) every later call gives
    /// the same error, and nothing is held any more; otherwise that frame is passed over, and the next call goes
    /// on behind it.
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

    /// How many bytes it holds: of the chunk, and of the frame that has begun.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.partial.capacity() + self.chunk.len()
    }

    /// Whether a frame has begun whose end has not come: at the end of a connection, one that was cut off.
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

    /// Moves up to `wanted` bytes of the chunk to the frame that has begun, which will have `frame_bytes` in all.
    fn keep(&mut self, wanted: usize, frame_bytes: usize) {
        let count = wanted.min(self.chunk.len());
        let length = self.partial.len() + count;
        if length > self.partial.capacity() {
            // What came earns room for as much again: a length alone earns none.
            let room = (2 * length).max(PARTIAL_BYTES_MIN).min(frame_bytes.max(length));
            self.partial.reserve_exact(room - self.partial.len());
        }
        self.partial.extend_from_slice(&self.chunk[..count]);
        self.chunk.advance(count);
        if self.chunk.is_empty() {
            // Not only empty: it would keep the whole read alive.
            self.chunk = Bytes::new();
        }
    }
}

/// How long the frame is that begins here, once that is known.
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
