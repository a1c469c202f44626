use super::AdminFlag;
use super::tls_advice::{CLIENT_CERTIFICATE, tls_advice};
use crate::failure::Failure;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
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
        in_time(admin, exchange).await
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
        in_time(admin, self.exchange(admin)).await
    }

    async fn exchange(
        &self,
        admin: &AdminFlag,
    ) -> Result<(Response<Incoming>, Connection), BoxError> {
        let address = authority(&admin.address);
        let tls = if is_tls(admin) { Some(admin.tls.client().map_err(SetupError)?) } else { None };
        let tcp = TcpStream::connect(address).await?;
        let (mut sender, connection) = match tls {
            None => handshake(tcp).await?,
            Some(tls) => {
                let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
                handshake(tls.connect(host, tcp).await?).await?
            }
        };
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

/// Starts HTTP on a stream.
async fn handshake<S>(
    stream: S,
) -> Result<(http1::SendRequest<Full<Bytes>>, Connection), hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
    Ok((sender, Connection(tokio::spawn(async move { drop(driver.await) }))))
}

/// TLS that could not be set up, before anything was sent.
#[derive(Debug)]
struct SetupError(Failure);

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for SetupError {}

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
    admin: &AdminFlag,
    exchange: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, NoResponse> {
    let address = authority(&admin.address);
    let (why, not_connected) = match timeout(TIMEOUT, exchange).await {
        Ok(Ok(response)) => return Ok(response),
        Ok(Err(error)) if error.is::<SetupError>() => {
            return Err(NoResponse { why: error.to_string(), not_connected: true });
        }
        Ok(Err(error)) => {
            // Only connect and the TLS handshake fail with a bare I/O error.
            let not_connected = error.is::<io::Error>();
            if let Some(advice) = advice(error.as_ref(), admin) {
                let why = format!("can't talk to the node at {address}: {advice}");
                return Err(NoResponse { why, not_connected });
            }
            (error.to_string(), not_connected)
        }
        Err(_elapsed) => ("timeout".to_owned(), false),
    };
    let why = format!(
        "no node responds at {address}: {why}; is it running, and is this its --admin-listen address?"
    );
    Err(NoResponse { why, not_connected })
}

/// Explains an error that the choice of TLS or its files cause.
fn advice(error: &(dyn Error + 'static), admin: &AdminFlag) -> Option<String> {
    let is_tls = is_tls(admin);
    let http = error.downcast_ref::<hyper::Error>();
    match tls_advice(error, &admin.tls) {
        Some(advice) => Some(advice),
        // A TLS port answers a plain request with an alert, which is no HTTP.
        None if !is_tls && http.is_some_and(hyper::Error::is_parse) => Some(format!(
            "the port does not answer in plain HTTP, so it speaks TLS; use https://{} and name its authority with \
             --ca FILE",
            authority(&admin.address)
        )),
        // The alert about a missing certificate is lost if the node closes over an unread request.
        None if is_tls && admin.tls.cert.is_none() && http.is_some() => {
            Some(format!("it closed the connection ({error}): perhaps {CLIENT_CERTIFICATE}"))
        }
        None => None,
    }
}

fn authority(address: &str) -> &str {
    let scheme = ["http://", "https://"].iter().find_map(|scheme| address.strip_prefix(scheme));
    scheme.unwrap_or(address).trim_end_matches('/')
}

/// True if the node is asked over TLS: as its URL says, else if files for it are given.
fn is_tls(admin: &AdminFlag) -> bool {
    match admin.address.split_once("://") {
        Some((scheme, _)) => scheme == "https",
        None => admin.tls.is_given(),
    }
}

// === impl AdminResponse ===

impl AdminResponse {
    /// The advice that follows the message of a refusal, if a token is what it lacks.
    pub fn token_advice(&self) -> &'static str {
        if self.status == 401 { "; give a token with TIDEGATE_TOKEN or --token" } else { "" }
    }
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
    use crate::admin_client::TlsFlags;

    #[test]
    fn values_are_percent_encoded() {
        assert_eq!(percent_encoded("a b&c=é"), "a%20b%26c%3D%C3%A9");
    }

    #[test]
    fn an_address_may_be_a_url() {
        assert_eq!(authority("http://127.0.0.1:8001/"), "127.0.0.1:8001");
        assert_eq!(authority("https://node.example:8001"), "node.example:8001");
        assert_eq!(authority("127.0.0.1:8001"), "127.0.0.1:8001");
        let mut admin = AdminFlag::of("https://node.example:8001");
        admin.tls = TlsFlags::default();
        assert!(is_tls(&admin));
        admin.address = "node.example:8001".to_owned();
        assert!(!is_tls(&admin));
        admin.tls.ca = Some("ca.pem".into());
        assert!(is_tls(&admin));
        admin.address = "http://node.example:8001".to_owned();
        assert!(!is_tls(&admin), "plain text was asked for");
    }
}
