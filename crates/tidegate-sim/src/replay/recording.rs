use super::{Limits, Reader, RecordingError};
use serde::Serialize;
use tidegate_core::admission::{MessagePriority, Reason};

/// The decisions of a gateway, in the order in which their requests came.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// What was in force.
    pub limits: Limits,
    /// Whether limits only counted what they would have refused.
    pub dry_run: bool,
    /// When it began, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Every request, by when it came.
    pub arrivals: Vec<Arrival>,
    /// What refused requests beside admission; [`Verdict::Other`] has the place in it.
    pub others: Vec<String>,
    /// Requests that were decided and not written down.
    pub lost: u64,
    /// How long it lasted, in microseconds.
    pub lasted_us: u64,
    /// How it ended; `None` when it broke off.
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
    /// How long it held its place, in microseconds, if it had one.
    pub took_us: Option<u64>,
    /// What it asked to be admitted as.
    pub priority: MessagePriority,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was admitted, and nothing else of ours refused it.
    Admitted,
    /// Admission refused it.
    Refused(Reason),
    /// Something else refused it: busy workers, a full outbox.
    Other(u8),
}

// === impl Recording ===

impl Recording {
    /// Reads a recording that is at hand as a whole. [`Reader`] reads one line by line.
    ///
    /// # Errors
    ///
    /// With the line, when it is no recording.
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
