use serde::Serialize;
use tidegate::MessagePriority;
use tidegate::routing::Threshold;

/// Bytes of a body besides its messages: all its names, and numbers of usual lengths.
const NAMES_BYTES: usize = 384;

/// The fields of the JSON body of a response to a failed request.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    pub(super) message: &'a str,
    pub(super) type_name: &'static str,
    pub(super) code: u16,
    pub(super) reason: &'a str,
    pub(super) priority: Option<MessagePriority>,
    pub(super) limit: Option<u16>,
    pub(super) busy_upstreams: Option<usize>,
    pub(super) total_upstreams: Option<usize>,
    pub(super) threshold: Option<Threshold>,
    pub(super) queue_position: Option<usize>,
    pub(super) estimated_wait_ms: Option<u64>,
    pub(super) field: Option<&'a str>,
    pub(super) retry_after_ms: Option<u64>,
}

/// A text on its way into JSON.
enum Text<'a> {
    /// Needs nothing but its quotes.
    Plain(&'a str),
    /// As JSON has it, in its quotes.
    Escaped(Vec<u8>),
}

// === impl Fields ===

impl<'a> Fields<'a> {
    /// The fields that every response has.
    pub(super) fn new(
        message: &'a str,
        type_name: &'static str,
        code: u16,
        reason: &'a str,
    ) -> Self {
        Self {
            message,
            type_name,
            code,
            reason,
            priority: None,
            limit: None,
            busy_upstreams: None,
            total_upstreams: None,
            threshold: None,
            queue_position: None,
            estimated_wait_ms: None,
            field: None,
            retry_after_ms: None,
        }
    }

    /// Writes the fields as JSON. By hand, because a refusal has little else to do: a serializer looks for
    /// characters to escape in every name and in every copy of the message.
    pub(super) fn to_json(&self) -> Vec<u8> {
        let message = Text::new(self.message);
        let (type_name, reason) = (Text::new(self.type_name), Text::new(self.reason));
        let mut body = Vec::with_capacity(2 * self.message.len() + NAMES_BYTES);
        text(&mut body, "{\"message\":", &message);
        text(&mut body, ",\"type\":", &type_name);
        member(&mut body, ",\"code\":", Some(&self.code));
        text(&mut body, ",\"reason\":", &reason);
        member(&mut body, ",\"priority\":", self.priority.as_ref());
        member(&mut body, ",\"limit\":", self.limit.as_ref());
        member(&mut body, ",\"busy_upstreams\":", self.busy_upstreams.as_ref());
        member(&mut body, ",\"total_upstreams\":", self.total_upstreams.as_ref());
        member(&mut body, ",\"threshold\":", self.threshold.as_ref());
        member(&mut body, ",\"queue_position\":", self.queue_position.as_ref());
        member(&mut body, ",\"estimated_wait_ms\":", self.estimated_wait_ms.as_ref());
        member(&mut body, ",\"field\":", self.field.as_ref());
        member(&mut body, ",\"retry_after_ms\":", self.retry_after_ms.as_ref());
        // The same once more, where the SDKs of model providers look for it; they read nothing else.
        text(&mut body, ",\"error\":{\"message\":", &message);
        text(&mut body, ",\"type\":", &type_name);
        member(&mut body, ",\"param\":", Some(&self.field));
        text(&mut body, ",\"code\":", &reason);
        body.extend_from_slice(b"}}");
        body
    }
}

// === impl Text ===

impl<'a> Text<'a> {
    fn new(text: &'a str) -> Self {
        // Without an early end, so that many bytes are looked at together.
        let is_plain = |byte| byte >= b' ' && byte != b'"' && byte != b'\\';
        match text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
            true => Self::Plain(text),
            false => Self::Escaped(serde_json::to_vec(text).unwrap_or_default()),
        }
    }
}

/// Writes a member that is a text, with this in front of it.
fn text(body: &mut Vec<u8>, name: &str, text: &Text<'_>) {
    body.extend_from_slice(name.as_bytes());
    match text {
        Text::Plain(text) => {
            body.push(b'"');
            body.extend_from_slice(text.as_bytes());
            body.push(b'"');
        }
        Text::Escaped(text) => body.extend_from_slice(text),
    }
}

/// Writes a member that may be absent, with this in front of it.
fn member(body: &mut Vec<u8>, name: &str, value: Option<&impl Serialize>) {
    if let Some(value) = value {
        body.extend_from_slice(name.as_bytes());
        // Numbers, texts and thresholds always have a form in JSON, and memory takes all of it.
        let _ = serde_json::to_writer(body, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parsed(fields: &Fields<'_>) -> Value {
        serde_json::from_slice(&fields.to_json()).expect("JSON")
    }

    #[test]
    fn absent_members_are_left_out_but_the_parameter() {
        let body = parsed(&Fields::new("no host", "bad_request", 400, "bad_host"));
        let error = json!({
            "message": "no host", "type": "bad_request", "param": null, "code": "bad_host",
        });
        let expected = json!({
            "message": "no host", "type": "bad_request", "code": 400, "reason": "bad_host", "error": error,
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn every_member_is_written() {
        let mut fields = Fields::new("full", "service_unavailable", 503, "global_limit");
        (fields.field, fields.retry_after_ms) = (Some("a \"field\""), Some(1_500));
        (fields.priority, fields.limit) = (Some(MessagePriority::High), Some(7));
        (fields.busy_upstreams, fields.total_upstreams) = (Some(2), Some(3));
        (fields.queue_position, fields.estimated_wait_ms) = (Some(4), Some(5));
        let body = parsed(&fields);
        assert_eq!(body["priority"], serde_json::to_value(MessagePriority::High).unwrap());
        for (name, value) in [
            ("limit", 7),
            ("busy_upstreams", 2),
            ("total_upstreams", 3),
            ("queue_position", 4),
            ("estimated_wait_ms", 5),
            ("retry_after_ms", 1_500),
        ] {
            assert_eq!(body[name], value, "{name}");
        }
        assert_eq!(
            (&body["field"], &body["error"]["param"]),
            (&body["error"]["param"], &json!("a \"field\""))
        );
    }

    #[test]
    fn any_message_is_a_text() {
        for message in
            ["", "plain", "a \"quote\"", "back\\slash", "two\nlines\u{0}\u{1f}", "µs \u{7f}"]
        {
            let body = parsed(&Fields::new(message, "bad_request", 400, message));
            assert_eq!((&body["message"], &body["reason"]), (&json!(message), &json!(message)));
            assert_eq!(body["error"]["message"], *message);
        }
    }
}
