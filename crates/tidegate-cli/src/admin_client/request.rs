use super::AdminFlag;
use crate::failure::Failure;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::error::Error;
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// Timeout of a request to the admin port.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Limit of a response body.
const BYTES_MAX: usize = 256 * 1024 * 1024;

/// Request to a node's admin port.
#[derive(Debug, Default)]
pub struct AdminRequest<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// Additional headers.
    pub headers: Vec<(&'static str, &'a str)>,
    pub body: Option<&'a Value>,
}

/// Response of a node's admin port.
#[derive(Debug)]
pub struct AdminResponse {
    pub status: u16,
    pub body: String,
}

/// Failure to get a response.
#[derive(Debug)]
pub struct NoResponse {
    why: String,
    /// No connection was made; otherwise the node may have processed the request.
    pub not_connected: bool,
}

type BoxError = Box<dyn Error + Send + Sync>;

// === impl AdminRequest ===

impl<'a> AdminRequest<'a> {
    pub fn get(path: &'a str) -> Self {
        Self { method: "GET", path, ..Self::default() }
    }

    /// Sends the request and reads the whole response.
    ///
    /// # Errors
    ///
    /// When no response arrives.
    pub async fn send(&self, admin: &AdminFlag) -> Result<AdminResponse, NoResponse> {
        let exchange = async {
            let (response, _connection) = self.exchange(admin).await?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), BYTES_MAX).collect().await?.to_bytes();
            Ok::<_, BoxError>(AdminResponse {
                status,
                body: String::from_utf8_lossy(&body).into_owned(),
            })
        };
        in_time(&admin.address, exchange).await
    }

    /// Sends the request and reads the head of the response. The body arrives while the connection is held.
    ///
    /// # Errors
    ///
    /// When no response arrives.
    pub async fn open(
        &self,
        admin: &AdminFlag,
    ) -> Result<(Response<Incoming>, Connection), NoResponse> {
        in_time(&admin.address, self.exchange(admin)).await
    }

    async fn exchange(
        &self,
        admin: &AdminFlag,
    ) -> Result<(Response<Incoming>, Connection), BoxError> {
        let address = authority(&admin.address);
        let stream = TokioIo::new(TcpStream::connect(address).await?);
        let (mut sender, driver) = http1::handshake(stream).await?;
        let connection = Connection(tokio::spawn(async move { drop(driver.await) }));
        let text = self.body.map(Value::to_string).unwrap_or_default();
        let mut request = Request::builder()
            .method(self.method)
            .uri(self.path)
            .header(header::HOST, address)
            .header(header::CONTENT_TYPE, "application/json");
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = admin.token.as_ref().filter(|token| !token.expose().is_empty()) {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))?;
            value.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, value);
        }
        let request = request.body(Full::new(Bytes::from(text)))?;
        Ok((sender.send_request(request).await?, connection))
    }
}

/// Connection, closed on drop.
#[derive(Debug)]
pub struct Connection(tokio::task::JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends a request to the admin port of a running node and blocks for the response.
///
/// # Errors
///
/// When no response arrives.
pub fn call(
    admin: &AdminFlag,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<AdminResponse, Failure> {
    let request = AdminRequest { method, path, body, ..AdminRequest::default() };
    Ok(runtime()?.block_on(request.send(admin))?)
}

/// Single-threaded runtime of a command.
pub fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::Runtime(error.to_string()))
}

/// Percent-encodes the value of a query parameter.
pub fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

async fn in_time<T>(
    address: &str,
    exchange: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, NoResponse> {
    let (why, not_connected) = match timeout(TIMEOUT, exchange).await {
        Ok(Ok(response)) => return Ok(response),
        // Only connect fails with a bare I/O error.
        Ok(Err(error)) => (error.to_string(), error.is::<io::Error>()),
        Err(_elapsed) => ("timeout".to_owned(), false),
    };
    let address = authority(address);
    let why = format!(
        "no node responds at {address}: {why}; is it running, and is this its --admin-listen address?"
    );
    Err(NoResponse { why, not_connected })
}

fn authority(address: &str) -> &str {
    address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/')
}

// === impl NoResponse ===

impl From<NoResponse> for Failure {
    fn from(error: NoResponse) -> Self {
        Self::Runtime(error.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_percent_encoded() {
        assert_eq!(percent_encoded("a b&c=é"), "a%20b%26c%3D%C3%A9");
    }

    #[test]
    fn an_address_may_be_a_url() {
        assert_eq!(authority("http://127.0.0.1:8001/"), "127.0.0.1:8001");
        assert_eq!(authority("127.0.0.1:8001"), "127.0.0.1:8001");
    }
}
