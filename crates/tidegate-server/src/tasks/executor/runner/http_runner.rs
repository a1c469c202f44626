use crate::config::{Config, Scheme, UpstreamTarget};
use crate::http::TlsSetupError;
use crate::http::client::{
    ClientError, ConnectError, Connector, Endpoint, EndpointBody, HttpVersion, Pool, UploadBody,
};
use crate::tasks::execution::{OutputSink, StopSignal, Work};
use crate::tasks::executor::config::ExecutorConfigError;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::uri::{self, PathAndQuery, Uri};
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use serde_json::json;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tidegate::task::{EndReason, Ending, OutputStream, TaskOutcome};
use tokio::time::timeout;

const TASK: HeaderName = HeaderName::from_static("tidegate-task");
const ATTEMPT: HeaderName = HeaderName::from_static("tidegate-attempt");
const DEADLINE_MS: HeaderName = HeaderName::from_static("tidegate-deadline-ms");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const AGENT: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));

/// Lifetime of an idle connection, below that of most servers.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// Most idle connections.
const IDLE_MAX: usize = 256;

/// Runner that sends each execution to an HTTP server: a `POST` with its JSON.
///
/// A 2xx response is a success, and its body the output. Any other response is a failure. An execution that is
/// stopped or times out drops its request, which closes the connection: the server can see that.
pub struct HttpRunner {
    pool: Pool,
    endpoint: Endpoint,
    path: PathAndQuery,
    url: String,
    runtimes: Vec<String>,
}

/// Error of a target server.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Invalid URL.
    #[error("{0}")]
    Url(ExecutorConfigError),
    /// TLS can't be set up.
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    /// Invalid host name.
    #[error(transparent)]
    Host(#[from] uri::InvalidUri),
}

/// Error of an exchange with the server.
#[derive(Debug, thiserror::Error)]
enum ExchangeError {
    #[error("can't connect: {0}")]
    Connect(#[from] ConnectError),
    #[error("the exchange failed: {0}")]
    Broken(#[from] ClientError),
    #[error("invalid request: {0}")]
    Request(#[from] http::Error),
}

// === impl HttpRunner ===

impl HttpRunner {
    /// A runner that sends executions to this URL. Without runtimes it accepts any.
    ///
    /// # Errors
    ///
    /// When the scheme is not `http`, `h2c` or `https`, or TLS can't be set up.
    pub fn new(url: &str, runtimes: Vec<String>) -> Result<Self, TargetError> {
        let (target, path) = parse(url).map_err(TargetError::Url)?;
        let connector = Connector::new(&Config::default().proxy, target.scheme == Scheme::Https)?;
        let pool = Pool::new(1, connector, IDLE_MAX, IDLE_TIMEOUT);
        let endpoint = Endpoint::new(0, &target)?;
        Ok(Self { pool, endpoint, path, url: url.to_owned(), runtimes })
    }

    /// URL of the server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn runtimes(&self) -> &[String] {
        &self.runtimes
    }

    pub(super) async fn run(&self, work: &Work, sink: &OutputSink, mut stop: StopSignal) -> Ending {
        tokio::select! {
            result = timeout(work.timeout, self.exchange(work, sink)) => match result {
                Ok(Ok(ending)) => ending,
                Ok(Err(error)) => {
                    let ending = Ending::new(TaskOutcome::Failed, EndReason::HttpError);
                    ending.because(format!("{}: {error}", self.url))
                }
                Err(_elapsed) => {
                    let timeout_ms = work.timeout.as_millis();
                    let ending = Ending::new(TaskOutcome::Failed, EndReason::Timeout);
                    ending.because(format!("{} did not respond within {timeout_ms} ms", self.url))
                }
            },
            reason = stop.stopped() => reason.ending(),
        }
    }

    async fn exchange(&self, work: &Work, sink: &OutputSink) -> Result<Ending, ExchangeError> {
        let response = self.send(work).await?;
        let status = response.status();
        let mut body = response.into_body();
        let Some(()) = read(&mut body, sink).await? else {
            let ending = Ending::new(TaskOutcome::Failed, EndReason::OutputLimit);
            return Ok(ending.because("the response is longer than the output limit"));
        };
        // A response that was read to its end leaves the connection usable.
        if let Some(connection) = body.take_connection() {
            self.pool.put_back(&self.endpoint, connection, Instant::now());
        }
        Ok(ending_of(status, &self.url))
    }

    /// Sends the request; retries only when it was not sent: the server may just have closed an idle connection.
    async fn send(&self, work: &Work) -> Result<Response<EndpointBody>, ExchangeError> {
        let body = body(work);
        loop {
            let connection =
                self.pool.checkout(&self.endpoint, HttpVersion::Any, Instant::now()).await?;
            let request = self.request(work, body.clone(), connection.is_h2())?;
            let was_reused = connection.was_reused();
            match connection.send(request, &[]).await {
                Ok(response) => return Ok(response),
                // An error that returns the request has not sent it.
                Err(mut error) => match error.take_unsent() {
                    Some(_) if was_reused => {}
                    _ => return Err(ExchangeError::Broken(error.into_error())),
                },
            }
        }
    }

    fn request(
        &self,
        work: &Work,
        body: Bytes,
        h2: bool,
    ) -> Result<Request<UploadBody>, http::Error> {
        let deadline_ms = u64::try_from(work.timeout.as_millis()).unwrap_or(u64::MAX);
        let request = Request::post(self.path.as_str())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(CONTENT_LENGTH, body.len())
            .header(USER_AGENT, AGENT)
            .header(TASK, work.key.task.as_str())
            .header(ATTEMPT, work.key.attempt)
            .header(DEADLINE_MS, deadline_ms)
            .header(IDEMPOTENCY_KEY, work.key.to_string());
        let body = UploadBody::of_pieces(vec![body], None);
        if !h2 {
            return request.header(HOST, self.endpoint.authority.as_str()).body(body);
        }
        // HTTP/2 has no Host: scheme and authority are part of the URI.
        let scheme = match self.endpoint.scheme {
            Scheme::Https => uri::Scheme::HTTPS,
            Scheme::Http | Scheme::H2c => uri::Scheme::HTTP,
        };
        let uri = Uri::builder().scheme(scheme).authority(self.endpoint.authority.clone());
        let uri = uri.path_and_query(self.path.clone()).build()?;
        request.uri(uri).version(Version::HTTP_2).body(body)
    }
}

fn body(work: &Work) -> Bytes {
    let language = (!work.runtime.is_empty()).then_some(&work.runtime);
    let all = json!({
        "eval_id": work.key.task.as_str(),
        "attempt": work.key.attempt,
        "language": language,
        "code": work.code,
        "args": work.args,
        "env": work.env,
    });
    Bytes::from(all.to_string())
}

fn ending_of(status: StatusCode, url: &str) -> Ending {
    match status.is_success() {
        true => Ending::new(TaskOutcome::Succeeded, EndReason::Exit),
        false => {
            let ending = Ending::new(TaskOutcome::Failed, EndReason::HttpError);
            ending.because(format!("{url} responded {status}"))
        }
    }
}

/// Writes the response's body to the sink; `None` when it exceeds the output limit.
async fn read(body: &mut EndpointBody, sink: &OutputSink) -> Result<Option<()>, ClientError> {
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
        let Ok(data) = frame?.into_data() else { continue };
        if !sink.write(OutputStream::Stdout, &data) {
            return Ok(None);
        }
    }
    Ok(Some(()))
}

/// Server and path of a URL.
fn parse(url: &str) -> Result<(UpstreamTarget, PathAndQuery), ExecutorConfigError> {
    let wrong =
        |allowed: &str| ExecutorConfigError::new("target", format_args!("{url:?}"), allowed);
    let from = url.find("://").map_or(0, |at| at + 3);
    let at = url[from..].find(['/', '?', '#']).map_or(url.len(), |at| from + at);
    let (server, path) = url.split_at(at);
    let target = UpstreamTarget::parse(server).map_err(|error| wrong(error.allowed))?;
    let path = if path.is_empty() { "/" } else { path };
    let parsed = PathAndQuery::try_from(path).ok().filter(|_| !path.contains('#'));
    let path = parsed.filter(|_| path.starts_with('/'));
    path.map(|path| (target, path)).ok_or_else(|| wrong("a path, and no fragment, after the host"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_a_server_and_a_path() {
        let parsed = |url| parse(url).map(|(target, path)| (target.name, path.to_string()));
        let is = |name: &str, path: &str| Ok((name.to_owned(), path.to_owned()));
        assert_eq!(parsed("http://127.0.0.1:9000"), is("127.0.0.1:9000", "/"));
        assert_eq!(parsed("http://h:1/run?x=y"), is("h:1", "/run?x=y"));
        for wrong in
            ["127.0.0.1:9000/run", "ftp://a/", "http:///run", "http://a:1/#x", "http://a:1?x", ""]
        {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
