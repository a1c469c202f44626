use super::field::Kind;
use super::items::{Item, Items};
use super::mistakes::{Ledger, Mistake, quoted};
use super::value::Raw;
use super::{choice, schema};
use std::collections::BTreeMap;
use std::fmt;
use tidegate::admission::MessagePriority;

pub(super) const NAME_SHAPE: &str = "1 … 64 letters, digits, dots, dashes and underscores";
pub(super) const TOKEN_SHAPE: &str = "16 … 512 visible ASCII characters without spaces";

/// Who may claim which priority.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimsConfig {
    /// What a request without a token may do. Default up to High.
    pub anonymous: Anonymous,
    /// Who is known by a token, 0 … 10,000. Default nobody.
    pub clients: Vec<Client>,
}

/// What a request without a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// Nothing: it is turned away.
    Refuse,
    /// Claim this priority, or one below it; never Critical.
    UpTo(MessagePriority),
}

/// Somebody who is known by a token.
#[derive(Clone, PartialEq)]
pub struct Client {
    /// Its name in logs and metrics, unique; 1 … 64 letters, digits, `.`, `-`, `_`.
    pub name: String,
    /// The bearer token, unique; 16 … 512 visible ASCII characters. Never printed.
    pub token: String,
    /// The highest priority it may claim; never Critical. Default High.
    pub max_priority: MessagePriority,
    /// How much of each admission limit its requests may hold together, 0 … 1 and at least one place. Default all.
    pub share: Option<f64>,
}

// === impl Client ===

/// Without the token.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("name", &self.name)
            .field("token", &"***")
            .field("max_priority", &self.max_priority)
            .field("share", &self.share)
            .finish()
    }
}

impl Client {
    fn from_item(item: &Item, env: &BTreeMap<String, String>, ledger: &mut Ledger) -> Option<Self> {
        let name = item.required("name", ledger);
        let token = token(item, env, ledger);
        let max_priority = item.text("max_priority").unwrap_or("high");
        let max_priority = choice::from_name(max_priority)?;
        let share = item.get("share");
        Some(Self { name: name?.to_owned(), token: token?, max_priority, share })
    }
}

/// The token that stands in the entry or in the variable it names.
fn token(item: &Item, env: &BTreeMap<String, String>, ledger: &mut Ledger) -> Option<String> {
    if item.is_broken("token") || item.is_broken("token_env") {
        return None;
    }
    match (item.text("token"), item.text("token_env")) {
        (Some(token), None) => Some(token.to_owned()),
        (None, Some(variable)) => token_from(item, variable, env, ledger),
        (both, _) => {
            let given = if both.is_some() { "token and token_env" } else { "neither" };
            ledger.add(Mistake::new(
                item.key("token"),
                item.origin(),
                given,
                format!("one of token ({TOKEN_SHAPE}) and token_env"),
            ));
            None
        }
    }
}

fn token_from(
    item: &Item,
    variable: &str,
    env: &BTreeMap<String, String>,
    ledger: &mut Ledger,
) -> Option<String> {
    let kind = Kind::Secret { shape: TOKEN_SHAPE, check: is_token };
    let given = match env.get(variable) {
        None => format!("{}, which is not set", quoted(variable)),
        Some(token) => match kind.parse(&Raw::Untyped(token.clone())) {
            Ok(_) => return Some(token.trim().to_owned()),
            Err(unfit) => format!("{}, which has {}", quoted(variable), unfit.given),
        },
    };
    let allowed = format!("a variable that has {TOKEN_SHAPE}");
    ledger.add(Mistake::new(item.key("token_env"), item.origin_of("token_env"), given, allowed));
    None
}

/// The clients of the file, names and tokens unique.
pub(super) fn read(
    items: &Items,
    env: &BTreeMap<String, String>,
    ledger: &mut Ledger,
) -> Vec<Client> {
    let mut clients: Vec<Client> = Vec::new();
    let (mut names, mut tokens) = (BTreeMap::new(), BTreeMap::new());
    for item in items.of("client") {
        let Some(client) = Client::from_item(item, env, ledger) else { continue };
        if let Some(first) = names.insert(client.name.clone(), item.number()) {
            let allowed = format!("a name of its own: client[{first}] has this one");
            let origin = item.origin_of("name");
            ledger.add(Mistake::new(item.key("name"), origin, quoted(&client.name), allowed));
        }
        if let Some(first) = tokens.insert(client.token.clone(), item.number()) {
            let allowed = format!("a token of its own: client[{first}] has this one");
            ledger.add(Mistake::new(item.key("token"), item.origin(), "a token", allowed));
        }
        clients.push(client);
    }
    clients
}

/// The environment variables that entries take tokens from.
pub(super) fn token_variables(items: &Items) -> impl Iterator<Item = &str> {
    items.of("client").filter_map(|item| item.text("token_env"))
}

pub(super) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

pub(super) fn is_token(text: &str) -> bool {
    (16..=512).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

pub(super) fn is_variable(text: &str) -> bool {
    !text.is_empty() && !text.contains(['=', '\0']) && !schema::env_name_is_setting(text)
}
