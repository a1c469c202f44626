use super::choice::{self, Choice};
use super::limit::LimitSetting;
use super::raw::{Raw, masked};
use super::secret::TokenDigest;
use super::shape::{Hint, Shape, TOKEN, TOKEN_SHA256};
use super::upstream_url::UpstreamTarget;
use crate::config::{Origin, errors::ConfigError, errors::quoted};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tidegate::suggestion::nearest;
use toml::Value;

pub const MINUTE_MS: u64 = 60_000;
pub const HOUR_MS: u64 = 60 * MINUTE_MS;
pub const DAY_MS: u64 = 24 * HOUR_MS;

/// The type of a setting and the values that it accepts.
pub struct Kind<T> {
    pub limits: Limits,
    pub accept: Box<dyn Fn(Raw<'_>) -> Option<T>>,
    /// The value as in a TOML file, without secrets; `None` if not set.
    pub shown: Box<Show<T>>,
}

type Show<T> = dyn Fn(&T) -> Option<Value>;

/// Description of the accepted values.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The values in words, with range and unit.
    pub allowed: String,
    pub unit: Option<&'static str>,
    /// Placeholder of the value in help texts.
    pub placeholder: Option<&'static str>,
    hint: Hint,
}

/// An unsigned integer.
pub trait Whole: TryFrom<u64> + TryInto<u64> + Copy + 'static {}

impl<T: TryFrom<u64> + TryInto<u64> + Copy + 'static> Whole for T {}

pub fn whole<T: Whole>(min: u64, max: u64, unit: &'static str) -> Kind<T> {
    number((min, max, 1), unit, |number| number.try_into().ok(), |value| (*value).try_into().ok())
}

/// Mebibytes in the configuration, bytes in the program.
pub fn mebibytes<T: Whole>(min: u64, max: u64) -> Kind<T> {
    let range = (min, max, 1 << 20);
    number(range, "MiB", |bytes| bytes.try_into().ok(), |bytes| (*bytes).try_into().ok())
}

pub fn millis(min: u64, max: u64) -> Kind<Duration> {
    duration((min, max, 1), "ms")
}

pub fn hours(min: u64, max: u64) -> Kind<Duration> {
    duration((min, max, HOUR_MS), "hours")
}

fn duration(range: (u64, u64, u64), unit: &'static str) -> Kind<Duration> {
    let to_ms = |value: &Duration| value.as_millis().try_into().ok();
    number(range, unit, |ms| Some(Duration::from_millis(ms)), to_ms)
}

/// Units in the configuration, each of which is `scale` in the program.
fn number<T: 'static>(
    (min, max, scale): (u64, u64, u64),
    unit: &'static str,
    from: fn(u64) -> Option<T>,
    to: fn(&T) -> Option<u64>,
) -> Kind<T> {
    let accept = move |raw: Raw<'_>| {
        let number = u64::try_from(raw.integer()?).ok()?;
        (min..=max).contains(&number).then(|| from(number.saturating_mul(scale)))?
    };
    let shown = move |value: &T| Some(Value::Integer((to(value)? / scale).try_into().ok()?));
    Kind::new(format!("a whole number, {min} … {max}"), accept, shown).placeholder("N").unit(unit)
}

pub fn ratio() -> Kind<f64> {
    let accept = |raw: Raw<'_>| raw.float().filter(|number| (0.0..=1.0).contains(number));
    let shown = |number: &f64| Some(Value::Float(*number));
    Kind::new("a number, 0.0 … 1.0", accept, shown).placeholder("RATIO")
}

pub fn switch() -> Kind<bool> {
    let accept = |raw: Raw<'_>| raw.boolean();
    Kind::new("true or false", accept, |on| Some(Value::Boolean(*on))).placeholder("BOOL")
}

pub fn word<C: Choice>() -> Kind<C> {
    let mut allowed = C::NAMES.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    if let Some(last_comma) = allowed.rfind(", ") {
        allowed.replace_range(last_comma..last_comma + 1, " or");
    }
    let accept = |raw: Raw<'_>| raw.text().and_then(choice::from_name);
    let shown = |value: &C| Some(Value::from(choice::name_of(*value)));
    Kind::new(allowed + C::NOTE, accept, shown).hint(Hint::Words(C::NAMES))
}

/// The highest limit: more requests than a gateway can hold.
const LIMIT_MAX: u32 = 1_000_000;

/// A number of requests, or a word.
pub fn limit() -> Kind<LimitSetting> {
    let accept = |raw: Raw<'_>| match raw.text() {
        Some("auto") => Some(LimitSetting::Auto),
        Some("off") => Some(LimitSetting::Off),
        _ => {
            let limit = u32::try_from(raw.integer()?).ok()?;
            (1..=LIMIT_MAX).contains(&limit).then_some(LimitSetting::Fixed(limit))
        }
    };
    let shown = |limit: &LimitSetting| {
        Some(match limit {
            LimitSetting::Auto => Value::from("auto"),
            LimitSetting::Fixed(limit) => Value::Integer((*limit).into()),
            LimitSetting::Off => Value::from("off"),
        })
    };
    let allowed = format!("\"auto\", \"off\", or a whole number, 1 … {LIMIT_MAX} requests");
    Kind::new(allowed, accept, shown).hint(Hint::Words(&["auto", "off"])).placeholder("LIMIT")
}

pub fn path() -> Kind<PathBuf> {
    // The name of a file can't contain a NUL.
    let fits = |text: &&str| !text.is_empty() && !text.contains('\0');
    let accept = move |raw: Raw<'_>| raw.text().filter(fits).map(PathBuf::from);
    let shown = |path: &PathBuf| Some(Value::from(path.to_string_lossy().as_ref()));
    Kind::new("the path of a file", accept, shown).placeholder("FILE")
}

/// A text of the shape, or the type that it is parsed to.
pub fn text<T: FromStr + ToString>(shape: Shape) -> Kind<T> {
    let accept = move |raw: Raw<'_>| {
        raw.text().filter(|text| !text.is_empty() && (shape.check)(text))?.parse().ok()
    };
    let shown = move |value: &T| match shape.hint {
        Hint::Secret => Some(Value::from("***")),
        _ => Some(Value::from(masked(&value.to_string()).as_ref())),
    };
    let kind = Kind::new(shape.allowed, accept, shown).hint(shape.hint);
    if let Hint::Address = shape.hint { kind.placeholder("ADDR") } else { kind }
}

/// A token, of which the digest alone is kept.
pub fn token() -> Kind<TokenDigest> {
    let digest = |text: &str| (TOKEN.check)(text).then(|| TokenDigest::of(text.as_bytes()));
    secret(TOKEN, digest)
}

/// The digest of a token.
pub fn token_sha256() -> Kind<TokenDigest> {
    secret(TOKEN_SHA256, TokenDigest::from_hex)
}

fn secret(shape: Shape, digest: fn(&str) -> Option<TokenDigest>) -> Kind<TokenDigest> {
    let accept = move |raw: Raw<'_>| raw.text().and_then(digest);
    Kind::new(shape.allowed, accept, |_| Some(Value::from("***"))).hint(shape.hint)
}

pub fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// At least one text; with commas between in a layer without arrays.
pub fn texts(shape: Shape) -> Kind<Vec<String>> {
    let accept = move |raw: Raw<'_>| {
        let texts = raw.texts().filter(|texts| !texts.is_empty())?;
        texts.iter().all(|text| (shape.check)(text)).then_some(texts)
    };
    Kind::new(shape.allowed, accept, |texts| Some(Value::from(texts.clone())))
}

// === impl Kind ===

impl<T> Kind<T> {
    fn new(
        allowed: impl Into<String>,
        accept: impl Fn(Raw<'_>) -> Option<T> + 'static,
        shown: impl Fn(&T) -> Option<Value> + 'static,
    ) -> Self {
        let (allowed, hint) = (allowed.into(), Hint::Words(&[]));
        let limits = Limits { allowed, unit: None, placeholder: None, hint };
        Self { limits, accept: Box::new(accept), shown: Box::new(shown) }
    }

    fn hint(mut self, hint: Hint) -> Self {
        self.limits.hint = hint;
        self
    }

    fn placeholder(mut self, placeholder: &'static str) -> Self {
        self.limits.placeholder = Some(placeholder);
        self
    }

    pub fn unit(mut self, unit: &'static str) -> Self {
        self.limits.allowed = format!("{} {unit}", self.limits.allowed);
        self.limits.unit = Some(unit);
        self
    }
}

impl<T: 'static> Kind<T> {
    /// The same values, or none.
    pub fn optional(self) -> Kind<Option<T>> {
        let Self { limits, accept, shown } = self;
        let accept = Box::new(move |raw: Raw<'_>| accept(raw).map(Some));
        let shown = Box::new(move |value: &Option<T>| value.as_ref().and_then(&shown));
        Kind { limits, accept, shown }
    }
}

// === impl Limits ===

impl Limits {
    /// The error about a value that is not accepted.
    pub fn error(&self, key: &str, raw: Raw<'_>, origin: &Origin) -> ConfigError {
        let text = raw.text().unwrap_or_default();
        let mut error = ConfigError::new(key, origin, raw.given(), &self.allowed);
        match self.hint {
            Hint::Words(words) => error.suggest(nearest(text, words.iter().copied()).map(quoted)),
            Hint::Address => {
                let port = text.strip_prefix("localhost").or_else(|| text.strip_prefix('*'));
                let address = port.and_then(|port| format!("127.0.0.1{port}").parse().ok());
                error.suggest(address.map(|address: SocketAddr| quoted(&address.to_string())))
            }
            Hint::Url => {
                let Err(problem) = UpstreamTarget::parse(text) else { return error };
                // A URL may contain a password.
                if text.contains('@') {
                    error.given = raw.concealed();
                }
                error.allowed = problem.allowed.to_owned();
                error.suggest(problem.suggestion)
            }
            Hint::Secret => ConfigError { given: raw.concealed(), ..error },
        }
    }
}
