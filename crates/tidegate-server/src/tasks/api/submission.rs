use super::error::TaskApiError;
use super::limits::SubmissionSettings;
use crate::http::admission::Claim;
use crate::tasks::manager::Submit;
use http::HeaderName;
use http::header::{self, HeaderMap};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tidegate::MessagePriority;
use tidegate::suggestion::nearest;
use tidegate::task::{TaskId, TaskSpec};

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Longest idempotency key.
const KEY_BYTES_MAX: usize = 256;

const FIELDS: [&str; 9] =
    ["id", "runtime", "language", "code", "args", "env", "priority", "timeout_ms", "retries"];

const PRIORITIES: &str = "high, normal or low";

/// Head of a submission, checked before its body is read.
#[derive(Debug)]
pub struct SubmissionHead<'a> {
    claim: Claim<'a>,
    key: Option<Box<str>>,
}

// === impl SubmissionHead ===

impl<'a> SubmissionHead<'a> {
    /// Reads the headers.
    ///
    /// # Errors
    ///
    /// When the content type is not JSON, or the idempotency key is invalid.
    pub fn of(headers: &HeaderMap, claim: Claim<'a>) -> Result<Self, TaskApiError> {
        check_type(headers)?;
        let key = key(headers)?.map(|key| match claim.client {
            // A key has no space, so no client can give another client's key.
            Some(client) => format!("{client} {key}").into(),
            None => key.into(),
        });
        Ok(Self { claim, key })
    }

    /// Parses the body.
    ///
    /// # Errors
    ///
    /// When it is not JSON, or a field is unknown or has an invalid value.
    pub fn with_body(
        self,
        body: &[u8],
        settings: &SubmissionSettings,
    ) -> Result<Submit, TaskApiError> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| TaskApiError::NotJson(error.to_string()))?;
        let Value::Object(mut fields) = value else {
            return Err(wrong("body", &value, "an object with \"runtime\" and \"code\""));
        };
        // Null means absent.
        fields.retain(|_, value| !value.is_null());
        if let Some(field) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
            return Err(unknown(field));
        }
        let id = text(&mut fields, "id", "a string")?;
        let id = id.map(|id| TaskId::new(&id)).transpose()?;
        let code = required(&mut fields, "code", "the code to run, a string")?;
        let spec = TaskSpec {
            runtime: runtime(&mut fields)?,
            code,
            args: args(&mut fields)?,
            env: env(&mut fields)?,
            priority: self.priority(&mut fields)?,
            timeout_ms: timeout_ms(&fields)?.unwrap_or(settings.timeout_ms),
            retries: retries(&fields)?.unwrap_or(0),
        };
        Ok(Submit { id, key: self.key, client: self.claim.owner().map(Into::into), spec })
    }

    /// The priority of the body, capped at the client's highest; default: that of the head.
    fn priority(&self, fields: &mut Map<String, Value>) -> Result<MessagePriority, TaskApiError> {
        let Some(name) = text(fields, "priority", PRIORITIES)? else {
            return Ok(self.claim.priority);
        };
        match MessagePriority::from_name(&name) {
            Some(priority) if priority != MessagePriority::Critical => {
                Ok(priority.capped_at(self.claim.most))
            }
            _ => Err(TaskApiError::Value {
                field: "priority",
                given: quoted(&name),
                expected: PRIORITIES,
            }),
        }
    }
}

fn check_type(headers: &HeaderMap) -> Result<(), TaskApiError> {
    let Some(given) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let given = String::from_utf8_lossy(given.as_bytes());
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // The default of curl: the body is JSON all the same, or parsing refuses it. A web page of another origin may
    // send it too, and is refused for its origin.
    let curl_default = essence == "application/x-www-form-urlencoded";
    let json = curl_default
        || essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    match json {
        true => Ok(()),
        false => Err(TaskApiError::NotJsonType { given: quoted(&given) }),
    }
}

fn key(headers: &HeaderMap) -> Result<Option<&str>, TaskApiError> {
    let mut keys = headers.get_all(&IDEMPOTENCY_KEY).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let fits = (1..=KEY_BYTES_MAX).contains(&key.len())
        && key.as_bytes().iter().all(u8::is_ascii_graphic)
        && keys.next().is_none();
    match (fits, key.to_str()) {
        (true, Ok(key)) => Ok(Some(key)),
        _ => Err(TaskApiError::Value {
            field: "Idempotency-Key",
            given: quoted(&String::from_utf8_lossy(key.as_bytes())),
            expected: "one key of 1 … 256 visible ASCII characters without spaces",
        }),
    }
}

fn runtime(fields: &mut Map<String, Value>) -> Result<String, TaskApiError> {
    const EXPECTED: &str = "a runtime, such as \"python\"";
    let language = text(fields, "language", EXPECTED)?;
    match (text(fields, "runtime", EXPECTED)?, language) {
        (Some(runtime), Some(language)) if runtime != language => Err(TaskApiError::Value {
            field: "language",
            given: quoted(&language),
            expected: "the same value as runtime, or none",
        }),
        (Some(runtime), _) | (None, Some(runtime)) => Ok(runtime),
        (None, None) => Err(wrong("runtime", &Value::Null, EXPECTED)),
    }
}

fn args(fields: &mut Map<String, Value>) -> Result<Vec<String>, TaskApiError> {
    const EXPECTED: &str = "an array of strings";
    let args = match fields.remove("args") {
        None => return Ok(Vec::new()),
        Some(Value::Array(args)) => args,
        Some(other) => return Err(wrong("args", &other, EXPECTED)),
    };
    let one = |arg| match arg {
        Value::String(arg) => Ok(arg),
        other => Err(wrong("args", &other, EXPECTED)),
    };
    args.into_iter().map(one).collect()
}

fn env(fields: &mut Map<String, Value>) -> Result<BTreeMap<String, String>, TaskApiError> {
    const EXPECTED: &str = "an object whose values are strings";
    let env = match fields.remove("env") {
        None => return Ok(BTreeMap::new()),
        Some(Value::Object(env)) => env,
        Some(other) => return Err(wrong("env", &other, EXPECTED)),
    };
    let one = |(name, value)| match value {
        Value::String(value) => Ok((name, value)),
        other => Err(wrong("env", &other, EXPECTED)),
    };
    env.into_iter().map(one).collect()
}

fn timeout_ms(fields: &Map<String, Value>) -> Result<Option<u64>, TaskApiError> {
    const EXPECTED: &str = "a whole number of milliseconds, at least 1";
    let Some(value) = fields.get("timeout_ms") else { return Ok(None) };
    let whole = whole(value).filter(|whole| *whole > 0);
    whole.map(Some).ok_or_else(|| wrong("timeout_ms", value, EXPECTED))
}

fn retries(fields: &Map<String, Value>) -> Result<Option<u32>, TaskApiError> {
    let Some(value) = fields.get("retries") else { return Ok(None) };
    let whole = whole(value).and_then(|whole| u32::try_from(whole).ok());
    whole.map(Some).ok_or_else(|| wrong("retries", value, "a whole number, at least 0"))
}

/// A whole number; 10000.0 is one too.
fn whole(value: &Value) -> Option<u64> {
    let exact = |number: &f64| number.fract() == 0.0 && (0.0..9e15).contains(number);
    value.as_u64().or_else(|| value.as_f64().filter(exact).map(|number| number as u64))
}

fn required(
    fields: &mut Map<String, Value>,
    field: &'static str,
    expected: &'static str,
) -> Result<String, TaskApiError> {
    let text = text(fields, field, expected)?;
    text.ok_or_else(|| wrong(field, &Value::Null, expected))
}

fn text(
    fields: &mut Map<String, Value>,
    field: &'static str,
    expected: &'static str,
) -> Result<Option<String>, TaskApiError> {
    match fields.remove(field) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(field, &other, expected)),
    }
}

fn unknown(field: &str) -> TaskApiError {
    TaskApiError::UnknownField {
        field: field.chars().take(64).collect(),
        nearest: nearest(field, FIELDS),
        known: FIELDS.join(", "),
    }
}

fn wrong(field: &'static str, value: &Value, expected: &'static str) -> TaskApiError {
    let given = match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        scalar => scalar.to_string(),
    };
    TaskApiError::Value { field, given, expected }
}

/// A quoted text of at most 64 characters.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 64;
    match text.char_indices().nth(SHOWN) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessagePriority::{High, Low, Normal};
    use http::HeaderValue;

    const ANONYMOUS: Claim<'static> =
        Claim { client: None, is_operator: false, most: High, priority: Normal };

    fn head(
        headers: &[(&'static str, &str)],
        claim: Claim<'static>,
    ) -> Result<Submit, TaskApiError> {
        submit(headers, claim, r#"{"runtime":"sh","code":"true"}"#)
    }

    fn submit(
        headers: &[(&'static str, &str)],
        claim: Claim<'static>,
        body: &str,
    ) -> Result<Submit, TaskApiError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        SubmissionHead::of(&map, claim)?.with_body(body.as_bytes(), &SubmissionSettings::default())
    }

    fn body(body: &str) -> Result<Submit, TaskApiError> {
        submit(&[], ANONYMOUS, body)
    }

    #[test]
    fn missing_fields_have_defaults() {
        let least = body(r#"{"runtime":"sh","code":"true"}"#).unwrap();
        assert_eq!((least.id, least.key), (None, None));
        assert_eq!((least.spec.timeout_ms, least.spec.retries), (60_000, 0));
        assert_eq!(least.spec.priority, Normal);
        let same = r#"{"language":"sh","code":"true","id":null,"args":null,"retries":null}"#;
        assert_eq!(body(same).unwrap().spec, least.spec, "null is absent, a language is a runtime");
    }

    #[test]
    fn every_field_is_read() {
        let all = body(
            r#"{"id":"n-1","runtime":"python","code":"x","args":["a"],"env":{"K":"V"},
                "priority":"low","timeout_ms":5000.0,"retries":3}"#,
        )
        .unwrap();
        assert_eq!(all.id, Some(TaskId::new("n-1").unwrap()));
        assert_eq!((all.spec.args.len(), all.spec.env["K"].as_str()), (1, "V"));
        assert_eq!((all.spec.priority, all.spec.timeout_ms, all.spec.retries), (Low, 5_000, 3));
    }

    #[test]
    fn an_unknown_field_is_refused_with_the_nearest_one() {
        let error = body(r#"{"runtime":"sh","code":"x","timeout":5}"#).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("\"timeout\" is no field of a task"), "{message}");
        assert!(body(r#"{"runtmie":"sh","code":"x"}"#).unwrap_err().to_string().contains(
            "\"runtmie\" is no field of a task (did you mean runtime?); known fields: id, runtime"
        ));
        let far = body(r#"{"zzzzzzzzzz":"sh"}"#).unwrap_err().to_string();
        assert!(!far.contains("did you mean"), "{far}");
    }

    #[test]
    fn an_invalid_value_is_refused_with_its_field_and_the_values_expected() {
        for (json, field, expected) in [
            (r#"{"code":"x"}"#, "runtime", "nothing was given"),
            (r#"{"runtime":"sh"}"#, "code", "nothing was given"),
            (r#"{"runtime":"sh","code":7}"#, "code", "7 was given"),
            (r#"{"runtime":"sh","code":"x","timeout_ms":-1}"#, "timeout_ms", "-1 was given"),
            (r#"{"runtime":"sh","code":"x","timeout_ms":0}"#, "timeout_ms", "at least 1"),
            (r#"{"runtime":"sh","code":"x","timeout_ms":1.5}"#, "timeout_ms", "1.5 was given"),
            (r#"{"runtime":"sh","code":"x","timeout_ms":"5s"}"#, "timeout_ms", "\"5s\" was given"),
            (r#"{"runtime":"sh","code":"x","timeout_ms":1e300}"#, "timeout_ms", "1e+300"),
            (r#"{"runtime":"sh","code":"x","retries":-1}"#, "retries", "at least 0"),
            (r#"{"runtime":"sh","code":"x","retries":4294967296}"#, "retries", "4294967296"),
            (r#"{"runtime":"sh","code":"x","args":"a"}"#, "args", "an array of strings"),
            (r#"{"runtime":"sh","code":"x","args":[1]}"#, "args", "1 was given"),
            (r#"{"runtime":"sh","code":"x","env":["A=B"]}"#, "env", "an object whose values"),
            (r#"{"runtime":"sh","code":"x","env":{"A":1}}"#, "env", "1 was given"),
            (r#"{"runtime":"sh","code":"x","priority":"critical"}"#, "priority", PRIORITIES),
            (r#"{"runtime":"sh","code":"x","id":"a b"}"#, "id", "can't name a task"),
            (r#"{"runtime":"sh","language":"py","code":"x"}"#, "language", "the same value"),
            ("[]", "body", "an array was given"),
        ] {
            let error = body(json).unwrap_err();
            assert_eq!(error.field(), Some(field), "{json}");
            assert!(error.to_string().contains(expected), "{json}: {error}");
        }
        assert!(matches!(body("{"), Err(TaskApiError::NotJson(_))));
        assert!(matches!(body(""), Err(TaskApiError::NotJson(_))));
    }

    #[test]
    fn a_long_value_is_cut_in_the_message() {
        let json = format!(r#"{{"runtime":"sh","code":"x","priority":"{}"}}"#, "é".repeat(5_000));
        assert!(body(&json).unwrap_err().to_string().len() < 300);
    }

    #[test]
    fn no_task_gets_a_higher_priority_than_its_client_may_claim() {
        let slow = Claim { client: Some("batch"), is_operator: false, most: Low, priority: Low };
        let high = r#"{"runtime":"sh","code":"x","priority":"high"}"#;
        assert_eq!(submit(&[], slow, high).unwrap().spec.priority, Low);
        assert_eq!(submit(&[], ANONYMOUS, high).unwrap().spec.priority, High);
        let claimed = Claim { priority: High, ..ANONYMOUS };
        assert_eq!(head(&[], claimed).unwrap().spec.priority, High, "the head's by default");
    }

    #[test]
    fn keys_are_the_clients_own() {
        let key = |claim| head(&[("idempotency-key", "k")], claim).unwrap().key.unwrap();
        let (a, b) =
            (Claim { client: Some("a"), ..ANONYMOUS }, Claim { client: Some("b"), ..ANONYMOUS });
        assert_eq!(&*key(ANONYMOUS), "k");
        assert_ne!(key(a), key(b));
        assert_ne!(key(a), key(ANONYMOUS));
        let longest = "k".repeat(256);
        assert!(head(&[("idempotency-key", &longest)], a).is_ok());
        for bad in ["", "a b", "é", &"k".repeat(257)] {
            let error = head(&[("idempotency-key", bad)], a).unwrap_err();
            assert_eq!(error.field(), Some("Idempotency-Key"), "{bad}");
        }
        assert!(head(&[("idempotency-key", "a"), ("idempotency-key", "b")], a).is_err());
    }

    #[test]
    fn another_type_than_json_is_refused_by_its_head() {
        let curl_default = "application/x-www-form-urlencoded";
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/x+json",
            curl_default,
        ] {
            assert!(head(&[("content-type", good)], ANONYMOUS).is_ok(), "{good}");
        }
        for bad in ["text/plain", "multipart/form-data", "", "application/jsonx"] {
            let error = head(&[("content-type", bad)], ANONYMOUS).unwrap_err();
            assert!(matches!(error, TaskApiError::NotJsonType { .. }), "{bad}");
        }
    }
}
