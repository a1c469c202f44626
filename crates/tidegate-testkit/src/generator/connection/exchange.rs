use crate::generator::driver::{Failure, Reply};
use crate::generator::prepared::Outgoing;
use bytes::{Bytes, BytesMut};
use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;

/// Limit of stored bytes of a response body.
pub const BODY_BYTES_MAX: usize = 4_096;

/// Result of an exchange.
pub(in crate::generator) enum Outcome {
    /// The whole response was read.
    Answered(Box<Reply>),
    /// The request was sent, and no whole response arrived.
    Failed(Failure),
    /// The connection was closed before the request was written.
    NotWritten,
}

/// Sends one request and reads its whole response.
pub(in crate::generator) async fn exchange(
    response: impl Future<Output = Result<Response<Incoming>, TrySendError<Outgoing>>>,
) -> Outcome {
    match response.await {
        Ok(response) => match read(response).await {
            Ok(head) => Outcome::Answered(Box::new(head)),
            Err(_cut) => Outcome::Failed(Failure::Broken),
        },
        Err(error) if error.message().is_some() => Outcome::NotWritten,
        Err(_cut) => Outcome::Failed(Failure::Broken),
    }
}

async fn read(response: Response<Incoming>) -> hyper::Result<Reply> {
    let (parts, mut incoming) = response.into_parts();
    let mut body = Bytes::new();
    while let Some(frame) = incoming.frame().await {
        if let Ok(data) = frame?.into_data() {
            body = append(body, data);
        }
    }
    Ok(Reply { status: parts.status, headers: parts.headers, body })
}

/// Appends within the limit. Most bodies arrive in one piece, which is not copied.
fn append(stored: Bytes, data: Bytes) -> Bytes {
    let more = data.len().min(BODY_BYTES_MAX - stored.len());
    match (stored.is_empty(), more) {
        (_, 0) => stored,
        (true, _) => data.slice(..more),
        (false, _) => {
            let mut joined = BytesMut::with_capacity(stored.len() + more);
            joined.extend_from_slice(&stored);
            joined.extend_from_slice(&data[..more]);
            joined.freeze()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_body_is_stored() {
        let mut body = Bytes::new();
        let mut whole = Vec::new();
        for piece in 0..100u8 {
            let data = vec![piece; usize::from(piece) * 3];
            whole.extend_from_slice(&data);
            body = append(body, data.into());
        }
        assert_eq!(body, whole[..BODY_BYTES_MAX]);
    }
}
