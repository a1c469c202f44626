use super::cbor::{CborReader, write_frame};
use super::text::cut;
use super::{
    FrameError, FrameKind, FrameLimits, PROTOCOL_VERSION, RawFrame, SenderName, SenderToken,
};
use crate::sequence::{SEQ_WINDOW, SeqWindow};
use crate::signal::BackpressureSignal;
use bytes::Bytes;

/// First item of a sender's hello.
const FROM_SENDER: u64 = 0;

/// First item of a receiver's hello.
const FROM_RECEIVER: u64 = 1;

/// Maximum number of versions in a hello.
const VERSIONS_MAX: u64 = 16;

/// First frame of a sender: its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Name under which its batches are numbered.
    pub sender: SenderName,
    /// Protocol versions it supports.
    pub versions: Vec<u8>,
    /// Program name for logs: at most [`Hello::SOFTWARE_BYTES_MAX`] bytes.
    pub software: String,
    /// Token that says whose records it may send, where the receiver knows tokens.
    pub token: Option<SenderToken>,
}

/// First frame of a receiver, in answer to a [`Hello`]: its limits and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Protocol version chosen among the sender's.
    pub version: u8,
    /// Limits of one frame.
    pub limits: FrameLimits,
    /// Maximum number of unanswered batches. 1 … 1,024.
    pub batches_in_flight_max: u32,
    /// Number up to which all of this sender's batches are done: durable, or settled by the sender.
    pub settled_low: u64,
    /// Durable batches beyond that, if the receiver reports them.
    pub seen: Option<SeqWindow>,
    /// Backpressure signal of the receiver.
    pub signal: BackpressureSignal,
}

// === impl Hello ===

impl Hello {
    /// Maximum length of the program name, in bytes.
    pub const SOFTWARE_BYTES_MAX: usize = 128;

    /// Creates the hello of a sender with the current version.
    #[must_use]
    pub fn new(sender: SenderName, software: &str) -> Self {
        let software = cut(software, Self::SOFTWARE_BYTES_MAX).to_owned();
        Self { sender, versions: vec![PROTOCOL_VERSION], software, token: None }
    }

    /// The same hello with a token, or without one.
    #[must_use]
    pub fn with_token(self, token: Option<SenderToken>) -> Self {
        Self { token, ..self }
    }

    /// Appends the frame to `out`.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        write_frame(out, FrameKind::Hello, FrameKind::Hello.class(), |writer| {
            writer.array(4 + usize::from(self.token.is_some()));
            writer.unsigned(FROM_SENDER);
            writer.text(self.sender.as_str());
            writer.array(self.versions.len());
            for version in &self.versions {
                writer.unsigned(u64::from(*version));
            }
            writer.text(&self.software);
            if let Some(token) = &self.token {
                writer.text(token.expose());
            }
        });
    }

    /// Encodes the frame.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out.into()
    }

    /// Decodes a sender's hello.
    ///
    /// # Errors
    ///
    /// If the frame is no hello of a sender, or its body is malformed.
    pub fn decode(frame: &RawFrame) -> Result<Self, FrameError> {
        frame.must_be(FrameKind::Hello)?;
        let mut reader = CborReader::new(&frame.body);
        let (at, expected) = (reader.position(), "a sender's hello: an array of 4 or 5");
        let items = reader.array(expected)?;
        if !matches!(items, 4 | 5) {
            return Err(FrameError::BadBody { at, expected });
        }
        role(&mut reader, FROM_SENDER, "0, for a sender's hello")?;
        let sender = reader.text("the sender's name")?;
        let hello = Self {
            sender: sender.parse().map_err(|_| FrameError::BadSender)?,
            versions: versions(&mut reader)?,
            software: software(&mut reader)?,
            token: if items == 5 { Some(token(&mut reader)?) } else { None },
        };
        reader.end()?;
        Ok(hello)
    }
}

fn role(reader: &mut CborReader<'_>, role: u64, expected: &'static str) -> Result<(), FrameError> {
    let at = reader.position();
    match reader.unsigned(expected)? {
        given if given == role => Ok(()),
        _ => Err(FrameError::BadBody { at, expected }),
    }
}

fn versions(reader: &mut CborReader<'_>) -> Result<Vec<u8>, FrameError> {
    let expected = "1 to 16 versions, each a byte";
    let at = reader.position();
    let count = reader.array(expected)?;
    if !(1..=VERSIONS_MAX).contains(&count) {
        return Err(FrameError::BadBody { at, expected });
    }
    let version = |_| reader.unsigned(expected).map(u8::try_from);
    let versions: Result<Vec<_>, _> = (0..count).map(version).collect();
    let versions: Result<Vec<_>, _> = versions?.into_iter().collect();
    versions.map_err(|_| FrameError::BadBody { at, expected })
}

fn software(reader: &mut CborReader<'_>) -> Result<String, FrameError> {
    let expected = "the name of a program: at most 128 bytes, no control character";
    let at = reader.position();
    let software = reader.text(expected)?;
    if software.len() > Hello::SOFTWARE_BYTES_MAX || software.chars().any(char::is_control) {
        return Err(FrameError::BadBody { at, expected });
    }
    Ok(software.to_owned())
}

fn token(reader: &mut CborReader<'_>) -> Result<SenderToken, FrameError> {
    let (at, expected) = (reader.position(), SenderToken::RULE);
    reader.text(expected)?.parse().map_err(|_| FrameError::BadBody { at, expected })
}

// === impl Welcome ===

impl Welcome {
    /// Appends the frame to `out`.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        write_frame(out, FrameKind::Hello, FrameKind::Hello.class(), |writer| {
            writer.array(9);
            writer.unsigned(FROM_RECEIVER);
            writer.unsigned(u64::from(self.version));
            writer.unsigned(u64::from(self.limits.frame_bytes_max));
            writer.unsigned(u64::from(self.limits.batch_records_max));
            writer.unsigned(u64::from(self.limits.batch_names_max));
            writer.unsigned(u64::from(self.batches_in_flight_max));
            writer.unsigned(self.settled_low);
            match &self.seen {
                Some(seen) => writer.bytes(&seen.to_bytes()),
                None => writer.null(),
            }
            writer.signal(&self.signal);
        });
    }

    /// Encodes the frame.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out.into()
    }

    /// True if the receiver reported a batch as done: it need not be sent again.
    #[must_use]
    pub fn has(&self, seq: u64) -> bool {
        use crate::sequence::SeqStatus;
        let seen = self.seen.as_ref().map(|seen| seen.status(seq));
        seq <= self.settled_low || seen == Some(SeqStatus::Duplicate)
    }

    /// Decodes a receiver's hello.
    ///
    /// # Errors
    ///
    /// If the frame is no hello of a receiver, its body is malformed, or its limits are out of range.
    pub fn decode(frame: &RawFrame) -> Result<Self, FrameError> {
        frame.must_be(FrameKind::Hello)?;
        let mut reader = CborReader::new(&frame.body);
        reader.array_of(9, "a receiver's hello: an array of 9")?;
        role(&mut reader, FROM_RECEIVER, "1, for a receiver's hello")?;
        let welcome = Self {
            version: version(&mut reader)?,
            limits: limits(&mut reader)?,
            batches_in_flight_max: batches_in_flight_max(&mut reader)?,
            settled_low: reader.unsigned("settled_low")?,
            seen: reader.or_null(seen)?,
            signal: reader.signal()?,
        };
        reader.end()?;
        Ok(welcome)
    }
}

fn version(reader: &mut CborReader<'_>) -> Result<u8, FrameError> {
    let at = reader.position();
    let version = reader.unsigned("a version")?;
    u8::try_from(version).map_err(|_| FrameError::BadBody { at, expected: "a version, a byte" })
}

fn limits(reader: &mut CborReader<'_>) -> Result<FrameLimits, FrameError> {
    let at = reader.position();
    let limits = FrameLimits {
        frame_bytes_max: reader.u32("frame_bytes_max")?,
        batch_records_max: reader.u32("batch_records_max")?,
        batch_names_max: reader.u32("batch_names_max")?,
    };
    match limits.validate() {
        Ok(()) => Ok(limits),
        Err(_) => Err(FrameError::BadBody { at, expected: "limits that are within their ranges" }),
    }
}

fn batches_in_flight_max(reader: &mut CborReader<'_>) -> Result<u32, FrameError> {
    let (at, expected) = (reader.position(), "batches_in_flight_max: 1 to 1,024");
    match reader.u32(expected)? {
        count if (1..=SEQ_WINDOW).contains(&u64::from(count)) => Ok(count),
        _ => Err(FrameError::BadBody { at, expected }),
    }
}

fn seen(reader: &mut CborReader<'_>) -> Result<SeqWindow, FrameError> {
    let (at, expected) = (reader.position(), "which batches were seen: 136 bytes, or null");
    SeqWindow::from_bytes(reader.bytes(expected)?).map_err(|_| FrameError::BadBody { at, expected })
}
