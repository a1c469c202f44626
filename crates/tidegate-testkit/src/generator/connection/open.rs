use super::connector::Connector;
use super::event::ConnectionId;
use super::{http1, http2};
use crate::generator::config::Protocol;

/// Opens a connection and serves it on its own task until it ends.
pub(in crate::generator) fn open(connector: &Connector, id: ConnectionId) {
    let own = connector.clone();
    match connector.protocol {
        Protocol::Http1 => drop(tokio::spawn(http1::connection(own, id))),
        Protocol::Http2 => drop(tokio::spawn(http2::connection(own, id))),
    }
}
