use super::certificate_name::CertificateName;
use super::secret::TokenDigest;
use super::upstream_url::UpstreamTarget;
use http::uri::Authority;
use http::{HeaderName, Method};

/// The shape of a text: its description and its check.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub allowed: &'static str,
    pub check: fn(&str) -> bool,
    pub hint: Hint,
}

/// The help that an error gives beyond the accepted values.
#[derive(Clone, Copy, Debug)]
pub enum Hint {
    /// The nearest of these words.
    Words(&'static [&'static str]),
    /// Loopback instead of a host name.
    Address,
    /// The part of an upstream's URL that is wrong.
    Url,
    /// None, and the value is not repeated.
    Secret,
}

impl Shape {
    const fn new(allowed: &'static str, check: fn(&str) -> bool) -> Self {
        Self { allowed, check, hint: Hint::Words(&[]) }
    }

    const fn hint(self, hint: Hint) -> Self {
        Self { hint, ..self }
    }
}

pub const ADDRESS: Shape =
    Shape::new("IP address and port, such as 127.0.0.1:8000 or [::1]:8000", |_| true)
        .hint(Hint::Address);

pub const UPSTREAM_URL: Shape =
    Shape::new(UpstreamTarget::SHAPE, |text| UpstreamTarget::parse(text).is_ok()).hint(Hint::Url);

pub const NAME: Shape =
    Shape::new("1 … 64 letters, digits, dots, dashes and underscores", |text| {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        (1..=64).contains(&text.len()) && text.bytes().all(fits)
    });

pub const TOKEN: Shape = Shape::new("16 … 512 visible ASCII characters without spaces", |text| {
    (16..=512).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
})
.hint(Hint::Secret);

pub const TOKEN_SHA256: Shape = Shape::new(
    "the SHA-256 of the token in 64 hexadecimal digits, as tidegate token new prints it",
    |text| TokenDigest::from_hex(text).is_some(),
)
.hint(Hint::Secret);

pub const CERTIFICATE: Shape = Shape::new(
    "DNS:name or URI:uri, an exact subject alternative name; or SHA256:digits",
    |text| text.parse::<CertificateName>().is_ok(),
);

pub const API_KEY: Shape =
    Shape::new("1 … 4096 visible ASCII characters without spaces", |text| {
        (1..=4_096).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
    })
    .hint(Hint::Secret);

pub const VARIABLE: Shape = Shape::new("the name of an environment variable", |text| {
    !text.is_empty() && !text.contains(['=', '\0'])
});

pub const MODEL: Shape =
    Shape::new("a model's name, 1 … 256 visible characters without commas", is_model);

pub const MODELS: Shape =
    Shape::new("a list of models' names, each 1 … 256 visible characters", is_model);

pub const TENANTS: Shape =
    Shape::new("a list of tenants' names, each 1 … 256 visible characters", is_model);

pub const URL_PATH: Shape = Shape::new("a path that starts with \"/\", without query", |text| {
    text.starts_with('/')
        && text.bytes().all(|b| b.is_ascii_graphic())
        && !text.contains(['?', '#'])
});

/// Methods are case-sensitive and all registered ones are capitals: `post` would match nothing.
pub const METHOD: Shape = Shape::new("an HTTP method in capitals", |text| {
    text.parse::<Method>().is_ok() && !text.bytes().any(|b| b.is_ascii_lowercase())
});

pub const HEADER: Shape =
    Shape::new("the name of a header", |text| text.parse::<HeaderName>().is_ok());

pub const HEADER_VALUE: Shape = Shape::new("a header's value in visible ASCII", |text| {
    text.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
});

pub const STORE: Shape = Shape::new("a folder, or postgres://user@host/database", |text| {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    !text.trim().is_empty() && matches!(scheme, None | Some("postgres" | "postgresql"))
});

pub const TAG: Shape =
    Shape::new("the name of a tag, 1 … 128 characters without spaces", |text| {
        let fits = |c: char| !(c.is_whitespace() || c.is_control() || matches!(c, ',' | '='));
        (1..=128).contains(&text.len()) && text.chars().all(fits)
    });

pub const SLOT_LEDGER: Shape = Shape::new("memory, or redis://host:port/db", |text| {
    let server = ["redis://", "valkey://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    text == "memory" || server.is_some_and(|server| !server.is_empty())
});

pub const EXECUTOR_URL: Shape = Shape::new("http(s)://host:port, without a path", |text| {
    let authority = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let Some(authority) = authority else { return false };
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    let plain = !authority.is_empty() && !authority.contains(['/', '?', '#', '@', ' ']);
    plain && authority.parse::<Authority>().is_ok()
});

pub const ARGUMENTS: Shape =
    Shape::new("arguments without line breaks", |text| !text.contains(['\0', '\n']));

pub const ASSIGNMENT: Shape = Shape::new("NAME=value", |text| {
    text.split_once('=').is_some_and(|(name, _)| !name.is_empty()) && !text.contains('\0')
});

pub const EXTENSION: Shape = Shape::new("1 … 16 letters and digits, without a dot", |text| {
    (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
});

pub const LOG_FILTER: Shape = Shape::new(
    "error, warn, info, debug, trace, off, or directives such as \"info,hyper=warn\"",
    is_log_filter,
)
.hint(Hint::Words(LOG_LEVELS));

fn is_model(text: &str) -> bool {
    (1..=256).contains(&text.len())
        && !text.chars().any(|c| c.is_control() || c.is_whitespace() || c == ',')
}

/// Names of the log levels.
const LOG_LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace", "off"];

/// Returns true if the text is a filter of log events.
///
/// A bare word must be a level. The subscriber would take it for a target and log everything of that, which
/// turns a mistyped level into silence; `target=trace` does the same on purpose.
fn is_log_filter(text: &str) -> bool {
    // Filters by span have commas of their own; the subscriber checks them when it starts.
    text.contains('[') || text.split(',').all(|directive| is_directive(directive.trim()))
}

fn is_directive(directive: &str) -> bool {
    match directive.split_once('=') {
        Some((target, level)) => is_target(target.trim()) && is_level(level.trim()),
        None => is_level(directive),
    }
}

fn is_level(word: &str) -> bool {
    LOG_LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word))
}

fn is_target(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '-'))
}
