use super::event::{Event, Events};
use crate::generator::clock::Clock;
use crate::generator::config::{GeneratorConfig, Protocol};
use http::uri::{Authority, Scheme};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// Opener of connections, with what they need to report events.
#[derive(Clone)]
pub(in crate::generator) struct Connector {
    pub clock: Clock,
    pub events: Events,
    pub streams_max: usize,
    pub timeout: Duration,
    pub protocol: Protocol,
    addresses: Arc<[SocketAddr]>,
}

// === impl Connector ===

impl Connector {
    /// Resolves the target once, so that a later lookup can't fail.
    pub fn new(config: &GeneratorConfig, clock: Clock, events: Events) -> io::Result<Self> {
        let authority = authority(config)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let port = authority.port_u16().unwrap_or(80);
        let addresses: Arc<[SocketAddr]> = (host, port).to_socket_addrs()?.collect();
        if addresses.is_empty() {
            return Err(io::Error::other(format!("{host} has no address")));
        }
        Ok(Self {
            clock,
            events,
            streams_max: config.streams_max,
            timeout: config.connect_timeout,
            protocol: config.protocol,
            addresses,
        })
    }

    pub async fn connect(&self) -> io::Result<TcpStream> {
        let connecting = TcpStream::connect(&self.addresses[..]);
        let tcp = tokio::time::timeout(self.timeout, connecting).await??;
        tcp.set_nodelay(true)?;
        Ok(tcp)
    }

    /// Sends an event to the engine; ignored after the end of the run.
    pub fn report(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

/// Host and port of the target.
pub(in crate::generator) fn authority(config: &GeneratorConfig) -> io::Result<Authority> {
    let target = &config.target;
    let invalid =
        |why| Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{target}: {why}")));
    if target.scheme().is_some_and(|scheme| *scheme != Scheme::HTTP) {
        return invalid("only http is supported");
    }
    match target.authority() {
        Some(authority) => Ok(authority.clone()),
        None => invalid("no host: expected http://host:port"),
    }
}

/// True if this machine lacks the resources for a connection.
pub(in crate::generator) fn is_local_exhaustion(error: &io::Error) -> bool {
    let exhausted = [libc::EMFILE, libc::ENFILE, libc::EADDRNOTAVAIL, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|code| exhausted.contains(&code))
}
