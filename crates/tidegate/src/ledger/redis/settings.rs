use crate::ledger::{LedgerError, LedgerUrl};
use redis::{Client, IntoConnectionInfo as _, ProtocolVersion};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Longest duration of a call, connecting included.
const TIMEOUT_MS: u64 = 1_000;
const TIMEOUT_MS_RANGE: RangeInclusive<u64> = 10..=60_000;

const NAMESPACE: &str = "tidegate";
const NAMESPACE_BYTES_MAX: usize = 64;

/// Parsed address.
pub(super) struct Settings {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) timeout: Duration,
    /// The address without secrets, for messages.
    pub(super) shown: String,
}

// === impl Settings ===

impl Settings {
    /// Parses `redis://user:password@host:port/database?namespace=…&timeout_ms=…`.
    pub(super) fn parse(url: &str) -> Result<Self, LedgerError> {
        let url: LedgerUrl = url.parse().map_err(|error: crate::ledger::NotALedgerUrl| {
            LedgerError::Unusable(error.to_string())
        })?;
        let shown = url.to_string();
        let unusable = |what: &str| LedgerError::Unusable(format!("{shown}: {what}"));
        let LedgerUrl::Redis(url) = &url else { return Err(unusable("it is not a Redis")) };
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut namespace, mut timeout_ms) = (NAMESPACE, TIMEOUT_MS);
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("namespace", value)) if is_namespace(value) => namespace = value,
                Some(("namespace", _)) => {
                    return Err(unusable("namespace= has 1 … 64 of letters, digits and . _ -"));
                }
                Some(("timeout_ms", value)) => {
                    let given = value.parse().ok().filter(|ms| TIMEOUT_MS_RANGE.contains(ms));
                    timeout_ms = given.ok_or_else(|| unusable("timeout_ms= is 10 … 60000"))?;
                }
                // Not shown: what follows an unescaped `?` may be the rest of a password.
                _ => return Err(unusable("only namespace= and timeout_ms= may follow the `?`")),
            }
        }
        // What the parser says of an address may show a part of it.
        let info = address.into_connection_info().map_err(|_| {
            unusable("it can't be read: give redis://user:password@host:port/database")
        })?;
        let redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(redis))
            .map_err(|_| unusable("there can't be a client for it"))?;
        let timeout = Duration::from_millis(timeout_ms);
        Ok(Self { client, namespace: namespace.to_owned(), timeout, shown })
    }

    /// One of our keys. What is in braces decides where a cluster keeps a key: all of ours are in one place.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{{{}:slots}}:{name}", self.namespace)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (namespace {})", self.shown, self.namespace)
    }
}

fn is_namespace(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=NAMESPACE_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_it_all() {
        let all = "redis://:secret@127.0.0.1:7777/3?namespace=evals-2&timeout_ms=250";
        let settings = Settings::parse(all).unwrap();
        assert_eq!(settings.key("fence"), "{evals-2:slots}:fence");
        assert_eq!(settings.timeout, Duration::from_millis(250));
        let info = settings.client.get_connection_info();
        assert_eq!(info.redis_settings().db(), 3);
        assert_eq!(info.redis_settings().password(), Some("secret"));
        assert!(!format!("{settings:?}").contains("secret"));
        assert_eq!(Settings::parse("redis://h").unwrap().key("x"), "{tidegate:slots}:x");
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (parameters, word) in [
            ("namespace=", "namespace="),
            ("namespace=a{b}", "namespace="),
            ("timeout_ms=5", "timeout_ms="),
            ("timeout_ms=secret", "timeout_ms="),
            ("pool=secret", "only namespace="),
            ("secret", "only namespace="),
        ] {
            let url = format!("redis://:secret@h:1/0?{parameters}");
            let error = Settings::parse(&url).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("secret"), "{error}");
        }
        for bad in ["redis://:secret@h:port", "redis://:secret@h/first", "redis://"] {
            let error = Settings::parse(bad).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
