use std::fmt;
use std::str::FromStr;

/// Where a ledger of slots is: `memory:`, or `redis://user:password@host:port/database`.
///
/// ```
/// use tidegate::ledger::LedgerUrl;
///
/// let url: LedgerUrl = "redis://:secret@cache.example:6379/0?namespace=evals".parse()?;
/// assert_eq!(url.to_string(), "redis://:***@cache.example:6379/0");
/// assert!("rediss://cache.example".parse::<LedgerUrl>().is_err());
/// # Ok::<(), tidegate::ledger::NotALedgerUrl>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub enum LedgerUrl {
    /// The memory of this process.
    Memory,
    /// A Redis or a Valkey. The text may hold a password; showing the address does not show it.
    Redis(String),
}

/// A text that names no ledger.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotALedgerUrl {
    /// There is nothing.
    #[error("the ledger's address is empty: give memory: or redis://host:port/database")]
    Empty,
    /// The address has another scheme.
    #[error("{0}: is no ledger of slots: give memory: or redis://host:port/database")]
    OtherScheme(String),
    /// There is no TLS.
    #[error(
        "rediss: is not spoken, there is no TLS to Redis here: give redis://host:port/database \
         of a server on a network that you trust, or of a tunnel to it"
    )]
    Tls,
}

// === impl LedgerUrl ===

impl FromStr for LedgerUrl {
    type Err = NotALedgerUrl;

    fn from_str(given: &str) -> Result<Self, NotALedgerUrl> {
        let given = given.trim();
        if given == "memory" {
            return Ok(Self::Memory);
        }
        match given.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("redis" | "valkey", rest)) if rest.starts_with("//") => {
                Ok(Self::Redis(format!("redis:{rest}")))
            }
            Some(("rediss" | "valkeys", _)) => Err(NotALedgerUrl::Tls),
            // A password without a scheme before it must not be taken for one.
            Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_lowercase() || c == '+') => {
                Err(NotALedgerUrl::OtherScheme(scheme.to_owned()))
            }
            _ if given.is_empty() => Err(NotALedgerUrl::Empty),
            _ => Err(NotALedgerUrl::OtherScheme("what was given".to_owned())),
        }
    }
}

impl fmt::Display for LedgerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Redis(url) => f.write_str(&without_secrets(url)),
        }
    }
}

impl fmt::Debug for LedgerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LedgerUrl({self})")
    }
}

/// The address without its password and without its parameters.
fn without_secrets(url: &str) -> String {
    let rest = url.strip_prefix("redis://").unwrap_or(url);
    let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    if parameters.contains('@') {
        // The `?` may be one of a password: nobody can tell where that ends.
        return "redis://***".to_owned();
    }
    // A password may hold an `@` that was not escaped, a host can't.
    let Some((user, place)) = address.rsplit_once('@') else {
        return format!("redis://{address}");
    };
    let (name, stars) = user.split_once(':').map_or((user, ""), |(name, _)| (name, ":***"));
    format!("redis://{name}{stars}@{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (given, shown) in [
            ("redis://:secret@h:6379/0", "redis://:***@h:6379/0"),
            ("valkey://u:secret@h", "redis://u:***@h"),
            ("redis://:a@secret@h", "redis://:***@h"),
            ("redis://:a/secret@h", "redis://:***@h"),
            ("redis://:secret?b@h", "redis://***"),
            ("redis://h:6379/1?namespace=secret", "redis://h:6379/1"),
        ] {
            let url: LedgerUrl = given.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?}").contains("secret"));
        }
    }

    #[test]
    fn what_is_no_ledger_is_named_without_what_follows() {
        for given in
            ["postgres://u:secret@h", "s3cret:secret@h", "redis:secret", "/secret", ":secret"]
        {
            let error = given.parse::<LedgerUrl>().unwrap_err().to_string();
            assert!(error.contains("redis://") && !error.contains("cret@"), "{error}");
            assert!(!error.contains("secret") && !error.contains("s3cret"), "{error}");
        }
        assert_eq!(" ".parse::<LedgerUrl>(), Err(NotALedgerUrl::Empty));
        assert_eq!("rediss://h".parse::<LedgerUrl>(), Err(NotALedgerUrl::Tls));
        assert_eq!("memory:".parse::<LedgerUrl>(), Ok(LedgerUrl::Memory));
    }
}
