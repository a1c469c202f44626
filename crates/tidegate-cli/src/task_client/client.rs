use super::sse::{Event, SseParser};
use crate::admin_client::{AdminFlag, AdminRequest, AdminResponse, Connection, NoResponse};
use crate::failure::Failure;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use tidegate::task::TaskId;
use tokio::time::timeout;

/// Longest silence of an event stream: the node sends a keep-alive every 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// Client of a node's task API.
#[derive(Debug)]
pub struct TaskClient {
    admin: AdminFlag,
}

/// Event stream of a task on one connection.
pub struct Events {
    body: Incoming,
    ready: VecDeque<Event>,
    _connection: Connection,
}

/// Error of an event stream.
#[derive(Debug)]
pub enum EventsError {
    /// Temporary: retry.
    Temporary(Failure),
    /// Permanent: give up.
    Permanent(Failure),
}

// === impl TaskClient ===

impl TaskClient {
    pub fn new(admin: &AdminFlag) -> Self {
        Self { admin: admin.clone() }
    }

    /// Flags with which another command asks the same node.
    pub fn advice(&self) -> String {
        self.admin.advice()
    }

    /// Sends a request; returns any response.
    ///
    /// # Errors
    ///
    /// When no response arrives.
    pub async fn send(&self, request: &AdminRequest<'_>) -> Result<AdminResponse, NoResponse> {
        request.send(&self.admin).await
    }

    /// Sends a request; returns the JSON of a success response.
    ///
    /// # Errors
    ///
    /// When no response arrives, or a refusal.
    pub async fn json(&self, request: &AdminRequest<'_>) -> Result<Value, Failure> {
        response_json(&self.send(request).await?)
    }

    /// Sends a request; returns the decoded response.
    ///
    /// # Errors
    ///
    /// As [`json`](Self::json).
    pub async fn decoded<T: DeserializeOwned>(
        &self,
        request: &AdminRequest<'_>,
    ) -> Result<T, Failure> {
        decode(self.json(request).await?)
    }

    /// Opens the event stream of a task, after the last event that the parser has seen.
    pub async fn events(&self, id: &TaskId, parser: &mut SseParser) -> Result<Events, EventsError> {
        parser.reconnect();
        let path = format!("/v1/tasks/{id}/events");
        let mut request = AdminRequest::get(&path);
        let seen = parser.last_id().map(str::to_owned);
        request.headers.extend(seen.as_deref().map(|seen| ("last-event-id", seen)));
        let (response, connection) = request
            .open(&self.admin)
            .await
            .map_err(|error| EventsError::Temporary(error.into()))?;
        let status = response.status().as_u16();
        if status == 200 {
            let (body, ready) = (response.into_body(), VecDeque::new());
            return Ok(Events { body, ready, _connection: connection });
        }
        let body = response.into_body().collect();
        let body = timeout(SILENCE_MAX, body).await.ok().and_then(Result::ok);
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let body = String::from_utf8_lossy(&body).into_owned();
        let failure = match response_json(&AdminResponse { status, body }) {
            Err(failure) => failure,
            Ok(_) => Failure::Runtime(format!("unexpected response: status {status}")),
        };
        Err(match status {
            503 => EventsError::Temporary(failure),
            _ => EventsError::Permanent(failure),
        })
    }
}

// === impl Events ===

impl Events {
    /// Next event; `None` when the connection has ended.
    ///
    /// # Errors
    ///
    /// When the data is not an event stream of a node.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no event is lost.
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

/// Decodes the JSON of a node.
///
/// # Errors
///
/// When the JSON has another shape: another program or another version responds.
pub fn decode<T: DeserializeOwned>(json: Value) -> Result<T, Failure> {
    let shown = json.to_string();
    serde_json::from_value(json).map_err(|error| {
        let shown: String = shown.chars().take(200).collect();
        Failure::Runtime(format!("unexpected response ({error}): {shown}"))
    })
}

/// Parses a task id.
pub fn parse_id(text: &str) -> Result<TaskId, Failure> {
    text.parse().map_err(|error: tidegate::task::IdError| Failure::Usage(error.to_string()))
}

/// JSON of a success response.
///
/// # Errors
///
/// A refusal, or a response that is not JSON.
pub fn response_json(response: &AdminResponse) -> Result<Value, Failure> {
    let shown = || response.body.chars().take(200).collect::<String>();
    let body: Value = serde_json::from_str(&response.body)
        .map_err(|_| Failure::Runtime(format!("unexpected response: {}", shown())))?;
    if (200..300).contains(&response.status) {
        return Ok(body);
    }
    let mut message = body["message"].as_str().map_or_else(shown, str::to_owned);
    if (response.status, body["reason"].as_str()) == (404, Some("unknown_path")) {
        message = format!("this node has no task API: {message}");
    }
    if let Some(wait_ms) = body["retry_after_ms"].as_u64() {
        message += &format!(" (retry in {})", super::format::span(wait_ms));
    }
    message += response.token_advice();
    Err(match response.status {
        400 | 413 | 415 | 422 => Failure::Usage(message),
        _ => Failure::Runtime(message),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(status: u16, body: &Value) -> Failure {
        response_json(&AdminResponse { status, body: body.to_string() }).unwrap_err()
    }

    #[test]
    fn a_refusal_has_the_nodes_message_and_an_exit_code() {
        let wrong =
            json!({ "message": "no executor has the runtime \"x\"", "reason": "unknown_runtime" });
        let failure = refused(422, &wrong);
        assert!(matches!(&failure, Failure::Usage(text) if text.contains("runtime \"x\"")));
        let full =
            json!({ "message": "7 tasks wait", "reason": "queue_full", "retry_after_ms": 2_500 });
        let failure = refused(503, &full);
        assert!(matches!(&failure, Failure::Runtime(_)));
        assert_eq!(failure.to_string(), "7 tasks wait (retry in 2.5 s)");
        let message = "the request has no token";
        let closed = refused(401, &json!({ "message": message, "reason": "token_missing" }));
        assert_eq!(
            closed.to_string(),
            format!("{message}; give a token with TIDEGATE_TOKEN or --token")
        );
        let off = json!({ "message": "this is the admin port", "reason": "unknown_path" });
        assert!(refused(404, &off).to_string().starts_with("this node has no task API"));
    }

    #[test]
    fn an_unexpected_response_is_an_error() {
        let response = AdminResponse { status: 200, body: format!("<html>{}", "x".repeat(1_000)) };
        let failure = response_json(&response).unwrap_err().to_string();
        assert!(failure.starts_with("unexpected response: <html>") && failure.len() < 300);
        let other =
            decode::<tidegate_server::tasks::manager::TaskView>(json!({ "id": "a" })).unwrap_err();
        assert!(other.to_string().contains("missing field"), "{other}");
    }
}
