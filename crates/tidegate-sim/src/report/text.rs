//! The report as text for a terminal.

use super::format::{printable, short, thousands, time};
use super::{Report, ScheduleReport, Table};
use crate::scenario::Mode;
use std::fmt;

/// Prose is broken here. Tables are as wide as they are.
const COLUMNS: usize = 100;

/// Words are cut to no less than this.
const WORDS_MIN: usize = 14;

/// The report for a terminal: a heading, tables, notes, how well the generator kept to its schedule, each
/// check, and the verdict in the last line.
#[must_use]
pub fn render(report: &Report) -> String {
    Text(report).to_string()
}

/// A table for a terminal: its title, then aligned columns.
#[must_use]
pub fn table(table: &Table) -> String {
    Aligned(table).to_string()
}

struct Text<'a>(&'a Report);

/// A table whose columns are as wide as their widest cell: words stand left, numbers right.
struct Aligned<'a>(&'a Table);

/// Words broken into lines, of which all but the first are indented.
struct Wrapped<'a> {
    text: &'a str,
    indent: usize,
}

// === impl Text ===

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        self.heading(f)?;
        for table in &report.findings.tables {
            write!(f, "\n{}", Aligned(table))?;
        }
        if !report.findings.notes.is_empty() {
            writeln!(f)?;
        }
        for note in &report.findings.notes {
            write!(f, "{}", Wrapped { text: &format!("Note: {note}"), indent: 6 })?;
        }
        if let Some(schedule) = &report.schedule {
            writeln!(f)?;
            schedule_lines(f, schedule)?;
        }
        self.checks(f)?;
        writeln!(f, "\n{}", report.verdict())
    }
}

impl Text<'_> {
    fn heading(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        let mode = match report.mode {
            Mode::Sim => "simulated",
            Mode::Drill => "drill",
        };
        let mut parts = vec![
            format!("{}: {mode}", report.scenario),
            format!("seed {}", report.seed),
            time(report.duration_s),
        ];
        parts.extend(report.target.iter().map(|target| format!("target {target}")));
        parts.extend(report.capacity_per_s.map(|rate| format!("capacity {}/s", short(rate))));
        write!(f, "{}", Wrapped { text: &parts.join(", "), indent: 2 })?;
        write!(f, "{}", Wrapped { text: &report.about, indent: 0 })
    }

    fn checks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        if report.checks.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nExpected, and what came")?;
        for check in &report.checks {
            let verdict = if check.holds { "held" } else { "MISSED" };
            let mut line = format!("{verdict:6}  {}: {}", check.expected, check.came());
            if let Some(why) = &check.expected.why {
                line.push_str(&format!(" ({why})"));
            }
            write!(f, "{}", Wrapped { text: &line, indent: 8 })?;
        }
        Ok(())
    }
}

fn schedule_lines(f: &mut fmt::Formatter<'_>, schedule: &ScheduleReport) -> fmt::Result {
    let line = format!(
        "Schedule: {} due, {} unsent, {} not connected, {} sent over 1 ms late, {} waited for a \
         connection; error p50 {} ms, p99 {} ms (the generator's own {} ms), max {} ms; at most {} \
         connections.",
        thousands(schedule.due),
        thousands(schedule.unsent),
        thousands(schedule.not_connected),
        thousands(schedule.late),
        thousands(schedule.no_connection),
        short(schedule.error_p50_ms),
        short(schedule.error_p99_ms),
        short(schedule.own_error_p99_ms),
        short(schedule.error_max_ms),
        thousands(schedule.connections_max),
    );
    write!(f, "{}", Wrapped { text: &line, indent: 2 })?;
    if let Some(remark) = schedule.remark() {
        write!(f, "{}", Wrapped { text: &remark, indent: 2 })?;
    }
    if let Some(warning) = schedule.warning() {
        write!(f, "{}", Wrapped { text: &format!("WARNING: {warning}"), indent: 2 })?;
    }
    Ok(())
}

// === impl Aligned ===

impl fmt::Display for Aligned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(table) = self;
        let shown = |text: &str| text.chars().map(printable).collect::<String>();
        let head: Vec<String> = table.columns.iter().map(|column| shown(column)).collect();
        let rows: Vec<Vec<String>> = table
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| shown(&cell.to_string())).collect())
            .collect();
        let widths = self.widths(&head, &rows);
        writeln!(f, "{}", shown(&table.title))?;
        let rules = widths.iter().map(|width| "─".repeat(*width)).collect();
        for line in [&head, &rules].into_iter().chain(&rows) {
            let mut text = String::new();
            for (column, width) in widths.iter().copied().enumerate() {
                let cell = cut(line.get(column).map_or("", String::as_str), width);
                let cell = match table.is_of_words(column) {
                    true => format!("{cell:width$}  "),
                    false => format!("{cell:>width$}  "),
                };
                text.push_str(&cell);
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

impl Aligned<'_> {
    /// Returns the width of each column. If the table is too wide for a terminal, text is cut, numbers never.
    fn widths(&self, head: &[String], rows: &[Vec<String>]) -> Vec<usize> {
        let width_of =
            |line: &[String], at: usize| line.get(at).map_or(0, |cell| cell.chars().count());
        let widest =
            |at| rows.iter().map(|row| width_of(row, at)).fold(width_of(head, at), usize::max);
        let mut widths: Vec<usize> = (0..head.len()).map(widest).collect();
        let mut over =
            (widths.iter().sum::<usize>() + 2 * widths.len()).saturating_sub(COLUMNS + 2);
        while over > 0 {
            let of_words =
                (0..widths.len()).filter(|at| self.0.is_of_words(*at) && widths[*at] > WORDS_MIN);
            let Some(longest) = of_words.max_by_key(|at| widths[*at]) else { break };
            widths[longest] -= 1;
            over -= 1;
        }
        widths
    }
}

/// The text, or as much of it as there is room for.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

// === impl Wrapped ===

impl fmt::Display for Wrapped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.text.chars().map(printable).collect();
        let mut at = 0;
        for word in text.split(' ') {
            let width = word.chars().count();
            if at > 0 && at + 1 + width > COLUMNS {
                write!(f, "\n{:indent$}{word}", "", indent = self.indent)?;
                at = self.indent + width;
            } else {
                let gap = usize::from(at > 0);
                write!(f, "{:gap$}{word}", "")?;
                at += gap + width;
            }
        }
        writeln!(f)
    }
}
