use serde::Serialize;

/// Rows of figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// The title.
    pub title: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows, each as long as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// The content of a table cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A count.
    Count(u64),
    /// A number, with so many digits after the point.
    Number {
        /// The number.
        value: f64,
        /// Digits after the point.
        digits: u8,
    },
    /// No value.
    None,
}

// === impl Table ===

impl Table {
    /// Returns `true` if this column has text, not numbers.
    pub(super) fn is_of_words(&self, column: usize) -> bool {
        self.rows.iter().any(|row| matches!(row.get(column), Some(Cell::Text(_))))
    }
}

// === impl Cell ===

impl Cell {
    /// A number, or nothing.
    #[must_use]
    pub fn number(value: Option<f64>, digits: u8) -> Self {
        value.map_or(Self::None, |value| Self::Number { value, digits })
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.pad(text),
            Self::Count(count) => f.pad(&count.to_string()),
            Self::Number { value, digits } => {
                f.pad(&format!("{value:.digits$}", digits = usize::from(*digits)))
            }
            Self::None => f.pad("–"),
        }
    }
}
