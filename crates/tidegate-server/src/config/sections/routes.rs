use crate::config::errors::{ConfigError, ErrorList, quoted};
use crate::config::schema::record;
use crate::config::value::NormalPath;
use crate::config::value::shape::{HEADER, HEADER_VALUE, METHOD, MODEL, URL_PATH};
use http::{HeaderName, HeaderValue, Method};
use tidegate::admission::MessagePriority;

record! {
    /// A rule that gives matching requests a priority, a model or both. Every condition that is set must hold.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RouteRule from RouteSettings {
        /// Path of the request and all below it, by whole segments; with a final "/" only those below it.
        path_prefix: Option<String> = text(URL_PATH).unset().example("/v1/embeddings")
            => path_prefix;
        /// HTTP method of the request.
        method: Option<Method> = text(METHOD).unset().example("POST") => method;
        /// Header that the request must have.
        header: Option<HeaderName> = text(HEADER).unset();
        /// Exact value of that header.
        header_value: Option<String> = text(HEADER_VALUE).unset();
        /// Priority of matching requests.
        priority: Option<MessagePriority> = word().unset().example("low") => priority;
        /// Model of matching requests.
        model: Option<String> = text(MODEL).unset() => model;
    }
    derived |settings| {
        /// A header of the request.
        header: Option<HeaderMatch> = settings.header.get().map(|name| {
            let value = settings.header_value.get().and_then(|value| value.parse().ok());
            HeaderMatch { name, value }
        });
    }
}

/// A condition on a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMatch {
    /// The header that the request must have.
    pub name: HeaderName,
    /// A value that the header must have, byte for byte; `None` accepts any.
    pub value: Option<HeaderValue>,
}

/// The rules of the list, in their order.
pub fn routes(list: &[RouteSettings], errors: &mut ErrorList) -> Vec<RouteRule> {
    (1..).zip(list).for_each(|(number, entry)| entry.check(number, errors));
    list.iter().map(RouteSettings::config).collect()
}

impl RouteSettings {
    fn check(&self, number: usize, errors: &mut ErrorList) {
        let Self { path_prefix, method, header, header_value, priority, model } = self;
        if priority.state.is_missing() && model.state.is_missing() {
            errors.push(priority.error("nothing", "a priority, a model or both"));
        }
        if let Some(path) = path_prefix.get()
            && NormalPath::of(&path).as_str() != path
        {
            let allowed =
                format!("a path in normal form: {}", quoted(NormalPath::of(&path).as_str()));
            errors.push(path_prefix.error(quoted(&path), allowed));
        }
        let conditions = [&path_prefix.state, &method.state, &header.state, &header_value.state];
        if let (true, Some(value)) = (header.state.is_missing(), header_value.get()) {
            let allowed = "a header beside it: header = \"…\" is missing";
            errors.push(header_value.error(quoted(&value), allowed));
        } else if conditions.iter().all(|condition| condition.is_missing()) {
            let (label, origin) = (format!("route[{number}]"), &method.state.origin);
            let allowed = "at least one of path_prefix, method and header";
            errors.push(ConfigError::new(label, origin, "no condition", allowed));
        }
    }
}
