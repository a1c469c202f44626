use super::connection::{Accepted, Counted};
use super::{Phase, Shared};
use crate::wire;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream as StdTcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::sleep;

/// What a client hears that is one connection too many, in the shape of `rescue`'s answers. Written raw: no
/// thread is spent on it.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/json\r\n\
    content-length: 175\r\n\
    retry-after: 1\r\n\
    tidegate-retry-after-ms: 1000\r\n\
    connection: close\r\n\r\n\
    {\"message\":\"Service temporarily unavailable: the gateway is at its connection limit\",\
    \"type\":\"service_unavailable\",\"code\":503,\"reason\":\"connection_limit\",\"retry_after_ms\":1000}";

/// Takes connections until the gateway drains, and hands each to the thread with the fewest.
pub async fn accept_forever(
    listener: TcpListener,
    shared: Arc<Shared>,
    inboxes: Vec<mpsc::Sender<Accepted>>,
) {
    let mut phase = shared.phase.clone();
    loop {
        tokio::select! {
            _ = phase.wait_for(|phase| *phase == Phase::Draining) => return,
            accepted = listener.accept() => match accepted.and_then(into_std) {
                Ok((tcp, peer)) => hand_over(tcp, peer, &shared, &inboxes),
                Err(error) => pause_after(&error).await,
            }
        }
    }
}

fn into_std(
    (tcp, peer): (tokio::net::TcpStream, SocketAddr),
) -> io::Result<(StdTcpStream, SocketAddr)> {
    wire::prepare(&tcp)?;
    Ok((tcp.into_std()?, peer))
}

fn hand_over(
    mut tcp: StdTcpStream,
    peer: SocketAddr,
    shared: &Shared,
    inboxes: &[mpsc::Sender<Accepted>],
) {
    let connections = |index: usize| shared.threads[index].metrics.connections();
    let mut order: Vec<usize> = (0..inboxes.len()).collect();
    order.sort_by_key(|index| connections(*index));
    let open: u64 = order.iter().map(|index| connections(*index)).sum();
    if open < shared.config.listen.connections_max as u64 {
        for index in order {
            let counted = Counted::new(&shared.threads[index].metrics);
            match inboxes[index].try_send(Accepted { tcp, peer, counted }) {
                Ok(()) => return,
                Err(TrySendError::Full(back) | TrySendError::Closed(back)) => tcp = back.tcp,
            }
        }
    }
    shared.connections_refused.fetch_add(1, Ordering::Relaxed);
    turn_away(tcp, shared.config.listen.tls.is_some());
}

/// One write that does not wait: whoever can't take it now would not be helped by waiting. What the client has
/// sent is read away, or closing over it would reset the connection and take the answer along.
fn turn_away(mut tcp: StdTcpStream, tls: bool) {
    if tls {
        // It would not understand; a closed connection is what it does.
        return;
    }
    let told = tcp.write_all(FULL).and_then(|()| tcp.shutdown(Shutdown::Write));
    if let Err(error) = told {
        tracing::debug!(%error, "a client over the connection limit left before it was told");
    }
    let _ = tcp.read(&mut [0; 4096]);
}

/// Out of descriptors or memory: accepting again at once would spin.
async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "could not accept a connection");
    sleep(Duration::from_millis(100)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_raw_answer_is_as_long_as_it_says() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["reason"], "connection_limit");
    }
}
