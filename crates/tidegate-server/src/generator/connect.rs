use super::clock::Clock;
use super::config::{GeneratorConfig, Protocol};
use super::event::{ConnectionId, Event, Events};
use super::{http1, http2};
use crate::wire;
use http::uri::{Authority, Scheme};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// What a connection needs to be opened, and to live.
#[derive(Clone)]
pub(super) struct Connector {
    pub clock: Clock,
    pub events: Events,
    pub streams_max: usize,
    pub timeout: Duration,
    protocol: Protocol,
    addresses: Arc<[SocketAddr]>,
}

// === impl Connector ===

impl Connector {
    /// Looks up where the target is, once: a lookup an hour into the run would be one more thing that can fail.
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

    /// Opens a connection and stays with it until it ends, on a task of its own.
    pub fn spawn(&self, id: ConnectionId) {
        let connector = self.clone();
        match self.protocol {
            Protocol::Http1 => drop(tokio::spawn(http1::connection(connector, id))),
            Protocol::Http2 => drop(tokio::spawn(http2::connection(connector, id))),
        }
    }

    pub async fn connect(&self) -> io::Result<TcpStream> {
        let connecting = TcpStream::connect(&self.addresses[..]);
        let tcp = tokio::time::timeout(self.timeout, connecting).await??;
        wire::prepare(&tcp)?;
        Ok(tcp)
    }

    /// Tells the engine. When it is gone there is nobody to be told, and this task ends with the runtime.
    pub fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

/// The host and port of a target that can be spoken to.
pub(super) fn authority(config: &GeneratorConfig) -> io::Result<Authority> {
    let target = &config.target;
    let invalid =
        |why| Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{target}: {why}")));
    if target.scheme().is_some_and(|scheme| *scheme != Scheme::HTTP) {
        return invalid("only http is spoken");
    }
    match target.authority() {
        Some(authority) => Ok(authority.clone()),
        None => invalid("no host: write http://host:port"),
    }
}

/// Whether a connection could not be opened because this machine had nothing left to open it with.
pub(super) fn is_own_fault(error: &io::Error) -> bool {
    let own = [libc::EMFILE, libc::ENFILE, libc::EADDRNOTAVAIL, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|code| own.contains(&code))
}
