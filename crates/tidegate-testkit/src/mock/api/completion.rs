use super::request::{Api, CompletionRequest};
use crate::mock::state::Ticket;
use serde_json::{Value, json};

/// Limit of tokens in one frame, for a client that fell behind.
const FRAME_TOKENS_MAX: u64 = 64;

/// Completion in OpenAI's format.
#[derive(Debug)]
pub(super) struct Completion {
    api: Api,
    model: String,
    include_usage: bool,
    created_s: u64,
    /// Cancels the sequence when the response is dropped.
    pub(super) ticket: Ticket,
}

/// Streamed completion.
#[derive(Debug)]
pub(in crate::mock) struct Stream {
    completion: Completion,
    sent_tokens: u64,
    begun: bool,
}

// === impl Completion ===

impl Completion {
    pub(super) fn new(request: &CompletionRequest, ticket: Ticket, created_s: u64) -> Self {
        Self {
            api: request.api,
            model: request.model.clone(),
            include_usage: request.include_usage,
            created_s,
            ticket,
        }
    }

    /// Response body of the finished completion.
    pub(super) fn whole(&self) -> Value {
        let accepted = &self.ticket.accepted;
        let text = accepted.text.text(accepted.output_tokens);
        let mut choice = match self.api {
            Api::Chat => {
                json!({"message": {"role": "assistant", "content": text, "refusal": null}})
            }
            Api::Text => json!({"text": text}),
        };
        choice["index"] = json!(0);
        choice["logprobs"] = Value::Null;
        choice["finish_reason"] = json!(accepted.finish.as_str());
        let object = match self.api {
            Api::Chat => "chat.completion",
            Api::Text => "text_completion",
        };
        let mut whole = self.envelope(object, json!([choice]));
        whole["usage"] = self.usage();
        whole
    }

    /// Stream chunk with text and, at the end, the finish reason.
    fn piece(&self, text: Option<&str>, finish: Option<&str>) -> Value {
        let mut choice = match (self.api, text) {
            (Api::Chat, Some(text)) => json!({"delta": {"content": text}}),
            (Api::Chat, None) => json!({"delta": {}}),
            (Api::Text, text) => json!({"text": text.unwrap_or_default()}),
        };
        choice["index"] = json!(0);
        choice["logprobs"] = Value::Null;
        choice["finish_reason"] = json!(finish);
        self.chunk(json!([choice]))
    }

    fn chunk(&self, choices: Value) -> Value {
        let object = match self.api {
            Api::Chat => "chat.completion.chunk",
            Api::Text => "text_completion",
        };
        let mut chunk = self.envelope(object, choices);
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    fn envelope(&self, object: &str, choices: Value) -> Value {
        let prefix = match self.api {
            Api::Chat => "chatcmpl",
            Api::Text => "cmpl",
        };
        json!({
            "id": format!("{prefix}-{:016x}", self.ticket.accepted.text.seed()),
            "object": object,
            "created": self.created_s,
            "model": self.model,
            "system_fingerprint": "tidegate-mock",
            "choices": choices,
        })
    }

    fn usage(&self) -> Value {
        let accepted = &self.ticket.accepted;
        json!({
            "prompt_tokens": accepted.prompt_tokens,
            "completion_tokens": accepted.output_tokens,
            "total_tokens": accepted.prompt_tokens + accepted.output_tokens,
        })
    }
}

// === impl Stream ===

impl Stream {
    pub(super) fn new(completion: Completion) -> Self {
        Self { completion, sent_tokens: 0, begun: false }
    }

    pub(super) fn sent_tokens(&self) -> u64 {
        self.sent_tokens
    }

    pub(super) fn ticket(&mut self) -> &mut Ticket {
        &mut self.completion.ticket
    }

    /// True when all tokens were sent.
    pub(super) fn is_over(&self) -> bool {
        self.sent_tokens == self.completion.ticket.accepted.output_tokens
    }

    /// Events of a chat before its first token, which are sent together with it as vLLM does.
    pub(super) fn beginning(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.begun, true) || self.completion.api == Api::Text {
            return None;
        }
        let mut piece = self.completion.piece(Some(""), None);
        piece["choices"][0]["delta"]["role"] = json!("assistant");
        Some(event(&piece))
    }

    /// Events of the next tokens up to `decoded`, and those that end the stream after the last token.
    pub(super) fn next_events(&mut self, decoded: u64) -> String {
        let until = decoded.min(self.sent_tokens + FRAME_TOKENS_MAX);
        let accepted = self.completion.ticket.accepted;
        let mut events: String = (self.sent_tokens..until)
            .map(|index| event(&self.completion.piece(Some(accepted.text.token(index)), None)))
            .collect();
        self.sent_tokens = until;
        if self.is_over() {
            events += &event(&self.completion.piece(None, Some(accepted.finish.as_str())));
            if self.completion.include_usage {
                let mut usage = self.completion.chunk(json!([]));
                usage["usage"] = self.completion.usage();
                events += &event(&usage);
            }
            events += "data: [DONE]\n\n";
        }
        events
    }
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}
