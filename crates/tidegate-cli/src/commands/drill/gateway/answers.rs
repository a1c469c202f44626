//! What an answer means.

use hyper::StatusCode;
use hyper::header::{HeaderMap, RETRY_AFTER};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_server::generator::Answer;

const MOCK: &str = "x-tidegate-mock";
const RETRY_AFTER_MS: &str = "tidegate-retry-after-ms";
/// Some gateways say this of overload.
const SITE_OVERLOADED: u16 = 529;

/// How one attempt went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// It was answered well, perhaps by this worker.
    Good { worker: Option<u16> },
    /// It was refused.
    Refused {
        reason: Cow<'a, str>,
        /// When it was told to come back.
        told: Option<Duration>,
    },
    /// It went wrong.
    Failed {
        worker: Option<u16>,
        /// Whether it was on its way: what was never sent was not decided on.
        sent: bool,
    },
}

/// Numbers of workers by what they call themselves.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeMap<String, u16>);

/// What refusals of a gateway say.
#[derive(Deserialize)]
struct Problem<'a> {
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
    retry_after_ms: Option<u64>,
}

/// What refusals of a worker say, as OpenAI has them.
#[derive(Deserialize)]
struct WorkerProblem<'a> {
    #[serde(borrow)]
    error: WorkerError<'a>,
}

#[derive(Deserialize)]
struct WorkerError<'a> {
    #[serde(borrow)]
    code: Option<Cow<'a, str>>,
}

// === impl Verdict ===

impl<'a> Verdict<'a> {
    pub fn of(answer: &Answer<'a>, names: &Names) -> Self {
        let Ok(head) = answer.result else {
            return Self::Failed { worker: None, sent: answer.sent.is_some() };
        };
        let name = head.headers.get(MOCK).and_then(|name| name.to_str().ok());
        let worker = name.and_then(|name| names.number(name));
        if head.status.is_success() {
            return Self::Good { worker };
        }
        if !is_refusal(head.status) || (name.is_some() && is_injected(&head.body)) {
            return Self::Failed { worker, sent: true };
        }
        let problem: Option<Problem<'a>> = serde_json::from_slice(&head.body).ok();
        let told = told(&head.headers, problem.as_ref());
        let reason = match (name, problem.and_then(|problem| problem.reason)) {
            (Some(_), _) => "worker_overloaded".into(),
            (None, Some(reason)) => reason,
            (None, None) => format!("status_{}", head.status.as_u16()).into(),
        };
        Self::Refused { reason, told }
    }
}

// === impl Names ===

impl Names {
    /// Workers that are called so, counted from 0.
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

/// Whether a worker says 503 because it was told to fail, which is no refusal.
fn is_injected(body: &[u8]) -> bool {
    let problem = serde_json::from_slice::<WorkerProblem<'_>>(body);
    problem.is_ok_and(|problem| problem.error.code.as_deref() == Some("injected_fault"))
}

/// To the millisecond where that is said, else in whole seconds.
fn told(headers: &HeaderMap, problem: Option<&Problem<'_>>) -> Option<Duration> {
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
    use tidegate_server::generator::{Failure, Head};

    fn head(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Head {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), HeaderValue::from_static(value)));
        Head {
            status: StatusCode::from_u16(status).expect("a status"),
            headers: headers.collect(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    fn answer(result: Result<&Head, Failure>, is_sent: bool) -> Answer<'_> {
        let at = Duration::from_secs(1);
        Answer { sent: is_sent.then_some(at / 2), at, result }
    }

    fn verdict(head: &Head) -> Verdict<'_> {
        Verdict::of(&answer(Ok(head), true), &Names::new(["a", "b"].map(str::to_owned)))
    }

    fn refused(reason: &str, told_ms: Option<u64>) -> Verdict<'static> {
        let told = told_ms.map(Duration::from_millis);
        Verdict::Refused { reason: reason.to_owned().into(), told }
    }

    #[test]
    fn good_is_who_answered() {
        assert_eq!(verdict(&head(200, &[(MOCK, "b")], "")), Verdict::Good { worker: Some(1) });
        assert_eq!(verdict(&head(204, &[(MOCK, "c")], "")), Verdict::Good { worker: None });
    }

    #[test]
    fn a_refusal_says_who_refused_and_until_when() {
        let body = r#"{"reason": "all_busy", "retry_after_ms": 70}"#;
        let gateway = head(503, &[("retry-after", "1")], body);
        assert_eq!(verdict(&gateway), refused("all_busy", Some(70)));
        let worker = head(503, &[(MOCK, "a"), ("retry-after", "2")], "{}");
        assert_eq!(verdict(&worker), refused("worker_overloaded", Some(2000)));
        assert_eq!(verdict(&head(429, &[], "slow down")), refused("status_429", None));
        assert_eq!(verdict(&head(529, &[], "")), refused("status_529", None));
    }

    #[test]
    fn what_was_told_to_fail_did_not_refuse() {
        let body = r#"{"error": {"code": "injected_fault", "message": "x", "type": "y"}}"#;
        let failed = Verdict::Failed { worker: Some(0), sent: true };
        assert_eq!(verdict(&head(503, &[(MOCK, "a")], body)), failed);
        assert_eq!(verdict(&head(500, &[(MOCK, "a")], "")), failed);
    }

    #[test]
    fn what_gave_up_in_the_generators_line_was_not_decided_on() {
        for (failure, sent) in [
            (Failure::Connect, false),
            (Failure::Deadline, false),
            (Failure::Deadline, true),
            (Failure::Broken, true),
        ] {
            let verdict = Verdict::of(&answer(Err(failure), sent), &Names::default());
            assert_eq!(verdict, Verdict::Failed { worker: None, sent }, "{failure:?}");
        }
    }
}
