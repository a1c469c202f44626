use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use tidegate::membership::MemberRole;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// First bytes of a connection of a node that joins, in plain text before TLS, as those of a session's lanes.
pub(crate) const JOIN_PREAMBLE: [u8; 4] = *b"tgj1";
/// Version of the messages.
pub const JOIN_VERSION: u8 = 1;
/// Longest message: a certificate chain has a few KiB.
const MESSAGE_BYTES_MAX: u32 = 64 * 1024;

/// Request of a node to join. The private key is not in it.
#[derive(Serialize, Deserialize)]
pub struct JoinRequest {
    pub version: u8,
    /// Secret of the token, in hexadecimal digits.
    pub secret: String,
    pub role: MemberRole,
    pub node: String,
    /// Host by which others reach the node.
    pub host: String,
    /// Certificate request, PKCS #10 in DER, in hexadecimal digits.
    pub request: String,
}

/// Answer to a [`JoinRequest`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinAnswer {
    /// The node is in.
    Granted(Box<JoinGrant>),
    /// The node is not let in.
    Refused {
        /// Name of the reason.
        reason: String,
        /// Explanation, with what to do.
        message: String,
    },
}

/// All that a node needs.
#[derive(Serialize, Deserialize)]
pub struct JoinGrant {
    pub cell: String,
    /// Certificate chain in PEM.
    pub certificate: String,
    /// Certificate of the authority in PEM.
    pub authority: String,
    /// Keys of UDP packets, in the format of their file.
    pub keyring: String,
    /// UDP port of the manager.
    pub udp_port: u16,
    /// URL of the manager's port for clients.
    pub clients: Option<String>,
}

/// Writes a message: its length in four bytes, then JSON.
pub async fn write_message<T: Serialize>(
    stream: &mut (impl AsyncWrite + Unpin),
    message: &T,
) -> io::Result<()> {
    let body = serde_json::to_vec(message).map_err(io::Error::other)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_be_bytes()).await?;
    stream.write_all(&body).await?;
    stream.flush().await
}

/// Reads a message. A longer one than any sensible one is refused before it is read.
pub async fn read_message<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<T> {
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let length = stream.read_u32().await?;
    if length > MESSAGE_BYTES_MAX {
        return Err(invalid(format!("a message of {length} bytes; at most {MESSAGE_BYTES_MAX}")));
    }
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body).await?;
    serde_json::from_slice(&body).map_err(|error| invalid(error.to_string()))
}
