use crate::config::errors::{ErrorList, quoted};
use crate::config::schema::record;
use crate::config::value::Raw;
use crate::config::value::shape::{NAME, TOKEN, VARIABLE};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tidegate::admission::MessagePriority;

record! {
    /// A client that is known by a token.
    #[derive(Clone, PartialEq)]
    pub struct Client from ClientSettings {
        /// Unique name of the client in logs and metrics.
        name: String = text(NAME).required().example("batch") => name;
        /// The token itself.
        token: Option<String> = text(TOKEN).unset();
        /// Environment variable with the token, which keeps it out of this file.
        token_env: Option<String> = text(VARIABLE).unset().example("BATCH_TOKEN");
        /// The highest priority that the client may claim.
        max_priority: MessagePriority = word().or(MessagePriority::High).example("low")
            => max_priority;
        /// The part of each admission limit that its requests may hold together, at least one slot.
        share: Option<f64> = ratio().unset().example("0.5") => share;
        /// Its part of busy upstreams in relation to other clients of the same priority.
        weight: u32 = whole(1, 1_000, "parts").or(1) => weight;
    }
    derived |_settings| {
        /// Bearer token, unique; 16 … 512 visible ASCII characters. Never printed.
        token: String = String::new();
    }
}

/// Omits the token.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("name", &self.name)
            .field("max_priority", &self.max_priority)
            .field("share", &self.share)
            .finish_non_exhaustive()
    }
}

/// The clients of the list, with unique names and tokens. A reserved variable can't have a token.
pub fn clients(
    list: &[ClientSettings],
    env: &BTreeMap<String, String>,
    reserved: &BTreeSet<String>,
    errors: &mut ErrorList,
) -> Vec<Client> {
    let mut clients: Vec<Client> = Vec::new();
    let (mut names, mut tokens) = (BTreeMap::new(), BTreeMap::new());
    for (entry, number) in list.iter().zip(1..) {
        let name = entry.name.required(errors);
        let token = entry.resolve_token(env, reserved, errors);
        let (Some(name), Some(token)) = (name, token) else { continue };
        if let Some(first) = names.insert(name.clone(), number) {
            let allowed = format!("a name of its own: client[{first}] has this one");
            errors.push(entry.name.error(quoted(&name), allowed));
        }
        if let Some(first) = tokens.insert(token.clone(), number) {
            let allowed = format!("a token of its own: client[{first}] has this one");
            errors.push(entry.token.error("a token", allowed));
        }
        clients.push(Client { token, ..entry.config() });
    }
    clients
}

impl ClientSettings {
    /// The token of the entry, or of the variable that it names.
    fn resolve_token(
        &self,
        env: &BTreeMap<String, String>,
        reserved: &BTreeSet<String>,
        errors: &mut ErrorList,
    ) -> Option<String> {
        if !self.token.state.is_sound || !self.token_env.state.is_sound {
            return None;
        }
        let variable = match (self.token.get(), self.token_env.get()) {
            (Some(token), None) => return Some(token),
            (None, Some(variable)) => variable,
            (token, _) => {
                let given = if token.is_some() { "token and token_env" } else { "neither" };
                let allowed = format!("one of token ({}) and token_env", TOKEN.allowed);
                errors.push(self.token.error(given, allowed));
                return None;
            }
        };
        let problem = match env.get(&variable) {
            _ if reserved.contains(&variable) => "which sets the configuration".to_owned(),
            None => "which is not set".to_owned(),
            Some(token) if (TOKEN.check)(token.trim()) => return Some(token.trim().to_owned()),
            Some(token) => format!("which has {}", Raw::Untyped(token).concealed()),
        };
        let given = format!("{}, {problem}", quoted(&variable));
        let allowed = format!("a variable that has {}", TOKEN.allowed);
        errors.push(self.token_env.error(given, allowed));
        None
    }
}
