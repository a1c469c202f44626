use crate::admission::MessageClass;
use crate::frame::kind::{FrameKind, HEADER_BYTES, PROTOCOL_VERSION};
use crate::signal::BackpressureSignal;

const UNSIGNED: u8 = 0 << 5;
const NEGATIVE: u8 = 1 << 5;
const BYTES: u8 = 2 << 5;
const TEXT: u8 = 3 << 5;
const ARRAY: u8 = 4 << 5;
const TAG: u8 = 6 << 5;
const FALSE: u8 = 0xf4;
const TRUE: u8 = 0xf5;
const NULL: u8 = 0xf6;

/// CBOR writer for the items of frames, each in its shortest form, into memory: nothing can fail.
pub(in crate::frame) struct CborWriter<'a> {
    out: &'a mut Vec<u8>,
}

/// Appends a frame: its header, and the body that `write` writes.
pub(in crate::frame) fn write_frame(
    out: &mut Vec<u8>,
    kind: FrameKind,
    class: MessageClass,
    write: impl FnOnce(&mut CborWriter<'_>),
) {
    let start = out.len();
    out.extend_from_slice(&header(0, kind, class));
    write(&mut CborWriter::new(out));
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Header of a body of this many bytes.
pub(in crate::frame) fn header(
    body_bytes: usize,
    kind: FrameKind,
    class: MessageClass,
) -> [u8; HEADER_BYTES] {
    let [a, b, c, d] = ((body_bytes + HEADER_BYTES - 4) as u32).to_be_bytes();
    [a, b, c, d, PROTOCOL_VERSION, kind.code(), class.index() as u8]
}

/// Length of the head of an item with this length or value, in bytes.
pub(in crate::frame) const fn head_bytes(value: u64) -> usize {
    match value {
        0..=23 => 1,
        24..=0xff => 2,
        0x100..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    }
}

// === impl CborWriter ===

impl<'a> CborWriter<'a> {
    pub(in crate::frame) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    #[inline]
    pub(in crate::frame) fn unsigned(&mut self, value: u64) {
        self.head(UNSIGNED, value);
    }

    #[inline]
    pub(in crate::frame) fn integer(&mut self, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.head(UNSIGNED, value),
            // CBOR encodes a negative number n as −1 − n, which is all bits inverted.
            Err(_) => self.head(NEGATIVE, !value as u64),
        }
    }

    pub(in crate::frame) fn bytes(&mut self, value: &[u8]) {
        self.head(BYTES, value.len() as u64);
        self.out.extend_from_slice(value);
    }

    pub(in crate::frame) fn text(&mut self, value: &str) {
        self.head(TEXT, value.len() as u64);
        self.out.extend_from_slice(value.as_bytes());
    }

    #[inline]
    pub(in crate::frame) fn array(&mut self, length: usize) {
        self.head(ARRAY, length as u64);
    }

    pub(in crate::frame) fn tag(&mut self, tag: u64) {
        self.head(TAG, tag);
    }

    pub(in crate::frame) fn bool(&mut self, value: bool) {
        self.out.push(if value { TRUE } else { FALSE });
    }

    pub(in crate::frame) fn null(&mut self) {
        self.out.push(NULL);
    }

    pub(in crate::frame) fn raw(&mut self, items: &[u8]) {
        self.out.extend_from_slice(items);
    }

    pub(in crate::frame) fn signal(&mut self, signal: &BackpressureSignal) {
        self.array(5);
        self.unsigned(signal.level.index() as u64);
        self.unsigned(u64::from(signal.delay_ms));
        self.bool(signal.batch_only);
        self.bool(signal.drop_non_critical);
        self.unsigned(u64::from(signal.ttl_ms));
    }

    #[inline]
    fn head(&mut self, major: u8, value: u64) {
        match value {
            0..=23 => self.out.push(major | value as u8),
            24..=0xff => self.out.extend_from_slice(&[major | 24, value as u8]),
            0x100..=0xffff => {
                let [a, b] = (value as u16).to_be_bytes();
                self.out.extend_from_slice(&[major | 25, a, b]);
            }
            0x1_0000..=0xffff_ffff => {
                let [a, b, c, d] = (value as u32).to_be_bytes();
                self.out.extend_from_slice(&[major | 26, a, b, c, d]);
            }
            _ => {
                let [a, b, c, d, e, f, g, h] = value.to_be_bytes();
                self.out.extend_from_slice(&[major | 27, a, b, c, d, e, f, g, h]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minicbor::Decoder;
    use proptest::prelude::*;

    proptest! {
        /// Against the decoder of others.
        #[test]
        fn what_is_written_reads_the_same(unsigned in any::<u64>(), shift in 0_u32..64, text in ".*") {
            let (unsigned, integer) = (unsigned >> shift, unsigned.cast_signed() >> shift);
            let mut out = Vec::new();
            let mut writer = CborWriter::new(&mut out);
            writer.array(6);
            writer.unsigned(unsigned);
            writer.integer(integer);
            writer.text(&text);
            writer.bytes(text.as_bytes());
            writer.bool(shift % 2 == 0);
            writer.null();
            prop_assert_eq!(head_bytes(unsigned), minicbor::len(unsigned));
            let mut decoder = Decoder::new(&out);
            prop_assert_eq!(decoder.array().unwrap(), Some(6));
            prop_assert_eq!(decoder.u64().unwrap(), unsigned);
            prop_assert_eq!(decoder.i64().unwrap(), integer);
            prop_assert_eq!(decoder.str().unwrap(), text.as_str());
            prop_assert_eq!(decoder.bytes().unwrap(), text.as_bytes());
            prop_assert_eq!(decoder.bool().unwrap(), shift % 2 == 0);
            decoder.null().unwrap();
            prop_assert_eq!(decoder.position(), out.len());
        }
    }
}
