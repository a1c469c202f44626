use super::{Limits, Reader, RecordingError};
use serde::Serialize;
use tidegate_core::admission::{MessagePriority, Reason};

/// The decisions of a gateway, in the order in which their requests came.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The limits in force.
    pub limits: Limits,
    /// True if limits only counted what they would have refused.
    pub dry_run: bool,
    /// The begin, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Every request, by when it came.
    pub arrivals: Vec<Arrival>,
    /// The reasons of refusals other than admission; [`Verdict::Other`] has the index.
    pub others: Vec<String>,
    /// Requests that were decided and not written down.
    pub lost: u64,
    /// The duration in microseconds.
    pub lasted_us: u64,
    /// The reason of the end; `None` when the recording breaks off.
    pub end: Option<String>,
    /// Requests that were in flight when it ended, which it can't have.
    pub unended: u64,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it came, in microseconds from the recording's beginning. What came before and ended after it is
    /// before 0.
    pub at_us: i64,
    /// The time for which it held a slot, in microseconds, if it had one.
    pub took_us: Option<u64>,
    /// The priority that was asked for.
    pub priority: MessagePriority,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Admitted, and not refused by anything else of the gateway.
    Admitted,
    /// Admission refused it.
    Refused(Reason),
    /// Refused by another part: busy upstreams, a full queue.
    Other(u8),
}

// === impl Recording ===

impl Recording {
    /// Reads a whole recording. [`Reader`] reads one line by line.
    ///
    /// # Errors
    ///
    /// When it is not a recording, with the line of the error.
    ///
    /// ```
    /// use tidegate_sim::replay::{Recording, compare};
    ///
    /// let text = r#"{"format":"tidegate-decisions","version":1,"started_unix_ms":0,
    ///     "limits":{"global":2,"high":0,"normal":0,"low":0,"critical_reserve":0},"sharing":"strict"}"#;
    /// let rows = r#"
    /// {"at_us":0,"priority":"normal","decision":"admitted","took_us":900}
    /// {"at_us":100,"priority":"normal","decision":"admitted","took_us":900}
    /// {"at_us":200,"priority":"low","decision":"global_limit"}
    /// "#;
    /// let recording = Recording::read(&(text.replace('\n', " ") + rows))?;
    ///
    /// let one_place = ["limits.global=1".parse()?];
    /// let comparison = compare(&recording, &one_place, 1);
    /// assert_eq!(comparison.as_recorded.all.admitted, 2);
    /// assert_eq!(comparison.changed.map(|changed| changed.outcome.all.admitted), Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read(text: &str) -> Result<Self, RecordingError> {
        let mut reader = Reader::default();
        let (whole, rest) = text.rsplit_once('\n').unwrap_or(("", text));
        for line in whole.split('\n') {
            reader.line(line.as_bytes())?;
        }
        reader.rest(rest.as_bytes())?;
        reader.finish()
    }
}
