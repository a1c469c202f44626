use clap::Args;
use std::fmt;

/// Environment variable with the token of a command.
const TOKEN_VARIABLE: &str = "TIDEGATE_TOKEN";

/// Address of the admin port that a command asks, and the token that it shows.
#[derive(Debug, Args)]
pub struct AdminFlag {
    /// Admin address of the node
    #[arg(long = "admin", value_name = "ADDR", env = "TIDEGATE_LISTEN_ADMIN_ADDRESS")]
    #[arg(default_value = "127.0.0.1:8001")]
    pub address: String,
    /// Token of an operator, or of a client with the address of the data port; other users see arguments, so
    /// prefer the variable
    #[arg(long, value_name = "TOKEN", env = TOKEN_VARIABLE, hide_env_values = true)]
    pub token: Option<Token>,
}

/// A token that is never printed.
#[derive(Clone)]
pub struct Token(String);

// === impl AdminFlag ===

impl AdminFlag {
    /// An address of a command without these flags, with the token of the environment.
    pub fn of(address: &str) -> Self {
        let token = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        Self { address: address.to_owned(), token: token.map(Token) }
    }
}

// === impl Token ===

impl Token {
    /// The token itself, for a header alone.
    pub fn expose(&self) -> &str {
        &self.0
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
