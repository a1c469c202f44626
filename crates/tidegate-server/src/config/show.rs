use super::Origin;
use super::schema::{AnySetting, State};
use super::table::Table;
use std::fmt::Write;

/// An effective value and its origin; a secret is masked.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// The key, such as `admission.high_limit` or `upstream[1].url`; entries count from 1.
    pub key: String,
    /// The value; `None` if it is not set.
    pub value: Option<toml::Value>,
    /// The unit of the value, such as `ms`.
    pub unit: Option<&'static str>,
    /// The origin of the value.
    pub origin: Origin,
}

impl Effective {
    pub(super) fn all(table: &Table) -> Vec<Self> {
        let entries = table.lists().into_iter().flat_map(|list| list.entries());
        let entries = entries.flat_map(|entry| entry.settings());
        let given = entries.filter(|setting| setting.state().is_given);
        let effective = |setting: &dyn AnySetting| {
            let State { key, limits, origin, .. } = setting.state();
            let (key, origin) = (key.clone(), origin.clone());
            Self { key, value: setting.shown(), unit: limits.unit, origin }
        };
        table.settings().into_iter().chain(given).map(effective).collect()
    }

    fn value_with_unit(&self) -> String {
        let Some(value) = &self.value else { return "not set".to_owned() };
        self.unit.map_or_else(|| value.to_string(), |unit| format!("{value} {unit}"))
    }
}

/// Effective values in columns: key, value with unit, origin.
#[must_use]
pub fn show_text(settings: &[Effective]) -> String {
    let values: Vec<_> = settings.iter().map(Effective::value_with_unit).collect();
    let key_width = settings.iter().map(|setting| setting.key.len()).max().unwrap_or(0);
    let value_width = values.iter().map(|value| value.chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for (setting, value) in settings.iter().zip(values) {
        let Effective { key, origin, .. } = setting;
        let _ = writeln!(text, "{key:key_width$}  {value:value_width$}  {origin}");
    }
    text
}

/// Effective values as a JSON object: key → `{value, unit, origin}`.
#[must_use]
pub fn show_json(settings: &[Effective]) -> serde_json::Value {
    let entry = |setting: &Effective| {
        let Effective { key, value, unit, origin } = setting;
        let origin = origin.to_string();
        (key.clone(), serde_json::json!({ "value": value, "unit": unit, "origin": origin }))
    };
    serde_json::Value::Object(settings.iter().map(entry).collect())
}
