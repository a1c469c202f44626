use super::problem::Problem;
use serde_json::{Map, Value};

/// Approximate bytes per token of English text.
const BYTES_PER_TOKEN: u64 = 4;

/// Tokens that a chat template adds to each message: role, begin and end marks.
const TOKENS_PER_MESSAGE: u64 = 3;

/// Completion API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Text,
}

/// Completion request; fields that only affect the content are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CompletionRequest {
    pub(super) api: Api,
    pub(super) model: String,
    pub(super) prompt_tokens: u64,
    pub(super) max_tokens: Option<u64>,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
}

/// JSON object with typed access to its fields.
struct Fields<'a>(&'a Map<String, Value>);

// === impl CompletionRequest ===

impl CompletionRequest {
    pub(super) fn parse(api: Api, body: &[u8], models: &[String]) -> Result<Self, Problem> {
        let value: Value = serde_json::from_slice(body).map_err(|error| {
            Problem::invalid(
                None,
                format!("We could not parse the JSON body of your request: {error}"),
            )
        })?;
        let Value::Object(object) = &value else {
            return Err(Problem::invalid(None, "The body must be a JSON object.".to_owned()));
        };
        let fields = Fields(object);
        let model = fields.text("model")?.ok_or_else(|| Problem::missing("model"))?;
        if !models.iter().any(|known| known == model) {
            return Err(Problem::UnknownModel { model: model.to_owned() });
        }
        let prompt_tokens = match api {
            Api::Chat => message_tokens(fields.required("messages")?)?,
            Api::Text => prompt_tokens(fields.required("prompt")?)?,
        };
        let stream = fields.flag("stream")?.unwrap_or(false);
        if fields.whole("n")?.unwrap_or(1) != 1 {
            return Err(Problem::invalid(Some("n"), "This mock supports one choice.".to_owned()));
        }
        Ok(Self {
            api,
            model: model.to_owned(),
            prompt_tokens,
            max_tokens: match fields.whole("max_completion_tokens")? {
                Some(tokens) => Some(tokens),
                None => fields.whole("max_tokens")?,
            },
            stream,
            include_usage: include_usage(&fields, stream)?,
        })
    }
}

fn include_usage(fields: &Fields<'_>, stream: bool) -> Result<bool, Problem> {
    match fields.some("stream_options") {
        None => Ok(false),
        Some(_) if !stream => Err(Problem::invalid(
            Some("stream_options"),
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.".to_owned(),
        )),
        Some(Value::Object(options)) => Ok(Fields(options).flag("include_usage")?.unwrap_or(false)),
        Some(other) => Err(wrong_type("stream_options", "an object", other)),
    }
}

/// Tokens of a chat. Content is text, a list of parts, or null.
fn message_tokens(messages: &Value) -> Result<u64, Problem> {
    let Value::Array(list) = messages else {
        return Err(wrong_type("messages", "an array", messages));
    };
    if list.is_empty() {
        let message = "Invalid 'messages': at least one is required.".to_owned();
        return Err(Problem::invalid(Some("messages"), message));
    }
    let mut bytes = 0;
    for message in list {
        let Value::Object(message) = message else {
            return Err(wrong_type("messages", "an array of objects", message));
        };
        let fields = Fields(message);
        fields.text("role")?.ok_or_else(|| Problem::missing("messages.role"))?;
        bytes += match fields.some("content") {
            None => 0,
            Some(Value::String(text)) => text.len() as u64,
            Some(Value::Array(parts)) => parts.iter().map(part_bytes).sum(),
            Some(other) => {
                return Err(wrong_type("messages.content", "a string or an array", other));
            }
        };
    }
    Ok(tokens_of(bytes) + TOKENS_PER_MESSAGE * list.len() as u64)
}

fn part_bytes(part: &Value) -> u64 {
    part.get("text").and_then(Value::as_str).map_or(0, |text| text.len() as u64)
}

/// Tokens of a prompt: text, token ids, or a list with one of either.
fn prompt_tokens(prompt: &Value) -> Result<u64, Problem> {
    match prompt {
        Value::String(text) => Ok(tokens_of(text.len() as u64)),
        Value::Array(list) if list.iter().all(Value::is_u64) && !list.is_empty() => {
            Ok(list.len() as u64)
        }
        Value::Array(list) => match list.as_slice() {
            [one @ (Value::String(_) | Value::Array(_))] => prompt_tokens(one),
            _ => Err(Problem::invalid(Some("prompt"), "This mock supports one prompt.".to_owned())),
        },
        other => Err(wrong_type("prompt", "a string or an array", other)),
    }
}

fn tokens_of(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN).max(1)
}

fn wrong_type(field: &'static str, expected: &str, found: &Value) -> Problem {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    let message =
        format!("Invalid type for '{field}': expected {expected}, but got {found} instead.");
    Problem::invalid(Some(field), message)
}

// === impl Fields ===

impl<'a> Fields<'a> {
    /// Field that is set; null counts as not set.
    fn some(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn required(&self, name: &'static str) -> Result<&'a Value, Problem> {
        self.some(name).ok_or_else(|| Problem::missing(name))
    }

    fn text(&self, name: &'static str) -> Result<Option<&'a str>, Problem> {
        self.typed(name, "a string", Value::as_str)
    }

    fn flag(&self, name: &'static str) -> Result<Option<bool>, Problem> {
        self.typed(name, "a boolean", Value::as_bool)
    }

    fn whole(&self, name: &'static str) -> Result<Option<u64>, Problem> {
        self.typed(name, "a whole number from 1", |value| value.as_u64().filter(|n| *n > 0))
    }

    fn typed<T>(
        &self,
        name: &'static str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.some(name) else { return Ok(None) };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(wrong_type(name, expected, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(api: Api, json: &str) -> Result<CompletionRequest, Problem> {
        CompletionRequest::parse(api, json.as_bytes(), &["m".to_owned()])
    }

    #[test]
    fn about_four_bytes_are_a_token() {
        for (prompt, tokens) in [
            (r#""""#, 1),
            (r#""12345""#, 2),
            (r#"["12345678"]"#, 2),
            ("[1, 2, 3]", 3),
            ("[[1]]", 1),
        ] {
            let request = parse(Api::Text, &format!(r#"{{"model": "m", "prompt": {prompt}}}"#));
            assert_eq!(request.unwrap().prompt_tokens, tokens, "{prompt}");
        }
        let chat = r#"{"model": "m", "messages": [
            {"role": "system", "content": "12345678"},
            {"role": "user", "content": [{"type": "text", "text": "1234"}, {"type": "image_url"}]},
            {"role": "assistant", "content": null}]}"#;
        assert_eq!(parse(Api::Chat, chat).unwrap().prompt_tokens, 3 + 3 * 3);
    }

    #[test]
    fn errors_name_the_field() {
        let cases = [
            (Api::Text, r#"{"prompt": "a"}"#, "model"),
            (Api::Text, r#"{"model": 1, "prompt": "a"}"#, "model"),
            (Api::Text, r#"{"model": "m"}"#, "prompt"),
            (Api::Text, r#"{"model": "m", "prompt": ["a", "b"]}"#, "prompt"),
            (Api::Text, r#"{"model": "m", "prompt": []}"#, "prompt"),
            (Api::Text, r#"{"model": "m", "prompt": "a", "max_tokens": 0}"#, "max_tokens"),
            (Api::Text, r#"{"model": "m", "prompt": "a", "max_tokens": "9"}"#, "max_tokens"),
            (Api::Text, r#"{"model": "m", "prompt": "a", "stream": 1}"#, "stream"),
            (Api::Text, r#"{"model": "m", "prompt": "a", "n": 2}"#, "n"),
            (Api::Text, r#"{"model": "m", "prompt": "a", "stream_options": {}}"#, "stream_options"),
            (Api::Chat, r#"{"model": "m", "messages": "a"}"#, "messages"),
            (Api::Chat, r#"{"model": "m", "messages": []}"#, "messages"),
            (Api::Chat, r#"{"model": "m", "messages": [1]}"#, "messages"),
            (Api::Chat, r#"{"model": "m", "messages": [{"content": "a"}]}"#, "messages.role"),
            (
                Api::Chat,
                r#"{"model": "m", "messages": [{"role": "user", "content": 1}]}"#,
                "messages.content",
            ),
        ];
        for (api, json, field) in cases {
            match parse(api, json) {
                Err(Problem::Invalid { param, .. }) => assert_eq!(param, Some(field), "{json}"),
                other => panic!("{json}: {other:?}"),
            }
        }
        for json in ["{", "[]", "\u{1}"] {
            let invalid =
                matches!(parse(Api::Text, json), Err(Problem::Invalid { param: None, .. }));
            assert!(invalid, "{json}");
        }
        let unknown = r#"{"model": "x", "prompt": "a"}"#;
        assert!(matches!(parse(Api::Text, unknown), Err(Problem::UnknownModel { .. })));
    }
}
