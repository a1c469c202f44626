use super::Origin;
use super::choice::Choice;
use super::field::{Field, Kind};
use super::mistakes::{Mistake, nearest, quoted};
use super::password::masked;
use super::upstreams::UpstreamTarget;
use std::net::SocketAddr;
use tidegate::admission::MessagePriority;
use toml::de::DeValue;

/// What stands in a layer, before it is checked.
#[derive(Clone, Debug)]
pub(super) enum Raw {
    /// Text of the environment or of a flag, where everything is text.
    Untyped(String),
    /// A TOML string.
    String(String),
    /// A TOML number that is whole, as it was written; `None` when it does not fit.
    Integer(Option<i128>, String),
    /// A TOML float, as it was written.
    Float(String),
    /// A TOML boolean.
    Boolean(bool),
    /// A TOML array that has only strings.
    Strings(Vec<String>),
    /// Anything else, by the name of its type.
    Other(&'static str),
}

/// A checked value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Integer(u64),
    Ratio(f64),
    Address(SocketAddr),
    Switch(bool),
    Text(String),
    Names(Vec<String>),
    Secret(String),
}

/// Why a value is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    pub(super) given: String,
    /// When the schema's own words don't say it.
    pub(super) allowed: Option<&'static str>,
    pub(super) suggestion: Option<String>,
}

// === impl Raw ===

impl Raw {
    pub(super) fn from_toml(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::String(text.to_string()),
            DeValue::Integer(number) => Self::Integer(
                i128::from_str_radix(number.as_str(), number.radix()).ok(),
                number.to_string(),
            ),
            DeValue::Float(number) => Self::Float(number.as_str().to_owned()),
            DeValue::Boolean(on) => Self::Boolean(*on),
            DeValue::Datetime(_) => Self::Other("a date"),
            DeValue::Array(values) => {
                strings(values).map_or(Self::Other("an array"), Self::Strings)
            }
            DeValue::Table(_) => Self::Other("a table"),
        }
    }

    /// What it is, without saying it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Untyped(_) | Self::String(_) => "a string",
            Self::Integer(..) | Self::Float(_) => "a number",
            Self::Boolean(_) => "a boolean",
            Self::Strings(_) => "an array",
            Self::Other(kind) => kind,
        }
    }

    fn given(&self) -> String {
        match self {
            Self::Untyped(text) | Self::String(text) if text.is_empty() => "nothing".to_owned(),
            Self::Untyped(text) => quoted(&masked(text)),
            Self::String(text) => format!("the string {}", quoted(&masked(text))),
            Self::Integer(_, text) | Self::Float(text) => text.clone(),
            Self::Boolean(on) => on.to_string(),
            Self::Strings(names) => quoted(&names.join(",")),
            Self::Other(kind) => (*kind).to_owned(),
        }
    }

    /// The same, when it may not be repeated.
    fn masked(&self) -> String {
        match self {
            Self::Untyped(text) | Self::String(text) => {
                format!("{} characters", text.chars().count())
            }
            _ => self.type_name().to_owned(),
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Untyped(text) => Some(text.trim()),
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Self::Untyped(text) => text.trim().parse().ok(),
            Self::Integer(number, _) => *number,
            _ => None,
        }
    }

    fn switch(&self) -> Option<bool> {
        match self {
            Self::Untyped(text) => text.trim().parse().ok(),
            Self::Boolean(on) => Some(*on),
            _ => None,
        }
    }

    fn names(&self) -> Option<Vec<String>> {
        match self {
            Self::Strings(names) => Some(names.clone()),
            _ => {
                let parts = self.text()?.split(',').map(str::trim).filter(|part| !part.is_empty());
                Some(parts.map(str::to_owned).collect())
            }
        }
    }

    fn ratio(&self) -> Option<f64> {
        match self {
            Self::Untyped(text) | Self::Float(text) | Self::Integer(_, text) => {
                text.trim().parse().ok()
            }
            _ => None,
        }
    }
}

// === impl Kind ===

impl Kind {
    /// The value, or why it is none.
    pub(super) fn parse(self, raw: &Raw) -> Result<Value, Unfit> {
        if let Self::Url = self {
            return parse_url(raw);
        }
        self.accept(raw).ok_or_else(|| Unfit {
            given: if matches!(self, Self::Secret { .. }) { raw.masked() } else { raw.given() },
            allowed: None,
            suggestion: raw.text().and_then(|text| self.suggestion(text)),
        })
    }

    fn accept(self, raw: &Raw) -> Option<Value> {
        let text = || raw.text().filter(|text| !text.is_empty());
        match self {
            Self::Integer { min, max } => {
                let number = u64::try_from(raw.integer()?).ok()?;
                (min..=max).contains(&number).then_some(Value::Integer(number))
            }
            Self::Ratio { min, max } => {
                let number = raw.ratio()?;
                (min..=max).contains(&number).then_some(Value::Ratio(number))
            }
            Self::Address => text()?.parse().ok().map(Value::Address),
            Self::Word(words) => Self::one_of(words, text()?),
            Self::Switch => raw.switch().map(Value::Switch),
            Self::Names { check, .. } => {
                let names = raw.names().filter(|names| !names.is_empty())?;
                names.iter().all(|name| check(name)).then_some(Value::Names(names))
            }
            Self::Priority => Self::one_of(MessagePriority::NAMES, text()?),
            // A NUL can't be in the name of a file.
            Self::Path => {
                text().filter(|text| !text.contains('\0')).map(|text| Value::Text(text.to_owned()))
            }
            Self::Text { check, .. } => {
                text().filter(|text| check(text)).map(|text| Value::Text(text.to_owned()))
            }
            Self::Secret { check, .. } => {
                text().filter(|text| check(text)).map(|text| Value::Secret(text.to_owned()))
            }
            Self::Url => None,
        }
    }

    fn one_of(words: &[&'static str], text: &str) -> Option<Value> {
        words.contains(&text).then(|| Value::Text(text.to_owned()))
    }

    fn suggestion(self, text: &str) -> Option<String> {
        match self {
            Self::Word(words) => nearest(text, words.iter().copied()).map(quoted),
            Self::Priority => nearest(text, MessagePriority::NAMES.iter().copied()).map(quoted),
            Self::Address => {
                let port = text.strip_prefix("localhost").or_else(|| text.strip_prefix('*'))?;
                let address: SocketAddr = format!("127.0.0.1{port}").parse().ok()?;
                Some(quoted(&address.to_string()))
            }
            Self::Text { shape: super::logging::SHAPE, .. } => {
                nearest(text, super::logging::LEVELS.iter().copied()).map(quoted)
            }
            _ => None,
        }
    }

    /// Something that is allowed, as TOML, for a setting without a default.
    pub(super) fn example(self) -> String {
        match self {
            Self::Integer { min, max } => (max / 2).clamp(min, 10_000.min(max)).to_string(),
            Self::Ratio { .. } => "0.85".to_owned(),
            Self::Text { .. } => "\"X-data-parallel-rank\"".to_owned(),
            _ => "\"/path/to/file\"".to_owned(),
        }
    }

    /// What is allowed, in words.
    pub(super) fn allowed(self, unit: Option<&str>) -> String {
        let unit = unit.map(|unit| format!(" {unit}")).unwrap_or_default();
        match self {
            Self::Integer { min, max } => format!("a whole number, {min} … {max}{unit}"),
            Self::Ratio { min, max } => format!("a number, {min:.1} … {max:.1}{unit}"),
            Self::Address => "IP address and port, such as 127.0.0.1:8000 or [::1]:8000".to_owned(),
            Self::Word(words) => either(words),
            Self::Switch => "true or false".to_owned(),
            Self::Names { shape, .. } => shape.to_owned(),
            Self::Priority => format!(
                "{}; critical is for the control plane alone",
                either(MessagePriority::NAMES)
            ),
            Self::Path => "the path of a file".to_owned(),
            Self::Url => super::upstreams::SHAPE.to_owned(),
            Self::Text { shape, .. } | Self::Secret { shape, .. } => shape.to_owned(),
        }
    }
}

/// The strings of an array that has nothing else.
fn strings(values: &toml::de::DeArray<'_>) -> Option<Vec<String>> {
    let text = |value: &toml::Spanned<DeValue<'_>>| value.get_ref().as_str().map(str::to_owned);
    values.iter().map(text).collect()
}

fn parse_url(raw: &Raw) -> Result<Value, Unfit> {
    let text = raw.text().unwrap_or_default();
    match UpstreamTarget::parse(text) {
        Ok(_) => Ok(Value::Text(text.to_owned())),
        Err(problem) => {
            let given = if text.contains('@') { raw.masked() } else { raw.given() };
            Err(Unfit { given, allowed: Some(problem.allowed), suggestion: problem.suggestion })
        }
    }
}

fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => quoted(only),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(|word| quoted(word)).collect();
            format!("{} or {}", first.join(", "), quoted(last))
        }
    }
}

// === impl Unfit ===

impl Unfit {
    pub(super) fn into_mistake(self, key: String, field: &Field, origin: &Origin) -> Mistake {
        let allowed = self.allowed.map_or_else(|| field.kind.allowed(field.unit), str::to_owned);
        Mistake::new(key, origin, self.given, allowed).suggest(self.suggestion)
    }
}

// === impl Value ===

impl Value {
    /// As it would stand in a TOML file; a secret, and the password of a URL, is masked.
    pub(super) fn to_toml(&self) -> String {
        match self {
            Self::Integer(number) => number.to_string(),
            Self::Ratio(number) => toml::Value::Float(*number).to_string(),
            Self::Address(address) => toml::Value::String(address.to_string()).to_string(),
            Self::Switch(on) => on.to_string(),
            Self::Text(text) => toml::Value::String(masked(text).into_owned()).to_string(),
            Self::Names(names) => toml::Value::from(names.clone()).to_string(),
            Self::Secret(_) => "\"***\"".to_owned(),
        }
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Integer(number) => (*number).into(),
            Self::Ratio(number) => (*number).into(),
            Self::Address(address) => address.to_string().into(),
            Self::Switch(on) => (*on).into(),
            Self::Text(text) => masked(text).into(),
            Self::Names(names) => names.clone().into(),
            Self::Secret(_) => "***".into(),
        }
    }
}
