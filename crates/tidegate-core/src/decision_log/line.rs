use super::encoding::encode;
use super::error::FormatError;
use super::in_flight::InFlight;
use crate::admission::MessagePriority;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A line after the header.
///
/// ```
/// use tidegate_core::decision_log::{Line, DecisionRecord};
///
/// let line = Line::decode(br#"{"at_us":20,"priority":"low","decision":"admitted","took_us":900}"#)?;
/// assert!(matches!(line, Line::Decision(DecisionRecord { at_us: 20, took_us: Some(900), .. })));
/// # Ok::<(), tidegate_core::decision_log::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The decision on one request.
    Decision(DecisionRecord<'a>),
    /// The number of decisions since the last such line that the recorder had no room for.
    Lost(u64),
    /// The last line.
    End(Footer<'a>),
}

/// The decision on one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRecord<'a> {
    /// The time of the decision in microseconds after the recording began. Negative if the request came before and
    /// ended after that.
    pub at_us: i64,
    /// The priority that was asked for.
    pub priority: MessagePriority,
    /// The client, if a token names it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Cow<'a, str>>,
    /// [`ADMITTED`](Self::ADMITTED), or the reason of the refusal.
    #[serde(borrow)]
    pub decision: Cow<'a, str>,
    /// The time for which the request held a slot; `None` if it never had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_us: Option<u64>,
}

/// The last line: the end of the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footer<'a> {
    /// The reason of the end: `time`, `draining` or `stalled`.
    #[serde(borrow)]
    pub end: Cow<'a, str>,
    /// Decisions that were written.
    #[serde(default)]
    pub decisions: u64,
    /// Decisions that were lost, in all.
    #[serde(default)]
    pub lost: u64,
    /// The duration of the recording.
    #[serde(default)]
    pub lasted_us: u64,
    /// Requests in flight at the end.
    #[serde(default)]
    pub in_flight: InFlight,
}

#[derive(Serialize, Deserialize)]
struct LostLine {
    lost: u64,
}

// === impl Line ===

impl<'a> Line<'a> {
    /// Appends it as one line of JSON.
    pub fn encode(&self, lines: &mut Vec<u8>) {
        match self {
            Self::Decision(record) => encode(record, lines),
            Self::Lost(lost) => encode(&LostLine { lost: *lost }, lines),
            Self::End(footer) => encode(footer, lines),
        }
    }

    /// Returns `true` if an encoded line is a decision, by its first bytes: cheaper than decoding it.
    #[must_use]
    pub fn is_decision(line: &[u8]) -> bool {
        line.starts_with(b"{\"at_us\":")
    }

    /// Reads a line after the header. Unknown fields are ignored.
    ///
    /// # Errors
    ///
    /// When it is none of the three.
    pub fn decode(line: &'a [u8]) -> Result<Self, FormatError> {
        // Nearly all lines are decisions: the others are only tried after that failed.
        match serde_json::from_slice::<DecisionRecord<'a>>(line) {
            Ok(record) => record.check().map(Self::Decision),
            Err(error) => serde_json::from_slice(line)
                .map(Self::End)
                .or_else(|_| serde_json::from_slice(line).map(|LostLine { lost }| Self::Lost(lost)))
                .map_err(|_| FormatError::new(error.to_string())),
        }
    }
}

// === impl DecisionRecord ===

impl DecisionRecord<'_> {
    /// The decision of a request that was let through.
    pub const ADMITTED: &'static str = "admitted";

    fn check(self) -> Result<Self, FormatError> {
        if self.decision == Self::ADMITTED && self.took_us.is_none() {
            return Err(FormatError::new("it was admitted, and took_us is missing".to_owned()));
        }
        Ok(self)
    }
}
