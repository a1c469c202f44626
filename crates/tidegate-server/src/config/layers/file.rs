use crate::config::Origin;
use crate::config::errors::{ConfigError, ErrorList};
use crate::config::renamed::{is_renamed_section, renamed_key};
use crate::config::table::Table;
use crate::config::value::Raw;
use tidegate::suggestion::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const KNOWN_KEYS: &str = "the keys that `tidegate config init` writes";

/// Reads one TOML file: looks every key up in the table, and adds every error.
struct Reader<'a> {
    lines: Lines<'a>,
    table: &'a mut Table,
    errors: &'a mut ErrorList,
}

/// The lines of a file, by the offsets of their starts.
struct Lines<'a> {
    path: &'a str,
    starts: Vec<usize>,
}

/// Applies the file to the table.
pub fn read(path: &str, text: &str, table: &mut Table, errors: &mut ErrorList) {
    let starts = text.match_indices('\n').map(|(at, _)| at + 1);
    let lines = Lines { path, starts: std::iter::once(0).chain(starts).collect() };
    match DeTable::parse(text) {
        Ok(root) => {
            let mut reader = Reader { lines, table, errors };
            for (key, value) in root.get_ref().iter() {
                reader.top(key.get_ref(), reader.lines.origin(key), value.get_ref());
            }
        }
        Err(error) => errors.push(lines.syntax_error(text, &error)),
    }
}

/// The error about a key that is not among those that are known.
pub fn unknown_key<'a>(
    key: &str,
    origin: &Origin,
    known: impl IntoIterator<Item = &'a str>,
) -> ConfigError {
    renamed_key(key, origin).unwrap_or_else(|| {
        ConfigError::new(key, origin, "an unknown key", KNOWN_KEYS).suggest(nearest(key, known))
    })
}

// === impl Reader ===

impl Reader<'_> {
    fn top(&mut self, name: &str, origin: Origin, value: &DeValue<'_>) {
        let is_section = self.table.sections().contains(&name);
        match value {
            _ if self.table.list_mut(name).is_some() => self.list(name, &origin, value),
            DeValue::Table(table) if is_section || is_renamed_section(name) => {
                for (key, value) in table.iter() {
                    let (name, origin) =
                        (format!("{name}.{}", key.get_ref()), self.lines.origin(key));
                    self.setting(&name, origin, value.get_ref());
                }
            }
            _ if is_section => {
                let (given, allowed) = (format!("{name} = …"), format!("a section: [{name}]"));
                self.errors.push(ConfigError::new(name, &origin, given, allowed));
            }
            DeValue::Table(_) => self.unknown_section(name, &origin),
            _ => self.setting(name, origin, value),
        }
    }

    fn setting(&mut self, key: &str, origin: Origin, value: &DeValue<'_>) {
        if let Some(setting) = self.table.setting_mut(key) {
            setting.set(Raw::Toml(value), origin, self.errors);
        } else {
            self.errors.push(unknown_key(key, &origin, self.table.keys()));
        }
    }

    fn unknown_section(&mut self, name: &str, origin: &Origin) {
        let lists: Vec<_> = self.table.lists().iter().map(|list| list.field().key).collect();
        let known = self.table.sections().into_iter().chain(lists.iter().copied());
        let near = nearest(name, known).map(|near| match lists.contains(&near) {
            true => format!("[[{near}]]"),
            false => format!("[{near}]"),
        });
        let error = ConfigError::new(name, origin, "an unknown section", KNOWN_KEYS);
        self.errors.push(error.suggest(near));
    }

    fn list(&mut self, name: &str, origin: &Origin, value: &DeValue<'_>) {
        let entries = value
            .as_array()
            .filter(|entries| entries.iter().all(|entry| entry.get_ref().is_table()));
        let (Some(list), Some(entries)) = (self.table.list_mut(name), entries) else {
            let given = Raw::Toml(value).type_name();
            let allowed = format!("tables, each under its own [[{name}]]");
            return self.errors.push(ConfigError::new(name, origin, given, allowed));
        };
        for (number, entry) in (1..).zip(entries.iter()) {
            let mut settings = list.add(&self.lines.origin(entry)).settings_mut();
            for (key, value) in
                entry.get_ref().as_table().into_iter().flat_map(|table| table.iter())
            {
                let (key, origin) = (key.get_ref(), self.lines.origin(key));
                if let Some(setting) = settings.iter_mut().find(|it| it.state().name == key) {
                    setting.set(Raw::Toml(value.get_ref()), origin, self.errors);
                } else {
                    let known = settings.iter().map(|setting| setting.state().name);
                    let field = format!("{name}[{number}].{key}");
                    let error = unknown_key(key, &origin, known);
                    self.errors.push(ConfigError { field, ..error });
                }
            }
        }
    }
}

// === impl Lines ===

impl Lines<'_> {
    fn origin<T>(&self, spanned: &Spanned<T>) -> Origin {
        let (line, _) = self.find(spanned.span().start);
        Origin::File { path: self.path.to_owned(), line }
    }

    /// The number of the line with this byte, from 1, and the offset of its start.
    fn find(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        (line, self.starts[line - 1])
    }

    /// The library's own message repeats the line, which may contain a token: only message and position.
    fn syntax_error(&self, text: &str, error: &toml::de::Error) -> ConfigError {
        let offset = error.span().map_or(0, |span| span.start);
        let (line, start) = self.find(offset);
        let column = text.get(start..offset).map_or(0, |before| before.chars().count()) + 1;
        let origin = Origin::File { path: self.path.to_owned(), line };
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        let given = format!("what TOML cannot read at line {line}, column {column}: {message}");
        ConfigError::new("the file", &origin, given, "TOML")
    }
}
