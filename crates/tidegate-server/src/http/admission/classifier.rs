use super::tokens::{Shown, TokenFields, Tokens};
use super::{ClientShare, Unauthorized};
use crate::config::{Anonymous, CertificateName, Client, Config, NormalPath, RouteRule};
use crate::http::request::values;
use http::{HeaderMap, HeaderName, Request};
use tidegate::MessagePriority;
use tidegate::admission::{MessageKind, Urgency};
use tidegate::queue::FlowId;

static TIDEGATE_PRIORITY: HeaderName = HeaderName::from_static("tidegate-priority");
static PRIORITY: HeaderName = HeaderName::from_static("priority");

/// Decides a request's priority from its head: by route, else by what the client claims, and never more than
/// the client may claim.
#[derive(Debug)]
pub struct Classifier {
    routes: Vec<RouteRule>,
    anonymous: Anonymous,
    clients: Vec<Known>,
    tokens: Tokens<Holder>,
    has_operators: bool,
}

/// The holder of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// The client at this index.
    Client(usize),
    /// An operator. All have the same rights.
    Operator,
}

/// A client with its share.
#[derive(Debug)]
struct Known {
    client: Client,
    share: Option<ClientShare>,
    flow: Flow,
}

/// The flow of a request: the client that shares the upstreams fairly with others of the same priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The client; the same for all requests without a token.
    pub id: FlowId,
    /// The client's weight.
    pub weight: u32,
}

/// A request with its priority, its client's share and its flow.
#[derive(Clone, Copy, Debug)]
pub struct Classified<'a> {
    /// The client's name, if its token or certificate is known.
    pub client: Option<&'a str>,
    /// The flow.
    pub flow: Flow,
    /// The priority.
    pub priority: MessagePriority,
    /// The share of its client, if it has one.
    pub share: Option<&'a ClientShare>,
    /// The headers that have a token of this gateway, which is not for upstreams.
    pub tokens: TokenFields,
}

/// The priority that a request claims, and the most that it may claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The client's name, if its token or certificate is known.
    pub client: Option<&'a str>,
    /// True with the token of an operator, where no tokens were given out, and on the operators' port while no
    /// operator is configured.
    pub is_operator: bool,
    /// The highest priority that it may claim.
    pub most: MessagePriority,
    /// The priority that it claims, capped.
    pub priority: MessagePriority,
}

// === impl Claim ===

impl<'a> Claim<'a> {
    /// The owner of what the request submits: its client, or the empty name without a token. What operators submit
    /// without the token of a client belongs to operators alone.
    #[must_use]
    pub fn owner(&self) -> Option<&'a str> {
        self.client.or((!self.is_operator).then_some(""))
    }
}

// === impl Classifier ===

impl Classifier {
    /// A classifier with the rules of a configuration.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let known = |(number, client): (u64, &Client)| {
            let share = client.share;
            let share = share.map(|share| ClientShare::new(&client.name, share, &config.admission));
            let flow = Flow { id: FlowId(number), weight: client.weight };
            Known { client: client.clone(), share, flow }
        };
        let claims = &config.claims;
        let clients = claims.clients.iter().zip((0..).map(Holder::Client));
        let clients = clients.map(|(client, holder)| (client.token, &client.certificate, holder));
        let operators = claims.operators.iter();
        let operators = operators.map(|it| (it.token, &it.certificate, Holder::Operator));
        let holders: Vec<_> = clients.chain(operators).collect();
        let of_tokens = holders.iter().filter_map(|(token, _, holder)| Some(((*token)?, *holder)));
        let name_of = |name: &Option<CertificateName>| name.clone();
        let certified = holders.iter().filter_map(|(_, it, holder)| Some((name_of(it)?, *holder)));
        Self {
            tokens: Tokens::new(of_tokens).certified(certified),
            has_operators: !claims.operators.is_empty(),
            routes: config.routes.clone(),
            anonymous: config.claims.anonymous,
            // Flow 0 is that of requests without a token.
            clients: (1..).zip(&config.claims.clients).map(known).collect(),
        }
    }

    /// The priority at which this request asks to be admitted, and against which share.
    ///
    /// # Errors
    ///
    /// When the client must show a token and does not.
    pub fn classified<B>(&self, request: &Request<B>) -> Result<Classified<'_>, Unauthorized> {
        let (known, shown) = self.known(request)?;
        let most = self.most_urgent(known, shown)?;
        let client = known.map(|known| &*known.client.name);
        let share = known.and_then(|known| known.share.as_ref());
        let flow = known.map_or(Flow { id: FlowId::default(), weight: 1 }, |known| known.flow);
        let priority = self.asked(request).capped_at(most);
        Ok(Classified { client, priority, share, flow, tokens: shown.fields })
    }

    /// The share of a client, if it has one.
    #[must_use]
    pub fn share_of(&self, client: &str) -> Option<&ClientShare> {
        self.shares().find(|share| share.client() == client)
    }

    /// The shares of all clients that have one.
    pub fn shares(&self) -> impl Iterator<Item = &ClientShare> {
        self.clients.iter().filter_map(|known| known.share.as_ref())
    }

    /// The claim of a request.
    ///
    /// # Errors
    ///
    /// When the client must show a token and does not.
    pub fn claim<B>(&self, request: &Request<B>) -> Result<Claim<'_>, Unauthorized> {
        let (known, shown) = self.known(request)?;
        let most = self.most_urgent(known, shown)?;
        let client = known.map(|known| &*known.client.name);
        let is_operator = shown.holder == Some(Holder::Operator) || self.tokens.is_empty();
        Ok(Claim { client, is_operator, most, priority: self.asked(request).capped_at(most) })
    }

    /// The same for a request on a port that is the operators' alone. While no operator is configured a token is
    /// not needed there, and tells no more than who asks.
    ///
    /// # Errors
    ///
    /// When operators are configured, and the token is not that of one.
    pub fn operators_claim<B>(&self, request: &Request<B>) -> Result<Claim<'_>, Unauthorized> {
        self.require_operator(request)?;
        let known = self.known(request).ok().and_then(|(known, _)| known);
        let (client, most) = (known.map(|known| &*known.client.name), MessagePriority::High);
        let priority = self.asked(request).capped_at(most);
        Ok(Claim { client, is_operator: true, most, priority })
    }

    fn asked<B>(&self, request: &Request<B>) -> MessagePriority {
        let by_route = self.rules(request).find_map(|rule| rule.priority);
        by_route
            .or_else(|| claimed(request.headers()))
            .unwrap_or(MessageKind::ProxiedRequest.class().priority())
    }

    /// The model that the routes give this request.
    pub fn model<B>(&self, request: &Request<B>) -> Option<&str> {
        self.rules(request).find_map(|rule| rule.model.as_deref())
    }

    /// The rules that a request matches.
    fn rules<B>(&self, request: &Request<B>) -> impl Iterator<Item = &RouteRule> {
        let path = if self.routes.is_empty() { "/" } else { request.uri().path() };
        let path = NormalPath::of(path);
        let (method, headers) = (request.method(), request.headers());
        self.routes.iter().filter(move |rule| rule.matches(method, &path, headers))
    }

    /// Lets pass who is known by a token or a certificate, and everyone where nobody is.
    ///
    /// # Errors
    ///
    /// When the request shows neither, or an unknown token, or both of different clients.
    pub fn require_known<B>(&self, request: &Request<B>) -> Result<(), Unauthorized> {
        match self.known(request)? {
            (None, shown) if shown.holder.is_none() && !self.tokens.is_empty() => {
                Err(shown.without_holder())
            }
            _ => Ok(()),
        }
    }

    /// Returns true if operators are known by tokens or certificates of their own.
    #[must_use]
    pub fn has_operators(&self) -> bool {
        self.has_operators
    }

    /// Lets pass who shows an operator's token or certificate, and everyone where no operator is configured.
    ///
    /// # Errors
    ///
    /// When token and certificate are missing, unknown, or a client's.
    pub fn require_operator<B>(&self, request: &Request<B>) -> Result<(), Unauthorized> {
        if !self.has_operators {
            return Ok(());
        }
        let shown = self.tokens.shown(request)?;
        match shown.holder {
            Some(Holder::Operator) => Ok(()),
            Some(Holder::Client(_)) => Err(Unauthorized::NotOperator),
            None => Err(shown.without_holder()),
        }
    }

    /// The tenants whose usage a request may read; `None` for all. With `guarded`, a token is needed.
    ///
    /// # Errors
    ///
    /// When a token is needed and missing, or unknown.
    pub fn usage_client<B>(
        &self,
        request: &Request<B>,
        guarded: bool,
    ) -> Result<Option<&Client>, Unauthorized> {
        let (known, shown) = self.known(request)?;
        let needs_token = self.has_operators || (guarded && !self.tokens.is_empty());
        match (known, shown.holder) {
            (Some(known), _) => Ok(Some(&known.client)),
            (None, None) if needs_token => Err(shown.without_holder()),
            (None, _) => Ok(None),
        }
    }

    fn most_urgent(
        &self,
        known: Option<&Known>,
        shown: Shown<Holder>,
    ) -> Result<MessagePriority, Unauthorized> {
        if shown.holder == Some(Holder::Operator) {
            return Ok(MessagePriority::High);
        }
        match (known, self.anonymous) {
            (Some(known), _) => Ok(known.client.max_priority),
            (None, Anonymous::UpTo(priority)) => Ok(priority),
            (None, Anonymous::Refuse) => Err(shown.without_holder()),
        }
    }

    fn known<B>(
        &self,
        request: &Request<B>,
    ) -> Result<(Option<&Known>, Shown<Holder>), Unauthorized> {
        let shown = self.tokens.shown(request)?;
        let known = match shown.holder {
            Some(Holder::Client(index)) => self.clients.get(index),
            Some(Holder::Operator) | None => None,
        };
        Ok((known, shown))
    }
}

/// The priority that the client claims: `tidegate-priority`, else RFC 9218's. A value that can't be read claims
/// nothing.
fn claimed(headers: &HeaderMap) -> Option<MessagePriority> {
    let text = |name: &HeaderName| values(headers, name).next()?.to_str().ok();
    text(&TIDEGATE_PRIORITY)
        .and_then(MessagePriority::from_name)
        .or_else(|| text(&PRIORITY).and_then(Urgency::parse).map(Urgency::priority))
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessagePriority::{High, Low, Normal};

    fn classifier(toml: &str) -> Classifier {
        Classifier::new(&Config::from_toml(toml).unwrap())
    }

    fn priority(
        keeper: &Classifier,
        request: &Request<()>,
    ) -> Result<MessagePriority, Unauthorized> {
        keeper.classified(request).map(|classified| classified.priority)
    }

    fn head(path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = http::Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn route_then_own_header_then_rfc_9218_then_normal() {
        let keeper = classifier("[[route]]\npath_prefix = \"/batch\"\npriority = \"low\"\n");
        let of =
            |path: &str, headers: &[(&str, &str)]| priority(&keeper, &head(path, headers)).unwrap();
        assert_eq!(of("/batch/1", &[("tidegate-priority", "high")]), Low);
        assert_eq!(of("/", &[("tidegate-priority", "low"), ("priority", "u=0")]), Low);
        assert_eq!(of("/", &[("priority", "u=0, i")]), High);
        assert_eq!(of("/", &[("tidegate-priority", "??"), ("priority", "u=6")]), Low);
        assert_eq!(of("/", &[]), Normal);
    }

    #[test]
    fn a_route_can_name_a_model_and_leave_the_priority_to_others() {
        let keeper = classifier(
            "[[route]]\npath_prefix = \"/small\"\nmodel = \"s\"\n\
             [[route]]\npath_prefix = \"/\"\npriority = \"low\"\n",
        );
        let request = head("/small/v1", &[]);
        assert_eq!((keeper.model(&request), priority(&keeper, &request)), (Some("s"), Ok(Low)));
        assert_eq!(keeper.model(&head("/other", &[])), None);
    }

    #[test]
    fn critical_is_not_for_clients() {
        let keeper = classifier("");
        let claimed = priority(&keeper, &head("/", &[("tidegate-priority", "critical")]));
        assert_eq!(claimed, Ok(High));
    }

    const CLIENTS: &str = "[claims]\nanonymous = \"low\"\n\
        [[client]]\nname = \"dash\"\ntoken = \"0123456789abcdef\"\nmax_priority = \"normal\"\n";

    #[test]
    fn a_token_says_how_much_may_be_claimed() {
        let keeper = classifier(CLIENTS);
        let high = ("tidegate-priority", "high");
        let of = |headers: &[(&str, &str)]| priority(&keeper, &head("/", headers));
        assert_eq!(of(&[high]), Ok(Low));
        assert_eq!(of(&[high, ("tidegate-token", "0123456789abcdef")]), Ok(Normal));
        assert_eq!(of(&[high, ("tidegate-token", "0123456789abcdeX")]), Err(Unauthorized::Unknown));
    }

    #[test]
    fn only_who_has_a_share_is_held_to_one() {
        let toml = format!(
            "{CLIENTS}share = 0.5\n[[client]]\nname = \"free\"\ntoken = \"{}\"\n",
            "f".repeat(16)
        );
        let keeper = classifier(&toml);
        let share = |token: &str| {
            let request = head("/", &[("tidegate-token", token)]);
            keeper.classified(&request).unwrap().share.map(ClientShare::client)
        };
        assert_eq!(share("0123456789abcdef"), Some("dash"));
        assert_eq!(share("ffffffffffffffff"), None);
        assert!(keeper.classified(&head("/", &[])).unwrap().share.is_none());
        assert!(keeper.share_of("dash").is_some() && keeper.share_of("free").is_none());
        assert_eq!(keeper.shares().count(), 1);
    }

    #[test]
    fn anonymous_clients_can_be_refused() {
        let keeper = classifier(&CLIENTS.replace("anonymous = \"low\"", "anonymous = \"refuse\""));
        assert_eq!(priority(&keeper, &head("/", &[])), Err(Unauthorized::Missing));
        assert_eq!(keeper.require_known(&head("/", &[])), Err(Unauthorized::Missing));
        let known = head("/", &[("tidegate-token", "0123456789abcdef")]);
        assert_eq!(keeper.require_known(&known), Ok(()));
    }
}
