use super::diagnostics::{TariffDiagnostic, quoted};
use super::line_index::{LineStarts, LocationLines};
use super::values::{ValueError, given};
use tidegate_core::suggestion::nearest;
use tidegate_core::tariff::{Location, TariffError};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Collects the errors of a file, and the lines of its content.
pub(super) struct FileReader {
    starts: LineStarts,
    pub(super) lines: LocationLines,
    pub(super) errors: Vec<TariffDiagnostic>,
    /// Names of the tariffs, as far as known.
    names: Vec<Option<String>>,
}

/// One table of the file with its location.
pub(super) struct Table<'t, 'i> {
    entries: &'t DeTable<'i>,
    pub(super) location: Location,
}

// === impl FileReader ===

impl FileReader {
    pub(super) fn new(text: &str) -> Self {
        let (lines, errors) = (LocationLines::default(), Vec::new());
        Self { starts: LineStarts::of(text), lines, errors, names: Vec::new() }
    }

    /// Opens a table; each key that is not in `known` is an error.
    pub(super) fn table<'t, 'i>(
        &mut self,
        entries: &'t DeTable<'i>,
        location: Location,
        known: &'static [&'static str],
    ) -> Table<'t, 'i> {
        for (key, _) in entries {
            let (name, line): (&str, _) = (key.get_ref(), self.starts.line(key.span().start));
            match known.iter().find(|known| **known == name) {
                Some(known) => self.lines.put(location.key(known), line),
                None => self.unknown(name, line, location, known),
            }
        }
        Table { entries, location }
    }

    fn unknown(&mut self, name: &str, line: usize, location: Location, known: &[&str]) {
        let fix = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => "remove it".to_owned(),
        };
        let wrong = format!("the key {} is unknown", quoted(name));
        let about = self.about(location);
        let expected = format!("one of {}", known.join(", "));
        self.errors.push(TariffDiagnostic { line, about, wrong, expected, fix });
    }

    /// Records the first line of a table.
    pub(super) fn begins<T>(&mut self, location: Location, at: &Spanned<T>) {
        self.lines.put(location, self.starts.line(at.span().start));
    }

    pub(super) fn line(&self, offset: usize) -> usize {
        self.starts.line(offset)
    }

    pub(super) fn named(&mut self, name: Option<String>) {
        self.names.push(name);
    }

    pub(super) fn add(&mut self, location: Location, error: ValueError) {
        let ValueError { wrong, expected, fix } = error;
        self.add_error(TariffError { location, wrong, expected, fix });
    }

    pub(super) fn add_error(&mut self, error: TariffError) {
        let TariffError { location, wrong, expected, fix } = error;
        let (line, about) = (self.lines.line(location), self.about(location));
        self.errors.push(TariffDiagnostic { line, about, wrong, expected, fix });
    }

    /// Description of a location. Numbers count from 1.
    pub(super) fn about(&self, location: Location) -> String {
        let mut parts = Vec::new();
        if let Some(number) = location.tariff {
            parts.push(match self.names.get(number) {
                Some(Some(name)) => format!("tariff {}", quoted(name)),
                _ => format!("tariff {}", number + 1),
            });
        }
        parts.extend(location.window.map(|number| format!("window {}", number + 1)));
        parts.extend(location.tier.map(|number| format!("tier {}", number + 1)));
        parts.extend((!location.key.is_empty()).then(|| location.key.to_owned()));
        parts.join(", ")
    }
}

// === impl Table ===

impl<'t, 'i> Table<'t, 'i> {
    pub(super) fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.entries.get(key)
    }

    /// Value of a key; `None` if absent or invalid, which is reported.
    pub(super) fn value<T>(
        &self,
        key: &'static str,
        reader: &mut FileReader,
        read: impl FnOnce(&DeValue<'_>) -> Result<T, ValueError>,
    ) -> Option<T> {
        let value = self.get(key)?;
        read(value.get_ref()).map_err(|error| reader.add(self.location.key(key), error)).ok()
    }

    /// Value of a required key.
    pub(super) fn needed<T>(
        &self,
        key: &'static str,
        reader: &mut FileReader,
        read: impl FnOnce(&DeValue<'_>) -> Result<T, ValueError>,
    ) -> Option<T> {
        if self.get(key).is_none() {
            let error =
                ValueError::new(format!("{key} is missing"), "a value", format!("add {key} = …"));
            reader.add(self.location, error);
        }
        self.value(key, reader, read)
    }

    /// Tables of a list.
    pub(super) fn tables(
        &self,
        key: &'static str,
        reader: &mut FileReader,
        shape: &str,
    ) -> Vec<(&'t Spanned<DeValue<'i>>, &'t DeTable<'i>)> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let DeValue::Array(values) = value.get_ref() else {
            let error = ValueError::new(given(value.get_ref()), shape, format!("write {shape}"));
            reader.add(self.location.key(key), error);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for value in values {
            match value.get_ref() {
                DeValue::Table(table) => tables.push((value, table)),
                other => {
                    let error = ValueError::new(given(other), shape, format!("write {shape}"));
                    reader.add(self.location.key(key), error);
                }
            }
        }
        tables
    }
}
