use super::{Chart, Table, never};
use crate::scenario::What;
use serde::Serialize;

/// One number that a run has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is.
    pub what: What,
    /// Of whom.
    pub of: String,
    /// In which phase; `None` is all of the time that is judged.
    pub phase: Option<String>,
    /// The number; infinite where it is of something that never came.
    #[serde(serialize_with = "never::figure")]
    pub value: f64,
}

/// Everything that was found out in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Findings {
    /// What expectations are held to.
    pub figures: Vec<Figure>,
    /// What a person reads.
    pub tables: Vec<Table>,
    /// What a person looks at.
    pub charts: Vec<Chart>,
    /// What a reader must know to read the rest.
    pub notes: Vec<String>,
    /// How many decisions the shipped code was asked for; 0 where that is not known.
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
