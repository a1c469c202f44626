use crate::failure::Failure;
use serde::Serialize;
use std::io::{self, Write as _};

/// Writes text to standard output. A closed pipe, such as that of `head`, is not a failure.
pub fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

/// Formats a report as indented JSON with a final newline.
pub fn report_json(report: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(report)
        .map_err(|error| Failure::Runtime(format!("the report can't be written: {error}")))?;
    Ok(text + "\n")
}
