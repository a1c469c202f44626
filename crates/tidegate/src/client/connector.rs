use std::io;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Opens connections to a server. Called again after every connection that broke.
pub trait Connector: Send + 'static {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Makes a new connection. The client gives up waiting for it after a while and asks again.
    ///
    /// # Errors
    ///
    /// When there is none to be had now; the client waits and asks again.
    fn connect(&mut self) -> impl Future<Output = io::Result<Self::Io>> + Send;

    /// The server's address, for messages.
    fn server(&self) -> String;

    /// Explains an error of a connection that a further attempt does not change, such as a server that is not
    /// trusted. The client then ends, unless a server has acknowledged something before.
    fn permanent(&self, _error: &io::Error) -> Option<String> {
        None
    }
}

/// Connects over TCP. The name is looked up each time, so a server may move.
#[derive(Clone, Debug)]
pub struct TcpConnector {
    address: String,
}

// === impl TcpConnector ===

impl TcpConnector {
    /// To a host and port, such as `127.0.0.1:7070`.
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into() }
    }
}

impl Connector for TcpConnector {
    type Io = TcpStream;

    async fn connect(&mut self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.address).await?;
        // A batch is written whole, and the last one should not wait for an answer to the one before.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn server(&self) -> String {
        self.address.clone()
    }
}
