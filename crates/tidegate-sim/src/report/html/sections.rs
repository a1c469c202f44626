//! The sections of the page other than charts.

use super::escape::Escaped;
use crate::report::format::{short, thousands, time};
use crate::report::{Cell, Check, Report, ScheduleReport, Table};
use crate::scenario::Mode;
use std::fmt;

/// A page is to be read: rows beyond these are counted, not shown. `--json` has them all.
const ROWS_MAX: usize = 1_000;

/// The verdict, in words and with its counts, and what was missed.
pub(super) struct Verdict<'a>(pub(super) &'a Report);

/// The facts of the run: scenario, mode and target.
pub(super) struct Facts<'a>(pub(super) &'a Report);

/// The section of expectations.
pub(super) struct Checks<'a>(pub(super) &'a [Check]);

/// Rows of figures.
pub(super) struct Rows<'a>(pub(super) &'a Table);

/// The section of phases and faults.
pub(super) struct Timeline<'a>(pub(super) &'a Report);

/// The schedule error of the generator.
pub(super) struct Schedule<'a>(pub(super) &'a ScheduleReport);

// === impl Verdict ===

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        let (all, missed) = (report.checks.len(), report.missed().count());
        let (class, sign, word) = match (all, missed) {
            _ if report.stopped => ("open", "–", "Stopped early"),
            (0, _) => ("open", "–", "Not judged"),
            (_, 0) => ("held", "✓", "Held"),
            _ => ("missed", "✗", "Missed"),
        };
        let counts = match (all, missed) {
            _ if report.stopped => {
                "It was stopped before its end, so nothing is judged.".to_owned()
            }
            (0, _) => "This scenario expects nothing.".to_owned(),
            (1, 0) => "The one thing that was expected came.".to_owned(),
            (_, 0) => format!("All {all} expectations came true."),
            _ => format!("{missed} of {all} expectations missed, {} held.", all - missed),
        };
        writeln!(f, r#"<section class="verdict {class}" aria-label="Verdict">"#)?;
        writeln!(f, r#"<p class="word"><span aria-hidden="true">{sign}</span> {word}</p>"#)?;
        writeln!(f, "<p>{counts}</p>")?;
        if missed > 0 {
            writeln!(f, "<ul>")?;
            for check in report.missed().take(20) {
                let (expected, came) = (Escaped(&check.expected), check.came());
                writeln!(f, "<li><code>{expected}</code>: came <b>{came}</b></li>")?;
            }
            writeln!(f, "</ul>")?;
        }
        writeln!(f, "</section>")
    }
}

// === impl Facts ===

impl fmt::Display for Facts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        let mode = match report.mode {
            Mode::Sim => "simulated in virtual time",
            Mode::Drill => "a drill with real requests",
        };
        let mut facts = vec![("Run", mode.to_owned()), ("Lasted", time(report.duration_s))];
        facts.extend(report.target.iter().map(|target| ("Target", target.clone())));
        let capacity = report.capacity_per_s.map(|rate| format!("{}/s", short(rate)));
        facts.extend(capacity.map(|capacity| ("Capacity", capacity)));
        facts.push(("Seed", report.seed.to_string()));
        if report.findings.decisions > 0 {
            facts.push(("Decisions", thousands(report.findings.decisions)));
        }
        writeln!(f, r#"<dl class="facts">"#)?;
        for (name, value) in facts {
            writeln!(f, "<div><dt>{name}</dt><dd>{}</dd></div>", Escaped(value))?;
        }
        writeln!(f, "</dl>")
    }
}

// === impl Checks ===

impl fmt::Display for Checks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(checks) = self;
        if checks.is_empty() {
            return Ok(());
        }
        writeln!(f, r#"<section><h2>Expected, and what came</h2>"#)?;
        writeln!(f, r#"<div class="scroll" tabindex="0" role="group" aria-label="Checks">"#)?;
        writeln!(f, r#"<table class="checks"><thead><tr><th scope="col">verdict</th>"#)?;
        writeln!(f, r#"<th scope="col">expected</th><th scope="col" class="n">came</th>"#)?;
        writeln!(f, r#"<th scope="col">why it must be so</th></tr></thead><tbody>"#)?;
        for check in checks.iter().take(ROWS_MAX) {
            let (class, sign, word) = match check.holds {
                true => ("held", "✓", "held"),
                false => ("missed", "✗", "missed"),
            };
            let why = check.expected.why.as_deref().unwrap_or("");
            writeln!(
                f,
                r#"<tr class="{class}"><td><span class="tag"><span aria-hidden="true">{sign}</span> {word}</span></td><td><code>{}</code></td><td class="n">{}</td><td class="why">{}</td></tr>"#,
                Escaped(&check.expected),
                Escaped(check.came()),
                Escaped(why)
            )?;
        }
        writeln!(f, "</tbody></table></div>{}</section>", Beyond(checks.len()))
    }
}

// === impl Rows ===

impl fmt::Display for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(table) = self;
        let number =
            |column| if table.is_of_words(column) { r#" class="w""# } else { r#" class="n""# };
        let title = Escaped(&table.title);
        writeln!(f, r#"<section><h2>{title}</h2>"#)?;
        writeln!(f, r#"<div class="scroll" tabindex="0" role="group" aria-label="{title}">"#)?;
        writeln!(f, "<table><thead><tr>")?;
        for (at, column) in table.columns.iter().enumerate() {
            write!(f, r#"<th scope="col"{}>{}</th>"#, number(at), Escaped(column))?;
        }
        writeln!(f, "</tr></thead><tbody>")?;
        let mut before = None;
        for row in table.rows.iter().take(ROWS_MAX) {
            // What belongs together is set apart from what follows.
            let group = row.first().filter(|cell| matches!(cell, Cell::Text(_)));
            let begins = before.is_some_and(|before| before != group);
            before = Some(group);
            f.write_str(if begins { r#"<tr class="begins">"# } else { "<tr>" })?;
            for (at, cell) in row.iter().enumerate() {
                write!(f, "<td{}>{}</td>", number(at), Escaped(cell))?;
            }
            writeln!(f, "</tr>")?;
        }
        writeln!(f, "</tbody></table></div>{}</section>", Beyond(table.rows.len()))
    }
}

/// Says so when there are more rows than are shown.
struct Beyond(usize);

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.checked_sub(ROWS_MAX) {
            None | Some(0) => Ok(()),
            Some(more) => {
                write!(f, "<p>{more} more rows are in what <code>--json</code> prints.</p>")
            }
        }
    }
}

// === impl Timeline ===

impl fmt::Display for Timeline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        let second = |at_s| Cell::Number { value: at_s, digits: 1 };
        let phases = report.phases.iter().map(|phase| {
            let name = format!("phase {}", phase.name);
            let load = Cell::Text(format!("load × {}", short(phase.load)));
            vec![Cell::Text(name), second(phase.from_s), second(phase.until_s), load]
        });
        let faults = report.faults.iter().map(|fault| {
            let name = Cell::Text(format!("fault: {}", fault.what));
            vec![name, second(fault.from_s), second(fault.until_s), Cell::None]
        });
        let rows = phases.chain(faults).collect();
        let columns = ["what", "from s", "until s", ""].map(str::to_owned).to_vec();
        let title = "What was when".to_owned();
        Rows(&Table { title, columns, rows }).fmt(f)
    }
}

// === impl Schedule ===

impl fmt::Display for Schedule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(schedule) = self;
        writeln!(f, "<section><h2>How well the generator kept to its schedule</h2>")?;
        if let Some(warning) = schedule.warning() {
            let warning = Escaped(warning);
            writeln!(f, r#"<p class="warning"><b>Warning:</b> {warning}</p>"#)?;
        }
        if let Some(remark) = schedule.remark() {
            writeln!(f, "<p>{}</p>", Escaped(remark))?;
        }
        let facts = [
            ("Due", thousands(schedule.due)),
            ("Never sent", thousands(schedule.unsent)),
            ("Given no connection", thousands(schedule.not_connected)),
            ("Over 1 ms late", thousands(schedule.late)),
            ("Waited for a connection", thousands(schedule.no_connection)),
            ("Error, median", format!("{} ms", short(schedule.error_p50_ms))),
            ("Error, p99", format!("{} ms", short(schedule.error_p99_ms))),
            ("Error, p99, the generator's own", format!("{} ms", short(schedule.own_error_p99_ms))),
            ("Error, worst", format!("{} ms", short(schedule.error_max_ms))),
            ("Connections, most", thousands(schedule.connections_max)),
        ];
        writeln!(f, r#"<dl class="facts">"#)?;
        for (name, value) in facts {
            writeln!(f, "<div><dt>{name}</dt><dd>{value}</dd></div>")?;
        }
        writeln!(f, "</dl></section>")
    }
}
