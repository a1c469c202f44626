use crate::frame::error::FrameError;
use crate::signal::{BackpressureLevel, BackpressureSignal};
use minicbor::Decoder;
use minicbor::data::Type;

/// Reads the expected items of a body in order. An unexpected item is an error and never skipped, so nested input
/// causes no recursion.
pub(in crate::frame) struct CborReader<'b> {
    decoder: Decoder<'b>,
}

// === impl CborReader ===

impl<'b> CborReader<'b> {
    pub(in crate::frame) fn new(body: &'b [u8]) -> Self {
        Self { decoder: Decoder::new(body) }
    }

    #[inline]
    pub(in crate::frame) fn unsigned(&mut self, expected: &'static str) -> Result<u64, FrameError> {
        let at = self.decoder.position();
        self.decoder.u64().map_err(|_| FrameError::BadBody { at, expected })
    }

    #[inline]
    pub(in crate::frame) fn integer(&mut self, expected: &'static str) -> Result<i64, FrameError> {
        let at = self.decoder.position();
        self.decoder.i64().map_err(|_| FrameError::BadBody { at, expected })
    }

    pub(in crate::frame) fn u32(&mut self, expected: &'static str) -> Result<u32, FrameError> {
        let at = self.decoder.position();
        self.decoder.u32().map_err(|_| FrameError::BadBody { at, expected })
    }

    pub(in crate::frame) fn bool(&mut self, expected: &'static str) -> Result<bool, FrameError> {
        let at = self.decoder.position();
        self.decoder.bool().map_err(|_| FrameError::BadBody { at, expected })
    }

    pub(in crate::frame) fn text(&mut self, expected: &'static str) -> Result<&'b str, FrameError> {
        let at = self.decoder.position();
        self.decoder.str().map_err(|_| FrameError::BadBody { at, expected })
    }

    pub(in crate::frame) fn bytes(
        &mut self,
        expected: &'static str,
    ) -> Result<&'b [u8], FrameError> {
        let at = self.decoder.position();
        self.decoder.bytes().map_err(|_| FrameError::BadBody { at, expected })
    }

    /// CBOR integer: 64 bits and a sign.
    pub(in crate::frame) fn wide_integer(
        &mut self,
        expected: &'static str,
    ) -> Result<i128, FrameError> {
        let at = self.decoder.position();
        self.decoder.int().map(i128::from).map_err(|_| FrameError::BadBody { at, expected })
    }

    pub(in crate::frame) fn tag(&mut self, expected: &'static str) -> Result<u64, FrameError> {
        let at = self.decoder.position();
        match self.decoder.tag() {
            Ok(tag) => Ok(tag.as_u64()),
            Err(_) => Err(FrameError::BadBody { at, expected }),
        }
    }

    /// Reads the length of an array. Each item takes at least one byte, so a length beyond the rest of the body is
    /// an error before any allocation. An array of indefinite length is an error too.
    #[inline]
    pub(in crate::frame) fn array(&mut self, expected: &'static str) -> Result<u64, FrameError> {
        let at = self.decoder.position();
        match self.decoder.array() {
            Ok(Some(length)) if length <= self.left() as u64 => Ok(length),
            _ => Err(FrameError::BadBody { at, expected }),
        }
    }

    /// Reads the head of an array of exactly this length.
    pub(in crate::frame) fn array_of(
        &mut self,
        length: u64,
        expected: &'static str,
    ) -> Result<(), FrameError> {
        let at = self.decoder.position();
        match self.array(expected)? {
            given if given == length => Ok(()),
            _ => Err(FrameError::BadBody { at, expected }),
        }
    }

    /// Reads an item, or null as `None`.
    pub(in crate::frame) fn or_null<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, FrameError>,
    ) -> Result<Option<T>, FrameError> {
        if self.next_type() == Some(Type::Null) {
            let at = self.decoder.position();
            self.decoder.null().map_err(|_| FrameError::BadBody { at, expected: "null" })?;
            return Ok(None);
        }
        read(self).map(Some)
    }

    /// Type of the next item, without reading it.
    pub(in crate::frame) fn next_type(&self) -> Option<Type> {
        self.decoder.datatype().ok()
    }

    pub(in crate::frame) fn signal(&mut self) -> Result<BackpressureSignal, FrameError> {
        self.array_of(5, "a signal: an array of 5")?;
        let at = self.decoder.position();
        let level = self.unsigned("the signal's level")?;
        let level = usize::try_from(level).ok().and_then(|level| BackpressureLevel::ALL.get(level));
        Ok(BackpressureSignal {
            level: *level.ok_or(FrameError::BadBody { at, expected: "a level from 0 to 3" })?,
            delay_ms: self.u32("the signal's delay_ms")?,
            batch_only: self.bool("the signal's batch_only")?,
            drop_non_critical: self.bool("the signal's drop_non_critical")?,
            ttl_ms: self.u32("the signal's ttl_ms")?,
        })
    }

    pub(in crate::frame) fn position(&self) -> usize {
        self.decoder.position()
    }

    /// Checks that nothing follows.
    pub(in crate::frame) fn end(&self) -> Result<(), FrameError> {
        match self.left() {
            0 => Ok(()),
            bytes => Err(FrameError::TrailingBytes { bytes }),
        }
    }

    fn left(&self) -> usize {
        self.decoder.input().len() - self.decoder.position()
    }
}
