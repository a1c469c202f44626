//! Phases as bands and faults as shaded spans, each with its name above the chart.

use super::escape::Escaped;
use super::scale::{LEFT, PLOT_WIDTH, x_of};
use crate::report::format::short;
use crate::report::{FaultSpan, Report};
use std::fmt::{self, Display as _};

/// The height of a row of names, in pixels.
pub(super) const ROW: f64 = 20.0;

/// Names of more faults at once than this are only in the table below.
const FAULT_ROWS_MAX: usize = 4;

/// About how wide a letter is at the size that names have.
const LETTER: f64 = 7.4;

/// Phases and faults, drawn behind a chart.
pub(super) struct Spans<'a> {
    report: &'a Report,
    /// The row in which a fault's name stands.
    rows: Vec<usize>,
}

/// A name in a row, cut to its span. Whole when it is pointed at.
struct Name<'a> {
    text: &'a str,
    class: &'a str,
    from: f64,
    until: f64,
    row: usize,
}

// === impl Spans ===

impl<'a> Spans<'a> {
    pub(super) fn new(report: &'a Report) -> Self {
        // Each in the first row that is free again.
        let mut free_at = vec![];
        let mut row_of = |fault: &FaultSpan| {
            let from = x_of(fault.from_s, report.duration_s);
            let row = free_at.iter().position(|until| *until <= from).unwrap_or(free_at.len());
            free_at.resize(free_at.len().max(row + 1), 0.0);
            free_at[row] = name_end(fault, report.duration_s);
            row
        };
        Self { report, rows: report.faults.iter().map(&mut row_of).collect() }
    }

    /// Returns the number of rows of names.
    pub(super) fn row_count(&self) -> usize {
        1 + self.rows.iter().map(|row| row + 1).max().unwrap_or(0).min(FAULT_ROWS_MAX)
    }

    /// Draws everything down to this height.
    pub(super) fn draw(&self, f: &mut fmt::Formatter<'_>, bottom: f64) -> fmt::Result {
        let top = self.row_count() as f64 * ROW;
        let x = |at_s| x_of(at_s, self.report.duration_s);
        for (number, phase) in self.report.phases.iter().enumerate() {
            let (from, until) = (x(phase.from_s), x(phase.until_s));
            let odd = if number % 2 == 1 { " odd" } else { "" };
            rect(f, &format!("band{odd}"), from, until, 0.0, bottom)?;
            let text = &phase.name;
            Name { text, class: "phase", from, until, row: 0 }.fmt(f)?;
        }
        for (fault, row) in self.report.faults.iter().zip(&self.rows) {
            let (from, until) = (x(fault.from_s), x(fault.until_s));
            rect(f, "fault", from, until, top, bottom)?;
            if *row < FAULT_ROWS_MAX {
                let row = row + 1;
                let (y, text) = (row as f64 * ROW, &fault.what);
                rect(f, "fault-tag", from, until, y + 2.0, y + ROW - 2.0)?;
                let until = name_end(fault, self.report.duration_s);
                Name { text, class: "fault-name", from, until, row }.fmt(f)?;
            }
        }
        Ok(())
    }
}

/// A fault that is short has its name beside it too, where there is room before the edge.
fn name_end(fault: &FaultSpan, duration_s: f64) -> f64 {
    let needs = fault.what.chars().count() as f64 * LETTER + 14.0;
    let (from, until) = (x_of(fault.from_s, duration_s), x_of(fault.until_s, duration_s));
    until.max((from + needs).min(LEFT + PLOT_WIDTH))
}

fn rect(
    f: &mut fmt::Formatter<'_>,
    class: &str,
    from: f64,
    until: f64,
    top: f64,
    bottom: f64,
) -> fmt::Result {
    let (width, height) = ((until - from).max(1.0), bottom - top);
    writeln!(
        f,
        r#"<rect class="{class}" x="{from:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}"/>"#
    )
}

// === impl Name ===

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = ((self.until - self.from - 8.0) / LETTER).max(0.0) as usize;
        let shown: String = match self.text.chars().count() {
            count if count <= fits => self.text.to_owned(),
            _ if fits < 2 => return Ok(()),
            _ => self.text.chars().take(fits - 1).chain(['…']).collect(),
        };
        let (x, y) = (self.from + 5.0, self.row as f64 * ROW + 14.0);
        writeln!(
            f,
            r#"<text class="{}" x="{x:.1}" y="{y:.1}">{}<title>{}</title></text>"#,
            self.class,
            Escaped(shown),
            Escaped(self.text)
        )
    }
}

/// Describes phases and faults in words, for readers who can't see the chart.
pub(super) fn in_words(report: &Report) -> String {
    let phases = report.phases.iter().map(|phase| {
        format!("phase {} from {} to {} s", phase.name, short(phase.from_s), short(phase.until_s))
    });
    let faults = report.faults.iter().map(|fault| {
        format!("fault {} from {} to {} s", fault.what, short(fault.from_s), short(fault.until_s))
    });
    phases.chain(faults).take(40).collect::<Vec<_>>().join("; ")
}
