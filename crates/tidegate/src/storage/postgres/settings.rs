use super::schema::Schema;
use super::tls::TlsMode;
use crate::storage::{StoreError, StoreUrl};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

/// Longest duration of one attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that is silent for so long is asked whether it lives; 10 + 3 × 5 s later it is given up.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;

/// Longest time that sent data may stay unacknowledged by the other machine.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(15);

/// Parsed address.
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) tls: TlsMode,
    pub(crate) schema: Schema,
    /// The address without secrets, for messages.
    pub(crate) shown: String,
}

/// Parameters of an address that the driver does not know, and the address without them.
#[derive(Default)]
struct OwnParameters {
    rest: String,
    sslmode: Option<String>,
    sslrootcert: Option<PathBuf>,
    schema: Option<String>,
}

// === impl Settings ===

impl Settings {
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let shown = StoreUrl::Postgres(url.to_owned()).to_string();
        let unusable = |what: String| StoreError::Unusable(format!("{shown}: {what}"));
        let own = OwnParameters::take(url);
        let mut config: Config = own.rest.parse().map_err(|error: tokio_postgres::Error| {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            unusable(format!("{error}{}", source.unwrap_or_default()))
        })?;
        let tls = match (own.sslmode.as_deref().unwrap_or("prefer"), own.sslrootcert) {
            ("disable", _) => TlsMode::Off,
            ("allow" | "prefer", None) => TlsMode::Unchecked,
            ("allow" | "prefer" | "require" | "verify-ca" | "verify-full", root) => {
                TlsMode::Checked { root }
            }
            (other, _) => {
                let known = "disable, prefer, require or verify-full";
                return Err(unusable(format!("sslmode={other:?} is not known: give {known}")));
            }
        };
        config.ssl_mode(match (&tls, own.sslmode.as_deref()) {
            (TlsMode::Off, _) => SslMode::Disable,
            (_, None | Some("allow" | "prefer")) => SslMode::Prefer,
            _ => SslMode::Require,
        });
        add_limits(&mut config);
        let schema = Schema::named(own.schema.as_deref().unwrap_or("tidegate"))
            .ok_or_else(|| unusable("schema= must be a name of letters, digits and _".into()))?;
        Ok(Self { config, tls, schema, shown })
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// A peer that is gone must be noticed: nothing waits for ever.
fn add_limits(config: &mut Config) {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_application_name().is_none() {
        config.application_name("tidegate");
    }
    config
        .keepalives(true)
        .keepalives_idle(KEEPALIVE_IDLE)
        .keepalives_interval(KEEPALIVE_INTERVAL)
        .keepalives_retries(KEEPALIVE_RETRIES)
        .tcp_user_timeout(UNACKNOWLEDGED_MAX);
}

// === impl OwnParameters ===

impl OwnParameters {
    fn take(url: &str) -> Self {
        let Some((address, query)) = url.split_once('?') else {
            return Self { rest: url.to_owned(), ..Self::default() };
        };
        let mut own = Self::default();
        let mut others = Vec::new();
        for parameter in query.split('&') {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => own.sslmode = Some(decoded(value)),
                Some(("sslrootcert", value)) => own.sslrootcert = Some(decoded(value).into()),
                Some(("schema", value)) => own.schema = Some(decoded(value)),
                _ => others.push(parameter),
            }
        }
        let mark = if others.is_empty() { "" } else { "?" };
        own.rest = format!("{address}{mark}{}", others.join("&"));
        own
    }
}

/// A parameter's value with `%2F` and the like as what they stand for.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *byte == b'%');
        let hex = hex.and_then(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        bytes.push(hex.unwrap_or(*byte));
        rest = if hex.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_parameters_are_taken_out() {
        let url =
            "postgres://u:p@h/d?sslmode=require&application_name=a&sslrootcert=%2Fca.pem&schema=x";
        let settings = Settings::parse(url).unwrap();
        assert_eq!(settings.config.get_application_name(), Some("a"));
        assert_eq!(settings.config.get_ssl_mode(), SslMode::Require);
        assert!(
            matches!(settings.tls, TlsMode::Checked { root: Some(path) } if path.ends_with("ca.pem"))
        );
        assert_eq!(settings.schema.name(), "x");
    }

    #[test]
    fn modes_mean_what_they_say() {
        for (mode, ssl, checked) in [
            ("", SslMode::Prefer, false),
            ("?sslmode=prefer", SslMode::Prefer, false),
            ("?sslmode=disable", SslMode::Disable, false),
            ("?sslmode=require", SslMode::Require, true),
            ("?sslmode=verify-full", SslMode::Require, true),
        ] {
            let settings = Settings::parse(&format!("postgres://h/d{mode}")).unwrap();
            assert_eq!(settings.config.get_ssl_mode(), ssl, "{mode}");
            assert_eq!(matches!(settings.tls, TlsMode::Checked { .. }), checked, "{mode}");
        }
    }

    #[test]
    fn wrong_addresses_are_unusable_and_keep_the_secret() {
        for wrong in [
            "postgres://u:secret@h/d?sslmode=maybe",
            "postgres://u:secret@h/d?passwrod=secret",
            "postgres://u:secret@h:port/d",
            "postgres://u:secret@h/d?schema=a;b",
        ] {
            let error = Settings::parse(wrong).unwrap_err();
            assert!(matches!(error, StoreError::Unusable(_)), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let settings = Settings::parse("postgres://u:secret@h/d").unwrap();
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
