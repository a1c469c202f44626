use super::lines::{LineStarts, PlaceLines};
use super::mistakes::{FileMistake, nearest, quoted};
use super::values::{Unfit, given};
use tidegate_core::tariff::{Place, TariffMistake};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Collects what a file says wrong, and where everything stands.
pub(super) struct Ledger {
    starts: LineStarts,
    pub(super) lines: PlaceLines,
    pub(super) mistakes: Vec<FileMistake>,
    /// The tariffs' names, as far as they are known.
    names: Vec<Option<String>>,
}

/// One table of the file, whose keys are known.
pub(super) struct Table<'t, 'i> {
    entries: &'t DeTable<'i>,
    pub(super) place: Place,
}

// === impl Ledger ===

impl Ledger {
    pub(super) fn new(text: &str) -> Self {
        let (lines, mistakes) = (PlaceLines::default(), Vec::new());
        Self { starts: LineStarts::of(text), lines, mistakes, names: Vec::new() }
    }

    /// A table of which only these keys are known; each other one is a mistake.
    pub(super) fn table<'t, 'i>(
        &mut self,
        entries: &'t DeTable<'i>,
        place: Place,
        known: &'static [&'static str],
    ) -> Table<'t, 'i> {
        for (key, _) in entries {
            let (name, line): (&str, _) = (key.get_ref(), self.starts.line(key.span().start));
            match known.iter().find(|known| **known == name) {
                Some(known) => self.lines.put(place.key(known), line),
                None => self.unknown(name, line, place, known),
            }
        }
        Table { entries, place }
    }

    fn unknown(&mut self, name: &str, line: usize, place: Place, known: &[&str]) {
        let fix = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => "remove it".to_owned(),
        };
        let wrong = format!("the key {} is unknown", quoted(name));
        let about = self.about(place);
        let expected = format!("one of {}", known.join(", "));
        self.mistakes.push(FileMistake { line, about, wrong, expected, fix });
    }

    /// Where a table begins.
    pub(super) fn begins<T>(&mut self, place: Place, at: &Spanned<T>) {
        self.lines.put(place, self.starts.line(at.span().start));
    }

    pub(super) fn line(&self, offset: usize) -> usize {
        self.starts.line(offset)
    }

    pub(super) fn named(&mut self, name: Option<String>) {
        self.names.push(name);
    }

    pub(super) fn add(&mut self, place: Place, unfit: Unfit) {
        let Unfit { wrong, expected, fix } = unfit;
        self.add_mistake(TariffMistake { place, wrong, expected, fix });
    }

    pub(super) fn add_mistake(&mut self, mistake: TariffMistake) {
        let TariffMistake { place, wrong, expected, fix } = mistake;
        let (line, about) = (self.lines.line(place), self.about(place));
        self.mistakes.push(FileMistake { line, about, wrong, expected, fix });
    }

    /// What a place is, for people. Numbers count from 1.
    pub(super) fn about(&self, place: Place) -> String {
        let mut parts = Vec::new();
        if let Some(number) = place.tariff {
            parts.push(match self.names.get(number) {
                Some(Some(name)) => format!("tariff {}", quoted(name)),
                _ => format!("tariff {}", number + 1),
            });
        }
        parts.extend(place.window.map(|number| format!("window {}", number + 1)));
        parts.extend(place.tier.map(|number| format!("tier {}", number + 1)));
        parts.extend((!place.key.is_empty()).then(|| place.key.to_owned()));
        parts.join(", ")
    }
}

// === impl Table ===

impl<'t, 'i> Table<'t, 'i> {
    pub(super) fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.entries.get(key)
    }

    /// A key's value; `None` when it is not there or wrong, which is then noted.
    pub(super) fn value<T>(
        &self,
        key: &'static str,
        ledger: &mut Ledger,
        read: impl FnOnce(&DeValue<'_>) -> Result<T, Unfit>,
    ) -> Option<T> {
        let value = self.get(key)?;
        read(value.get_ref()).map_err(|unfit| ledger.add(self.place.key(key), unfit)).ok()
    }

    /// The same for a key that must be there.
    pub(super) fn needed<T>(
        &self,
        key: &'static str,
        ledger: &mut Ledger,
        read: impl FnOnce(&DeValue<'_>) -> Result<T, Unfit>,
    ) -> Option<T> {
        if self.get(key).is_none() {
            let unfit =
                Unfit::new(format!("{key} is missing"), "it to be said", format!("add {key} = …"));
            ledger.add(self.place, unfit);
        }
        self.value(key, ledger, read)
    }

    /// The tables of a list.
    pub(super) fn tables(
        &self,
        key: &'static str,
        ledger: &mut Ledger,
        shape: &str,
    ) -> Vec<(&'t Spanned<DeValue<'i>>, &'t DeTable<'i>)> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let DeValue::Array(values) = value.get_ref() else {
            let unfit = Unfit::new(given(value.get_ref()), shape, format!("write {shape}"));
            ledger.add(self.place.key(key), unfit);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for value in values {
            match value.get_ref() {
                DeValue::Table(table) => tables.push((value, table)),
                other => {
                    let unfit = Unfit::new(given(other), shape, format!("write {shape}"));
                    ledger.add(self.place.key(key), unfit);
                }
            }
        }
        tables
    }
}
