use super::{FrameKind, HEADER_BYTES, LABELS_BYTES_MAX, NAME_BYTES_MAX, PROTOCOL_VERSION};
use super::{RejectReason, SenderName};
use crate::admission::MessageClass;
use crate::usage::QuantityError;
use std::fmt;

/// What is wrong with a frame.
///
/// Some [break the framing](Self::breaks_framing): where the next frame begins is not known, and the connection
/// can only be closed. After all others the connection lives on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// Its length is more than a frame may have. Breaks the framing.
    TooLong {
        /// What stands at its head.
        length: u32,
        /// The most that may stand there.
        length_max: u32,
    },
    /// Its length is less than a header has. Breaks the framing.
    TooShort {
        /// What stands at its head.
        length: u32,
    },
    /// It is of another version of the protocol. Breaks the framing.
    UnknownVersion {
        /// Which one.
        given: u8,
    },
    /// No kind has this number.
    UnknownKind {
        /// Which one.
        given: u8,
    },
    /// No class has this number.
    UnknownClass {
        /// Which one.
        given: u8,
    },
    /// It claims a class above that of its kind.
    ClassTooHigh {
        /// Its kind.
        kind: FrameKind,
        /// What it claims.
        class: MessageClass,
        /// The batch's number, if it can be read.
        seq: Option<u64>,
    },
    /// It is of a kind that was not expected here.
    WrongKind {
        /// What was expected.
        expected: FrameKind,
        /// What it is.
        given: FrameKind,
    },
    /// Its body is not CBOR, or not what its kind has there.
    BadBody {
        /// Where in the body.
        at: usize,
        /// What was expected there.
        expected: &'static str,
    },
    /// Something follows the end of its body.
    TrailingBytes {
        /// How many bytes.
        bytes: usize,
    },
    /// A batch with more records than one may have.
    TooManyRecords {
        /// How many it says it has.
        given: u64,
        /// How many it may have.
        max: u32,
    },
    /// A batch with more names than one may have.
    TooManyNames {
        /// How many it says it has.
        given: u64,
        /// How many it may have.
        max: u32,
    },
    /// A name in the table of a batch that can't be one.
    BadName {
        /// Its place in the table.
        index: u32,
        /// What is wrong with it.
        fault: NameFault,
    },
    /// A record that can't be one.
    BadRecord {
        /// Its place in the batch.
        index: u32,
        /// What is wrong with it.
        fault: RecordFault,
    },
    /// A number that can't be a batch's: 0, or not greater than what its sender has settled.
    BadSeq {
        /// The number.
        seq: u64,
        /// What the same batch says is settled.
        settled: u64,
    },
    /// A sender's name that can't be one.
    BadSender,
}

/// What is wrong with a tenant, a meter or labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFault {
    /// A tenant or a meter without a letter.
    Empty,
    /// Longer than [`NAME_BYTES_MAX`], labels than [`LABELS_BYTES_MAX`].
    TooLong,
    /// It contains a control character.
    ControlCharacter,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// It is no array of four or five.
    Shape,
    /// It points behind the end of the table of names.
    NoSuchName,
    /// Its tenant.
    Tenant(NameFault),
    /// Its meter.
    Meter(NameFault),
    /// Its labels.
    Labels(NameFault),
    /// Its quantity is a float, which can't be added without errors.
    Float,
    /// Its quantity is no number, or too great.
    Quantity(QuantityError),
    /// Its time is no integer of 64 bits.
    Time,
}

// === impl FrameError ===

impl FrameError {
    /// Whether nobody knows where the next frame begins, so that the connection must be closed.
    #[must_use]
    pub const fn breaks_framing(&self) -> bool {
        matches!(self, Self::TooLong { .. } | Self::TooShort { .. } | Self::UnknownVersion { .. })
    }

    /// A stable name, for labels of metrics and for logs.
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

    /// What its sender is told. It is final each time: the same bytes would be as wrong again.
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
                write!(f, "a frame of length {length}: at most {length_max} is taken")
            }
            Self::TooShort { length } => {
                let least = HEADER_BYTES - 4;
                write!(f, "a frame of length {length}: its header alone has {least} bytes")
            }
            Self::UnknownVersion { given } => {
                write!(f, "version {given} of the protocol: version {PROTOCOL_VERSION} is spoken")
            }
            Self::UnknownKind { given } => write!(f, "no kind of frame has the number {given}"),
            Self::UnknownClass { given } => write!(f, "no class has the number {given}"),
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
            Self::TrailingBytes { bytes } => write!(f, "{bytes} bytes behind the end of the body"),
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
            Self::NoSuchName => f.write_str("points behind the end of the names"),
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
