use crate::config::{HeaderMatch, NormalPath, RouteRule};
use http::{HeaderMap, Method};

impl RouteRule {
    /// Returns true if a request meets every condition.
    ///
    /// ```
    /// use http::{HeaderMap, Method};
    /// use tidegate_server::config::{Config, NormalPath};
    ///
    /// let config = Config::from_toml("[[route]]\npath_prefix = \"/batch\"\npriority = \"low\"")?;
    /// let rule = &config.routes[0];
    /// assert!(rule.matches(&Method::POST, &NormalPath::of("//batch/42"), &HeaderMap::new()));
    /// assert!(!rule.matches(&Method::POST, &NormalPath::of("/batches"), &HeaderMap::new()));
    /// # Ok::<(), tidegate_server::config::ConfigErrors>(())
    /// ```
    #[must_use]
    pub fn matches(&self, method: &Method, path: &NormalPath<'_>, headers: &HeaderMap) -> bool {
        self.method.as_ref().is_none_or(|wanted| wanted == method)
            && self.path_prefix.as_ref().is_none_or(|prefix| is_below(prefix, path.as_str()))
            && self.header.as_ref().is_none_or(|header| has_header(headers, header))
    }
}

fn has_header(headers: &HeaderMap, header: &HeaderMatch) -> bool {
    let mut values = headers.get_all(&header.name).iter();
    match &header.value {
        Some(wanted) => values.any(|value| value == wanted),
        None => values.next().is_some(),
    }
}

fn is_below(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'))
}
