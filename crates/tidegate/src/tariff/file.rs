use super::lines::PlaceLines;
use super::mistakes::{FileMistake, FileMistakes, FileWarning};
use super::read_tariff;
use super::table::Ledger;
use super::values::{Unfit, given};
use std::path::Path;
use std::sync::Arc;
use tidegate_core::tariff::{FallbackSpec, Place, TariffMistake, TariffSpec, Tariffs};
use toml::de::{DeTable, DeValue};

const TOP_KEYS: &[&str] = &["fallback", "tariff"];

/// A larger file is more likely something else.
const BYTES_MAX: u64 = 16 << 20;

/// One forgotten quote can make every line below it wrong.
const SYNTAX_MAX: usize = 10;

/// A file of tariffs that has been read and checked.
///
/// ```
/// use tidegate::tariff::TariffFile;
///
/// let file = TariffFile::parse("tariffs.toml", r#"
///     [[tariff]]
///     name = "tokens"
///     tenants = "*"
///     meter = "tokens.*"
///     per = 1_000_000
///     price = "0.15"
/// "#)?;
/// assert_eq!(file.tariffs().specs().len(), 1);
///
/// let mistakes = TariffFile::parse("tariffs.toml", "[[tarif]]").unwrap_err();
/// assert!(mistakes.to_string().contains("did you mean tariff?"));
/// # Ok::<(), tidegate::tariff::FileMistakes>(())
/// ```
#[derive(Debug)]
pub struct TariffFile {
    tariffs: Arc<Tariffs>,
    lines: PlaceLines,
}

/// Why there are no tariffs.
#[derive(Debug, thiserror::Error)]
pub enum TariffFileError {
    /// The file can't be read.
    #[error("can't read {path}: {error}")]
    Unreadable {
        /// Its path.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// It can, and is wrong.
    #[error(transparent)]
    Wrong(#[from] FileMistakes),
}

// === impl TariffFile ===

impl TariffFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When it can't be read, or says something wrong; then all of it is told at once.
    pub fn read(path: &Path) -> Result<Self, TariffFileError> {
        let name = path.display().to_string();
        let unreadable =
            |error| TariffFileError::Unreadable { path: path.display().to_string(), error };
        let length = std::fs::metadata(path).map_err(unreadable)?.len();
        if length > BYTES_MAX {
            let what = format!("it has {length} bytes; a file of tariffs has at most {BYTES_MAX}");
            return Err(unreadable(std::io::Error::other(what)));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Ok(Self::parse(&name, &text)?)
    }

    /// Reads text. The name is for messages.
    ///
    /// # Errors
    ///
    /// All that is wrong with it.
    pub fn parse(name: &str, text: &str) -> Result<Self, FileMistakes> {
        let mut ledger = Ledger::new(text);
        let (root, errors) = DeTable::parse_recoverable(text);
        let read = if errors.is_empty() {
            top(root.get_ref(), &mut ledger)
        } else {
            // What was made of lines that can't be read would only confuse.
            let syntax = errors.iter().take(SYNTAX_MAX).map(|error| syntax(error, &ledger));
            ledger.mistakes = syntax.collect();
            Read::default()
        };
        for (number, spec) in read.partly {
            check_partly(number, spec, &mut ledger);
        }
        let (numbers, specs): (Vec<_>, Vec<_>) = read.wholly.into_iter().unzip();
        match Tariffs::new(specs, read.fallback) {
            Ok(tariffs) if ledger.mistakes.is_empty() => {
                return Ok(Self { tariffs: Arc::new(tariffs), lines: ledger.lines });
            }
            Ok(_) => {}
            Err(mistakes) => {
                for mistake in mistakes {
                    ledger.add_mistake(renumbered(mistake, &numbers));
                }
            }
        }
        Err(FileMistakes::new(name.to_owned(), ledger.mistakes))
    }

    /// The tariffs.
    #[must_use]
    pub fn tariffs(&self) -> &Arc<Tariffs> {
        &self.tariffs
    }

    /// What is allowed and may not be meant, in the order of the lines. `now_ns` is the time in nanoseconds
    /// since 1970.
    #[must_use]
    pub fn warnings(&self, now_ns: i64) -> Vec<FileWarning> {
        let specs = self.tariffs.specs();
        let about = |place: Place| {
            let name = place.tariff.and_then(|number| specs.get(number));
            name.map_or_else(String::new, |spec| format!("tariff {:?}", spec.name))
        };
        let mut warnings: Vec<_> = self
            .tariffs
            .warnings(now_ns)
            .into_iter()
            .map(|warning| FileWarning {
                line: self.lines.line(warning.place),
                about: about(warning.place),
                text: warning.text,
            })
            .collect();
        warnings.sort_by_key(|warning| warning.line);
        warnings
    }
}

/// What a file says. Tariffs have their numbers in the file.
#[derive(Default)]
struct Read {
    fallback: FallbackSpec,
    wholly: Vec<(usize, TariffSpec)>,
    /// Of these a part could not be read, which is noted.
    partly: Vec<(usize, TariffSpec)>,
}

fn top(root: &DeTable<'_>, ledger: &mut Ledger) -> Read {
    let table = ledger.table(root, Place::default(), TOP_KEYS);
    let fallback = match table.get("fallback") {
        None => FallbackSpec::default(),
        Some(value) => match value.get_ref() {
            DeValue::Table(entries) => {
                ledger.begins(Place::default(), value);
                read_tariff::fallback(entries, ledger)
            }
            other => {
                let unfit = Unfit::new(given(other), "a table", "write [fallback] on a line");
                ledger.add(Place::default().key("fallback"), unfit);
                FallbackSpec::default()
            }
        },
    };
    let mut read = Read { fallback, ..Read::default() };
    let tables = table.tables("tariff", ledger, "each tariff under its own [[tariff]]");
    for (number, (at, entries)) in tables.into_iter().enumerate() {
        let place = Place::tariff(number);
        ledger.begins(place, at);
        let before = ledger.mistakes.len();
        let spec = read_tariff::tariff(entries, place, ledger);
        let is_whole = ledger.mistakes.len() == before;
        let list = if is_whole { &mut read.wholly } else { &mut read.partly };
        list.push((number, spec));
    }
    read
}

/// Notes what is wrong with the part that could be read: keys that are there and about which nothing is noted.
/// All mistakes are told at once.
fn check_partly(number: usize, spec: TariffSpec, ledger: &mut Ledger) {
    let mistakes = Tariffs::new(vec![spec], FallbackSpec::default()).err().unwrap_or_default();
    for mistake in mistakes {
        let mistake = renumbered(mistake, &[number]);
        let about = ledger.about(mistake.place);
        let is_there = !mistake.place.key.is_empty() && ledger.lines.has(mistake.place);
        if is_there && !ledger.mistakes.iter().any(|noted| noted.about == about) {
            ledger.add_mistake(mistake);
        }
    }
}

fn syntax(error: &toml::de::Error, ledger: &Ledger) -> FileMistake {
    let line = ledger.line(error.span().map_or(0, |span| span.start));
    let what = error.message().lines().collect::<Vec<_>>().join(", ");
    FileMistake {
        line,
        about: String::new(),
        wrong: format!("TOML can't be read on: {what}"),
        expected: "TOML".to_owned(),
        fix: "correct this line; keys are checked after that".to_owned(),
    }
}

/// A mistake by its place in the file: tariffs that could not be read were not among those checked.
fn renumbered(mistake: TariffMistake, numbers: &[usize]) -> TariffMistake {
    let tariff = mistake.place.tariff.and_then(|number| numbers.get(number).copied());
    TariffMistake { place: Place { tariff, ..mistake.place }, ..mistake }
}
