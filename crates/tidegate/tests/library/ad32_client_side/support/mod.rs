//! What the tests send through.

mod tcp;
mod wire;

pub use tcp::{Frame, Manner, Server, TcpTransport};
pub use wire::{Behaviour, Broken, Wire};

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tidegate::outbox::{HandBack, OutgoingConfig, OutgoingRequestManager, QueueConfig, Transport};

pub type Manager = OutgoingRequestManager<Wire>;

/// A destination by number. Nothing listens there: the wire never opens a socket.
pub fn at(number: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, number).into()
}

pub fn config() -> OutgoingConfig {
    OutgoingConfig { seed: Some(7), ..OutgoingConfig::default() }
}

/// Small enough to be filled by hand.
pub fn small(primary_size: usize, overflow_size: usize) -> OutgoingConfig {
    let queue = QueueConfig { primary_size, overflow_size, ..QueueConfig::default() };
    OutgoingConfig { queue, ..config() }
}

pub fn manager<T: Transport>(
    transport: T,
    config: OutgoingConfig,
) -> (OutgoingRequestManager<T>, HandBack<T>) {
    OutgoingRequestManager::new(transport, config).expect("it is valid, and a runtime is here")
}

/// Waits until this holds. The bound only ends a failed test; under paused time it passes at once.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..120_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it did not come to be: {what}");
}
