use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a store is: a folder, or `postgres://user:password@host/database`.
///
/// ```
/// use tidegate::store::StoreUrl;
///
/// let url: StoreUrl = "postgres://meter:secret@db.example/usage".parse()?;
/// assert_eq!(url.to_string(), "postgres://meter:***@db.example/usage");
/// assert!("mysql://db.example/usage".parse::<StoreUrl>().is_err());
/// # Ok::<(), tidegate::store::NotAStoreUrl>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A folder of this machine.
    Folder(PathBuf),
    /// A PostgreSQL database. The text may hold a password; showing the address does not show it.
    Postgres(String),
}

/// A text that names no store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAStoreUrl {
    /// There is nothing.
    #[error("the store's address is empty: give a folder, or postgres://user@host/database")]
    Empty,
    /// The address has another scheme.
    #[error("{0}:// is no store: give a folder, or postgres://user@host/database")]
    OtherScheme(String),
}

// === impl StoreUrl ===

impl FromStr for StoreUrl {
    type Err = NotAStoreUrl;

    fn from_str(given: &str) -> Result<Self, NotAStoreUrl> {
        let given = given.trim();
        match given.split_once("://") {
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(given.to_owned())),
            Some((scheme, _)) => Err(NotAStoreUrl::OtherScheme(scheme.to_owned())),
            None if given.is_empty() => Err(NotAStoreUrl::Empty),
            None => Ok(Self::Folder(PathBuf::from(given))),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Postgres(url) => f.write_str(&without_secrets(url)),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

/// The address without its password and without its parameters, one of which may be a password too.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    if parameters.contains('@') {
        // Either a parameter holds an `@`, or the `?` is one of a password: nobody can tell where that ends.
        return format!("{scheme}://***");
    }
    // A password may hold an `@` that was not escaped, a host can't.
    let Some((user, place)) = address.rsplit_once('@') else {
        return format!("{scheme}://{address}");
    };
    let (name, stars) = user.split_once(':').map_or((user, ""), |(name, _)| (name, ":***"));
    format!("{scheme}://{name}{stars}@{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (given, shown) in [
            ("postgres://u:secret@h:5432/d", "postgres://u:***@h:5432/d"),
            ("postgres://u:a@secret@h/d", "postgres://u:***@h/d"),
            ("postgres://u:a/secret@h/d", "postgres://u:***@h/d"),
            ("postgres://u:a:secret@h/d", "postgres://u:***@h/d"),
            ("postgres://u:secret?b@h/d", "postgres://***"),
            ("postgres://u:a@secret?b@h/d", "postgres://***"),
            ("postgres://u@h/d?password=secret", "postgres://u@h/d"),
            ("postgres://u@h/d?password=a@secret", "postgres://***"),
            ("postgresql:///d?user=u&password=secret@x", "postgresql://***"),
            ("postgres://h/d", "postgres://h/d"),
        ] {
            let url: StoreUrl = given.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?}").contains("secret"));
        }
    }

    #[test]
    fn other_schemes_are_named_without_what_follows() {
        let error = "mysql://u:secret@h/d".parse::<StoreUrl>().unwrap_err().to_string();
        assert!(error.contains("mysql://") && error.contains("postgres://"), "{error}");
        assert!(!error.contains("secret"));
        assert_eq!(" ".parse::<StoreUrl>(), Err(NotAStoreUrl::Empty));
    }

    #[test]
    fn a_path_is_a_folder() {
        for path in ["data", "./data", "/var/lib/tidegate", r"C:\data"] {
            assert_eq!(path.parse(), Ok(StoreUrl::Folder(PathBuf::from(path))));
        }
    }
}
