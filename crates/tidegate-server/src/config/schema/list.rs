use super::setting::Record;
use crate::config::Origin;
use crate::config::errors::{ConfigError, ErrorList};
use crate::config::value::Raw;

/// A list of tables, such as `[[upstream]]`, with the entries of the last layer that has set it.
pub struct List<R> {
    pub field: ListField,
    pub entries: Vec<R>,
}

/// The description of a list.
#[derive(Clone, Copy, Debug)]
pub struct ListField {
    pub key: &'static str,
    /// One line of documentation.
    pub doc: &'static str,
    /// The most entries it may have.
    pub max: usize,
    /// The flag that adds an entry by its first field; the environment then can set the list too.
    pub flag: Option<&'static str>,
}

/// A list with entries of any type.
pub trait AnyList {
    fn field(&self) -> &ListField;
    fn clear(&mut self);
    fn add(&mut self, origin: &Origin) -> &mut dyn Record;
    fn entries(&self) -> Vec<&dyn Record>;
    /// An entry with the defaults.
    fn sample(&self) -> Box<dyn Record>;
}

impl<R: Record + 'static> AnyList for List<R> {
    fn field(&self) -> &ListField {
        &self.field
    }

    fn clear(&mut self) {
        self.entries.clear();
    }

    fn add(&mut self, origin: &Origin) -> &mut dyn Record {
        let count = self.entries.len();
        self.entries.push(R::new(&format!("{}[{}].", self.field.key, count + 1), origin));
        &mut self.entries[count]
    }

    fn entries(&self) -> Vec<&dyn Record> {
        self.entries.iter().map(|entry| entry as &dyn Record).collect()
    }

    fn sample(&self) -> Box<dyn Record> {
        Box::new(R::new("", &Origin::Default))
    }
}

impl dyn AnyList + '_ {
    /// Adds an error if the list is too long.
    pub fn check_length(&self, errors: &mut ErrorList) {
        let (ListField { key, max, .. }, entries) = (self.field(), self.entries());
        let last = entries.last().filter(|_| entries.len() > *max);
        if let Some(first) = last.and_then(|last| last.settings().first().copied()) {
            let given = format!("{} entries", entries.len());
            let allowed = format!("at most {max} entries");
            errors.push(ConfigError::new(*key, &first.state().origin, given, allowed));
        }
    }

    /// Adds entries by their first field, from a text with commas between.
    pub fn add_short(&mut self, text: &str, origin: &Origin, errors: &mut ErrorList) {
        for part in text.split(',') {
            if let Some(first) = self.add(origin).settings_mut().first_mut() {
                first.set(Raw::Untyped(part), origin.clone(), errors);
            }
        }
    }
}
