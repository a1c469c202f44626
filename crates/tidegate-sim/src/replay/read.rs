use super::{Arrival, Limits, Recording, Verdict};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use tidegate_core::admission::{MessagePriority, PriorityLimits, Reason, Sharing};

/// No line of a recording is longer: a client's name has at most 64 letters.
pub const LINE_BYTES_MAX: usize = 4096;

/// A power of two, so that a vector that doubles has room for exactly these: 512 MiB. As much again is needed at
/// most: half of it while they are put in order, and then for each the time that it takes (128 MiB) and what those
/// are drawn from (128 MiB of all, and at most 256 MiB by priority).
const ARRIVALS_MAX: usize = 1 << 24;
const _: () = assert!(ARRIVALS_MAX * size_of::<Arrival>() <= 512 << 20);

/// Reasons that a gateway has, with room for those that it will have.
const OTHERS_MAX: usize = 64;

const FORMAT: &str = "tidegate-decisions";
const VERSION: u32 = 1;

/// Reads a recording line by line.
#[derive(Debug, Default)]
pub struct Reader {
    line: u64,
    recording: Option<Recording>,
}

/// What was read is no recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError {
    /// The line in which it is not, counted from 1.
    pub line: u64,
    /// What is wrong there.
    pub what: String,
}

#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
    #[serde(default)]
    started_unix_ms: u64,
    limits: HeadLimits,
    sharing: Sharing,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize)]
struct HeadLimits {
    global: u16,
    high: u16,
    normal: u16,
    low: u16,
    critical_reserve: u16,
}

#[derive(Deserialize)]
struct Row<'a> {
    at_us: i64,
    priority: MessagePriority,
    #[serde(borrow)]
    decision: Cow<'a, str>,
    took_us: Option<u64>,
}

/// A line that is no request.
#[derive(Deserialize)]
struct Word {
    end: Option<String>,
    lost: Option<u64>,
    lasted_us: Option<u64>,
    #[serde(default)]
    in_flight: BTreeMap<String, u64>,
}

// === impl Reader ===

impl Reader {
    /// Takes the next line, without its end.
    ///
    /// # Errors
    ///
    /// When it is none of a recording.
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
            None => self.recording = Some(head(line).map_err(wrong)?),
            Some(recording) if recording.end.is_some() => {
                return Err(wrong("the recording has ended before it".to_owned()));
            }
            Some(recording) => recording.take(line).map_err(wrong)?,
        }
        Ok(())
    }

    /// Takes what stands after the last whole line. What was cut off there is left out: a recorder that was
    /// killed leaves it.
    ///
    /// # Errors
    ///
    /// When there was nothing before it, and it is no beginning of a recording.
    pub fn rest(&mut self, rest: &[u8]) -> Result<(), RecordingError> {
        match (self.line(rest), &self.recording) {
            (Err(_), Some(recording)) if recording.end.is_none() => Ok(()),
            (read, _) => read,
        }
    }

    /// What was recorded.
    ///
    /// # Errors
    ///
    /// When nothing was.
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

fn head(line: &[u8]) -> Result<Recording, String> {
    let no_head = |why: &dyn fmt::Display| {
        format!("it is no recording of decisions, as `tidegate drill --record` writes: {why}")
    };
    let head: Head = serde_json::from_slice(line).map_err(|error| no_head(&error))?;
    if head.format != FORMAT {
        return Err(no_head(&format_args!("its format is {:?}", head.format)));
    }
    if head.version != VERSION {
        let version = head.version;
        return Err(format!("it has version {version} of the format, and {VERSION} is known here"));
    }
    let HeadLimits { global, high, normal, low, critical_reserve } = head.limits;
    let limits = PriorityLimits { high, normal, low, global_limit: global, critical_reserve };
    Ok(Recording {
        limits: Limits { limits, sharing: head.sharing },
        dry_run: head.dry_run,
        started_unix_ms: head.started_unix_ms,
        arrivals: Vec::new(),
        others: Vec::new(),
        lost: 0,
        lasted_us: 0,
        end: None,
        unended: 0,
    })
}

// === impl Recording ===

impl Recording {
    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        let row = match serde_json::from_slice::<Row<'_>>(line) {
            Ok(row) => row,
            Err(error) => return self.word(line).ok_or_else(|| error.to_string()),
        };
        let verdict = match &*row.decision {
            "admitted" if row.took_us.is_none() => {
                return Err("it was admitted, and took_us is missing".to_owned());
            }
            "admitted" => Verdict::Admitted,
            name => match Reason::ALL.into_iter().find(|reason| reason.name() == name) {
                Some(reason) => Verdict::Refused(reason),
                None => Verdict::Other(self.other(name)?),
            },
        };
        if self.arrivals.len() == ARRIVALS_MAX {
            return Err(format!("there are more than {ARRIVALS_MAX} requests: replay it in parts"));
        }
        let Row { at_us, priority, took_us, .. } = row;
        self.arrivals.push(Arrival { at_us, took_us, priority, verdict });
        Ok(())
    }

    /// How many were lost, or the end. `None` when the line is neither.
    fn word(&mut self, line: &[u8]) -> Option<()> {
        let word: Word = serde_json::from_slice(line).ok()?;
        match (word.end, word.lost) {
            (Some(end), lost) => {
                self.end = Some(end);
                // The last line has the sum of all before it.
                self.lost = self.lost.max(lost.unwrap_or(0));
                self.lasted_us = word.lasted_us.unwrap_or(0);
                let proxied = word.in_flight.iter().filter(|(name, _)| *name != "critical");
                self.unended = proxied.fold(0, |sum, (_, count)| sum.saturating_add(*count));
            }
            (None, Some(lost)) => self.lost = self.lost.saturating_add(lost),
            (None, None) => return None,
        }
        Some(())
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
            ("PK\u{3}\u{4}", "no recording"),
            (r#"{"format":"other"}"#, "no recording"),
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
