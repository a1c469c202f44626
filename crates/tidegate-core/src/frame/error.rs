use super::kind::{FrameKind, HEADER_BYTES, PROTOCOL_VERSION};
use super::limits::{LABELS_BYTES_MAX, NAME_BYTES_MAX};
use super::reject_reason::RejectReason;
use super::sender_name::SenderName;
use crate::admission::MessageClass;
use crate::usage::QuantityError;
use std::fmt;

/// Error of a frame.
///
/// Some [break the framing](Self::breaks_framing): the start of the next frame is unknown, and the connection has
/// to be closed. After all others the connection continues.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// The length is above the limit. Breaks the framing.
    TooLong {
        /// Length in the header.
        length: u32,
        /// Limit of the length.
        length_max: u32,
    },
    /// The length is below that of a header. Breaks the framing.
    TooShort {
        /// Length in the header.
        length: u32,
    },
    /// Unknown version of the protocol. Breaks the framing.
    UnknownVersion {
        /// Version given.
        given: u8,
    },
    /// Unknown number of a kind.
    UnknownKind {
        /// Number given.
        given: u8,
    },
    /// Unknown number of a class.
    UnknownClass {
        /// Number given.
        given: u8,
    },
    /// The class is above that of the kind.
    ClassTooHigh {
        /// Kind of the frame.
        kind: FrameKind,
        /// Class claimed.
        class: MessageClass,
        /// Number of the batch, if readable.
        seq: Option<u64>,
    },
    /// Unexpected kind.
    WrongKind {
        /// Kind expected.
        expected: FrameKind,
        /// Kind given.
        given: FrameKind,
    },
    /// The body is not CBOR, or not that of its kind.
    BadBody {
        /// Offset in the body.
        at: usize,
        /// Item expected there.
        expected: &'static str,
    },
    /// Bytes follow the end of the body.
    TrailingBytes {
        /// Number of bytes.
        bytes: usize,
    },
    /// A batch with too many records.
    TooManyRecords {
        /// Number of records.
        given: u64,
        /// Limit.
        max: u32,
    },
    /// A batch with too many names.
    TooManyNames {
        /// Number of names.
        given: u64,
        /// Limit.
        max: u32,
    },
    /// An invalid name in the table of a batch.
    BadName {
        /// Index in the table.
        index: u32,
        /// Fault of the name.
        fault: NameFault,
    },
    /// An invalid record.
    BadRecord {
        /// Index in the batch.
        index: u32,
        /// Fault of the record.
        fault: RecordFault,
    },
    /// An invalid batch number: 0, or not above the settled number.
    BadSeq {
        /// Number of the batch.
        seq: u64,
        /// Settled number in the same batch.
        settled: u64,
    },
    /// An invalid sender name.
    BadSender,
}

/// Fault of a tenant, a meter or labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFault {
    /// Empty tenant or meter.
    Empty,
    /// Longer than [`NAME_BYTES_MAX`], or for labels than [`LABELS_BYTES_MAX`].
    TooLong,
    /// Contains a control character.
    ControlCharacter,
}

/// Fault of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// Not an array of four or five.
    Shape,
    /// Index beyond the table of names.
    NoSuchName,
    /// Fault of the tenant.
    Tenant(NameFault),
    /// Fault of the meter.
    Meter(NameFault),
    /// Fault of the labels.
    Labels(NameFault),
    /// The quantity is a float, which can't be summed exactly.
    Float,
    /// The quantity is no number, or out of range.
    Quantity(QuantityError),
    /// The time is no 64-bit integer.
    Time,
}

// === impl FrameError ===

impl FrameError {
    /// True if the start of the next frame is unknown, so that the connection must be closed.
    #[must_use]
    pub const fn breaks_framing(&self) -> bool {
        matches!(self, Self::TooLong { .. } | Self::TooShort { .. } | Self::UnknownVersion { .. })
    }

    /// Stable name for metric labels and logs.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "frame_too_long",
            Self::TooShort { .. } => "frame_too_short",
            Self::UnknownVersion { .. } => "unknown_version",
            Self::UnknownKind { .. } => "unknown_kind",
            Self::UnknownClass { .. } => "unknown_class",
            Self::ClassTooHigh { .. } => "class_too_high",
            Self::WrongKind { .. } => "wrong_kind",
            Self::BadBody { .. } => "bad_body",
            Self::TrailingBytes { .. } => "trailing_bytes",
            Self::TooManyRecords { .. } => "too_many_records",
            Self::TooManyNames { .. } => "too_many_names",
            Self::BadName { .. } => "bad_name",
            Self::BadRecord { .. } => "bad_record",
            Self::BadSeq { .. } => "bad_seq",
            Self::BadSender => "bad_sender",
        }
    }

    /// Reason in the reject to the sender. Always final: the same bytes would fail again.
    #[must_use]
    pub const fn reject_reason(&self) -> RejectReason {
        match self {
            Self::TooLong { .. } | Self::TooShort { .. } => RejectReason::BadFraming,
            Self::UnknownVersion { .. } => RejectReason::UnknownVersion,
            Self::UnknownKind { .. } | Self::WrongKind { .. } => RejectReason::UnknownKind,
            Self::UnknownClass { .. } | Self::ClassTooHigh { .. } => RejectReason::ClassRefused,
            Self::TooManyRecords { .. } | Self::TooManyNames { .. } => RejectReason::TooLarge,
            _ => RejectReason::Malformed,
        }
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { length, length_max } => {
                write!(f, "a frame of length {length}: at most {length_max} is allowed")
            }
            Self::TooShort { length } => {
                let least = HEADER_BYTES - 4;
                write!(f, "a frame of length {length}: its header alone has {least} bytes")
            }
            Self::UnknownVersion { given } => {
                write!(f, "protocol version {given}: this receiver supports {PROTOCOL_VERSION}")
            }
            Self::UnknownKind { given } => write!(f, "unknown frame kind {given}"),
            Self::UnknownClass { given } => write!(f, "unknown class {given}"),
            Self::ClassTooHigh { kind, class, .. } => {
                let highest = kind.class().name();
                write!(f, "a {kind} may not be {}: at most {highest}", class.name())
            }
            Self::WrongKind { expected, given } => {
                write!(f, "a frame of kind {given}: expected {expected}")
            }
            Self::BadBody { at, expected } => {
                write!(f, "byte {at} of the body: expected {expected}")
            }
            Self::TrailingBytes { bytes } => write!(f, "{bytes} bytes after the end of the body"),
            Self::TooManyRecords { given, max } => write!(f, "{given} records: at most {max}"),
            Self::TooManyNames { given, max } => write!(f, "{given} names: at most {max}"),
            Self::BadName { index, fault } => write!(f, "name {index}: {fault}"),
            Self::BadRecord { index, fault } => write!(f, "record {index}: {fault}"),
            Self::BadSeq { seq, settled } => {
                write!(
                    f,
                    "batch {seq}, with all up to {settled} settled: expected a greater number"
                )
            }
            Self::BadSender => write!(f, "the sender's name: expected {}", SenderName::RULE),
        }
    }
}

impl std::error::Error for FrameError {}

// === impl NameFault ===

impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("empty"),
            Self::TooLong => write!(
                f,
                "too long: at most {NAME_BYTES_MAX} bytes for a tenant or meter, {LABELS_BYTES_MAX} for labels"
            ),
            Self::ControlCharacter => f.write_str("contains a control character"),
        }
    }
}

// === impl RecordFault ===

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape => f.write_str("expected [tenant, meter, quantity, time_ns, labels?]"),
            Self::NoSuchName => f.write_str("index beyond the end of the names"),
            Self::Tenant(fault) => write!(f, "its tenant: {fault}"),
            Self::Meter(fault) => write!(f, "its meter: {fault}"),
            Self::Labels(fault) => write!(f, "its labels: {fault}"),
            Self::Float => f.write_str(
                "its quantity is a float: expected an integer, a decimal fraction (tag 4) or text",
            ),
            Self::Quantity(error) => write!(f, "its quantity: {error}"),
            Self::Time => f.write_str("its time: expected an integer of nanoseconds since 1970"),
        }
    }
}
