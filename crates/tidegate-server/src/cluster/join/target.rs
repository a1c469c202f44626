use crate::cluster::trust::JoinToken;
use std::fmt;
use std::str::FromStr;

/// Token and manager of a node that joins, `TOKEN@HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinTarget {
    /// The token.
    pub token: JoinToken,
    /// Host of the manager, without brackets.
    pub host: String,
    /// Its port for workers.
    pub port: u16,
}

/// A text that is no token and manager. It does not have the text in it, which may be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected TOKEN@HOST:PORT, as `tidegate cluster init` and `tidegate cluster token` print it"
)]
pub struct JoinTargetError;

// === impl JoinTarget ===

impl JoinTarget {
    /// Address of the manager, `HOST:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        host_and_port(&self.host, self.port)
    }
}

/// `HOST:PORT`, with brackets around an IPv6 address.
pub fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

impl fmt::Display for JoinTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.token, self.address())
    }
}

impl FromStr for JoinTarget {
    type Err = JoinTargetError;

    fn from_str(text: &str) -> Result<Self, JoinTargetError> {
        let (token, address) = text.split_once('@').ok_or(JoinTargetError)?;
        let (host, port) = address.rsplit_once(':').ok_or(JoinTargetError)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bracketed.unwrap_or(host);
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"-._:".contains(&b);
        let is_host = !host.is_empty() && host.len() <= 253 && host.bytes().all(fits);
        if !is_host || (bracketed.is_none() && host.contains(':')) {
            return Err(JoinTargetError);
        }
        let port = port.parse().ok().filter(|port| *port > 0).ok_or(JoinTargetError)?;
        let token = token.parse().map_err(|()| JoinTargetError)?;
        Ok(Self { token, host: host.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_survives_its_text_and_an_error_has_no_token() {
        let token = JoinToken::new([7; 32]).unwrap();
        for address in ["10.0.0.1:8002", "manager.example:1", "[::1]:8002"] {
            let text = format!("{token}@{address}");
            let target: JoinTarget = text.parse().unwrap();
            assert_eq!((target.to_string(), target.token.clone()), (text, token.clone()));
            assert!(!format!("{target:?}").contains(&token.to_string()));
        }
        let short = &token.to_string()[1..];
        for text in [
            "",
            "a@b:1",
            &format!("{short}@h:1"),
            &format!("{token}@h"),
            &format!("{token}@h:0"),
            &format!("{token}@::1:5"),
            &format!("{token}@:5"),
        ] {
            let error = text.parse::<JoinTarget>().unwrap_err().to_string();
            assert!(error.contains("TOKEN@HOST:PORT") && !error.contains(short), "{error}");
        }
    }
}
