use super::connection::{Accepted, CountedConnection};
use crate::config::Config;
use crate::gateway::reserve::{Reserve, ReservedConnection};
use crate::gateway::telemetry::IoThreads;
use crate::http::error_response::{RejectionPolicy, rejected_raw};
use crate::http::port::{AcceptErrors, SpareDescriptors};
use crate::http::{Phase, Rejection, wire};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream as StdTcpStream};
use std::sync::Arc;
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::watch;

/// Accepts the connections of the data port and hands each to the io thread with the fewest.
pub struct Acceptor {
    threads: Arc<IoThreads>,
    inboxes: Vec<mpsc::Sender<Accepted>>,
    connections_max: usize,
    reserve: Reserve,
    /// The response to a client over the limit and the reserve; `None` under TLS, where it could not be read.
    refusal: Option<Vec<u8>>,
}

// === impl Acceptor ===

impl Acceptor {
    pub fn new(
        config: &Config,
        threads: Arc<IoThreads>,
        inboxes: Vec<mpsc::Sender<Accepted>>,
        policy: RejectionPolicy,
    ) -> Self {
        let rejection = Rejection::connection_limit();
        let plain = config.listen.tls.is_none();
        let refusal = plain.then(|| rejected_raw(&rejection, policy));
        let connections_max = config.listen.connections_max;
        let size = config.listen.connections_reserve;
        let reserve = Reserve::new(Arc::clone(&threads), connections_max, size);
        Self { threads, inboxes, connections_max, reserve, refusal }
    }

    /// Accepts connections until the gateway drains.
    pub async fn accept_until_drained(
        self,
        listener: TcpListener,
        mut phase: watch::Receiver<Phase>,
    ) {
        let mut errors = AcceptErrors::new("data");
        let mut spare = SpareDescriptors::new();
        loop {
            tokio::select! {
                _ = phase.wait_for(|phase| *phase == Phase::Draining) => return,
                accepted = listener.accept() => match accepted.and_then(into_std) {
                    Ok((tcp, peer)) => {
                        let last = spare.list_if_last(Instant::now());
                        let reserved = last.map(|listed| self.reserve.take_last(listed));
                        self.hand_over(tcp, peer, reserved);
                    }
                    // Nothing else may have the descriptor in between: the next accept follows at once.
                    Err(error) if SpareDescriptors::are_needed_for(&error) && spare.release() => {
                        errors.note(&error);
                    }
                    Err(error) if SpareDescriptors::are_needed_for(&error) => {
                        errors.pause_for_room(&error).await;
                        spare.refill();
                    }
                    Err(error) => errors.pause_after(&error).await,
                }
            }
        }
    }

    fn hand_over(
        &self,
        mut tcp: StdTcpStream,
        peer: SocketAddr,
        mut reserved: Option<ReservedConnection>,
    ) {
        let connections: Vec<u64> = self.threads.connections().collect();
        let beyond = connections.iter().sum::<u64>() >= self.connections_max as u64;
        if beyond && reserved.is_none() {
            reserved = self.reserve.take();
        }
        if !beyond || reserved.is_some() {
            let mut order: Vec<usize> = (0..self.inboxes.len()).collect();
            order.sort_by_key(|index| connections[*index]);
            for index in order {
                let counted = CountedConnection::new(self.threads.metrics(index));
                match self.inboxes[index].try_send(Accepted { tcp, peer, counted, reserved }) {
                    Ok(()) => return,
                    Err(TrySendError::Full(back) | TrySendError::Closed(back)) => {
                        (tcp, reserved) = (back.tcp, back.reserved);
                    }
                }
            }
        }
        self.threads.refuse_connection();
        if let Some(refusal) = &self.refusal {
            refuse(tcp, refusal);
        }
    }
}

fn into_std(
    (tcp, peer): (tokio::net::TcpStream, SocketAddr),
) -> io::Result<(StdTcpStream, SocketAddr)> {
    wire::prepare(&tcp)?;
    Ok((tcp.into_std()?, peer))
}

/// Refuses a connection with one write that does not wait: no thread is spent on it. Bytes that the client has
/// sent are read away, or closing over them would reset the connection and lose the response.
fn refuse(mut tcp: StdTcpStream, response: &[u8]) {
    if let Err(error) = tcp.write_all(response).and_then(|()| tcp.shutdown(Shutdown::Write)) {
        tracing::debug!(%error, "a client over the connection limit left before its response");
    }
    let _ = tcp.read(&mut [0; 4096]);
}
