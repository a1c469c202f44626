use crate::config::errors::quoted;
use std::borrow::Cow;
use toml::de::DeValue;

/// A value as a layer gives it, before it is checked.
#[derive(Clone, Copy, Debug)]
pub enum Raw<'a> {
    /// Text of an environment variable or a flag, which have no types.
    Untyped(&'a str),
    /// A value of the file.
    Toml(&'a DeValue<'a>),
}

impl<'a> Raw<'a> {
    /// The type without the value.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Untyped(_) | Self::Toml(DeValue::String(_)) => "a string",
            Self::Toml(DeValue::Integer(_) | DeValue::Float(_)) => "a number",
            Self::Toml(DeValue::Boolean(_)) => "a boolean",
            Self::Toml(DeValue::Datetime(_)) => "a date",
            Self::Toml(DeValue::Array(_)) => "an array",
            Self::Toml(DeValue::Table(_)) => "a table",
        }
    }

    /// The value for an error message, with the password of a URL masked.
    pub fn given(self) -> String {
        match self {
            _ if self.text() == Some("") => "nothing".to_owned(),
            Self::Untyped(text) => quoted(&masked(text)),
            Self::Toml(DeValue::String(text)) => format!("the string {}", quoted(&masked(text))),
            Self::Toml(DeValue::Integer(number)) => number.to_string(),
            Self::Toml(DeValue::Float(number)) => number.to_string(),
            Self::Toml(DeValue::Boolean(on)) => on.to_string(),
            Self::Toml(_) => {
                self.texts().map_or(self.type_name().to_owned(), |texts| quoted(&texts.join(",")))
            }
        }
    }

    /// A description of a secret value for an error message.
    pub fn concealed(self) -> String {
        let length = self.text().map(|text| format!("{} characters", text.chars().count()));
        length.unwrap_or(self.type_name().to_owned())
    }

    pub fn text(self) -> Option<&'a str> {
        match self {
            Self::Untyped(text) => Some(text.trim()),
            Self::Toml(value) => value.as_str(),
        }
    }

    pub fn integer(self) -> Option<i128> {
        match self {
            Self::Untyped(text) => text.trim().parse().ok(),
            Self::Toml(value) => {
                let number = value.as_integer()?;
                i128::from_str_radix(number.as_str(), number.radix()).ok()
            }
        }
    }

    pub fn boolean(self) -> Option<bool> {
        match self {
            Self::Untyped(text) => text.trim().parse().ok(),
            Self::Toml(value) => value.as_bool(),
        }
    }

    pub fn float(self) -> Option<f64> {
        match self {
            Self::Untyped(text) => text.trim().parse().ok(),
            Self::Toml(DeValue::Float(number)) => number.as_str().parse().ok(),
            Self::Toml(DeValue::Integer(number)) => number.to_string().parse().ok(),
            Self::Toml(_) => None,
        }
    }

    /// Several texts: an array, or one text with commas.
    pub fn texts(self) -> Option<Vec<String>> {
        if let Self::Toml(DeValue::Array(values)) = self {
            return values
                .iter()
                .map(|value| value.get_ref().as_str().map(str::to_owned))
                .collect();
        }
        let parts = self.text()?.split(',').map(str::trim).filter(|part| !part.is_empty());
        Some(parts.map(str::to_owned).collect())
    }
}

/// The same text, with the password masked if it is a URL that has one: `postgres://user:***@host`.
pub fn masked(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://") else { return text.into() };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let Some((user, _)) = authority.rsplit_once('@') else { return text.into() };
    let Some((name, _)) = user.split_once(':') else { return text.into() };
    Cow::Owned(format!("{scheme}://{name}:***{}", &rest[user.len()..]))
}
