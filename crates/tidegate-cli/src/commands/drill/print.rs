use crate::failure::Failure;
use tidegate_sim::report::Report;

/// The report for machines.
pub fn json(report: &Report) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(report)
        .map_err(|error| Failure::Runtime(format!("the report can't be written: {error}")))?;
    Ok(text + "\n")
}
