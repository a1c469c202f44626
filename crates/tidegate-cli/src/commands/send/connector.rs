use crate::admin_client::{TlsFlags, tls_advice};
use crate::failure::Failure;
use std::io;
use tidegate::client::{Connector, TcpConnector};
use tidegate_server::http::{ClientTls, TlsStream};
use tokio::net::TcpStream;

/// Connects over TCP and TLS.
pub struct TlsConnector {
    tcp: TcpConnector,
    tls: ClientTls,
    flags: TlsFlags,
    host: String,
}

// === impl TlsConnector ===

impl TlsConnector {
    /// To `HOST:PORT`, whose certificate must be for that host.
    pub fn new(address: &str, flags: &TlsFlags) -> Result<Self, Failure> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host).to_owned();
        let (tcp, flags) = (TcpConnector::new(address), flags.clone());
        Ok(Self { tcp, tls: flags.client()?, flags, host })
    }
}

impl Connector for TlsConnector {
    type Io = TlsStream<TcpStream>;

    async fn connect(&mut self) -> io::Result<Self::Io> {
        let tcp = self.tcp.connect().await?;
        self.tls.connect(&self.host, tcp).await
    }

    fn server(&self) -> String {
        self.tcp.server()
    }

    fn permanent(&self, error: &io::Error) -> Option<String> {
        tls_advice(error, &self.flags)
    }
}
