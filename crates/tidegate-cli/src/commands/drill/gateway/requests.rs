use crate::commands::drill::options::Options;
use crate::failure::Failure;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::MessagePriority;
use tidegate_sim::arrivals::Arrival;
use tidegate_sim::scenario::{Class, Scenario};
use tidegate_testkit::generator::Template;

const PRIORITY: HeaderName = HeaderName::from_static("tidegate-priority");
const TOKEN: HeaderName = HeaderName::from_static("tidegate-token");

/// Request templates of a scenario's classes.
#[derive(Clone, Debug)]
pub struct Requests {
    /// By class: the query names the work that the upstream shall do.
    has_work: Vec<bool>,
    /// Path of the target URL, if it has one.
    path: Option<String>,
}

// === impl Requests ===

impl Requests {
    pub fn new(scenario: &Scenario, target: &Uri) -> Self {
        let path = target.path_and_query().map(|path| path.as_str());
        let path = path.filter(|path| !path.is_empty() && *path != "/").map(str::to_owned);
        let has_work = |class: &Class| !is_control(class) && path.is_none();
        Self { has_work: scenario.classes.iter().map(has_work).collect(), path }
    }

    /// Templates in the order of the scenario's classes.
    pub fn templates(
        &self,
        scenario: &Scenario,
        options: &Options,
        tokens: &BTreeMap<String, String>,
    ) -> Result<Vec<Template>, Failure> {
        let template = |class: &Class| {
            let deadline = class.deadline_ms.map(|ms| Duration::from_secs_f64(ms / 1e3));
            if is_control(class) {
                let (path, headers) = (options.critical_path.clone(), HeaderMap::new());
                let (method, body) = (Method::GET, Bytes::new());
                return Ok(Template { method, path, headers, body, deadline });
            }
            let body = Bytes::from(vec![b'.'; class.body_bytes as usize]);
            let method = if body.is_empty() { Method::GET } else { Method::POST };
            let path = self.path.clone().unwrap_or_else(|| "/work".to_owned());
            let headers = headers(class, tokens)?;
            Ok(Template { method, path, headers, body, deadline })
        };
        scenario.classes.iter().map(template).collect()
    }

    /// Query of an arrival's request.
    pub fn suffix(&self, arrival: &Arrival) -> String {
        if !self.has_work.get(usize::from(arrival.class)).copied().unwrap_or(false) {
            return String::new();
        }
        let us = arrival.work.time.as_micros();
        match arrival.work.blocks {
            0 => format!("?ms={}.{:03}", us / 1000, us % 1000),
            blocks => format!("?ms={}.{:03}&blocks={blocks}", us / 1000, us % 1000),
        }
    }
}

/// Critical classes request the control plane, not an upstream.
fn is_control(class: &Class) -> bool {
    class.priority == MessagePriority::Critical
}

fn headers(class: &Class, tokens: &BTreeMap<String, String>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    let priority = class.priority.to_string();
    headers.extend(HeaderValue::from_str(&priority).ok().map(|value| (PRIORITY, value)));
    if class.body_bytes > 0 {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    }
    if let Some(token) = class.tenant.as_ref().and_then(|tenant| tokens.get(tenant)) {
        let mut token = HeaderValue::from_str(token)
            .map_err(|_| Failure::Usage("--token: a token must be visible ASCII".to_owned()))?;
        token.set_sensitive(true);
        headers.insert(TOKEN, token);
    }
    Ok(headers)
}
