use crate::failure::Failure;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::error::Error;
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// The control plane answers at once or not at all.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than any of its answers.
const BYTES_MAX: usize = 256 * 1024 * 1024;

/// What a gateway's admin port is asked.
#[derive(Debug, Default)]
pub struct Ask<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// Beside those that every request has.
    pub headers: Vec<(&'static str, &'a str)>,
    pub body: Option<&'a Value>,
}

/// What a gateway's admin port said.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// Nobody answered.
#[derive(Debug)]
pub struct Unanswered {
    why: String,
    /// Nobody was there to be asked. Otherwise it may have been heard.
    pub never_arrived: bool,
}

type Trouble = Box<dyn Error + Send + Sync>;

// === impl Ask ===

impl<'a> Ask<'a> {
    pub fn get(path: &'a str) -> Self {
        Self { method: "GET", path, ..Self::default() }
    }

    /// Asks, and waits for the whole answer.
    ///
    /// # Errors
    ///
    /// When nobody answers there.
    pub async fn of(&self, address: &str) -> Result<Answer, Unanswered> {
        let asked = async {
            let (response, _connection) = self.exchange(address).await?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), BYTES_MAX).collect().await?.to_bytes();
            Ok::<_, Trouble>(Answer { status, body: String::from_utf8_lossy(&body).into_owned() })
        };
        in_time(address, asked).await
    }

    /// Asks, and waits for the head of the answer alone. What is left of it comes for as long as the second part
    /// is kept.
    ///
    /// # Errors
    ///
    /// When nobody answers there.
    pub async fn open(
        &self,
        address: &str,
    ) -> Result<(Response<Incoming>, Connection), Unanswered> {
        in_time(address, self.exchange(address)).await
    }

    async fn exchange(&self, address: &str) -> Result<(Response<Incoming>, Connection), Trouble> {
        let address = bare(address);
        let stream = TokioIo::new(TcpStream::connect(address).await?);
        let (mut sender, connection) = http1::handshake(stream).await?;
        let driving = Connection(tokio::spawn(async move { drop(connection.await) }));
        let text = self.body.map(Value::to_string).unwrap_or_default();
        let mut request = Request::builder()
            .method(self.method)
            .uri(self.path)
            .header(header::HOST, address)
            .header(header::CONTENT_TYPE, "application/json");
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(text)))?;
        Ok((sender.send_request(request).await?, driving))
    }
}

/// A connection that ends when this is dropped.
#[derive(Debug)]
pub struct Connection(tokio::task::JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Asks the admin port of a running gateway.
///
/// # Errors
///
/// When nobody answers there.
pub fn call(
    address: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Answer, Failure> {
    let ask = Ask { method, path, body, ..Ask::default() };
    Ok(runtime()?.block_on(ask.of(address))?)
}

/// What a command waits on.
pub fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::Runtime(error.to_string()))
}

/// The value of a query's parameter.
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
    asked: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Unanswered> {
    let (why, never_arrived) = match timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => return Ok(answer),
        // Only the connecting fails with an error of the system as such.
        Ok(Err(error)) => (error.to_string(), error.is::<io::Error>()),
        Err(_elapsed) => ("it did not answer in time".to_owned(), false),
    };
    let address = bare(address);
    let why = format!(
        "no gateway answers at {address}: {why}; is it up, and is that its --admin-listen address?"
    );
    Err(Unanswered { why, never_arrived })
}

fn bare(address: &str) -> &str {
    address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/')
}

// === impl Unanswered ===

impl From<Unanswered> for Failure {
    fn from(none: Unanswered) -> Self {
        Self::Runtime(none.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_query() {
        assert_eq!(percent_encoded("a b&c=é"), "a%20b%26c%3D%C3%A9");
    }

    #[test]
    fn an_address_may_be_written_as_a_url() {
        assert_eq!(bare("http://127.0.0.1:8001/"), "127.0.0.1:8001");
        assert_eq!(bare("127.0.0.1:8001"), "127.0.0.1:8001");
    }
}
