use super::choice;
use super::items::{Item, Items};
use super::mistakes::{Ledger, Mistake, quoted};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tidegate::admission::MessagePriority;

/// Gives the requests that match it a priority, a model or both. All conditions that are there must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteRule {
    /// The path starts with these whole segments: `/v1/embed` matches `/v1/embed` and `/v1/embed/x`, not
    /// `/v1/embeddings`. One that ends in `/` matches all below it.
    pub path_prefix: Option<String>,
    /// The method is this one.
    pub method: Option<Method>,
    /// A header is there, or has this value.
    pub header: Option<HeaderMatch>,
    /// What the request is then; never Critical.
    pub priority: Option<MessagePriority>,
    /// The model of what matches, if the rule says one.
    pub model: Option<String>,
}

/// A condition on a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMatch {
    /// The header that must be there.
    pub name: HeaderName,
    /// What one of its values must be, byte for byte; `None` when any will do.
    pub value: Option<HeaderValue>,
}

// === impl RouteRule ===

impl RouteRule {
    /// Whether every condition holds for a request. `path` is without the query.
    ///
    /// ```
    /// use http::{HeaderMap, Method};
    /// use tidegate_server::config::Config;
    ///
    /// let config = Config::from_toml("[[route]]\npath_prefix = \"/batch\"\npriority = \"low\"")?;
    /// let rule = &config.routes[0];
    /// assert!(rule.matches(&Method::POST, "/batch/42", &HeaderMap::new()));
    /// assert!(!rule.matches(&Method::POST, "/batches", &HeaderMap::new()));
    /// # Ok::<(), tidegate_server::config::Mistakes>(())
    /// ```
    #[must_use]
    pub fn matches(&self, method: &Method, path: &str, headers: &HeaderMap) -> bool {
        self.method.as_ref().is_none_or(|wanted| wanted == method)
            && self.path_prefix.as_ref().is_none_or(|prefix| is_below(prefix, path))
            && self.header.as_ref().is_none_or(|header| header.matches(headers))
    }

    fn from_item(item: &Item, ledger: &mut Ledger) -> Self {
        if item.lacks(&["priority", "model"]) {
            let allowed = "a priority, a model or both";
            ledger.add(Mistake::new(item.key("priority"), item.origin(), "nothing", allowed));
        }
        let name = item.text("header").and_then(|name| name.parse::<HeaderName>().ok());
        let value = item.text("header_value").and_then(|value| value.parse().ok());
        if let (None, Some(value)) = (item.text("header"), item.text("header_value")) {
            if !item.is_broken("header") {
                let origin = item.origin_of("header_value");
                let allowed = "a header beside it: header = \"…\" is missing";
                ledger.add(Mistake::new(item.key("header_value"), origin, quoted(value), allowed));
            }
        } else if item.lacks(&["path_prefix", "method", "header", "header_value"]) {
            let allowed = "at least one of path_prefix, method and header";
            ledger.add(Mistake::new(item.label(), item.origin(), "no condition", allowed));
        }
        Self {
            path_prefix: item.text("path_prefix").map(str::to_owned),
            method: item.text("method").and_then(|method| method.parse().ok()),
            header: name.map(|name| HeaderMatch { name, value }),
            priority: item.text("priority").and_then(choice::from_name),
            model: item.text("model").map(str::to_owned),
        }
    }
}

// === impl HeaderMatch ===

impl HeaderMatch {
    fn matches(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(&self.name).iter();
        match &self.value {
            Some(wanted) => values.any(|value| value == wanted),
            None => values.next().is_some(),
        }
    }
}

fn is_below(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'))
}

/// The rules of the file, in their order.
pub(super) fn read(items: &Items, ledger: &mut Ledger) -> Vec<RouteRule> {
    items.of("route").map(|item| RouteRule::from_item(item, ledger)).collect()
}

pub(super) fn is_path(text: &str) -> bool {
    text.starts_with('/')
        && text.bytes().all(|b| b.is_ascii_graphic())
        && !text.contains(['?', '#'])
}

/// Methods are case-sensitive and all that are registered are capitals: `post` would match nothing.
pub(super) fn is_method(text: &str) -> bool {
    text.parse::<Method>().is_ok() && !text.bytes().any(|b| b.is_ascii_lowercase())
}

pub(super) fn is_header_name(text: &str) -> bool {
    text.parse::<HeaderName>().is_ok()
}

pub(super) fn is_header_value(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> RouteRule {
        RouteRule { path_prefix: None, method: None, header: None, priority: None, model: None }
    }

    #[test]
    fn a_prefix_matches_whole_segments() {
        let matches = |prefix: &str, path: &str| {
            let rule = RouteRule { path_prefix: Some(prefix.to_owned()), ..rule() };
            rule.matches(&Method::GET, path, &HeaderMap::new())
        };
        assert!(matches("/v1/embed", "/v1/embed"));
        assert!(matches("/v1/embed", "/v1/embed/x"));
        assert!(!matches("/v1/embed", "/v1/embeddings"));
        assert!(!matches("/v1/embed", "/v1"));
        assert!(!matches("/v1/embed", "/V1/embed"));
        assert!(matches("/v1/", "/v1/x") && matches("/v1/", "/v1/"));
        assert!(!matches("/v1/", "/v1"));
        assert!(matches("/", "/anything"));
    }

    #[test]
    fn all_conditions_must_hold() {
        let name = HeaderName::from_static("x-kind");
        let value = Some(HeaderValue::from_static("batch"));
        let rule = RouteRule {
            path_prefix: Some("/a".to_owned()),
            method: Some(Method::POST),
            header: Some(HeaderMatch { name: name.clone(), value }),
            ..rule()
        };
        let mut headers = HeaderMap::new();
        assert!(!rule.matches(&Method::POST, "/a", &headers));
        headers.append(&name, HeaderValue::from_static("other"));
        assert!(!rule.matches(&Method::POST, "/a", &headers));
        headers.append(&name, HeaderValue::from_static("batch"));
        assert!(rule.matches(&Method::POST, "/a", &headers), "any of several values");
        assert!(!rule.matches(&Method::GET, "/a", &headers));
        assert!(!rule.matches(&Method::POST, "/b", &headers));
    }

    #[test]
    fn a_header_without_a_value_must_only_be_there() {
        let name = HeaderName::from_static("x-kind");
        let header = Some(HeaderMatch { name: name.clone(), value: None });
        let rule = RouteRule { header, ..rule() };
        let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(""))]);
        assert!(rule.matches(&Method::GET, "/", &headers));
        assert!(!rule.matches(&Method::GET, "/", &HeaderMap::new()));
    }
}
