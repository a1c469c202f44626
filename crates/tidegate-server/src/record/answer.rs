use super::{DecisionStream, RECORDERS_MAX};
use crate::gateway::Shared;
use crate::proxy::GatewayBody;
use http::Response;
use http::header::{self, HeaderValue};
use std::time::Duration;

/// How long is recorded when nothing else is asked for.
const LASTS: Duration = Duration::from_secs(60);

/// A day: what is longer is better taken in parts.
const LASTS_MAX_S: f64 = 86_400.0;

/// Decisions were asked for and are not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// As many record as may.
    #[error(
        "{RECORDERS_MAX} recordings are being made, and there may be no more: wait for one to end"
    )]
    TooMany,
    /// The question can't be read.
    #[error("write for_s=60, with seconds from 0.1 to 86400, and nothing else")]
    Parameter,
}

/// Records what the gateway decides, for as long as `for_s` says.
///
/// # Errors
///
/// When as many record as may, or something else is asked for.
pub fn answer(shared: &Shared, query: Option<&str>) -> Result<Response<GatewayBody>, RecordError> {
    let lasts = lasts(query)?;
    let tapped = shared.journal.tap().map_err(|_| RecordError::TooMany)?;
    let stream = DecisionStream::new(shared, tapped, lasts);
    let mut response = Response::new(GatewayBody::Decisions(Box::new(stream)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
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
