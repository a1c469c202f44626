use super::sse::{Event, SseParser};
use crate::admin::{Answer, Ask, Connection, Unanswered};
use crate::failure::Failure;
use crate::threshold_flags::AdminFlag;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use tidegate::task::TaskId;
use tokio::time::timeout;

/// The node shows every 15 s that it is there; three in a row can't be lost on a connection that is alive.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// A node, as tasks are asked of it.
#[derive(Debug)]
pub struct TaskClient {
    address: String,
}

/// The events of a task, over one connection.
pub struct Events {
    body: Incoming,
    ready: VecDeque<Event>,
    _connection: Connection,
}

/// Why a task is not followed now.
#[derive(Debug)]
pub enum NotFollowed {
    /// It may be in a moment.
    Yet(Failure),
    /// It will not be.
    Ever(Failure),
}

// === impl TaskClient ===

impl TaskClient {
    pub fn new(admin: &AdminFlag) -> Self {
        Self { address: admin.address.clone() }
    }

    /// What the node answers, whatever it is.
    ///
    /// # Errors
    ///
    /// When nobody answers, and whether anybody can have heard.
    pub async fn answer(&self, ask: &Ask<'_>) -> Result<Answer, Unanswered> {
        ask.of(&self.address).await
    }

    /// What the node answers, as JSON.
    ///
    /// # Errors
    ///
    /// When nobody answers, or with a refusal.
    pub async fn json(&self, ask: &Ask<'_>) -> Result<Value, Failure> {
        understood(&self.answer(ask).await?)
    }

    /// The same, as what it is.
    ///
    /// # Errors
    ///
    /// As [`json`](Self::json).
    pub async fn typed<T: DeserializeOwned>(&self, ask: &Ask<'_>) -> Result<T, Failure> {
        typed(self.json(ask).await?)
    }

    /// Everything that becomes of a task, after what was seen of it.
    pub async fn events(&self, id: &TaskId, parser: &mut SseParser) -> Result<Events, NotFollowed> {
        parser.reconnect();
        let path = format!("/v1/tasks/{id}/events");
        let mut ask = Ask::get(&path);
        let seen = parser.last_id().map(str::to_owned);
        ask.headers.extend(seen.as_deref().map(|seen| ("last-event-id", seen)));
        let (response, connection) =
            ask.open(&self.address).await.map_err(|none| NotFollowed::Yet(none.into()))?;
        let status = response.status().as_u16();
        if status == 200 {
            let (body, ready) = (response.into_body(), VecDeque::new());
            return Ok(Events { body, ready, _connection: connection });
        }
        let body = response.into_body().collect();
        let body = timeout(SILENCE_MAX, body).await.ok().and_then(Result::ok);
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let body = String::from_utf8_lossy(&body).into_owned();
        let failure = match understood(&Answer { status, body }) {
            Err(failure) => failure,
            Ok(_) => Failure::Runtime(format!("not a node's answer: status {status}")),
        };
        Err(match status {
            503 => NotFollowed::Yet(failure),
            _ => NotFollowed::Ever(failure),
        })
    }
}

// === impl Events ===

impl Events {
    /// The next event; `None` when the connection has ended, whatever ended it.
    ///
    /// # Errors
    ///
    /// When what comes is no node's.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, no event is lost.
    pub async fn next(&mut self, parser: &mut SseParser) -> Result<Option<Event>, Failure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Ok(Some(Ok(frame))) = timeout(SILENCE_MAX, self.body.frame()).await else {
                return Ok(None);
            };
            if let Some(data) = frame.data_ref() {
                self.ready.extend(parser.push(data)?);
            }
        }
    }
}

/// A node's JSON as what it is.
///
/// # Errors
///
/// When it is not that: another program, or another version of this one, answers there.
pub fn typed<T: DeserializeOwned>(told: Value) -> Result<T, Failure> {
    let shown = told.to_string();
    serde_json::from_value(told).map_err(|error| {
        let shown: String = shown.chars().take(200).collect();
        Failure::Runtime(format!("not a node's answer ({error}): {shown}"))
    })
}

/// The name of a task, as it was typed.
pub fn named(text: &str) -> Result<TaskId, Failure> {
    text.parse().map_err(|error: tidegate::task::IdError| Failure::Usage(error.to_string()))
}

/// What an answer means.
///
/// # Errors
///
/// When it is a refusal, or no node's.
pub fn understood(answer: &Answer) -> Result<Value, Failure> {
    let shown = || answer.body.chars().take(200).collect::<String>();
    let body: Value = serde_json::from_str(&answer.body)
        .map_err(|_| Failure::Runtime(format!("not a node's answer: {}", shown())))?;
    if (200..300).contains(&answer.status) {
        return Ok(body);
    }
    let mut message = body["message"].as_str().map_or_else(shown, str::to_owned);
    if (answer.status, body["reason"].as_str()) == (404, Some("unknown_path")) {
        message = format!("this node does no tasks: {message}");
    }
    if let Some(wait_ms) = body["retry_after_ms"].as_u64() {
        message += &format!(" (try again in {})", super::words::span(wait_ms));
    }
    Err(match answer.status {
        400 | 413 | 415 | 422 => Failure::Usage(message),
        _ => Failure::Runtime(message),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(status: u16, body: &Value) -> Failure {
        understood(&Answer { status, body: body.to_string() }).unwrap_err()
    }

    #[test]
    fn a_refusal_is_told_in_the_nodes_words_and_by_the_exit_code() {
        let wrong =
            json!({ "message": "no executor has the runtime \"x\"", "reason": "unknown_runtime" });
        let failure = refused(422, &wrong);
        assert!(matches!(&failure, Failure::Usage(text) if text.contains("runtime \"x\"")));
        let full =
            json!({ "message": "7 tasks wait", "reason": "line_full", "retry_after_ms": 2_500 });
        let failure = refused(503, &full);
        assert!(matches!(&failure, Failure::Runtime(_)));
        assert_eq!(failure.to_string(), "7 tasks wait (try again in 2.5 s)");
        let off = json!({ "message": "this is the admin port", "reason": "unknown_path" });
        assert!(refused(404, &off).to_string().starts_with("this node does no tasks"));
    }

    #[test]
    fn what_is_no_nodes_answer_is_told_so() {
        let answer = Answer { status: 200, body: format!("<html>{}", "x".repeat(1_000)) };
        let failure = understood(&answer).unwrap_err().to_string();
        assert!(failure.starts_with("not a node's answer: <html>") && failure.len() < 300);
        let other = typed::<tidegate_server::manager::TaskView>(json!({ "id": "a" })).unwrap_err();
        assert!(other.to_string().contains("missing field"), "{other}");
    }
}
