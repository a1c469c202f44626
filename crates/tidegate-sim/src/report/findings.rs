use super::{Chart, Table, never};
use crate::scenario::What;
use serde::Serialize;

/// One number that a run has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The kind.
    pub what: What,
    /// The group.
    pub of: String,
    /// In which phase; `None` is all of the time that is judged.
    pub phase: Option<String>,
    /// The number; infinite where it is of something that never came.
    #[serde(serialize_with = "never::figure")]
    pub value: f64,
}

/// The findings of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Findings {
    /// The figures that expectations are compared with.
    pub figures: Vec<Figure>,
    /// Tables for readers.
    pub tables: Vec<Table>,
    /// Charts for readers.
    pub charts: Vec<Chart>,
    /// Notes for readers.
    pub notes: Vec<String>,
    /// Decisions of the shipped code; 0 where that is unknown.
    pub decisions: u64,
}

// === impl Findings ===

impl Findings {
    /// Adds a figure.
    pub fn figure(&mut self, what: What, of: &str, phase: Option<&str>, value: f64) {
        let phase = phase.map(str::to_owned);
        self.figures.push(Figure { what, of: of.to_owned(), phase, value });
    }

    /// A figure that was found; `None` when there is none, as for the latency of what was never answered.
    #[must_use]
    pub fn value(&self, what: What, of: &str, phase: Option<&str>) -> Option<f64> {
        let is_it = |figure: &&Figure| {
            figure.what == what && figure.of == of && figure.phase.as_deref() == phase
        };
        self.figures.iter().find(is_it).map(|figure| figure.value)
    }
}
