use std::collections::BTreeMap;
use tidegate_core::tariff::Place;

/// Where each line of a text starts.
pub(super) struct LineStarts(Vec<usize>);

/// On which line each thing of a file stands.
#[derive(Debug, Default)]
pub(super) struct PlaceLines(BTreeMap<Place, usize>);

// === impl LineStarts ===

impl LineStarts {
    pub(super) fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// The line that has this byte, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset).max(1)
    }
}

// === impl PlaceLines ===

impl PlaceLines {
    pub(super) fn put(&mut self, place: Place, line: usize) {
        self.0.insert(place, line);
    }

    /// Whether a place is in the file.
    pub(super) fn has(&self, place: Place) -> bool {
        self.0.contains_key(&place)
    }

    /// The line of a place; when nothing is there, of what it is in; at last the first.
    pub(super) fn line(&self, place: Place) -> usize {
        let around = [
            place,
            Place { key: "", ..place },
            Place { tier: None, key: "", ..place },
            Place { tier: None, window: None, key: "", ..place },
        ];
        around.iter().find_map(|place| self.0.get(place)).copied().unwrap_or(1)
    }
}
