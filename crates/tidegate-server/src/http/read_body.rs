use super::error_response::Unread;
use super::request::has;
use bytes::{Bytes, BytesMut};
use http::{Request, header};
use http_body::Body;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::time::timeout;

/// A body that could not be read. Some of it may be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The body is longer than it may be.
    TooLong,
    /// The body did not come, or not in time.
    Broken,
}

/// The whole body of a request, if it is short enough and comes in time. A body whose head says that it is too
/// long is refused before any of it is read.
pub async fn collect<B: Body<Data = Bytes>>(
    body: B,
    bytes_max: usize,
    time_max: Duration,
) -> Result<Bytes, ReadError> {
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(ReadError::TooLong);
    }
    let mut body = pin!(body);
    let whole = async {
        let mut bytes = BytesMut::new();
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let frame = frame.map_err(|_| ReadError::Broken)?;
            if let Some(data) = frame.data_ref() {
                if bytes.len() + data.len() > bytes_max {
                    return Err(ReadError::TooLong);
                }
                bytes.extend_from_slice(data);
            }
        }
        Ok(bytes.freeze())
    };
    timeout(time_max, whole).await.unwrap_or(Err(ReadError::Broken))
}

/// Reads a short body away, so that a refusal does not cost the connection. A long one is left, and so is one that
/// the client waits to be asked for; reading a short one costs about as much as an empty one.
pub(crate) async fn read_away<B: Body + Unpin>(request: Request<B>) -> Unread {
    let expects = has(request.headers(), &header::EXPECT);
    discard_short(request.into_body(), expects).await
}

/// The same for a body whose client `expects` to be asked for it, or not.
pub(crate) async fn discard_short<B: Body + Unpin>(mut body: B, expects: bool) -> Unread {
    const SHORT: u64 = 8 * 1024;
    const SOON: Duration = Duration::from_millis(50);
    if body.is_end_stream() {
        return Unread::None;
    }
    let short = body.size_hint().exact().is_some_and(|length| length <= SHORT);
    if !short || expects {
        return Unread::Some;
    }
    let to_the_end = async {
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            if frame.is_err() {
                return Unread::Some;
            }
        }
        Unread::None
    };
    timeout(SOON, to_the_end).await.unwrap_or(Unread::Some)
}
