use super::message::{
    JOIN_PREAMBLE, JOIN_VERSION, JoinAnswer, JoinGrant, JoinRequest, read_message, write_message,
};
use super::target::{JoinTarget, host_and_port};
use crate::cluster::trust::{
    ClusterError, ClusterFolder, ManagerRecord, NodeIdentity, NodeRecord, UdpAddresses,
    certificate_request, fingerprint, join_connector, to_hex,
};
use crate::http::tls::PeerCertificate;
use rcgen::KeyPair;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;
use tidegate::membership::MemberRole;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// Longest time of a join, with the connection.
const JOIN_TIMEOUT: Duration = Duration::from_secs(15);

/// Node that wants to join.
#[derive(Clone, Debug)]
pub struct JoinWish {
    /// Token and manager.
    pub target: JoinTarget,
    /// Role of the node.
    pub role: MemberRole,
    /// Name of the node.
    pub node: String,
    /// Host by which other nodes reach this one. Without it, the address from which it reaches the manager.
    pub host: Option<String>,
    /// Its UDP addresses.
    pub udp: UdpAddresses,
}

/// A node could not join. Its folder has no node.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The manager can't be reached, or is not the one of the token.
    #[error(
        "can't join at {address}: {source}; is the manager running, and is the token of its cluster?"
    )]
    Io {
        /// Address of the manager.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// The manager refuses the node.
    #[error("{address} refuses this node: {message}")]
    Refused {
        /// Address of the manager.
        address: String,
        /// Name of the reason.
        reason: String,
        /// The manager's words.
        message: String,
    },
    /// The files of the node can't be written or used.
    #[error(transparent)]
    Files(#[from] ClusterError),
}

/// Lets a node join, and writes its files into the folder. The private key is made here and stays here.
///
/// # Errors
///
/// When the folder has a node, the manager can't be reached or refuses it, or a file can't be written.
pub fn join(folder: &ClusterFolder, wish: &JoinWish) -> Result<NodeRecord, JoinError> {
    NodeIdentity::new("cell", wish.role, &wish.node)?;
    folder.create()?;
    let address = wish.target.address();
    let failed = |source| JoinError::Io { address: address.clone(), source };
    let key = KeyPair::generate().map_err(ClusterError::from)?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let asking = runtime.block_on(async { timeout(JOIN_TIMEOUT, ask(wish, &key)).await });
    let (answer, local) = match asking {
        Ok(asked) => asked?.map_err(failed)?,
        Err(_elapsed) => return Err(failed(io::ErrorKind::TimedOut.into())),
    };
    let grant = match answer {
        JoinAnswer::Granted(grant) => grant,
        JoinAnswer::Refused { reason, message } => {
            return Err(JoinError::Refused { address, reason, message });
        }
    };
    check(&grant, wish)?;
    let host = wish.host.clone().unwrap_or_else(|| local.to_string());
    let record = NodeRecord {
        version: ClusterFolder::VERSION,
        cell: grant.cell.clone(),
        role: wish.role,
        node: wish.node.clone(),
        udp: udp_address(&host, wish.role, wish.udp)?,
        listen: wish.udp.listen,
        host,
        seeds: vec![host_and_port(&wish.target.host, grant.udp_port)],
        manager: Some(ManagerRecord { workers: address.clone(), clients: grant.clients.clone() }),
    };
    folder.write("node.key", key.serialize_pem().as_bytes())?;
    folder.write("node.pem", grant.certificate.as_bytes())?;
    folder.write("ca.pem", grant.authority.as_bytes())?;
    folder.write("keyring.json", grant.keyring.as_bytes())?;
    folder.write_node(&record)?;
    Ok(record)
}

/// Asks for a certificate. Returns the answer, and the own address of the connection.
async fn ask(
    wish: &JoinWish,
    key: &KeyPair,
) -> Result<io::Result<(JoinAnswer, IpAddr)>, ClusterError> {
    let request = certificate_request(key)?;
    let tls = join_connector(wish.target.token.authority)?;
    Ok(async {
        let mut tcp = TcpStream::connect((wish.target.host.as_str(), wish.target.port)).await?;
        let local = tcp.local_addr()?.ip().to_canonical();
        tcp.write_all(&JOIN_PREAMBLE).await?;
        let mut stream = tls.connect("manager", tcp).await?;
        let message = JoinRequest {
            version: JOIN_VERSION,
            secret: to_hex(&wish.target.token.secret),
            role: wish.role,
            node: wish.node.clone(),
            host: wish.host.clone().unwrap_or_else(|| local.to_string()),
            request: to_hex(&request),
        };
        write_message(&mut stream, &message).await?;
        Ok((read_message(&mut stream).await?, local))
    }
    .await)
}

/// Checks that the grant is of the token's authority, and for this node.
fn check(grant: &JoinGrant, wish: &JoinWish) -> Result<(), ClusterError> {
    let wrong = |what: &str| ClusterError::Crypto(format!("the manager's answer has {what}"));
    let authority = CertificateDer::from_pem_slice(grant.authority.as_bytes());
    let authority = authority.map_err(|_| wrong("no certificate of the authority"))?;
    if fingerprint(&authority) != wish.target.token.authority {
        return Err(wrong("another authority than the token"));
    }
    let own = CertificateDer::from_pem_slice(grant.certificate.as_bytes());
    let own = own.map_err(|_| wrong("no certificate"))?;
    let identity = NodeIdentity::of_certificate(&PeerCertificate::from_der(&own));
    let expected = NodeIdentity::new(&grant.cell, wish.role, &wish.node)?;
    match identity == Some(expected) {
        true => Ok(()),
        false => Err(wrong("the certificate of another node")),
    }
}

/// Address for the UDP socket of a node on this host: the port of its role, or a free one while that is in use. It
/// is persisted, so that the node has the same one after a restart.
pub(in crate::cluster) fn udp_address(
    host: &str,
    role: MemberRole,
    given: UdpAddresses,
) -> Result<SocketAddr, ClusterError> {
    use std::net::ToSocketAddrs as _;
    let port = match role {
        MemberRole::Manager => 8_010,
        MemberRole::Worker => 8_011,
        MemberRole::Gate => 8_012,
    };
    let failed = |reason: String| ClusterError::Host { host: host.to_owned(), reason };
    let mut found = (host, port).to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    let wanted = found.next().ok_or_else(|| failed("the name has no address".to_owned()))?;
    if wanted.ip().is_unspecified() {
        return Err(failed("it is no address of one machine".to_owned()));
    }
    if let Some(given) = given.advertised {
        return Ok(given);
    }
    if let Some(listen) = given.listen.filter(|listen| listen.port() > 0) {
        return Ok(SocketAddr::new(wanted.ip(), listen.port()));
    }
    let bound = UdpSocket::bind(wanted).or_else(|_| UdpSocket::bind((wanted.ip(), 0)));
    bound.and_then(|socket| socket.local_addr()).map_err(|error| failed(error.to_string()))
}
