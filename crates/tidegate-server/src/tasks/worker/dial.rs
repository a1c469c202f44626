use crate::http::ClientTls;
use crate::http::wire;
use crate::tasks::session::{Lane, SessionError, SessionStream};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest time to connect, with the handshake of TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Address of a manager, `HOST:PORT`.
#[derive(Clone, Debug)]
pub struct ManagerTarget {
    host: String,
    port: u16,
    tls: Option<ClientTls>,
}

/// A text that is no address of a manager.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} was given; expected HOST:PORT, as the manager's banner prints it")]
pub struct ManagerTargetError {
    given: String,
}

// === impl ManagerTarget ===

impl ManagerTarget {
    /// The same manager, by TLS.
    #[must_use]
    pub fn with_tls(self, tls: Option<ClientTls>) -> Self {
        Self { tls, ..self }
    }

    /// True if the manager is on this machine by its address.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let address = host.parse::<IpAddr>().map(|address| address.to_canonical());
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// Key of its queue and of its signal.
    pub(super) fn destination(&self) -> (String, u16) {
        (self.host.clone(), self.port)
    }

    /// Opens a connection for a lane.
    pub(super) async fn connect(&self, lane: Lane) -> Result<Box<dyn SessionStream>, SessionError> {
        let connecting = self.open(lane);
        timeout(CONNECT_TIMEOUT, connecting)
            .await
            .map_err(|_| SessionError::Timeout(CONNECT_TIMEOUT))?
    }

    async fn open(&self, lane: Lane) -> Result<Box<dyn SessionStream>, SessionError> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let mut tcp = TcpStream::connect((host, self.port)).await?;
        wire::prepare(&tcp)?;
        tcp.write_all(&lane.preamble()).await?;
        Ok(match &self.tls {
            None => Box::new(tcp),
            Some(tls) => Box::new(tls.connect(host, tcp).await.map_err(tls_error)?),
        })
    }
}

fn tls_error(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("TLS: {error}"))
}

impl FromStr for ManagerTarget {
    type Err = ManagerTargetError;

    fn from_str(given: &str) -> Result<Self, ManagerTargetError> {
        let error = || ManagerTargetError { given: given.chars().take(256).collect() };
        let (host, port) = given.rsplit_once(':').ok_or_else(error)?;
        let port: u16 = port.parse().map_err(|_| error())?;
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_valid = match bracketed {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(is_host),
        };
        match is_valid && port > 0 {
            true => Ok(Self { host: host.to_owned(), port, tls: None }),
            false => Err(error()),
        }
    }
}

impl fmt::Display for ManagerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for given in ["127.0.0.1:8002", "manager-1.example:8002", "[::1]:9", "localhost:1"] {
            assert_eq!(given.parse::<ManagerTarget>().unwrap().to_string(), given);
        }
        for given in
            ["", "host", "host:", ":80", "host:0", "host:99999", "http://h:1", "a b:1", "[x]:1"]
        {
            let error = given.parse::<ManagerTarget>().unwrap_err().to_string();
            assert!(error.contains("expected HOST:PORT"), "{error}");
        }
    }

    #[test]
    fn loopback_is_known_by_the_address() {
        let is_loopback = |given: &str| given.parse::<ManagerTarget>().unwrap().is_loopback();
        assert!(is_loopback("127.0.0.1:1") && is_loopback("[::1]:1") && is_loopback("localhost:1"));
        assert!(!is_loopback("10.0.0.1:1") && !is_loopback("manager:1"));
    }
}
