use super::exchange::Exchange;
use crate::http::client::Switched;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy, split};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Carries bytes both ways between a client and an upstream that have agreed to speak another protocol,
/// until both are done. The request's permit is held for as long.
///
/// When one side has ended, the other has `half_open_max` left: a peer that never ends its own half would
/// hold the permit for ever.
pub fn spawn(
    client: OnUpgrade,
    upstream: Switched,
    exchange: Exchange,
    half_open_max: Duration,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let carried = match client.await {
            Ok(client) => carry(client, upstream, half_open_max).await,
            Err(error) => Err(io::Error::other(error)),
        };
        match carried {
            Ok(()) => exchange.close(),
            // Either side may have broken it off; nobody is blamed, and the permit ends as ignored.
            Err(error) => tracing::debug!(%error, "tunnel broke off"),
        }
    })
}

async fn carry(client: Upgraded, upstream: Switched, half_open_max: Duration) -> io::Result<()> {
    let (client_read, client_write) = split(TokioIo::new(client));
    let (upstream_read, upstream_write) = split(upstream);
    let mut up = pin!(pass_on(client_read, upstream_write));
    let mut down = pin!(pass_on(upstream_read, client_write));
    let second = tokio::select! {
        ended = up.as_mut() => {
            ended?;
            timeout(half_open_max, down).await
        }
        ended = down.as_mut() => {
            ended?;
            timeout(half_open_max, up).await
        }
    };
    second.unwrap_or(Ok(()))
}

async fn pass_on(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    copy(&mut from, &mut to).await?;
    to.shutdown().await
}
