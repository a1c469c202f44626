use bytes::{Bytes, BytesMut};
use http_body::Body;
use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// Why a body could not be read. Some of it may be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// It is longer than it may be.
    TooLong,
    /// It did not come, or not in time.
    Broken,
}

/// The whole body of a request, if it is short enough and comes in time. What says that it is too long is refused
/// before any of it is read.
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
