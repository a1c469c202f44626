use super::tls_flags::TlsFlags;
use clap::Args;
use std::fmt;
use tidegate::frame::{SenderToken, SenderTokenError};

/// Environment variable with the token of a command.
pub const TOKEN_VARIABLE: &str = "TIDEGATE_TOKEN";

/// Address of the admin port that a command asks, and the token that it shows.
#[derive(Clone, Debug, Args)]
pub struct AdminFlag {
    /// Admin address of the node; https://HOST:PORT, or HOST:PORT with --ca or --cert, if it has TLS
    #[arg(long = "admin", value_name = "ADDR", env = "TIDEGATE_LISTEN_ADMIN_ADDRESS")]
    #[arg(default_value = "127.0.0.1:8001", value_parser = node_address)]
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
