use super::tls_flags::TlsFlags;
use crate::terminal::shell_path;
use clap::Args;
use std::fmt;
use std::path::PathBuf;
use tidegate::frame::{SenderToken, SenderTokenError};
use tidegate_sim::shell::word;

/// Environment variable with the token of a command.
pub const TOKEN_VARIABLE: &str = "TIDEGATE_TOKEN";

/// Admin address of a node with the default settings.
const DEFAULT: &str = "127.0.0.1:8001";

/// Address of the admin port that a command asks, and the token that it shows.
#[derive(Clone, Debug, Args)]
pub struct AdminFlag {
    /// Admin address of the node; https://HOST:PORT, or HOST:PORT with --ca or --cert, if it has TLS
    #[arg(long = "admin", value_name = "ADDR", env = "TIDEGATE_LISTEN_ADMIN_ADDRESS")]
    #[arg(default_value = DEFAULT, value_parser = node_address)]
    pub address: String,
    /// Token of an operator, or of a client with the address of the data port; other users see arguments, so
    /// prefer the variable
    #[arg(long, value_name = "TOKEN", env = TOKEN_VARIABLE, hide_env_values = true)]
    pub token: Option<Token>,
    #[command(flatten)]
    pub tls: TlsFlags,
}

/// A token that is never printed.
#[derive(Clone)]
pub struct Token(String);

/// An address with the scheme of HTTP, or without one.
fn node_address(text: &str) -> Result<String, String> {
    match text.split_once("://") {
        Some((scheme, _)) if !["http", "https"].contains(&scheme) => {
            Err(format!("{scheme}:// is unknown: expected http:// or https://, or HOST:PORT alone"))
        }
        _ => Ok(text.to_owned()),
    }
}

// === impl AdminFlag ===

impl AdminFlag {
    /// An address of a command without these flags, with the token and the TLS files of the environment.
    pub fn of(address: &str) -> Self {
        let token = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        let tls = TlsFlags::of_environment();
        Self { address: address.to_owned(), token: token.map(Token), tls }
    }

    /// Flags with which another command asks the same node, with a space before each. The token is not among them.
    pub fn advice(&self) -> String {
        let address = (self.address != DEFAULT).then(|| word(&self.address));
        let file = |path: &Option<PathBuf>| path.as_ref().map(|path| shell_path(path));
        let TlsFlags { ca, cert, cert_key } = &self.tls;
        let flags = [
            ("--admin", address),
            ("--ca", file(ca)),
            ("--cert", file(cert)),
            ("--cert-key", file(cert_key)),
        ];
        let given = flags.into_iter().filter_map(|(flag, value)| Some((flag, value?)));
        given.map(|(flag, value)| format!(" {flag} {value}")).collect()
    }
}

// === impl Token ===

impl Token {
    /// The token itself, for a header alone.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The token for the hello of a sender; `None` for the empty text of an unset variable.
    pub fn of_sender(&self) -> Result<Option<SenderToken>, SenderTokenError> {
        if self.0.is_empty() { Ok(None) } else { self.0.parse().map(Some) }
    }
}

impl From<&str> for Token {
    fn from(text: &str) -> Self {
        Self(text.trim().to_owned())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
