use super::diagnostics::{FileWarning, TariffDiagnostic, TariffDiagnostics};
use super::line_index::LocationLines;
use super::read_tariff;
use super::table::FileReader;
use super::values::{ValueError, given};
use std::path::Path;
use std::sync::Arc;
use tidegate_core::tariff::{FallbackSpec, Location, TariffError, TariffSpec, Tariffs};
use toml::de::{DeTable, DeValue};

const TOP_KEYS: &[&str] = &["fallback", "tariff"];

/// Maximum file size: a larger file is more likely something else.
const BYTES_MAX: u64 = 16 << 20;

/// Maximum number of syntax errors reported: one missing quote can invalidate every line below it.
const SYNTAX_MAX: usize = 10;

/// Parsed and checked tariff file.
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
/// let errors = TariffFile::parse("tariffs.toml", "[[tarif]]").unwrap_err();
/// assert!(errors.to_string().contains("did you mean tariff?"));
/// # Ok::<(), tidegate::tariff::TariffDiagnostics>(())
/// ```
#[derive(Debug)]
pub struct TariffFile {
    tariffs: Arc<Tariffs>,
    lines: LocationLines,
}

/// Error of reading a tariff file.
#[derive(Debug, thiserror::Error)]
pub enum TariffFileError {
    /// The file can't be read.
    #[error("can't read {path}: {error}")]
    Unreadable {
        /// Path of the file.
        path: String,
        /// Cause.
        error: std::io::Error,
    },
    /// The file is invalid.
    #[error(transparent)]
    Wrong(#[from] TariffDiagnostics),
}

// === impl TariffFile ===

impl TariffFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If the file can't be read or is invalid; all errors are reported at once.
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

    /// Parses text. `name` is used in messages.
    ///
    /// # Errors
    ///
    /// All errors in the text.
    pub fn parse(name: &str, text: &str) -> Result<Self, TariffDiagnostics> {
        let mut reader = FileReader::new(text);
        let (root, errors) = DeTable::parse_recoverable(text);
        let read = if errors.is_empty() {
            top(root.get_ref(), &mut reader)
        } else {
            // Values from a file with syntax errors would cause misleading errors.
            let syntax = errors.iter().take(SYNTAX_MAX).map(|error| syntax(error, &reader));
            reader.errors = syntax.collect();
            Read::default()
        };
        for (number, spec) in read.partly {
            check_partly(number, spec, &mut reader);
        }
        let (numbers, specs): (Vec<_>, Vec<_>) = read.wholly.into_iter().unzip();
        match Tariffs::new(specs, read.fallback) {
            Ok(tariffs) if reader.errors.is_empty() => {
                return Ok(Self { tariffs: Arc::new(tariffs), lines: reader.lines });
            }
            Ok(_) => {}
            Err(errors) => {
                for error in errors {
                    reader.add_error(renumbered(error, &numbers));
                }
            }
        }
        Err(TariffDiagnostics::new(name.to_owned(), reader.errors))
    }

    /// Checked tariffs.
    #[must_use]
    pub fn tariffs(&self) -> &Arc<Tariffs> {
        &self.tariffs
    }

    /// Warnings, ordered by line. `now_ns` is the time in nanoseconds since 1970.
    #[must_use]
    pub fn warnings(&self, now_ns: i64) -> Vec<FileWarning> {
        let specs = self.tariffs.specs();
        let about = |location: Location| {
            let name = location.tariff.and_then(|number| specs.get(number));
            name.map_or_else(String::new, |spec| format!("tariff {:?}", spec.name))
        };
        let mut warnings: Vec<_> = self
            .tariffs
            .warnings(now_ns)
            .into_iter()
            .map(|warning| FileWarning {
                line: self.lines.line(warning.location),
                about: about(warning.location),
                text: warning.text,
            })
            .collect();
        warnings.sort_by_key(|warning| warning.line);
        warnings
    }
}

/// Content of a file. Tariffs are numbered by their order in the file.
#[derive(Default)]
struct Read {
    fallback: FallbackSpec,
    wholly: Vec<(usize, TariffSpec)>,
    /// Tariffs with a part that could not be read, which is reported.
    partly: Vec<(usize, TariffSpec)>,
}

fn top(root: &DeTable<'_>, reader: &mut FileReader) -> Read {
    let table = reader.table(root, Location::default(), TOP_KEYS);
    let fallback = match table.get("fallback") {
        None => FallbackSpec::default(),
        Some(value) => match value.get_ref() {
            DeValue::Table(entries) => {
                reader.begins(Location::default(), value);
                read_tariff::fallback(entries, reader)
            }
            other => {
                let error = ValueError::new(given(other), "a table", "write [fallback] on a line");
                reader.add(Location::default().key("fallback"), error);
                FallbackSpec::default()
            }
        },
    };
    let mut read = Read { fallback, ..Read::default() };
    let tables = table.tables("tariff", reader, "each tariff under its own [[tariff]]");
    for (number, (at, entries)) in tables.into_iter().enumerate() {
        let location = Location::tariff(number);
        reader.begins(location, at);
        let before = reader.errors.len();
        let spec = read_tariff::tariff(entries, location, reader);
        let is_whole = reader.errors.len() == before;
        let list = if is_whole { &mut read.wholly } else { &mut read.partly };
        list.push((number, spec));
    }
    read
}

/// Checks the readable part of a tariff, so that all errors are reported at once: only keys that exist and have no
/// error yet.
fn check_partly(number: usize, spec: TariffSpec, reader: &mut FileReader) {
    let errors = Tariffs::new(vec![spec], FallbackSpec::default()).err().unwrap_or_default();
    for error in errors {
        let error = renumbered(error, &[number]);
        let about = reader.about(error.location);
        let is_there = !error.location.key.is_empty() && reader.lines.has(error.location);
        if is_there && !reader.errors.iter().any(|noted| noted.about == about) {
            reader.add_error(error);
        }
    }
}

fn syntax(error: &toml::de::Error, reader: &FileReader) -> TariffDiagnostic {
    let line = reader.line(error.span().map_or(0, |span| span.start));
    let what = error.message().lines().collect::<Vec<_>>().join(", ");
    TariffDiagnostic {
        line,
        about: String::new(),
        wrong: format!("TOML can't be read on: {what}"),
        expected: "TOML".to_owned(),
        fix: "correct this line; keys are checked after that".to_owned(),
    }
}

/// Maps an error to its tariff in the file: unreadable tariffs were not among the checked ones.
fn renumbered(error: TariffError, numbers: &[usize]) -> TariffError {
    let tariff = error.location.tariff.and_then(|number| numbers.get(number).copied());
    TariffError { location: Location { tariff, ..error.location }, ..error }
}
