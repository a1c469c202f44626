use super::Origin;
use super::field::{Field, List};
use super::mistakes::{Ledger, Mistake};
use super::settings::FromValue;
use super::value::{Raw, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The entries of all lists, as far as they could be read.
#[derive(Debug, Default)]
pub(super) struct Items(BTreeMap<&'static str, Vec<Item>>);

/// One entry of a list, such as the second `[[client]]`.
#[derive(Debug)]
pub(super) struct Item {
    list: &'static List,
    number: usize,
    origin: Origin,
    values: BTreeMap<&'static str, (Value, Origin)>,
    broken: BTreeSet<&'static str>,
}

// === impl Items ===

impl Items {
    pub(super) fn of(&self, list: &str) -> impl Iterator<Item = &Item> {
        self.0.get(list).into_iter().flatten()
    }

    /// Takes the place of what an earlier layer had.
    pub(super) fn replace(&mut self, list: &'static List, items: Vec<Item>) {
        self.0.insert(list.key, items);
    }

    /// A mistake for every list that is too long.
    pub(super) fn check_lengths(&self, ledger: &mut Ledger) {
        for item in self.0.values().filter_map(|items| items.last()) {
            if item.number > item.list.max {
                let allowed = format!("at most {} entries", item.list.max);
                let given = format!("{} entries", item.number);
                ledger.add(Mistake::new(item.list.key, &item.origin, given, allowed));
            }
        }
    }
}

// === impl Item ===

impl Item {
    /// An entry that says nothing yet; `number` from 1.
    pub(super) fn new(list: &'static List, number: usize, origin: Origin) -> Self {
        let (values, broken) = (BTreeMap::new(), BTreeSet::new());
        Self { list, number, origin, values, broken }
    }

    /// Reads one field of it.
    pub(super) fn set(
        &mut self,
        field: &'static Field,
        raw: &Raw,
        origin: Origin,
        ledger: &mut Ledger,
    ) {
        match field.kind.parse(raw) {
            Ok(value) => {
                self.values.insert(field.key, (value, origin));
            }
            Err(unfit) => {
                ledger.add(unfit.into_mistake(self.key(field.key), field, &origin));
                self.broken.insert(field.key);
            }
        }
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Such as `client[2]`.
    pub(super) fn label(&self) -> String {
        format!("{}[{}]", self.list.key, self.number)
    }

    /// Such as `client[2].token`.
    pub(super) fn key(&self, field: &str) -> String {
        format!("{}[{}].{field}", self.list.key, self.number)
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn origin_of(&self, field: &str) -> &Origin {
        self.values.get(field).map_or(&self.origin, |(_, origin)| origin)
    }

    pub(super) fn text(&self, field: &str) -> Option<&str> {
        match self.values.get(field)? {
            (Value::Text(text) | Value::Secret(text), _) => Some(text),
            _ => None,
        }
    }

    /// The text of a field that must be there. A mistake when it is not.
    /// Several texts, none when it is not set.
    pub(super) fn names(&self, field: &str) -> Option<&[String]> {
        match self.values.get(field)? {
            (Value::Names(names), _) => Some(names),
            _ => None,
        }
    }

    /// A value of another type.
    pub(super) fn get<T: FromValue>(&self, field: &str) -> Option<T> {
        self.values.get(field).and_then(|(value, _)| T::from_value(value))
    }

    pub(super) fn required(&self, field: &str, ledger: &mut Ledger) -> Option<&str> {
        if self.lacks(&[field]) {
            let allowed = self.list.field(field).map(|field| field.kind.allowed(field.unit));
            let allowed = allowed.unwrap_or_default();
            ledger.add(Mistake::new(self.key(field), &self.origin, "nothing", allowed));
        }
        self.text(field)
    }

    /// Whether it was there but could not be read.
    pub(super) fn is_broken(&self, field: &str) -> bool {
        self.broken.contains(field)
    }

    /// Whether none of these fields was there.
    pub(super) fn lacks(&self, fields: &[&str]) -> bool {
        !fields.iter().any(|field| self.values.contains_key(field) || self.is_broken(field))
    }

    /// What it says, in the order of the schema.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'static Field, &Value, &Origin)> {
        self.list.fields.iter().filter_map(|field| {
            self.values.get(field.key).map(|(value, origin)| (field, value, origin))
        })
    }
}
