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
use tokio::sync::{mpsc, watch};

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
        tcp: StdTcpStream,
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
            // Only a thread that has room counts the connection.
            let room = order
                .into_iter()
                .find_map(|index| Some((index, self.inboxes[index].try_reserve().ok()?)));
            if let Some((index, room)) = room {
                let counted = CountedConnection::new(self.threads.metrics(index));
                room.send(Accepted { tcp, peer, counted, reserved });
                return;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::buffer::BufferBudget;
    use std::net::TcpListener as StdTcpListener;

    /// Both ends of connections.
    fn connected(count: usize) -> Vec<(StdTcpStream, StdTcpStream)> {
        let listener = StdTcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connect = |_| (StdTcpStream::connect(address).unwrap(), listener.accept().unwrap().0);
        (0..count).map(connect).collect()
    }

    #[test]
    fn a_connection_that_meets_a_full_inbox_is_counted_once() {
        let config = Config::from_toml("").unwrap();
        let threads = Arc::new(IoThreads::new(2, BufferBudget::new(2, 1 << 20)));
        let (full, _unread) = mpsc::channel(1);
        let (roomy, _also_unread) = mpsc::channel(4);
        let overload_status = config.routing.overload_status;
        let policy = RejectionPolicy { overload_status, exposed: false };
        let acceptor = Acceptor::new(&config, Arc::clone(&threads), vec![full, roomy], policy);
        let mut clients = Vec::new();
        for (client, accepted) in connected(7) {
            accepted.set_nonblocking(true).unwrap();
            let peer = accepted.peer_addr().unwrap();
            acceptor.hand_over(accepted, peer, None);
            clients.push(client);
        }
        let counts = threads.snapshot();
        assert_eq!((counts.connections, counts.connections_total), (5, 5));
        assert_eq!(threads.connections().collect::<Vec<_>>(), [1, 4]);
        assert_eq!(threads.connections_refused(), 2, "both inboxes were full");
    }
}
