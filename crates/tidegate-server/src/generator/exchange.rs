use super::driver::{Failure, Head};
use super::prepared::Outgoing;
use bytes::{Bytes, BytesMut};
use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;

/// How many bytes of an answer's body are kept.
pub const BODY_KEPT: usize = 4_096;

/// How an exchange went.
pub(super) enum Outcome {
    /// The whole answer was read.
    Answered(Box<Head>),
    /// It was sent, and no whole answer came.
    Failed(Failure),
    /// The connection was closed before anything was written.
    NotWritten,
}

/// One request and its answer, read to the end.
pub(super) async fn exchange(
    answer: impl Future<Output = Result<Response<Incoming>, TrySendError<Outgoing>>>,
) -> Outcome {
    match answer.await {
        Ok(answer) => match read(answer).await {
            Ok(head) => Outcome::Answered(Box::new(head)),
            Err(_cut) => Outcome::Failed(Failure::Broken),
        },
        Err(error) if error.message().is_some() => Outcome::NotWritten,
        Err(_cut) => Outcome::Failed(Failure::Broken),
    }
}

async fn read(answer: Response<Incoming>) -> hyper::Result<Head> {
    let (parts, mut incoming) = answer.into_parts();
    let mut body = Bytes::new();
    while let Some(frame) = incoming.frame().await {
        if let Ok(data) = frame?.into_data() {
            body = keep(body, data);
        }
    }
    Ok(Head { status: parts.status, headers: parts.headers, body })
}

/// Most bodies come in one piece, which is not copied.
fn keep(kept: Bytes, data: Bytes) -> Bytes {
    let more = data.len().min(BODY_KEPT - kept.len());
    match (kept.is_empty(), more) {
        (_, 0) => kept,
        (true, _) => data.slice(..more),
        (false, _) => {
            let mut joined = BytesMut::with_capacity(kept.len() + more);
            joined.extend_from_slice(&kept);
            joined.extend_from_slice(&data[..more]);
            joined.freeze()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_body_is_kept() {
        let mut body = Bytes::new();
        let mut whole = Vec::new();
        for piece in 0..100u8 {
            let data = vec![piece; usize::from(piece) * 3];
            whole.extend_from_slice(&data);
            body = keep(body, data.into());
        }
        assert_eq!(body, whole[..BODY_KEPT]);
    }
}
