use super::Origin;
use super::field::List;
use super::items::{Item, Items};
use super::mistakes::{Ledger, Mistake, nearest};
use super::schema;
use super::settings::Said;
use super::value::Raw;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

const UNKNOWN_ALLOWED: &str = "the keys that `tidegate config init` writes";

/// Reads one TOML file: every key is looked up in the schema, and every mistake noted.
pub(super) struct Reader<'a> {
    path: &'a str,
    text: &'a str,
    lines: Lines,
    said: &'a mut Said,
    items: &'a mut Items,
    ledger: &'a mut Ledger,
}

/// Where each line starts.
struct Lines(Vec<usize>);

type Key<'i> = Spanned<DeString<'i>>;
type Entry<'t, 'i> = (&'t Key<'i>, &'t Spanned<DeValue<'i>>);

// === impl Reader ===

impl<'a> Reader<'a> {
    pub(super) fn new(
        path: &'a str,
        text: &'a str,
        said: &'a mut Said,
        items: &'a mut Items,
        ledger: &'a mut Ledger,
    ) -> Self {
        Self { path, text, lines: Lines::of(text), said, items, ledger }
    }

    pub(super) fn read(mut self) {
        match DeTable::parse(self.text) {
            Ok(root) => root.get_ref().iter().for_each(|entry| self.top(entry)),
            Err(error) => self.syntax_error(&error),
        }
    }

    /// The library's own message repeats the line, which may have a token in it: only what and where.
    fn syntax_error(&mut self, error: &toml::de::Error) {
        let offset = error.span().map_or(0, |span| span.start);
        let (line, start) = self.lines.find(offset);
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count()) + 1;
        let origin = Origin::File { path: self.path.to_owned(), line };
        let what = error.message().lines().collect::<Vec<_>>().join(", ");
        let given = format!("what TOML cannot read at line {line}, column {column}: {what}");
        self.ledger.add(Mistake::new("the file", &origin, given, "TOML"));
    }

    fn top(&mut self, (key, value): Entry<'_, '_>) {
        let name: &str = key.get_ref();
        match value.get_ref() {
            _ if schema::list(name).is_some() => self.list(name, key, value),
            DeValue::Table(table) if schema::sections().contains(&name) => {
                table.iter().for_each(|entry| self.in_section(name, entry));
            }
            _ if schema::sections().contains(&name) => {
                let given = format!("{name} = …");
                let allowed = format!("a section: [{name}]");
                self.ledger.add(Mistake::new(name, &self.at(key), given, allowed));
            }
            DeValue::Table(_) => self.unknown_section(name, key),
            _ => self.setting(name, (key, value)),
        }
    }

    fn in_section(&mut self, section: &str, entry: Entry<'_, '_>) {
        self.setting(&format!("{section}.{}", entry.0.get_ref()), entry);
    }

    fn setting(&mut self, full_key: &str, (key, value): Entry<'_, '_>) {
        let origin = self.at(key);
        match schema::setting(full_key) {
            Some(field) => self.said.say(field, Raw::from_toml(value.get_ref()), origin),
            None => self.ledger.add(unknown_key(full_key, &origin)),
        }
    }

    fn unknown_section(&mut self, name: &str, key: &Key<'_>) {
        let lists = schema::LISTS.iter().map(|list| list.key);
        let near = nearest(name, schema::sections().into_iter().chain(lists));
        let near = near.map(|near| match schema::list(near) {
            Some(_) => format!("[[{near}]]"),
            None => format!("[{near}]"),
        });
        let mistake = Mistake::new(name, &self.at(key), "an unknown section", UNKNOWN_ALLOWED);
        self.ledger.add(mistake.suggest(near));
    }

    fn list(&mut self, name: &str, key: &Key<'_>, value: &Spanned<DeValue<'_>>) {
        let Some(list) = schema::list(name) else { return };
        let tables = value
            .get_ref()
            .as_array()
            .filter(|array| array.iter().all(|entry| entry.get_ref().is_table()));
        let Some(tables) = tables else {
            let given = Raw::from_toml(value.get_ref()).type_name();
            let allowed = format!("tables, each under its own [[{name}]]");
            self.ledger.add(Mistake::new(name, &self.at(key), given, allowed));
            return;
        };
        let mut items = Vec::new();
        for (place, entry) in tables.iter().enumerate() {
            if let DeValue::Table(table) = entry.get_ref() {
                items.push(self.item(list, place + 1, table, self.at(entry)));
            }
        }
        self.items.replace(list, items);
    }

    fn item(
        &mut self,
        list: &'static List,
        number: usize,
        table: &DeTable<'_>,
        origin: Origin,
    ) -> Item {
        let mut item = Item::new(list, number, origin);
        for (key, value) in table.iter() {
            let (name, origin): (&str, _) = (key.get_ref(), self.at(key));
            match list.field(name) {
                Some(field) => {
                    item.set(field, &Raw::from_toml(value.get_ref()), origin, self.ledger);
                }
                None => {
                    let near = nearest(name, list.fields.iter().map(|field| field.key));
                    let mistake =
                        Mistake::new(item.key(name), &origin, "an unknown key", UNKNOWN_ALLOWED);
                    self.ledger.add(mistake.suggest(near));
                }
            }
        }
        item
    }

    fn at<T>(&self, spanned: &Spanned<T>) -> Origin {
        let (line, _) = self.lines.find(spanned.span().start);
        Origin::File { path: self.path.to_owned(), line }
    }
}

/// The mistake of naming a key that is not in the schema.
pub(super) fn unknown_key(key: &str, origin: &Origin) -> Mistake {
    Mistake::new(key, origin, "an unknown key", UNKNOWN_ALLOWED)
        .suggest(nearest(key, schema::known_keys()))
}

// === impl Lines ===

impl Lines {
    fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// The line that has this byte, from 1, and where it starts.
    fn find(&self, offset: usize) -> (usize, usize) {
        let line = self.0.partition_point(|start| *start <= offset).max(1);
        (line, self.0[line - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one() {
        let lines = Lines::of("a = 1\nbc = 2\n");
        assert_eq!(lines.find(0), (1, 0));
        assert_eq!(lines.find(5), (1, 0));
        assert_eq!(lines.find(6), (2, 6));
        assert_eq!(lines.find(999), (3, 13));
        assert_eq!(Lines::of("").find(0), (1, 0));
    }
}
