use super::config::WorkerMistake;
use super::work::{OutputSink, StopSignal, Work};
use crate::config::{Config, Scheme, UpstreamTarget};
use crate::proxy::UploadBody;
use crate::tls::TlsSetupError;
use crate::upstream::{
    ConnectError, Connection, Connector, Fleet, FleetError, Pool, Speaks, Upstream,
};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::uri::{self, PathAndQuery, Uri};
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use serde_json::json;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate::task::{EndReason, Ending, Outcome, OutputStream};
use tokio::time::timeout;

const TASK: HeaderName = HeaderName::from_static("tidegate-task");
const ATTEMPT: HeaderName = HeaderName::from_static("tidegate-attempt");
const DEADLINE_MS: HeaderName = HeaderName::from_static("tidegate-deadline-ms");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const AGENT: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));

/// Connections are kept for so long after their last exchange: shorter than most servers keep theirs.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// How many are.
const IDLE_MAX: usize = 256;

/// Passes executions on to a server of the user's: `POST` with all that is known of them, as JSON.
///
/// An answer of 2xx is a success, and its body the output. Whatever else is a failure. An execution that must stop
/// or whose time is over gives its request up, which closes its connection: the server can see that.
pub struct HttpRunner {
    pool: Pool,
    upstream: Arc<Upstream>,
    path: PathAndQuery,
    url: String,
    runtimes: Vec<String>,
}

/// The server can't be passed anything.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The URL is none, or none that can be used.
    #[error("{0}")]
    Url(WorkerMistake),
    /// Its certificate could not be checked.
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    /// Its name can't stand in a request.
    #[error(transparent)]
    Host(#[from] FleetError),
}

/// An exchange with the server came to nothing.
#[derive(Debug, thiserror::Error)]
enum PassError {
    #[error("can't connect: {0}")]
    Connect(#[from] ConnectError),
    #[error("the exchange broke: {0}")]
    Broken(#[from] hyper::Error),
    #[error("the request can't be written: {0}")]
    Request(#[from] http::Error),
}

// === impl HttpRunner ===

impl HttpRunner {
    /// One that passes everything on to this URL. Without runtimes it takes any.
    ///
    /// # Errors
    ///
    /// When the URL is none of `http`, `h2c` or `https`, or TLS can't be set up.
    pub fn new(url: &str, runtimes: Vec<String>) -> Result<Self, TargetError> {
        let (target, path) = parse(url).map_err(TargetError::Url)?;
        let any_https = target.scheme == Scheme::Https;
        let config = Config { upstreams: vec![target], ..Config::default() };
        let fleet = Fleet::new(&config)?;
        let connector = Connector::new(&config.proxy, any_https)?;
        let pool = Pool::new(&fleet, connector, IDLE_MAX, IDLE_TIMEOUT);
        let upstream = Arc::clone(&fleet.all()[0]);
        Ok(Self { pool, upstream, path, url: url.to_owned(), runtimes })
    }

    /// Where executions are passed on to.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn runtimes(&self) -> &[String] {
        &self.runtimes
    }

    pub(super) async fn run(&self, work: &Work, sink: &OutputSink, mut stop: StopSignal) -> Ending {
        tokio::select! {
            passed = timeout(work.timeout, self.pass_on(work, sink)) => match passed {
                Ok(Ok(ending)) => ending,
                Ok(Err(error)) => {
                    let ending = Ending::new(Outcome::Failed, EndReason::HttpError);
                    ending.because(format!("{}: {error}", self.url))
                }
                Err(_elapsed) => {
                    let timeout_ms = work.timeout.as_millis();
                    let ending = Ending::new(Outcome::Failed, EndReason::Timeout);
                    ending.because(format!("{} did not answer within {timeout_ms} ms", self.url))
                }
            },
            why = stop.stopped() => why.ending(),
        }
    }

    async fn pass_on(&self, work: &Work, sink: &OutputSink) -> Result<Ending, PassError> {
        let (connection, answer) = self.send(work).await?;
        let status = answer.status();
        let Some(()) = read(answer.into_body(), sink).await? else {
            let ending = Ending::new(Outcome::Failed, EndReason::OutputLimit);
            return Ok(ending.because("the answer is longer than is kept"));
        };
        // What was read to its end leaves a connection for the next.
        self.pool.put_back(&self.upstream, connection);
        Ok(judged(status, &self.url))
    }

    /// Sends it again only when it was certainly not sent: a kept connection may be closed just then.
    async fn send(&self, work: &Work) -> Result<(Connection, Response<Incoming>), PassError> {
        let body = body(work);
        loop {
            let mut connection = self.pool.checkout(&self.upstream, Speaks::Either).await?;
            let request = self.request(work, body.clone(), connection.is_h2())?;
            match connection.send(request).await {
                Ok(answer) => return Ok((connection, answer)),
                // Given back with the error, the request has not gone out.
                Err(mut error) => match error.take_message() {
                    Some(_) if connection.was_reused() => {}
                    _ => return Err(PassError::Broken(error.into_error())),
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
            return request.header(HOST, self.upstream.authority.as_str()).body(body);
        }
        // HTTP/2 has no Host: scheme and authority are part of what is asked for.
        let scheme = match self.upstream.scheme {
            Scheme::Https => uri::Scheme::HTTPS,
            Scheme::Http | Scheme::H2c => uri::Scheme::HTTP,
        };
        let uri = Uri::builder().scheme(scheme).authority(self.upstream.authority.clone());
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

fn judged(status: StatusCode, url: &str) -> Ending {
    match status.is_success() {
        true => Ending::new(Outcome::Succeeded, EndReason::Exit),
        false => {
            let ending = Ending::new(Outcome::Failed, EndReason::HttpError);
            ending.because(format!("{url} answered {status}"))
        }
    }
}

/// Keeps the answer; `None` when there is more of it than is kept.
async fn read(mut body: Incoming, sink: &OutputSink) -> Result<Option<()>, hyper::Error> {
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(data) = frame?.into_data() else { continue };
        if !sink.write(OutputStream::Stdout, &data) {
            return Ok(None);
        }
    }
    Ok(Some(()))
}

/// The server, and what is asked of it.
fn parse(url: &str) -> Result<(UpstreamTarget, PathAndQuery), WorkerMistake> {
    let wrong = |allowed: &str| WorkerMistake::new("target", format_args!("{url:?}"), allowed);
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
