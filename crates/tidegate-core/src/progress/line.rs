use super::bounds::LINE_BYTES_MAX;
use super::error::ProgressError;
use super::histogram::UncheckedHistogram;
use super::progress::{Progress, Unchecked};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Characters of a parser's error that are quoted.
const REASON_CHARS_MAX: usize = 256;

/// A report as a task writes it. A misspelt field is an error, because the task's author reads it.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with \"counters\", \"gauges\", \"histograms\", \"message\", \"done\" or \"total\""
)]
struct Line {
    #[serde(default)]
    counters: Option<BTreeMap<Box<str>, u64>>,
    #[serde(default)]
    gauges: Option<BTreeMap<Box<str>, f64>>,
    #[serde(default)]
    histograms: Option<BTreeMap<Box<str>, UncheckedHistogram>>,
    #[serde(default)]
    message: Option<Box<str>>,
    #[serde(default)]
    done: Option<u64>,
    #[serde(default)]
    total: Option<u64>,
}

/// Parses one report: a JSON object in at most [`LINE_BYTES_MAX`] bytes. A `null` field counts as absent.
///
/// # Errors
///
/// When it is too long, not JSON, or has fields, names or values that are not allowed.
pub fn parse_line(line: &[u8]) -> Result<Progress, ProgressError> {
    if line.len() > LINE_BYTES_MAX {
        return Err(ProgressError::TooLong { bytes_max: LINE_BYTES_MAX });
    }
    let line: Line = serde_json::from_slice(line).map_err(|error| {
        let why = error.to_string().chars().take(REASON_CHARS_MAX).collect();
        match error.is_data() {
            true => ProgressError::WrongType(why),
            false => ProgressError::NotJson(why),
        }
    })?;
    Progress::try_from(Unchecked {
        counters: line.counters.unwrap_or_default(),
        gauges: line.gauges.unwrap_or_default(),
        histograms: line.histograms.unwrap_or_default(),
        message: line.message,
        done: line.done,
        total: line.total,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::{COUNTERS_MAX, MESSAGE_BYTES_MAX};

    fn reason(line: &str) -> &'static str {
        parse_line(line.as_bytes()).unwrap_err().reason()
    }

    #[test]
    fn a_line_has_any_of_the_six_fields() {
        let line = br#"{"counters": {"rows": 1200}, "gauges": {"loss": 0.31, "lr": 1},
                        "histograms": {"ms": {"bounds": [1, 5.5], "counts": [7, 2, 0]}},
                        "message": "epoch 3", "done": 3, "total": 10}"#;
        let progress = parse_line(line).unwrap();
        assert_eq!(progress.counters.get("rows"), Some(&1200));
        assert_eq!(progress.gauges.get("loss"), Some(&0.31));
        assert_eq!(progress.gauges.get("lr"), Some(&1.0));
        let ms = &progress.histograms["ms"];
        assert_eq!((ms.bounds(), ms.counts()), (&[1.0, 5.5][..], &[7, 2, 0][..]));
        assert_eq!(progress.message.as_deref(), Some("epoch 3"));
        assert_eq!((progress.done, progress.total), (Some(3), Some(10)));
        assert!(parse_line(b"{}").unwrap().is_empty());
        assert!(parse_line(br#" {"counters": null, "done": null} "#).unwrap().is_empty());
    }

    #[test]
    fn errors_have_names() {
        let long = format!("{{\"message\": \"{}\"}}", "x".repeat(LINE_BYTES_MAX));
        let many: Vec<String> = (0..=COUNTERS_MAX).map(|n| format!("\"c{n}\": 1")).collect();
        let many = many.join(",");
        let empty = "{\"bounds\": [], \"counts\": [0]}";
        let histograms: Vec<String> = (0..9).map(|n| format!("\"h{n}\": {empty}")).collect();
        let histograms = histograms.join(",");
        for (line, expected) in [
            ("", "not_json"),
            ("nope", "not_json"),
            ("{\"done\": 3", "not_json"),
            ("{\"gauges\": {\"x\": 1e999}}", "not_json"),
            ("{\"gauges\": {\"x\": NaN}}", "not_json"),
            ("7", "wrong_type"),
            ("{\"counter\": {\"rows\": 1}}", "wrong_type"),
            ("{\"counters\": {\"rows\": -1}}", "wrong_type"),
            ("{\"counters\": {\"rows\": 1.5}}", "wrong_type"),
            ("{\"gauges\": {\"loss\": \"0.3\"}}", "wrong_type"),
            ("{\"message\": 3}", "wrong_type"),
            ("{\"counters\": {\"\": 1}}", "progress_name"),
            ("{\"counters\": {\"two words\": 1}}", "progress_name"),
            ("{\"gauges\": {\"größe\": 1}}", "progress_name"),
            (&format!("{{\"counters\": {{{many}}}}}"), "progress_too_many"),
            (&format!("{{\"gauges\": {{{many}}}}}"), "progress_too_many"),
            (&format!("{{\"histograms\": {{{histograms}}}}}"), "progress_too_many"),
            (&format!("{{\"histograms\": {{\"two words\": {empty}}}}}"), "progress_name"),
            ("{\"histograms\": {\"ms\": {\"bounds\": [1], \"counts\": [1]}}}", "progress_buckets"),
            ("{\"histograms\": {\"ms\": {\"bounds\": [1]}}}", "wrong_type"),
            ("{\"histograms\": {\"ms\": [1, 2]}}", "wrong_type"),
            (&long, "progress_too_long"),
        ] {
            assert_eq!(reason(line), expected, "{}", &line[..line.len().min(60)]);
        }
        let name = "n".repeat(65);
        assert_eq!(reason(&format!("{{\"gauges\": {{\"{name}\": 1}}}}")), "progress_name");
        let error = parse_line(b"{\"counter\": 1}").unwrap_err().to_string();
        assert!(error.contains("unknown field `counter`"), "{error}");
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let line = format!("{{\"message\": \"x{}\"}}", "é".repeat(200));
        let message = parse_line(line.as_bytes()).unwrap().message.unwrap();
        assert_eq!(message.len(), MESSAGE_BYTES_MAX - 1);
        assert!(message.ends_with('é'));
    }

    #[test]
    fn a_progress_of_another_node_is_checked_and_may_have_more_fields() {
        let newer = r#"{"counters": {"rows": 1}, "summaries": {}}"#;
        let progress: Progress = serde_json::from_str(newer).unwrap();
        let written = serde_json::to_string(&progress).unwrap();
        assert_eq!(written, r#"{"counters":{"rows":1}}"#);
        assert!(serde_json::from_str::<Progress>(r#"{"counters": {"a b": 1}}"#).is_err());
    }
}
