use super::chart::Figure;
use super::escape::Escaped;
use super::sections::{Checks, Facts, Rows, Schedule, Timeline, Verdict};
use crate::report::Report;
use std::fmt::{self, Display as _};

/// Light and dark, by what the reader's system asks for.
const STYLE: &str = include_str!("page.css");

/// Reads values out under the pointer. The page is whole without it.
const SCRIPT: &str = include_str!("readout.js");

/// The content security policy: the page loads nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The most charts on a page.
const CHARTS_MAX: usize = 24;

/// The report as one file in HTML that refers to nothing outside of it: verdict, checks, charts, tables, notes,
/// and how to run it again. Same report, same bytes.
#[must_use]
pub fn page(report: &Report) -> String {
    Page(report).to_string()
}

struct Page<'a>(&'a Report);

// === impl Page ===

impl fmt::Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        let name = Escaped(&report.scenario);
        writeln!(f, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">")?;
        writeln!(f, r#"<meta http-equiv="Content-Security-Policy" content="{POLICY}">"#)?;
        writeln!(f, r#"<meta name="viewport" content="width=device-width, initial-scale=1">"#)?;
        writeln!(f, r#"<meta name="color-scheme" content="light dark">"#)?;
        writeln!(f, "<title>{name}: {}</title>", Escaped(report.verdict()))?;
        writeln!(f, "<style>\n{STYLE}</style></head><body>{HATCH}<main>")?;
        writeln!(f, r#"<header><p class="kind">Tidegate report</p><h1>{name}</h1>"#)?;
        writeln!(f, r#"<p class="about">{}</p></header>"#, Escaped(&report.about))?;
        write!(f, "{}{}{}", Verdict(report), Facts(report), Checks(&report.checks))?;
        self.charts(f)?;
        for table in &report.findings.tables {
            Rows(table).fmt(f)?;
        }
        if let Some(schedule) = &report.schedule {
            Schedule(schedule).fmt(f)?;
        }
        self.notes(f)?;
        Timeline(report).fmt(f)?;
        if let Some(command) = &report.command {
            writeln!(f, "<section><h2>Run it again</h2>")?;
            writeln!(f, "<pre><code>{}</code></pre></section>", Escaped(command))?;
        }
        writeln!(f, "</main><script>\n{SCRIPT}</script></body></html>")
    }
}

impl Page<'_> {
    fn charts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let charts = &self.0.findings.charts;
        if charts.is_empty() {
            return Ok(());
        }
        writeln!(f, "<section><h2>Over time</h2>")?;
        for (number, chart) in charts.iter().take(CHARTS_MAX).enumerate() {
            Figure::new(self.0, number, chart).fmt(f)?;
        }
        if charts.len() > CHARTS_MAX {
            writeln!(f, "<p>{} more charts are not shown.</p>", charts.len() - CHARTS_MAX)?;
        }
        writeln!(f, "</section>")
    }

    fn notes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let notes = &self.0.findings.notes;
        if notes.is_empty() {
            return Ok(());
        }
        writeln!(f, r#"<section><h2>Notes</h2><ul class="notes">"#)?;
        for note in notes {
            writeln!(f, "<li>{}</li>", Escaped(note))?;
        }
        writeln!(f, "</ul></section>")
    }
}

/// The pattern that shades faults in charts, visible without colour too.
const HATCH: &str = concat!(
    r#"<svg width="0" height="0" class="defs" aria-hidden="true"><defs><pattern id="hatch" "#,
    r#"width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">"#,
    r#"<path class="hatch" d="M0 0V8"/></pattern></defs></svg>"#
);
