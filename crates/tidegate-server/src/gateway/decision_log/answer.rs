use super::decision_log::TooManyRecorders;
use super::{DecisionLog, DecisionStream, RECORDERS_MAX};
use crate::config::Config;
use crate::http::admission::Admission;
use crate::http::error_response::{ErrorKind, ErrorResponse};
use crate::http::{Phase, ResponseBody, response};
use http::Response;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The duration of a recording by default.
const LASTS: Duration = Duration::from_secs(60);

/// The longest recording: one day.
const LASTS_MAX_S: f64 = 86_400.0;

/// The log of decisions, and the settings that they are made by.
#[derive(Clone, Debug)]
pub struct DecisionSource {
    /// The log.
    pub log: Arc<DecisionLog>,
    /// The configuration of the gateway.
    pub config: Arc<Config>,
    /// Admission of requests.
    pub admission: Arc<Admission>,
    /// The phase of the gateway.
    pub phase: watch::Receiver<Phase>,
}

/// The refusal of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The most recordings are already active.
    #[error("{RECORDERS_MAX} recordings are active, which is the maximum: wait for one to end")]
    TooMany,
    /// The query string is not valid.
    #[error("the only parameter is for_s, in seconds from 0.1 to 86400, for example for_s=60")]
    Parameter,
}

/// Streams the gateway's decisions for `for_s` seconds.
///
/// # Errors
///
/// When the most recordings are active, or the query is not valid.
pub fn answer(
    source: &DecisionSource,
    query: Option<&str>,
) -> Result<Response<ResponseBody>, RecordError> {
    let lasts = lasts(query)?;
    let subscription = source.log.subscribe().map_err(|TooManyRecorders| RecordError::TooMany)?;
    let stream = DecisionStream::new(source, subscription, lasts);
    Ok(response::uncached("application/x-ndjson", ResponseBody::stream(stream)))
}

// === impl RecordError ===

impl RecordError {
    /// The response to such a request.
    #[must_use]
    pub fn respond(self) -> Response<ResponseBody> {
        let (kind, reason) = match self {
            Self::Parameter => (ErrorKind::BadRequest, "wrong_parameter"),
            Self::TooMany => (ErrorKind::Unavailable, "too_many_recorders"),
        };
        ErrorResponse::new(kind, reason, &self.to_string()).json()
    }
}

fn lasts(query: Option<&str>) -> Result<Duration, RecordError> {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(LASTS) };
    let seconds = query.strip_prefix("for_s=").and_then(|text| text.parse().ok());
    seconds
        .filter(|seconds| (0.1..=LASTS_MAX_S).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or(RecordError::Parameter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_lasts_as_long_as_is_asked_for() {
        assert_eq!(lasts(None), Ok(LASTS));
        assert_eq!(lasts(Some("for_s=2.5")), Ok(Duration::from_millis(2_500)));
        for wrong in ["for_s=0", "for_s=86401", "for_s=NaN", "for_s=", "for=60", "for_s=1&x=2"] {
            assert_eq!(lasts(Some(wrong)), Err(RecordError::Parameter), "{wrong}");
        }
    }
}
