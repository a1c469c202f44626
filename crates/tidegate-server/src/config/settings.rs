use super::Origin;
use super::choice::{self, Choice};
use super::field::{Fallback, Field};
use super::mistakes::Ledger;
use super::origin::Preset;
use super::schema::SETTINGS;
use super::value::{Raw, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidegate::admission::Role;

/// What the layers say about settings, in the order of the layers.
#[derive(Debug, Default)]
pub(super) struct Said(Vec<(&'static Field, Raw, Origin)>);

/// The value of every setting that has one, and where it comes from.
#[derive(Debug)]
pub(super) struct Settings {
    values: BTreeMap<&'static str, (Value, Origin)>,
    /// Said, but wrong in some layer: what the default then has is nobody's intention.
    broken: BTreeSet<&'static str>,
}

/// A type that a setting can be read as.
pub(super) trait FromValue: Sized {
    fn from_value(value: &Value) -> Option<Self>;
}

// === impl Said ===

impl Said {
    pub(super) fn say(&mut self, field: &'static Field, raw: Raw, origin: Origin) {
        self.0.push((field, raw, origin));
    }
}

// === impl Settings ===

impl Settings {
    /// Checks everything that was said, also what a later layer overrides, and lets the last of it win.
    pub(super) fn resolve(said: &Said, ledger: &mut Ledger) -> Self {
        let mut settings = Self { values: BTreeMap::new(), broken: BTreeSet::new() };
        for (field, raw, origin) in &said.0 {
            match field.kind.parse(raw) {
                Ok(value) => {
                    settings.values.insert(field.key, (value, origin.clone()));
                }
                Err(unfit) => {
                    ledger.add(unfit.into_mistake(field.key.to_owned(), field, origin));
                    settings.broken.insert(field.key);
                }
            }
        }
        settings.fill();
        settings
    }

    /// The table is in an order in which what a default depends on stands before it.
    fn fill(&mut self) {
        for field in SETTINGS {
            if self.values.contains_key(field.key) {
                continue;
            }
            if let Some(filled) = self.fallback(field) {
                self.values.insert(field.key, filled);
            }
        }
    }

    fn fallback(&self, field: &Field) -> Option<(Value, Origin)> {
        match field.fallback {
            Fallback::Is(text) => {
                let value = field.kind.parse(&Raw::Untyped(text.to_owned())).ok()?;
                Some((value, Origin::Default))
            }
            Fallback::Preset(of) => {
                let role: Role = self.choice("role");
                let value = Value::Integer(of(role));
                Some((value, Origin::Preset(Preset::of(role))))
            }
            Fallback::TenthOfGlobal => {
                let global: u64 = self.get("admission.global_limit");
                let origin = match self.origin("admission.global_limit") {
                    preset @ Origin::Preset(_) => preset.clone(),
                    _ => Origin::Default,
                };
                Some((Value::Integer(global / 10), origin))
            }
            Fallback::Unset => None,
        }
    }

    /// The value of a setting that always has one.
    ///
    /// # Panics
    ///
    /// When the schema does not have the key with that type and a default: every key is read on every load,
    /// so no input can bring this about.
    pub(super) fn get<T: FromValue>(&self, key: &str) -> T {
        self.optional(key).unwrap_or_else(|| panic!("the schema has no such setting: {key}"))
    }

    pub(super) fn optional<T: FromValue>(&self, key: &str) -> Option<T> {
        self.values.get(key).and_then(|(value, _)| T::from_value(value))
    }

    pub(super) fn choice<C: Choice>(&self, key: &str) -> C {
        let word: String = self.get(key);
        choice::from_name(&word).unwrap_or_else(|| panic!("the schema has another type for {key}"))
    }

    pub(super) fn millis(&self, key: &str) -> Duration {
        Duration::from_millis(self.get(key))
    }

    pub(super) fn size(&self, key: &str) -> usize {
        usize::try_from(self.get::<u64>(key)).unwrap_or(usize::MAX)
    }

    pub(super) fn origin(&self, key: &str) -> &Origin {
        self.values.get(key).map_or(&Origin::Default, |(_, origin)| origin)
    }

    /// Whether somebody set it.
    pub(super) fn is_explicit(&self, key: &str) -> bool {
        self.origin(key).is_explicit()
    }

    /// Whether every one of these is what somebody intended, so that they may be compared.
    pub(super) fn are_sound(&self, keys: &[&str]) -> bool {
        !keys.iter().any(|key| self.broken.contains(key))
    }

    /// All of them in the order of the schema.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static Field, Option<&(Value, Origin)>)> {
        SETTINGS.iter().map(|field| (field, self.values.get(field.key)))
    }
}

// === impl FromValue ===

impl FromValue for u64 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Integer(number) = value { Some(*number) } else { None }
    }
}

impl FromValue for u16 {
    fn from_value(value: &Value) -> Option<Self> {
        u64::from_value(value).and_then(|number| number.try_into().ok())
    }
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Ratio(number) = value { Some(*number) } else { None }
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Switch(on) = value { Some(*on) } else { None }
    }
}

impl FromValue for SocketAddr {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Address(address) = value { Some(*address) } else { None }
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Text(text) = value { Some(text.clone()) } else { None }
    }
}

impl FromValue for PathBuf {
    fn from_value(value: &Value) -> Option<Self> {
        String::from_value(value).map(Self::from)
    }
}
