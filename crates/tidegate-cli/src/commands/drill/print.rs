use crate::commands::table::aligned;
use crate::failure::Failure;
use std::fmt::Write as _;
use tidegate_sim::report::Report;

/// The report for a terminal.
pub fn text(report: &Report) -> String {
    let mut text = format!("{}: {}\n", report.scenario, report.about);
    for table in &report.findings.tables {
        let rows = table.rows.iter().map(|row| row.iter().map(ToString::to_string).collect());
        let lines: Vec<Vec<String>> = std::iter::once(table.columns.clone()).chain(rows).collect();
        // Writing to a String can't fail.
        let _ = write!(text, "\n{}\n{}", table.title, aligned(&lines, |column| column > 1));
    }
    text.push('\n');
    for note in &report.findings.notes {
        let _ = writeln!(text, "note: {note}");
    }
    for check in &report.checks {
        let _ = writeln!(text, "{check}");
    }
    text
}

/// The report as a page.
pub fn page(report: &Report) -> String {
    format!("<!doctype html><pre>{}</pre>\n", text(report))
}

/// The report for machines.
pub fn json(report: &Report) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(report)
        .map_err(|error| Failure::Runtime(format!("the report can't be written: {error}")))?;
    Ok(text + "\n")
}
