use super::{ClientShare, Unauthorized};
use crate::config::{Anonymous, Client, Config, NormalPath, RouteRule};
use crate::http::request::values;
use http::{HeaderMap, HeaderName, Request};
use tidegate::MessagePriority;
use tidegate::admission::{MessageKind, Urgency};
use tidegate::queue::FlowId;

/// The header with a client's token. It is for this hop and never passed on.
pub const TOKEN_HEADER: &str = "tidegate-token";

static TIDEGATE_PRIORITY: HeaderName = HeaderName::from_static("tidegate-priority");
static PRIORITY: HeaderName = HeaderName::from_static("priority");

/// Decides a request's priority from its head: by route, else by what the client claims, and never more than
/// the client may claim.
#[derive(Debug)]
pub struct Classifier {
    routes: Vec<RouteRule>,
    anonymous: Anonymous,
    clients: Vec<Known>,
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
    /// The flow.
    pub flow: Flow,
    /// The priority.
    pub priority: MessagePriority,
    /// The share of its client, if it has one.
    pub share: Option<&'a ClientShare>,
}

/// The priority that a request claims, and the most that it may claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The client's name, if its token is known.
    pub client: Option<&'a str>,
    /// The highest priority that it may claim.
    pub most: MessagePriority,
    /// The priority that it claims, capped.
    pub priority: MessagePriority,
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
        Self {
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
        let known = self.known(request.headers())?;
        let most = self.most_urgent(known)?;
        let share = known.and_then(|known| known.share.as_ref());
        let flow = known.map_or(Flow { id: FlowId::default(), weight: 1 }, |known| known.flow);
        Ok(Classified { priority: self.asked(request).capped_at(most), share, flow })
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
        let known = self.known(request.headers())?;
        let most = self.most_urgent(known)?;
        let client = known.map(|known| &*known.client.name);
        Ok(Claim { client, most, priority: self.asked(request).capped_at(most) })
    }

    /// The same for a request on a port that is the operators' alone: a token is not needed there, and tells no
    /// more than who asks.
    pub fn operators_claim<B>(&self, request: &Request<B>) -> Claim<'_> {
        let known = self.known(request.headers()).ok().flatten();
        let (client, most) = (known.map(|known| &*known.client.name), MessagePriority::High);
        Claim { client, most, priority: self.asked(request).capped_at(most) }
    }

    /// The name of the client that sends a request, if its token is known.
    pub fn name(&self, headers: &HeaderMap) -> Option<&str> {
        self.known(headers).ok().flatten().map(|known| &*known.client.name)
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

    /// Lets pass who shows a token that is known, and everyone where no tokens were given out.
    ///
    /// # Errors
    ///
    /// When the token is missing or unknown.
    pub fn require_known(&self, headers: &HeaderMap) -> Result<(), Unauthorized> {
        match self.known(headers)? {
            None if !self.clients.is_empty() => Err(Unauthorized::Missing),
            _ => Ok(()),
        }
    }

    fn most_urgent(&self, known: Option<&Known>) -> Result<MessagePriority, Unauthorized> {
        match (known, self.anonymous) {
            (Some(known), _) => Ok(known.client.max_priority),
            (None, Anonymous::UpTo(priority)) => Ok(priority),
            (None, Anonymous::Refuse) => Err(Unauthorized::Missing),
        }
    }

    fn known(&self, headers: &HeaderMap) -> Result<Option<&Known>, Unauthorized> {
        // Where no tokens were given out, one means nothing.
        if self.clients.is_empty() {
            return Ok(None);
        }
        let Some(token) = headers.get(TOKEN_HEADER) else { return Ok(None) };
        let mut known = self.clients.iter();
        let found = known.find(|known| same(known.client.token.as_bytes(), token.as_bytes()));
        found.map(Some).ok_or(Unauthorized::Unknown)
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

/// Compares without telling by its duration how much of a guess was right.
fn same(secret: &[u8], given: &[u8]) -> bool {
    secret.len() == given.len()
        && secret.iter().zip(given).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
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
        assert_eq!(keeper.require_known(head("/", &[]).headers()), Err(Unauthorized::Missing));
        let known = head("/", &[("tidegate-token", "0123456789abcdef")]);
        assert_eq!(keeper.require_known(known.headers()), Ok(()));
    }
}
