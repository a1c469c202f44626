use super::message::{
    JOIN_VERSION, JoinAnswer, JoinGrant, JoinRequest, read_message, write_message,
};
use crate::cluster::trust::{
    Authority, ClusterError, ClusterFolder, JoinRefused, NodeBook, NodeIdentity, NodeRecord,
    from_hex, join_acceptor,
};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Longest time of a join, with the handshake.
const JOIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest host that a node may name.
const HOST_BYTES_MAX: usize = 253;

/// Tells of a name whether a member that has it is up.
type IsLive = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Lets nodes join, on the manager that has the authority.
pub struct JoinDesk {
    authority: Authority,
    book: NodeBook,
    tls: TlsAcceptor,
    node: NodeRecord,
    /// In the format of its file.
    keyring: String,
    udp_port: AtomicU16,
    clients: OnceLock<String>,
    is_live: OnceLock<IsLive>,
    granted: AtomicU64,
    refused: AtomicU64,
}

// === impl JoinDesk ===

impl JoinDesk {
    /// The desk of a node with an authority.
    ///
    /// # Errors
    ///
    /// When the folder has no authority, or a file of it can't be used.
    pub fn open(folder: &ClusterFolder, node: NodeRecord) -> Result<Self, ClusterError> {
        Ok(Self {
            authority: Authority::open(folder)?,
            book: NodeBook::new(folder.clone()),
            tls: join_acceptor(folder)?,
            keyring: folder.read("keyring.json")?,
            udp_port: AtomicU16::new(node.udp.port()),
            node,
            clients: OnceLock::new(),
            is_live: OnceLock::new(),
            granted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// Sets the URL of the port for clients, which gates get to know.
    pub fn set_clients(&self, url: String) {
        // Set once, when the ports are open.
        let _ = self.clients.set(url);
    }

    /// Sets the UDP port of this node: another than at its making, if that was taken by its first start.
    pub fn set_udp_port(&self, port: u16) {
        self.udp_port.store(port, Ordering::Relaxed);
    }

    /// Sets the view of live members: their names are not given again.
    pub fn set_is_live(&self, is_live: impl Fn(&str) -> bool + Send + Sync + 'static) {
        let _ = self.is_live.set(Box::new(is_live));
    }

    /// Nodes that were let in, and nodes that were refused, since the start.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.granted.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed))
    }

    /// Answers one node that joins, from the handshake on.
    ///
    /// # Errors
    ///
    /// When the connection breaks, or its messages can't be read.
    pub async fn serve<S>(self: &Arc<Self>, stream: S, peer: SocketAddr) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let serving = async {
            let mut stream = self.tls.accept(stream).await?;
            let request: JoinRequest = read_message(&mut stream).await?;
            let (node, role) = (request.node.chars().take(100).collect::<String>(), request.role);
            let desk = Arc::clone(self);
            // Files are read and synced: the thread of the port serves others meanwhile.
            let answering = tokio::task::spawn_blocking(move || desk.answer(&request));
            let answer = match answering.await.map_err(io::Error::other)? {
                Ok(grant) => {
                    self.granted.fetch_add(1, Ordering::Relaxed);
                    tracing::info!(%peer, node, %role, "node joined");
                    JoinAnswer::Granted(Box::new(grant))
                }
                Err(refused) => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(%peer, node, %role, reason = refused.reason(), "node refused");
                    let (reason, message) = (refused.reason().to_owned(), refused.to_string());
                    JoinAnswer::Refused { reason, message }
                }
            };
            write_message(&mut stream, &answer).await?;
            stream.shutdown().await
        };
        timeout(JOIN_TIMEOUT, serving).await.map_err(|_| io::ErrorKind::TimedOut)?
    }

    fn answer(&self, asked: &JoinRequest) -> Result<JoinGrant, JoinRefused> {
        if asked.version != JOIN_VERSION {
            let wrong = "its version is unknown: use the same version of tidegate on both sides";
            return Err(ClusterError::Request(wrong).into());
        }
        if asked.host.len() > HOST_BYTES_MAX {
            return Err(ClusterError::Request("the host is too long").into());
        }
        let secret = from_hex(&asked.secret).ok_or(JoinRefused::UnknownToken)?;
        let (cell, node) = (self.node.cell.clone(), asked.node.clone());
        let identity = NodeIdentity { cell, role: asked.role, node };
        let is_live = self.is_live.get().is_some_and(|is_live| is_live(&identity.node));
        let request = bytes_of(&asked.request).ok_or(ClusterError::Request("expected digits"))?;
        let sign = || self.authority.sign_request(&request, &identity, &asked.host);
        let certificate = self.book.admit(&secret, &identity, is_live, unix_ms(), sign)?;
        Ok(JoinGrant {
            cell: identity.cell.clone(),
            certificate,
            authority: self.authority.pem().to_owned(),
            keyring: self.keyring.clone(),
            udp_port: self.udp_port.load(Ordering::Relaxed),
            clients: self.clients.get().cloned(),
        })
    }
}

impl fmt::Debug for JoinDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinDesk")
    }
}

/// Milliseconds of Unix time.
fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let one = |pair: &[u8]| from_hex::<1>(std::str::from_utf8(pair).ok()?).map(|[byte]| byte);
    pairs.map(one).collect()
}
