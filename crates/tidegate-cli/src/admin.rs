use crate::failure::Failure;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// The control plane answers at once or not at all.
const PATIENCE: Duration = Duration::from_secs(10);
/// More than any of its answers.
const BYTES_MAX: usize = 256 * 1024 * 1024;

/// What a gateway's admin port said.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
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
    let address = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Runtime(error.to_string()))?;
    let asked = async { timeout(PATIENCE, exchange(address, method, path, body)).await };
    match runtime.block_on(asked) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(unreachable(address, &error.to_string())),
        Err(_elapsed) => Err(unreachable(address, "it did not answer in time")),
    }
}

fn unreachable(address: &str, why: &str) -> Failure {
    Failure::Runtime(format!(
        "no gateway answers at {address}: {why}; is it up, and is that its --admin-listen address?"
    ))
}

async fn exchange(
    address: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let (mut sender, connection) = http1::handshake(stream).await?;
    let driving = tokio::spawn(connection);
    let text = body.map(Value::to_string).unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(text)))?;
    let response = sender.send_request(request).await?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), BYTES_MAX).collect().await?.to_bytes();
    driving.abort();
    Ok(Answer { status, body: String::from_utf8_lossy(&body).into_owned() })
}
