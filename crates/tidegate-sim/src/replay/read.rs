use super::{Arrival, Limits, Recording, Verdict};
use std::fmt;
use tidegate_core::admission::Reason;
use tidegate_core::decision_log::{DecisionRecord, Header, LINE_BYTES_MAX, Line};

/// A power of two, so that a vector that doubles has room for exactly these: 512 MiB. As much again is needed at
/// most: half of it while they are put in order, and then for each the time that it takes (128 MiB) and what those
/// are drawn from (128 MiB of all, and at most 256 MiB by priority).
const ARRIVALS_MAX: usize = 1 << 24;
const _: () = assert!(ARRIVALS_MAX * size_of::<Arrival>() <= 512 << 20);

/// Reasons that a gateway has, with room for those that it will have.
const OTHERS_MAX: usize = 64;

/// Reads a recording line by line.
#[derive(Debug, Default)]
pub struct Reader {
    line: u64,
    recording: Option<Recording>,
}

/// The input is not a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError {
    /// The line of the error, counted from 1.
    pub line: u64,
    /// The error in that line.
    pub what: String,
}

// === impl Reader ===

impl Reader {
    /// Reads the next line, without its line end.
    ///
    /// # Errors
    ///
    /// When the line is not part of a recording.
    pub fn line(&mut self, line: &[u8]) -> Result<(), RecordingError> {
        self.line += 1;
        let wrong = |what: String| RecordingError { line: self.line, what };
        if line.len() > LINE_BYTES_MAX {
            return Err(wrong(format!("it is longer than {LINE_BYTES_MAX} bytes")));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        match &mut self.recording {
            None => {
                let header = Header::decode(line).map_err(|error| wrong(error.to_string()))?;
                self.recording = Some(Recording::new(&header));
            }
            Some(recording) if recording.end.is_some() => {
                return Err(wrong("the recording has ended before it".to_owned()));
            }
            Some(recording) => recording.take(line).map_err(wrong)?,
        }
        Ok(())
    }

    /// Reads the rest after the last line end. A partial line is ignored: a killed recorder leaves one.
    ///
    /// # Errors
    ///
    /// When there was no line before it, and it is not the begin of a recording.
    pub fn rest(&mut self, rest: &[u8]) -> Result<(), RecordingError> {
        match (self.line(rest), &self.recording) {
            (Err(_), Some(recording)) if recording.end.is_none() => Ok(()),
            (read, _) => read,
        }
    }

    /// Returns the recording.
    ///
    /// # Errors
    ///
    /// When the recording is empty.
    pub fn finish(self) -> Result<Recording, RecordingError> {
        let Some(mut recording) = self.recording else {
            return Err(RecordingError { line: 1, what: "it is empty".to_owned() });
        };
        // Lines stand in the order in which requests ended.
        recording.arrivals.sort_by_key(|arrival| arrival.at_us);
        let last_us = recording.arrivals.last().map_or(0, |arrival| arrival.at_us.max(0));
        recording.lasted_us = recording.lasted_us.max(last_us.unsigned_abs());
        Ok(recording)
    }
}

// === impl Recording ===

impl Recording {
    fn new(header: &Header) -> Self {
        Self {
            limits: Limits { limits: header.limits, sharing: header.sharing },
            dry_run: header.dry_run,
            started_unix_ms: header.started_unix_ms,
            arrivals: Vec::new(),
            others: Vec::new(),
            lost: 0,
            lasted_us: 0,
            end: None,
            unended: 0,
        }
    }

    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        match Line::decode(line).map_err(|error| error.to_string())? {
            Line::Decision(record) => self.decision(&record)?,
            Line::Lost(lost) => self.lost = self.lost.saturating_add(lost),
            Line::End(footer) => {
                self.end = Some(footer.end.into_owned());
                // The last line has the sum of all before it.
                self.lost = self.lost.max(footer.lost);
                self.lasted_us = footer.lasted_us;
                self.unended = footer.in_flight.proxied();
            }
        }
        Ok(())
    }

    fn decision(&mut self, record: &DecisionRecord<'_>) -> Result<(), String> {
        let verdict = match &*record.decision {
            DecisionRecord::ADMITTED => Verdict::Admitted,
            name => match Reason::ALL.into_iter().find(|reason| reason.name() == name) {
                Some(reason) => Verdict::Refused(reason),
                None => Verdict::Other(self.other(name)?),
            },
        };
        if self.arrivals.len() == ARRIVALS_MAX {
            return Err(format!("there are more than {ARRIVALS_MAX} requests: replay it in parts"));
        }
        let DecisionRecord { at_us, took_us, priority, .. } = *record;
        self.arrivals.push(Arrival { at_us, took_us, priority, verdict });
        Ok(())
    }

    fn other(&mut self, name: &str) -> Result<u8, String> {
        let found = self.others.iter().position(|other| other == name);
        let place = match found {
            Some(place) => place,
            None if self.others.len() == OTHERS_MAX => {
                return Err(format!("{name:?} is one reason too many: {OTHERS_MAX} are known"));
            }
            None => {
                self.others.push(name.to_owned());
                self.others.len() - 1
            }
        };
        u8::try_from(place).map_err(|error| error.to_string())
    }
}

// === impl RecordingError ===

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for RecordingError {}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::admission::Sharing;

    const HEAD: &str = r#"{"format":"tidegate-decisions","version":1,"started_unix_ms":7,"limits":{"global":9,"high":4,"normal":3,"low":2,"critical_reserve":1},"sharing":"borrow","dry_run":false}"#;

    fn read(rows: &[&str]) -> Result<Recording, RecordingError> {
        Recording::read(&format!("{HEAD}\n{}\n", rows.join("\n")))
    }

    #[test]
    fn a_recording_is_read_in_the_order_of_arrival() {
        let recording = read(&[
            r#"{"at_us":30,"priority":"low","client":"a\"b","decision":"priority_limit"}"#,
            r#"{"at_us":-5,"priority":"high","decision":"admitted","took_us":40}"#,
            r#"{"lost":3}"#,
            r#"{"at_us":20,"priority":"normal","decision":"all_busy","took_us":1}"#,
            r#"{"end":"time","decisions":3,"lost":3,"lasted_us":99,"in_flight":{"critical":8,"low":2}}"#,
        ])
        .unwrap();
        assert_eq!(recording.arrivals.iter().map(|a| a.at_us).collect::<Vec<_>>(), [-5, 20, 30]);
        assert_eq!(recording.arrivals[1].verdict, Verdict::Other(0));
        assert_eq!(recording.others, ["all_busy"]);
        assert_eq!((recording.lost, recording.unended, recording.lasted_us), (3, 2, 99));
        assert_eq!(recording.end.as_deref(), Some("time"));
        assert_eq!(recording.limits.sharing, Sharing::Borrow);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let good = r#"{"at_us":1,"priority":"low","decision":"admitted","took_us":1}"#;
        let wrong = [
            ("{", "EOF"),
            ("no json", "expected"),
            (r#"{"at_us":1}"#, "missing field"),
            (r#"{"at_us":1,"priority":"lowest","decision":"admitted","took_us":1}"#, "lowest"),
            (r#"{"at_us":1,"priority":"low","decision":"admitted"}"#, "took_us is missing"),
            (r#"{"at_us":1,"priority":"low","decision":"admitted","took_us":-1}"#, "-1"),
        ];
        for (line, says) in wrong {
            let error = read(&[good, line, good]).unwrap_err();
            assert_eq!(error.line, 3, "{line}");
            assert!(error.to_string().contains(says), "{line}: {error}");
        }
        let end = r#"{"end":"time"}"#;
        assert_eq!(
            read(&[end, good]).unwrap_err().to_string(),
            "line 3: the recording has ended before it"
        );
        assert!(read(&[&"x".repeat(5_000)]).unwrap_err().what.contains("longer than 4096"));
    }

    #[test]
    fn what_is_no_recording_is_refused_at_its_first_line() {
        for (text, says) in [
            ("", "empty"),
            ("\n\n", "empty"),
            ("PK\u{3}\u{4}", "not a recording"),
            (r#"{"format":"other"}"#, "not a recording"),
            (&HEAD.replace("\"version\":1", "\"version\":2"), "version 2"),
            (&HEAD.replace("tidegate-decisions", "else"), "its format is \"else\""),
        ] {
            let error = Recording::read(text).unwrap_err();
            assert!(error.what.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_last_line_that_was_cut_off_is_left_out() {
        let row = r#"{"at_us":1,"priority":"low","decision":"admitted","took_us":1}"#;
        let cut = Recording::read(&format!("{HEAD}\n{row}\n{}", &row[..20])).unwrap();
        assert_eq!((cut.arrivals.len(), cut.end), (1, None));
        let whole = Recording::read(&format!("{HEAD}\n{row}\n{row}")).unwrap();
        assert_eq!(whole.arrivals.len(), 2, "a whole line may lack its end");
    }
}
