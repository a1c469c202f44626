use super::FrameError;
use crate::signal::{BackpressureLevel, BackpressureSignal};
use minicbor::Decoder;
use minicbor::data::Type;

/// Reads the items that a body must have, in their order. An item that was not expected is an error and is never
/// skipped, so however deep a sender nests, nothing here follows.
pub(super) struct CborReader<'b> {
    decoder: Decoder<'b>,
}

// === impl CborReader ===

impl<'b> CborReader<'b> {
    pub(super) fn new(body: &'b [u8]) -> Self {
        Self { decoder: Decoder::new(body) }
    }

    #[inline]
    pub(super) fn unsigned(&mut self, expected: &'static str) -> Result<u64, FrameError> {
        let at = self.decoder.position();
        self.decoder.u64().map_err(|_| FrameError::BadBody { at, expected })
    }

    #[inline]
    pub(super) fn integer(&mut self, expected: &'static str) -> Result<i64, FrameError> {
        let at = self.decoder.position();
        self.decoder.i64().map_err(|_| FrameError::BadBody { at, expected })
    }

    pub(super) fn u32(&mut self, expected: &'static str) -> Result<u32, FrameError> {
        let at = self.decoder.position();
        self.decoder.u32().map_err(|_| FrameError::BadBody { at, expected })
    }

    pub(super) fn bool(&mut self, expected: &'static str) -> Result<bool, FrameError> {
        let at = self.decoder.position();
        self.decoder.bool().map_err(|_| FrameError::BadBody { at, expected })
    }

    pub(super) fn text(&mut self, expected: &'static str) -> Result<&'b str, FrameError> {
        let at = self.decoder.position();
        self.decoder.str().map_err(|_| FrameError::BadBody { at, expected })
    }

    pub(super) fn bytes(&mut self, expected: &'static str) -> Result<&'b [u8], FrameError> {
        let at = self.decoder.position();
        self.decoder.bytes().map_err(|_| FrameError::BadBody { at, expected })
    }

    /// An integer of CBOR: 64 bits and a sign.
    pub(super) fn wide_integer(&mut self, expected: &'static str) -> Result<i128, FrameError> {
        let at = self.decoder.position();
        self.decoder.int().map(i128::from).map_err(|_| FrameError::BadBody { at, expected })
    }

    pub(super) fn tag(&mut self, expected: &'static str) -> Result<u64, FrameError> {
        let at = self.decoder.position();
        match self.decoder.tag() {
            Ok(tag) => Ok(tag.as_u64()),
            Err(_) => Err(FrameError::BadBody { at, expected }),
        }
    }

    /// The length of an array. Every item of it takes a byte at the least, so a length that the rest of the body
    /// can't hold is an error here, before anybody makes room for it. So is an array without a length.
    #[inline]
    pub(super) fn array(&mut self, expected: &'static str) -> Result<u64, FrameError> {
        let at = self.decoder.position();
        match self.decoder.array() {
            Ok(Some(length)) if length <= self.left() as u64 => Ok(length),
            _ => Err(FrameError::BadBody { at, expected }),
        }
    }

    /// An array of exactly this length.
    pub(super) fn array_of(
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

    /// `None` where null stands, and then null has been read.
    pub(super) fn or_null<T>(
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

    /// What comes next, with nothing read.
    pub(super) fn next_type(&self) -> Option<Type> {
        self.decoder.datatype().ok()
    }

    pub(super) fn signal(&mut self) -> Result<BackpressureSignal, FrameError> {
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

    pub(super) fn position(&self) -> usize {
        self.decoder.position()
    }

    /// That nothing follows.
    pub(super) fn end(&self) -> Result<(), FrameError> {
        match self.left() {
            0 => Ok(()),
            bytes => Err(FrameError::TrailingBytes { bytes }),
        }
    }

    fn left(&self) -> usize {
        self.decoder.input().len() - self.decoder.position()
    }
}
