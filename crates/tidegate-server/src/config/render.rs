use super::Origin;
use super::choice::{Choice, name_of};
use super::field::{Fallback, Field, List, env_name};
use super::items::Items;
use super::schema::{LISTS, SETTINGS};
use super::settings::Settings;
use super::value::{Raw, Value};
use std::fmt::Write;
use tidegate::admission::Role;

/// One effective value and where it comes from; a secret is masked.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key, such as `admission.high_limit` or `upstream[1].url`; entries count from 1.
    pub key: String,
    /// As it would stand in a TOML file; `None` when it is not set.
    pub toml: Option<String>,
    /// The same as JSON.
    pub json: serde_json::Value,
    /// What one of it is, such as `ms`.
    pub unit: Option<&'static str>,
    /// Where it comes from.
    pub origin: Origin,
}

// === impl Setting ===

impl Setting {
    pub(super) fn all(settings: &Settings, items: &Items) -> Vec<Self> {
        let settings = settings.iter().map(|(field, value)| match value {
            Some((value, origin)) => Self::new(field.key.to_owned(), field, value, origin),
            None => Self::unset(field),
        });
        let items = LISTS.iter().flat_map(|list| items.of(list.key)).flat_map(|item| {
            item.values()
                .map(|(field, value, origin)| Self::new(item.key(field.key), field, value, origin))
        });
        settings.chain(items).collect()
    }

    fn new(key: String, field: &Field, value: &Value, origin: &Origin) -> Self {
        let (toml, json) = (Some(value.to_toml()), value.to_json());
        Self { key, toml, json, unit: field.unit, origin: origin.clone() }
    }

    fn unset(field: &Field) -> Self {
        Self {
            key: field.key.to_owned(),
            toml: None,
            json: serde_json::Value::Null,
            unit: field.unit,
            origin: Origin::Default,
        }
    }
}

/// Effective values in columns: key, value with unit, origin.
#[must_use]
pub fn show_text(settings: &[Setting]) -> String {
    let values: Vec<_> = settings.iter().map(value_with_unit).collect();
    let key_width = settings.iter().map(|setting| setting.key.len()).max().unwrap_or(0);
    let value_width = values.iter().map(|value| value.chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for (setting, value) in settings.iter().zip(values) {
        let Setting { key, origin, .. } = setting;
        let _ = writeln!(text, "{key:key_width$}  {value:value_width$}  {origin}");
    }
    text
}

/// Effective values as a JSON object: key → `{value, unit, origin}`.
#[must_use]
pub fn show_json(settings: &[Setting]) -> serde_json::Value {
    let entry = |setting: &Setting| {
        let Setting { key, json, unit, origin, .. } = setting;
        let entry = serde_json::json!({
            "value": json, "unit": unit, "origin": origin.to_string(),
        });
        (key.clone(), entry)
    };
    serde_json::Value::Object(settings.iter().map(entry).collect())
}

fn value_with_unit(setting: &Setting) -> String {
    match (&setting.toml, setting.unit) {
        (None, _) => "not set".to_owned(),
        (Some(value), Some(unit)) => format!("{value} {unit}"),
        (Some(value), None) => value.clone(),
    }
}

/// A configuration file that says what holds anyway, every line of it commented out and explained.
#[must_use]
pub fn init_file() -> String {
    let mut text = String::from(INTRODUCTION);
    let mut section = None;
    for field in SETTINGS {
        if field.section() != section {
            section = field.section();
            let _ = write!(text, "\n[{}]\n", section.unwrap_or_default());
        }
        write_setting(&mut text, field);
    }
    for list in LISTS {
        write_list(&mut text, list);
    }
    text
}

const INTRODUCTION: &str = "\
# The configuration of Tidegate. A line that starts with \"#key =\" shows the default: take away the \"#\" to
# change it. The environment overrides this file, and flags override both. After a change:
#
#     tidegate config check    says everything that is wrong
#     tidegate config show     says what holds, and where each value comes from
";

fn write_setting(text: &mut String, field: &Field) {
    let _ = writeln!(text, "\n# {}{}", field.doc, default_note(field));
    let _ = writeln!(text, "# Allowed: {}.", allowed(field));
    let _ = writeln!(text, "# Environment: {}", env_names(field));
    let _ = writeln!(text, "#{} = {}", field.name(), default_text(field));
}

/// What the line below it can't say.
fn default_note(field: &Field) -> String {
    match field.fallback {
        Fallback::Preset(of) => {
            let by_role = |role: Role| format!("{} {}", name_of(role), of(role));
            let presets: Vec<_> = Role::ALL.iter().copied().map(by_role).collect();
            format!(" By role: {}.", presets.join(", "))
        }
        Fallback::Unset => " Not set by default.".to_owned(),
        Fallback::Is(_) | Fallback::TenthOfGlobal => String::new(),
    }
}

fn env_names(field: &Field) -> String {
    field.env_names().collect::<Vec<_>>().join(", ")
}

fn allowed(field: &Field) -> String {
    field.kind.allowed(field.unit)
}

/// As TOML; an example where there is no default.
fn default_text(field: &Field) -> String {
    match field.fallback {
        Fallback::Is(text) => field
            .kind
            .parse(&Raw::Untyped(text.to_owned()))
            .map(|value| value.to_toml())
            .unwrap_or_default(),
        Fallback::Preset(of) => of(Role::Gate).to_string(),
        Fallback::TenthOfGlobal => Role::Gate.limits().critical_reserve.to_string(),
        Fallback::Unset => field.kind.example(),
    }
}

fn write_list(text: &mut String, list: &List) {
    let _ = write!(text, "\n# {} At most {}.", list.doc, list.max);
    if list.short.is_some() {
        let _ = write!(text, " Environment, with commas: {}", env_name(list.key));
    }
    let _ = writeln!(text, "\n#");
    for field in list.fields {
        let default = match field.fallback {
            Fallback::Is(default) => format!(" Default {default}."),
            _ => String::new(),
        };
        let _ =
            writeln!(text, "# {}: {} Allowed: {}.{default}", field.key, field.doc, allowed(field));
    }
    let _ = writeln!(text, "#[[{}]]", list.key);
    for (key, value) in list.example {
        let value =
            list.field(key).map(|field| field.kind.parse(&Raw::Untyped((*value).to_owned())));
        let shown = value.and_then(Result::ok).map(|value| value.to_toml()).unwrap_or_default();
        let _ = writeln!(text, "#{key} = {shown}");
    }
}
