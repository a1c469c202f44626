use std::collections::BTreeMap;
use tidegate_core::tariff::Location;

/// Byte offsets of the lines of a text.
pub(super) struct LineStarts(Vec<usize>);

/// Line numbers of locations in a file.
#[derive(Debug, Default)]
pub(super) struct LocationLines(BTreeMap<Location, usize>);

// === impl LineStarts ===

impl LineStarts {
    pub(super) fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// Line that contains this byte, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset).max(1)
    }
}

// === impl LocationLines ===

impl LocationLines {
    pub(super) fn put(&mut self, location: Location, line: usize) {
        self.0.insert(location, line);
    }

    /// True if a location is in the file.
    pub(super) fn has(&self, location: Location) -> bool {
        self.0.contains_key(&location)
    }

    /// Line of a location or, if absent, of its parent; otherwise the first.
    pub(super) fn line(&self, location: Location) -> usize {
        let around = [
            location,
            Location { key: "", ..location },
            Location { tier: None, key: "", ..location },
            Location { tier: None, window: None, key: "", ..location },
        ];
        around.iter().find_map(|location| self.0.get(location)).copied().unwrap_or(1)
    }
}
