//! Ports for servers that go and come back.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// From here to those that the system hands out by itself.
const LOWEST: u16 = 20_000;
/// So many ports lie between those that two processes try first.
const STRIDE: u32 = 61;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port for a server of another process, that may go and come back. Until it is bound nothing keeps others from
/// it, but no system hands it out, and other processes of tests begin to look elsewhere.
pub fn quiet_port() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse::<u16>().ok());
    // Where all are handed out, one of those has to do.
    let Some(span) = first.and_then(|first| first.checked_sub(LOWEST)).filter(|span| *span > 1_000)
    else {
        return bound((Ipv4Addr::LOCALHOST, 0)).unwrap();
    };
    for _ in 0..span {
        let number = std::process::id().wrapping_mul(STRIDE);
        let number = number.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = LOWEST + u16::try_from(number % u32::from(span)).unwrap();
        if let Some(port) = bound((Ipv4Addr::LOCALHOST, port)) {
            return port;
        }
    }
    panic!("no port is free")
}

fn bound(address: (Ipv4Addr, u16)) -> Option<u16> {
    Some(TcpListener::bind(address).ok()?.local_addr().unwrap().port())
}
