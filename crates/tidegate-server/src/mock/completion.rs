use super::request::{Api, CompletionRequest};
use super::shell::Ticket;
use serde_json::{Value, json};

/// Tokens that stand in one frame of a stream at most, for a client that fell behind.
const FRAME_TOKENS_MAX: u64 = 64;

/// An answer to a request for a completion, in the shapes of OpenAI.
#[derive(Debug)]
pub(super) struct Completion {
    api: Api,
    model: String,
    include_usage: bool,
    created_s: u64,
    /// Dropped with the answer, which cancels what is left of the sequence.
    pub(super) ticket: Ticket,
}

/// A completion that is sent while it comes to be.
#[derive(Debug)]
pub(super) struct Stream {
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

    /// All of it, at its end.
    pub(super) fn whole(&self) -> Value {
        let accepted = &self.ticket.accepted;
        let text = accepted.words.text(accepted.output_tokens);
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

    /// A piece of a stream: this text, and why it ends if it does.
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
            "id": format!("{prefix}-{:016x}", self.ticket.accepted.words.seed()),
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

    /// Whether everything was sent.
    pub(super) fn is_over(&self) -> bool {
        self.sent_tokens == self.completion.ticket.accepted.output_tokens
    }

    /// The events of a chat before its first token.
    pub(super) fn beginning(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.begun, true) || self.completion.api == Api::Text {
            return None;
        }
        let mut piece = self.completion.piece(Some(""), None);
        piece["choices"][0]["delta"]["role"] = json!("assistant");
        Some(event(&piece))
    }

    /// The events of the next tokens, of `decoded` in all; with those that end the stream when these are the last.
    pub(super) fn next_events(&mut self, decoded: u64) -> String {
        let until = decoded.min(self.sent_tokens + FRAME_TOKENS_MAX);
        let accepted = self.completion.ticket.accepted;
        let mut events: String = (self.sent_tokens..until)
            .map(|index| event(&self.completion.piece(Some(accepted.words.token(index)), None)))
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
