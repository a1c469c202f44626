use super::ControlPlane;
use crate::http::ResponseBody;
use crate::http::error_response::{ErrorKind, ErrorResponse};
use crate::http::read_body::{ReadError, collect};
use crate::http::request::{is_cross_origin, percent_decoded};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::Duration;
use tidegate::routing::{BusyThresholds, ThresholdOutOfRange, UnknownModel};

/// More than any request to change a threshold needs.
const BYTES_MAX: usize = 64 * 1024;
/// The longest that such a request may take to arrive.
const READ_MAX: Duration = Duration::from_secs(10);
/// The most tokens or requests that a threshold can say.
const COUNT_MAX: u64 = 1_000_000_000;

const NAMED: &str = "a model's name";
const DECODE: &str = "active_decode_blocks_threshold";
const PREFILL: &str = "active_prefill_tokens_threshold";
const REQUESTS: &str = "active_requests_threshold";

/// The thresholds of one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelThresholds {
    /// The model.
    pub model: String,
    /// Its thresholds; null where a check is off.
    #[serde(flatten)]
    pub thresholds: BusyThresholds,
}

/// The response of `/busy_threshold`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ThresholdsResponse {
    /// Every model.
    All {
        /// By name.
        thresholds: Vec<ModelThresholds>,
    },
    /// The one that was asked for or changed.
    One(ModelThresholds),
}

/// A request to `/busy_threshold` that was not followed. Nothing has changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ThresholdError {
    /// The body is no JSON.
    #[error("the body is not JSON: {0}")]
    NotJson(String),
    /// The body is longer than any sensible one.
    #[error("the body is longer than {BYTES_MAX} bytes")]
    TooLong,
    /// The body did not come.
    #[error("the body broke off or did not come within {READ_MAX:?}")]
    Broken,
    /// A field has the wrong type, or is missing, or is none that there is.
    #[error("{field}: {given} was given; expected is {expected}")]
    WrongType {
        /// The name.
        field: String,
        /// The given value.
        given: String,
        /// The expected values.
        expected: &'static str,
    },
    /// A field has the right type and a value that makes no sense.
    #[error("{field}: {given} is out of range; expected is {expected}")]
    OutOfRange {
        /// The name.
        field: &'static str,
        /// The given value.
        given: String,
        /// The expected values.
        expected: &'static str,
    },
    /// There is no such model.
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    /// The method is none that is answered here.
    #[error("use GET to read, POST to set or clear, DELETE to clear")]
    Method,
    /// Thresholds are only read on this port.
    #[error("thresholds are not changed on a port that others can reach: use the admin port")]
    ReadOnlyHere,
    /// A browser sent the request for a page of another site.
    #[error("the request comes from a page of another origin")]
    CrossOrigin,
}

/// A change of some thresholds; the others stay.
#[derive(Clone, Debug, Default, PartialEq)]
struct Change {
    model: String,
    decode: Option<Option<f64>>,
    prefill: Option<Option<u64>>,
    requests: Option<Option<u64>>,
}

/// Answers a request to `/busy_threshold`. With `guarded`, it only reads.
///
/// # Errors
///
/// When the request can't be followed. Nothing has changed then.
pub async fn answer<B: Body<Data = Bytes>>(
    control: &ControlPlane,
    request: Request<B>,
    guarded: bool,
) -> Result<ThresholdsResponse, ThresholdError> {
    let (parts, body) = request.into_parts();
    if matches!(parts.method, Method::GET | Method::HEAD) {
        return read(control, parts.uri.query());
    }
    if !matches!(parts.method, Method::POST | Method::DELETE) {
        return Err(ThresholdError::Method);
    }
    if guarded {
        return Err(ThresholdError::ReadOnlyHere);
    }
    if is_cross_origin(&parts) {
        return Err(ThresholdError::CrossOrigin);
    }
    let bytes = collect(body, BYTES_MAX, READ_MAX).await?;
    let change = match (&parts.method, model_of(parts.uri.query())) {
        (&Method::DELETE, Some(model)) if bytes.is_empty() => Change::clear(model),
        (&Method::DELETE, None) if bytes.is_empty() => {
            return Err(wrong("model", &Value::Null, NAMED));
        }
        (&Method::DELETE, _) => Change::clear(Change::parse(&bytes)?.model),
        _ => Change::parse(&bytes)?,
    };
    apply(control, &change)
}

fn read(control: &ControlPlane, query: Option<&str>) -> Result<ThresholdsResponse, ThresholdError> {
    let monitor = control.fleet.monitor();
    if let Some(model) = model_of(query) {
        let thresholds = monitor.thresholds_of(&model)?;
        return Ok(ThresholdsResponse::One(ModelThresholds { model, thresholds }));
    }
    let all = monitor.thresholds().into_iter();
    let one = |(model, thresholds): (std::sync::Arc<str>, _)| ModelThresholds {
        model: model.to_string(),
        thresholds,
    };
    Ok(ThresholdsResponse::All { thresholds: all.map(one).collect() })
}

fn apply(control: &ControlPlane, change: &Change) -> Result<ThresholdsResponse, ThresholdError> {
    let thresholds =
        control.fleet.monitor().change_thresholds(&change.model, |old| BusyThresholds {
            active_decode_blocks: change.decode.unwrap_or(old.active_decode_blocks),
            active_prefill_tokens: change.prefill.unwrap_or(old.active_prefill_tokens),
            active_requests: change.requests.unwrap_or(old.active_requests),
        })?;
    tracing::info!(model = change.model, ?thresholds, "busy thresholds changed");
    Ok(ThresholdsResponse::One(ModelThresholds { model: change.model.clone(), thresholds }))
}

fn model_of(query: Option<&str>) -> Option<String> {
    let pair = query?.split('&').find_map(|pair| pair.strip_prefix("model="))?;
    Some(percent_decoded(pair))
}

// === impl Change ===

impl Change {
    fn clear(model: String) -> Self {
        Self { model, decode: Some(None), prefill: Some(None), requests: Some(None) }
    }

    fn parse(bytes: &[u8]) -> Result<Self, ThresholdError> {
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|error| ThresholdError::NotJson(error.to_string()))?;
        let Value::Object(fields) = &value else {
            return Err(wrong("body", &value, "an object with \"model\""));
        };
        let known = ["model", DECODE, PREFILL, REQUESTS];
        if let Some(unknown) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            let expected = "one of model, active_decode_blocks_threshold, \
                            active_prefill_tokens_threshold and active_requests_threshold";
            let (field, given) = (unknown.clone(), "an unknown field".to_owned());
            return Err(ThresholdError::WrongType { field, given, expected });
        }
        let model = match fields.get("model") {
            Some(Value::String(model)) => model.clone(),
            other => return Err(wrong("model", other.unwrap_or(&Value::Null), NAMED)),
        };
        Ok(Self {
            model,
            decode: ratio(fields)?,
            prefill: count(fields, PREFILL)?,
            requests: count(fields, REQUESTS)?,
        })
    }
}

fn ratio(fields: &Map<String, Value>) -> Result<Option<Option<f64>>, ThresholdError> {
    const EXPECTED: &str = "a number, 0.0 … 1.0, or null to clear it";
    let ratio = match fields.get(DECODE) {
        None => return Ok(None),
        Some(Value::Null) => return Ok(Some(None)),
        Some(value) => value.as_f64().ok_or_else(|| wrong(DECODE, value, EXPECTED))?,
    };
    let one = BusyThresholds { active_decode_blocks: Some(ratio), ..BusyThresholds::OFF };
    one.check().map_err(|ThresholdOutOfRange { given, .. }| ThresholdError::OutOfRange {
        field: DECODE,
        given: given.to_string(),
        expected: EXPECTED,
    })?;
    // Without the sign of a negative zero.
    Ok(Some(Some(ratio + 0.0)))
}

fn count(
    fields: &Map<String, Value>,
    field: &'static str,
) -> Result<Option<Option<u64>>, ThresholdError> {
    const EXPECTED: &str = "a whole number, 0 … 1000000000, or null to clear it";
    let value = match fields.get(field) {
        None => return Ok(None),
        Some(Value::Null) => return Ok(Some(None)),
        Some(value) => value,
    };
    // 10000.0 is a whole number too.
    let whole = value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0);
    match value.as_u64().or(whole.map(|number| number as u64)) {
        Some(count) if count <= COUNT_MAX => Ok(Some(Some(count))),
        None if !value.is_number() => Err(wrong(field, value, EXPECTED)),
        // A fraction is the wrong type; a number below zero or beyond the bound is out of range.
        None if value.as_f64().is_some_and(|number| number.fract() != 0.0) => {
            Err(wrong(field, value, EXPECTED))
        }
        _ => {
            let given = value.to_string();
            Err(ThresholdError::OutOfRange { field, given, expected: EXPECTED })
        }
    }
}

fn wrong(field: &str, value: &Value, expected: &'static str) -> ThresholdError {
    let given = match value {
        Value::Null => "nothing".to_owned(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        scalar => scalar.to_string(),
    };
    ThresholdError::WrongType { field: field.to_owned(), given, expected }
}

// === impl ThresholdError ===

impl From<ReadError> for ThresholdError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::TooLong => Self::TooLong,
            ReadError::Broken => Self::Broken,
        }
    }
}

impl ThresholdError {
    /// Returns true if the body was read to its end before the error was found.
    #[must_use]
    pub fn is_after_reading(&self) -> bool {
        match self {
            Self::NotJson(_) | Self::WrongType { .. } | Self::OutOfRange { .. } => true,
            Self::UnknownModel(_) => true,
            Self::TooLong | Self::Broken => false,
            Self::Method | Self::ReadOnlyHere | Self::CrossOrigin => false,
        }
    }

    /// The response to such a request.
    #[must_use]
    pub fn respond(&self) -> Response<ResponseBody> {
        let (kind, reason) = match self {
            Self::NotJson(_) => (ErrorKind::BadRequest, "not_json"),
            Self::TooLong => (ErrorKind::TooLarge, "too_long"),
            Self::Broken => (ErrorKind::BadRequest, "upload_broken"),
            Self::WrongType { .. } => (ErrorKind::Unprocessable, "wrong_type"),
            Self::OutOfRange { .. } => (ErrorKind::BadRequest, "out_of_range"),
            Self::UnknownModel(_) => (ErrorKind::NotFound, "unknown_model"),
            Self::Method => {
                (ErrorKind::MethodNotAllowed("GET, HEAD, POST, DELETE"), "unknown_method")
            }
            Self::ReadOnlyHere => (ErrorKind::Forbidden, "read_only_here"),
            Self::CrossOrigin => (ErrorKind::Forbidden, "cross_origin"),
        };
        ErrorResponse::new(kind, reason, &self.to_string()).field(self.field()).json()
    }

    /// The field that is wrong, if it is one.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::WrongType { field, .. } => Some(field),
            Self::OutOfRange { field, .. } => Some(field),
            Self::UnknownModel(_) => Some("model"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Change, ThresholdError> {
        Change::parse(json.as_bytes())
    }

    #[test]
    fn what_is_not_said_stays_and_null_clears() {
        let change = parse(r#"{"model":"m","active_decode_blocks_threshold":null}"#).unwrap();
        assert_eq!((change.decode, change.prefill), (Some(None), None));
        let change = parse(r#"{"model":"m","active_prefill_tokens_threshold":10000}"#).unwrap();
        assert_eq!((change.decode, change.prefill), (None, Some(Some(10_000))));
    }

    #[test]
    fn wrong_types_and_values_out_of_range_are_told_apart_and_name_their_field() {
        for (json, field) in [
            (r#"{"active_decode_blocks_threshold":0.5}"#, "model"),
            (r#"{"model":7}"#, "model"),
            (r#"{"model":"m","active_decode_blocks_threshold":"0.5"}"#, DECODE),
            (r#"{"model":"m","active_prefill_tokens_threshold":10.5}"#, PREFILL),
            (r#"{"model":"m","active_prefill_tokens_threshold":true}"#, PREFILL),
            (
                r#"{"model":"m","active_decode_block_threshold":0.5}"#,
                "active_decode_block_threshold",
            ),
            ("[]", "body"),
        ] {
            let error = parse(json).unwrap_err();
            assert!(matches!(error, ThresholdError::WrongType { .. }), "{json}: {error:?}");
            assert_eq!(error.field(), Some(field), "{json}");
        }
        for (json, field) in [
            (r#"{"model":"m","active_decode_blocks_threshold":1.5}"#, DECODE),
            (r#"{"model":"m","active_decode_blocks_threshold":-1}"#, DECODE),
            (r#"{"model":"m","active_prefill_tokens_threshold":-1}"#, PREFILL),
            (r#"{"model":"m","active_prefill_tokens_threshold":99999999999}"#, PREFILL),
        ] {
            let error = parse(json).unwrap_err();
            assert!(matches!(error, ThresholdError::OutOfRange { .. }), "{json}: {error:?}");
            assert_eq!(error.field(), Some(field), "{json}");
        }
        assert!(matches!(parse("{"), Err(ThresholdError::NotJson(_))));
    }

    #[test]
    fn a_model_in_a_query_may_be_encoded() {
        assert_eq!(
            model_of(Some("x=1&model=Qwen%2FQwen3+a%zz%+f")),
            Some("Qwen/Qwen3 a%zz% f".to_owned())
        );
        assert_eq!(model_of(Some("models=a")), None);
    }
}
