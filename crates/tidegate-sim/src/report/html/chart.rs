//! A chart as SVG, drawn here: the page needs no script to show it.

use super::escape::Escaped;
use super::scale::{LEFT, PLOT_WIDTH, Scale, moment, time_ticks, x_of};
use super::series::{Point, thinned};
use super::spans::{ROW, Spans, in_words};
use crate::report::format::short;
use crate::report::{Chart, Report};
use std::fmt::{self, Display as _};

/// The most lines in one chart: the page has as many colours and marks.
pub(super) const LINES_MAX: usize = 8;

const WIDTH: f64 = LEFT + PLOT_WIDTH + 16.0;
const PLOT_HEIGHT: f64 = 220.0;
const BELOW: f64 = 40.0;

/// The number of marks on a line, which identify it without its colour.
const MARKS: usize = 9;

/// A chart, its legend, and what was when behind it.
pub(super) struct Figure<'a> {
    report: &'a Report,
    chart: &'a Chart,
    number: usize,
    lines: Vec<Drawn<'a>>,
    scale: Scale,
    /// The line that goes beyond the top.
    beyond: Option<usize>,
    spans: Spans<'a>,
}

/// A line as it is drawn.
struct Drawn<'a> {
    name: &'a str,
    /// The number of its colour and of its mark, the same in all charts of the page.
    look: usize,
    points: Vec<Point>,
}

/// The mark of a line: a shape, at a position.
struct Mark(usize, f64, f64);

// === impl Figure ===

impl<'a> Figure<'a> {
    pub(super) fn new(report: &'a Report, number: usize, chart: &'a Chart) -> Self {
        let lines = Drawn::all(&report.findings.charts, chart);
        let mosts: Vec<f64> = lines.iter().map(Drawn::most).collect();
        let scale = Scale::of(values(&lines), &chart.unit);
        let cut_at = cut_at(&mosts).filter(|_| !scale.is_log);
        let scale = match cut_at {
            Some(most) => Scale::of(values(&lines).map(|value| value.min(most)), &chart.unit),
            None => scale,
        };
        let beyond = (0..lines.len()).find(|at| cut_at.is_some_and(|most| mosts[*at] > most));
        Self { report, chart, number, lines, scale, beyond, spans: Spans::new(report) }
    }

    fn top(&self) -> f64 {
        self.spans.row_count() as f64 * ROW
    }

    fn y(&self, value: f64) -> f64 {
        self.top() + (1.0 - self.scale.place(value)) * PLOT_HEIGHT
    }

    fn axes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (right, bottom) = (LEFT + PLOT_WIDTH, self.top() + PLOT_HEIGHT);
        for tick in &self.scale.ticks {
            let (y, text) = (self.y(*tick), short(*tick));
            writeln!(f, r#"<path class="grid" d="M{LEFT:.1} {y:.1}H{right:.1}"/>"#)?;
            let (x, y) = (LEFT - 8.0, y + 4.0);
            writeln!(f, r#"<text class="tick y" x="{x:.1}" y="{y:.1}">{text}</text>"#)?;
        }
        let duration_s = self.report.duration_s;
        for tick in time_ticks(duration_s) {
            let (x, text) = (x_of(tick, duration_s), moment(tick, duration_s));
            let (end, y) = (bottom + 5.0, bottom + 19.0);
            writeln!(f, r#"<path class="axis" d="M{x:.1} {bottom:.1}V{end:.1}"/>"#)?;
            writeln!(f, r#"<text class="tick x" x="{x:.1}" y="{y:.1}">{text}</text>"#)?;
        }
        writeln!(f, r#"<path class="axis" d="M{LEFT:.1} {bottom:.1}H{right:.1}"/>"#)?;
        let unit = if duration_s < 180.0 { "time, s" } else { "time, min:s" };
        let y = bottom + 35.0;
        writeln!(f, r#"<text class="tick y" x="{right:.1}" y="{y:.1}">{unit}</text>"#)
    }

    fn line(&self, f: &mut fmt::Formatter<'_>, number: usize) -> fmt::Result {
        let Drawn { name, look, points } = &self.lines[number];
        let place = |at_s: f64, value: f64| (x_of(at_s, self.report.duration_s), self.y(value));
        write!(f, r#"<path class="line l{look}" data-name="{}" data-p=""#, Escaped(name))?;
        for (at_s, value) in points {
            match value {
                Some(value) => write!(f, "{at_s:.2}:{} ", compact(*value))?,
                None => write!(f, "{at_s:.2}: ")?,
            }
        }
        f.write_str(r#"" d=""#)?;
        let mut is_on = false;
        for (at, (at_s, value)) in points.iter().enumerate() {
            let Some(value) = *value else {
                is_on = false;
                continue;
            };
            let (x, y) = place(*at_s, value);
            let is_alone = !is_on && points.get(at + 1).is_none_or(|next| next.1.is_none());
            let (step, dot) = (if is_on { 'L' } else { 'M' }, if is_alone { "h0" } else { "" });
            write!(f, "{step}{x:.1} {y:.1}{dot}")?;
            is_on = true;
        }
        writeln!(f, r#""/>"#)?;
        let valued: Vec<_> =
            points.iter().filter_map(|(at_s, value)| Some((*at_s, (*value)?))).collect();
        // Not all at the same moments, so that marks of lines that run together stand side by side.
        let apart = valued.len().div_ceil(MARKS).max(1);
        let first = apart * (number + 1) / (self.lines.len() + 1);
        for (at_s, value) in valued.iter().skip(first).step_by(apart) {
            let (x, y) = place(*at_s, *value);
            Mark(*look, x, y).fmt(f)?;
        }
        Ok(())
    }

    fn legend(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, r#"<ul class="legend">"#)?;
        for Drawn { name, look, .. } in &self.lines {
            write!(
                f,
                r#"<li><svg class="key" viewBox="0 0 28 12" aria-hidden="true"><path class="line l{look}" d="M2 6H26"/>{}</svg>{}</li>"#,
                Mark(*look, 14.0, 6.0),
                Escaped(name)
            )?;
        }
        let left_out = self.chart.lines.len() - self.lines.len();
        if left_out > 0 {
            write!(f, "<li>{left_out} more not drawn</li>")?;
        }
        if !self.report.faults.is_empty() {
            f.write_str(r#"<li><span class="key fault-key"></span>a fault is on</li>"#)?;
        }
        writeln!(f, "</ul>")
    }
}

impl fmt::Display for Figure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, chart, height) = (self.number, self.chart, self.top() + PLOT_HEIGHT + BELOW);
        let log = if self.scale.is_log { ", logarithmic" } else { "" };
        writeln!(f, r#"<figure class="chart">"#)?;
        let unit = Escaped(&chart.unit);
        let title = Escaped(&chart.title);
        writeln!(f, r#"<figcaption>{title} <span class="unit">{unit}{log}</span>"#)?;
        if let Some(line) = self.beyond.map(|at| &self.lines[at]) {
            let (name, most) = (Escaped(line.name), short(line.most()));
            write!(f, r#" <span class="unit">({name} goes beyond the top, to {most})</span>"#)?;
        }
        writeln!(f, "</figcaption>")?;
        self.legend(f)?;
        let duration_s = self.report.duration_s;
        writeln!(f, r#"<div class="scroll" tabindex="0" role="group" aria-label="{title}">"#)?;
        writeln!(
            f,
            r#"<svg class="plot" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t{number} d{number}" data-left="{LEFT}" data-width="{PLOT_WIDTH}" data-s="{duration_s}" data-unit="{unit}">"#
        )?;
        writeln!(f, r#"<title id="t{number}">{title}, in {unit}</title>"#)?;
        let names: Vec<_> = self.lines.iter().map(|line| line.name).collect();
        let about = format!("Lines: {}. {}.", names.join(", "), in_words(self.report));
        writeln!(f, r#"<desc id="d{number}">{}</desc>"#, Escaped(about))?;
        self.spans.draw(f, self.top() + PLOT_HEIGHT)?;
        self.axes(f)?;
        (0..self.lines.len()).try_for_each(|number| self.line(f, number))?;
        if values(&self.lines).next().is_none() {
            let (x, y) = (LEFT + PLOT_WIDTH / 2.0, self.top() + PLOT_HEIGHT / 2.0);
            writeln!(
                f,
                r#"<text class="tick x" x="{x}" y="{y}">There is nothing to show.</text>"#
            )?;
        }
        writeln!(f, "</svg></div></figure>")
    }
}

fn values<'a>(lines: &'a [Drawn<'a>]) -> impl Iterator<Item = f64> + Clone + 'a {
    lines.iter().flat_map(|line| &line.points).filter_map(|point| point.1)
}

/// Where the scale ends when one line is so far above all others that these would lie on the axis: what is
/// offered at ten times the capacity, above what is done.
fn cut_at(mosts: &[f64]) -> Option<f64> {
    let mut mosts = mosts.to_vec();
    mosts.sort_by(f64::total_cmp);
    match mosts[..] {
        [.., second, most] if second > 0.0 && most > 4.0 * second => Some(1.5 * second),
        _ => None,
    }
}

// === impl Drawn ===

impl<'a> Drawn<'a> {
    /// The lines of a chart that are drawn, each looking as it does in the page's other charts.
    fn all(charts: &'a [Chart], chart: &'a Chart) -> Vec<Self> {
        let mut known: Vec<&str> = Vec::new();
        for line in charts.iter().flat_map(|chart| chart.lines.iter().take(LINES_MAX)) {
            if !known.contains(&line.name.as_str()) {
                known.push(&line.name);
            }
        }
        let mut lines: Vec<Self> = Vec::new();
        for line in chart.lines.iter().take(LINES_MAX) {
            let wanted = known.iter().position(|name| *name == line.name).unwrap_or(0);
            // No two of one chart look the same, even where there are more names than looks.
            let mut looks = (0..LINES_MAX).map(|more| (wanted + more) % LINES_MAX);
            let is_free = |look: &usize| lines.iter().all(|line| line.look != *look);
            let look = looks.find(is_free).unwrap_or(0);
            lines.push(Self { name: &line.name, look, points: thinned(line) });
        }
        lines
    }

    fn most(&self) -> f64 {
        self.points.iter().filter_map(|point| point.1).fold(0.0, f64::max)
    }
}

/// A value in as few letters as keep four digits that mean something.
fn compact(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 1.0 => 3,
        _ => 5,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

// === impl Mark ===

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, x, y) = *self;
        // Each about as large to the eye. Those of the second four are hollow.
        let shape = match number % 4 {
            0 => "m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z",
            1 => "m-3.2 -3.2h6.4v6.4h-6.4z",
            2 => "m0 -4.2l4 7h-8z",
            _ => "m0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z",
        };
        let hollow = if number >= 4 { " hollow" } else { "" };
        writeln!(f, r#"<path class="mark l{number}{hollow}" d="M{x:.1} {y:.1}{shape}"/>"#)
    }
}
