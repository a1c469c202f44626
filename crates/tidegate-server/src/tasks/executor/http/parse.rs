//! Parsing of request bodies and queries.

use crate::http::request::percent_decoded;
use crate::tasks::execution::{ExecuteBody, ExecutionQuery, ReserveBody};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Number;
use std::collections::BTreeMap;
use std::time::Duration;

/// Error of a body or a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not JSON.
    #[error("the body is not JSON: {0}")]
    NotJson(String),
    /// Missing field, or field of another type.
    #[error("the body is invalid: {0}")]
    WrongType(String),
    /// Number out of range.
    #[error("{field}: {given} was given; expected {expected}")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// Number given.
        given: String,
        /// Accepted numbers.
        expected: &'static str,
    },
    /// Query parameter that is no number.
    #[error("{field}: {given:?} was given; expected a whole number")]
    Query {
        /// Name of the parameter.
        field: &'static str,
        /// Value given, shortened.
        given: String,
    },
}

/// Body of `POST /execute` with raw numbers, to distinguish a number out of range from another type.
#[derive(Deserialize)]
#[serde(expecting = "an object with \"eval_id\" and \"code\"")]
struct RawExecute {
    eval_id: String,
    code: String,
    #[serde(default, alias = "runtime")]
    language: Option<String>,
    #[serde(default)]
    reservation_id: Option<String>,
    #[serde(default)]
    attempt: Option<Number>,
    #[serde(default)]
    timeout_ms: Option<Number>,
    #[serde(default)]
    lease_ms: Option<Number>,
    #[serde(default)]
    args: Option<Vec<String>>,
    #[serde(default)]
    env: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with \"eval_id\"")]
struct RawReserve {
    eval_id: String,
    #[serde(default)]
    ttl: Option<f64>,
    #[serde(default)]
    attempt: Option<Number>,
}

/// Parses the body of `POST /execute`.
///
/// # Errors
///
/// When it is not JSON, or a field is missing, of another type or out of range.
pub fn execute(bytes: &[u8]) -> Result<ExecuteBody, ParseError> {
    let raw: RawExecute = json(bytes)?;
    Ok(ExecuteBody {
        eval_id: raw.eval_id,
        code: raw.code,
        language: raw.language,
        reservation_id: raw.reservation_id,
        attempt: attempt(raw.attempt.as_ref())?,
        timeout_ms: millis("timeout_ms", raw.timeout_ms.as_ref())?,
        lease_ms: millis("lease_ms", raw.lease_ms.as_ref())?,
        args: raw.args.unwrap_or_default(),
        env: raw.env.unwrap_or_default(),
    })
}

/// Parses the body of `POST /reserve`.
///
/// # Errors
///
/// When it is not JSON, or a field is missing, of another type or out of range.
pub fn reserve(bytes: &[u8]) -> Result<ReserveBody, ParseError> {
    let raw: RawReserve = json(bytes)?;
    let attempt = attempt(raw.attempt.as_ref())?;
    Ok(ReserveBody { eval_id: raw.eval_id, ttl: raw.ttl.unwrap_or(30.0), attempt })
}

/// Parses the query of `GET /executions/{id}`.
///
/// # Errors
///
/// When a parameter is no whole number.
pub fn execution_query(query: Option<&str>) -> Result<ExecutionQuery, ParseError> {
    let mut parsed = ExecutionQuery::default();
    for pair in query.unwrap_or_default().split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let number = |field| {
            let value = percent_decoded(value);
            value.parse().map_err(|_| ParseError::Query { field, given: cut(&value) })
        };
        match name {
            "wait_ms" => parsed.wait = Duration::from_millis(number("wait_ms")?),
            "after" => parsed.after = number("after")?,
            "progress" => parsed.progress = Some(number("progress")?),
            "fence" => parsed.fence = Some(number("fence")?),
            _ => {}
        }
    }
    Ok(parsed)
}

fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ParseError> {
    serde_json::from_slice(bytes).map_err(|error| match error.is_data() {
        true => ParseError::WrongType(cut(&error.to_string())),
        false => ParseError::NotJson(error.to_string()),
    })
}

fn attempt(given: Option<&Number>) -> Result<u32, ParseError> {
    let Some(given) = given else { return Ok(1) };
    // The executor itself refuses 0, also from callers in the same process.
    let attempt = given.as_u64().and_then(|attempt| u32::try_from(attempt).ok());
    let expected = "1 … 4294967295";
    attempt.ok_or_else(|| ParseError::OutOfRange {
        field: "attempt",
        given: given.to_string(),
        expected,
    })
}

fn millis(field: &'static str, given: Option<&Number>) -> Result<Option<u64>, ParseError> {
    let Some(given) = given else { return Ok(None) };
    let wrong = || {
        let expected = "a whole number of milliseconds, from 1";
        ParseError::OutOfRange { field, given: given.to_string(), expected }
    };
    given.as_u64().map(Some).ok_or_else(wrong)
}

/// Bounds a quoted value, so that a response does not grow with a request.
fn cut(text: &str) -> String {
    text.chars().take(256).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_fields_have_defaults() {
        let body =
            execute(br#"{"eval_id": "a", "code": "1", "args": null, "extra": [1]}"#).unwrap();
        assert_eq!((body.attempt, body.timeout_ms, body.args.len()), (1, None, 0));
        assert_eq!(reserve(br#"{"eval_id": "a"}"#).unwrap().ttl, 30.0);
        assert_eq!(reserve(br#"{"eval_id": "a", "ttl": 5}"#).unwrap().ttl, 5.0);
        let query = execution_query(Some("wait_ms=5&x=y&fence=7")).unwrap();
        assert_eq!((query.wait, query.after, query.fence), (Duration::from_millis(5), 0, Some(7)));
    }

    #[test]
    fn a_number_out_of_range_differs_from_another_type() {
        let wrong = |field: &str| {
            let body = format!(r#"{{"eval_id": "a", "code": "1", {field}}}"#);
            execute(body.as_bytes()).unwrap_err()
        };
        for field in
            [r#""attempt": -1"#, r#""attempt": 1.5"#, r#""timeout_ms": -5"#, r#""lease_ms": 0.5"#]
        {
            assert!(matches!(wrong(field), ParseError::OutOfRange { .. }), "{field}");
        }
        for field in
            [r#""attempt": "1""#, r#""args": "x""#, r#""env": {"a": 1}"#, r#""language": 3"#]
        {
            assert!(matches!(wrong(field), ParseError::WrongType(_)), "{field}");
        }
        for body in [&b""[..], b"{", b"nope", br#"{"eval_id": "a", "ttl": NaN}"#, b"\xFF"] {
            assert!(matches!(reserve(body), Err(ParseError::NotJson(_))), "{body:?}");
        }
        let Err(error) = reserve(b"7") else { panic!("a number is no request") };
        assert!(matches!(error, ParseError::WrongType(_)));
        assert!(error.to_string().contains("expected an object with \"eval_id\""), "{error}");
        assert!(execution_query(Some("after=-1")).is_err());
    }
}
