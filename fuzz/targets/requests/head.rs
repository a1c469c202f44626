use http::{HeaderName, HeaderValue, Request};
use std::sync::LazyLock;
use tidegate::MessagePriority;
use tidegate_server::config::Config;
use tidegate_server::http::admission::Classifier;

const TOKEN: &str = "tg_0123456789abcdef0123456789abcdef";
const OPERATOR_TOKEN: &str = "tg_fedcba9876543210fedcba9876543210";

static CLASSIFIER: LazyLock<Classifier> = LazyLock::new(|| {
    let config = format!(
        "[[client]]\nname = \"batch\"\ntoken = \"{TOKEN}\"\nmax_priority = \"normal\"\n\
         [[operator]]\nname = \"ops\"\ntoken = \"{OPERATOR_TOKEN}\"\n\
         [[route]]\npath_prefix = \"/admin\"\npriority = \"low\"\n\
         [[route]]\nmethod = \"POST\"\nheader = \"x-kind\"\nmodel = \"m\"\npriority = \"high\"\n"
    );
    Classifier::new(&Config::from_toml(&config).expect("a valid configuration"))
});

/// Classifies the head of a request: a target in the first line, and a header in each that follows. Nobody is
/// Critical, nobody has more than a token allows, and nobody is a client or an operator without the token.
pub fn run(input: &[u8]) -> bool {
    let Some(request) = request(input) else { return false };
    let shows = |token: &str| {
        let mut values = request.headers().values();
        values.any(|value| value.as_bytes().windows(token.len()).any(|it| it == token.as_bytes()))
    };
    let (is_client, is_operator) = (shows(TOKEN), shows(OPERATOR_TOKEN));
    let Ok(claim) = CLASSIFIER.claim(&request) else { return false };
    assert!(claim.client.is_none() || is_client, "{request:?}");
    assert!(!claim.is_operator || is_operator, "{request:?}");
    assert_ne!(claim.priority, MessagePriority::Critical);
    assert_eq!(claim.priority, claim.priority.capped_at(claim.most));
    if claim.client.is_some() {
        assert_eq!(claim.most, MessagePriority::Normal);
    }
    let classified = CLASSIFIER.classified(&request).expect("as the claim");
    assert_eq!((classified.client, classified.priority), (claim.client, claim.priority));
    let operators = CLASSIFIER.operators_claim(&request);
    assert!(operators.is_err() || is_operator, "{request:?}");
    true
}

fn request(input: &[u8]) -> Option<Request<()>> {
    let mut lines = input.split(|byte| *byte == b'\n');
    let mut request = Request::post(lines.next()?).body(()).ok()?;
    for line in lines.take(16) {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
        request.headers_mut().append(name, value);
    }
    Some(request)
}
