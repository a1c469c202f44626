use serde::Serialize;

/// Lines over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// The unit of its values, such as `requests/s` or `ms`.
    pub unit: String,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// One line of a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The name.
    pub name: String,
    /// Seconds from the start, and the value. Where there is no value the line has a gap.
    pub points: Vec<(f64, Option<f64>)>,
}
