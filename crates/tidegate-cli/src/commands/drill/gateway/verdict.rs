//! Classification of responses: good, refused or failed.

use hyper::StatusCode;
use hyper::header::{HeaderMap, RETRY_AFTER};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_testkit::generator::Answer;

const MOCK: &str = "x-tidegate-mock";
const RETRY_AFTER_MS: &str = "retry-after-ms";
/// Status that some gateways use for overload.
const SITE_OVERLOADED: u16 = 529;

/// Result of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// A response with a success status, from this upstream if it is known.
    Good { upstream: Option<u16> },
    /// A refusal of the gateway or an upstream.
    Refused {
        reason: Cow<'a, str>,
        /// Wait that the refusal asks for.
        retry_after: Option<Duration>,
    },
    /// An error, a broken connection or a missed deadline.
    Failed {
        upstream: Option<u16>,
        /// The request was sent; the gateway decided nothing about one that was not.
        sent: bool,
    },
}

/// Upstream numbers by name.
#[derive(Clone, Debug, Default)]
pub struct UpstreamNames(BTreeMap<String, u16>);

/// Body of a gateway's refusal.
#[derive(Deserialize)]
struct Problem<'a> {
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
    retry_after_ms: Option<u64>,
}

/// Body of an upstream's refusal, in OpenAI's format.
#[derive(Deserialize)]
struct UpstreamProblem<'a> {
    #[serde(borrow)]
    error: UpstreamError<'a>,
}

#[derive(Deserialize)]
struct UpstreamError<'a> {
    #[serde(borrow)]
    code: Option<Cow<'a, str>>,
}

// === impl Verdict ===

impl<'a> Verdict<'a> {
    pub fn of(answer: &Answer<'a>, names: &UpstreamNames) -> Self {
        let Ok(head) = answer.result else {
            return Self::Failed { upstream: None, sent: answer.sent.is_some() };
        };
        let name = head.headers.get(MOCK).and_then(|name| name.to_str().ok());
        let upstream = name.and_then(|name| names.number(name));
        if head.status.is_success() {
            return Self::Good { upstream };
        }
        if !is_refusal(head.status) || (name.is_some() && is_injected(&head.body)) {
            return Self::Failed { upstream, sent: true };
        }
        let problem: Option<Problem<'a>> = serde_json::from_slice(&head.body).ok();
        let retry_after = retry_after(&head.headers, problem.as_ref());
        let reason = match (name, problem.and_then(|problem| problem.reason)) {
            (Some(_), _) => "upstream_overloaded".into(),
            (None, Some(reason)) => reason,
            (None, None) => format!("status_{}", head.status.as_u16()).into(),
        };
        Self::Refused { reason, retry_after }
    }
}

// === impl UpstreamNames ===

impl UpstreamNames {
    /// Numbers these upstreams from 0.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().zip(0..).collect())
    }

    fn number(&self, name: &str) -> Option<u16> {
        self.0.get(name).copied()
    }
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS)
        || status.as_u16() == SITE_OVERLOADED
}

/// A 503 of an injected fault is a failure, not a refusal.
fn is_injected(body: &[u8]) -> bool {
    let problem = serde_json::from_slice::<UpstreamProblem<'_>>(body);
    problem.is_ok_and(|problem| problem.error.code.as_deref() == Some("injected_fault"))
}

/// Retry-After in milliseconds if the refusal has them, else in seconds.
fn retry_after(headers: &HeaderMap, problem: Option<&Problem<'_>>) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let ms = problem.and_then(|problem| problem.retry_after_ms).or_else(|| number(RETRY_AFTER_MS));
    let seconds = || number(RETRY_AFTER.as_str()).map(Duration::from_secs);
    ms.map(Duration::from_millis).or_else(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use hyper::header::HeaderValue;
    use tidegate_testkit::generator::{Failure, Reply};

    fn head(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Reply {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), HeaderValue::from_static(value)));
        Reply {
            status: StatusCode::from_u16(status).expect("a status"),
            headers: headers.collect(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    fn answer(result: Result<&Reply, Failure>, is_sent: bool) -> Answer<'_> {
        let at = Duration::from_secs(1);
        Answer { sent: is_sent.then_some(at / 2), at, result }
    }

    fn verdict(head: &Reply) -> Verdict<'_> {
        Verdict::of(&answer(Ok(head), true), &UpstreamNames::new(["a", "b"].map(str::to_owned)))
    }

    fn refused(reason: &str, retry_after_ms: Option<u64>) -> Verdict<'static> {
        let retry_after = retry_after_ms.map(Duration::from_millis);
        Verdict::Refused { reason: reason.to_owned().into(), retry_after }
    }

    #[test]
    fn a_good_response_names_its_upstream() {
        assert_eq!(verdict(&head(200, &[(MOCK, "b")], "")), Verdict::Good { upstream: Some(1) });
        assert_eq!(verdict(&head(204, &[(MOCK, "c")], "")), Verdict::Good { upstream: None });
    }

    #[test]
    fn a_refusal_has_its_reason_and_retry_after() {
        let body = r#"{"reason": "all_busy", "retry_after_ms": 70}"#;
        let gateway = head(503, &[("retry-after", "1")], body);
        assert_eq!(verdict(&gateway), refused("all_busy", Some(70)));
        let upstream = head(503, &[(MOCK, "a"), ("retry-after", "2")], "{}");
        assert_eq!(verdict(&upstream), refused("upstream_overloaded", Some(2000)));
        assert_eq!(verdict(&head(429, &[], "slow down")), refused("status_429", None));
        assert_eq!(verdict(&head(529, &[], "")), refused("status_529", None));
    }

    #[test]
    fn an_injected_fault_is_no_refusal() {
        let body = r#"{"error": {"code": "injected_fault", "message": "x", "type": "y"}}"#;
        let failed = Verdict::Failed { upstream: Some(0), sent: true };
        assert_eq!(verdict(&head(503, &[(MOCK, "a")], body)), failed);
        assert_eq!(verdict(&head(500, &[(MOCK, "a")], "")), failed);
    }

    #[test]
    fn a_request_that_was_never_sent_is_marked_unsent() {
        for (failure, sent) in [
            (Failure::Connect, false),
            (Failure::Deadline, false),
            (Failure::Deadline, true),
            (Failure::Broken, true),
        ] {
            let verdict = Verdict::of(&answer(Err(failure), sent), &UpstreamNames::default());
            assert_eq!(verdict, Verdict::Failed { upstream: None, sent }, "{failure:?}");
        }
    }
}
