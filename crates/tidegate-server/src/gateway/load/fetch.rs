//! Getting a small page from an upstream, within a time and a size.

use crate::config::Scheme;
use crate::gateway::upstream::{Fleet, Upstream};
use crate::http::client::{
    ClientError, ConnectError, Connector, Endpoint, EndpointBody, HttpVersion, Pool, UploadBody,
};
use crate::http::response::is_ok;
use http::header::{ACCEPT, AUTHORIZATION, HOST, USER_AGENT};
use http::uri::{self, PathAndQuery, Uri};
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::{Duration, Instant};

/// Between two scrapes a connection is kept for this long: longer than any sensible interval, and shorter than
/// firewalls forget.
const KEEP: Duration = Duration::from_secs(90);

/// The user agent of requests for pages.
const AGENT: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));

/// Gets pages from the upstreams of a fleet, on one kept connection to each. One that broke is replaced.
///
/// The scraper can be shared: two fetches from one upstream at once use a connection each, and one of the two is
/// kept.
pub struct Scraper {
    pool: Pool,
}

/// A page.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The bytes of the page.
    pub body: Vec<u8>,
}

/// No page came. Nothing is changed by it, and the next fetch starts afresh.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No connection could be made.
    #[error("can't connect: {0}")]
    Connect(#[from] ConnectError),
    /// The status of the response is not 200.
    #[error("it answered {0}")]
    Status(StatusCode),
    /// The page is larger than it may be.
    #[error("the page is larger than {0} bytes")]
    TooLarge(usize),
    /// The page was not there in time.
    #[error("no page within {0:?}")]
    Late(Duration),
    /// The connection broke while the page was under way.
    #[error("the exchange broke: {0}")]
    Broken(#[from] ClientError),
    /// Such a page can't be asked for.
    #[error("bad path: {0}")]
    Path(#[from] http::Error),
}

// === impl Scraper ===

impl Scraper {
    /// One for these upstreams, without connections yet.
    #[must_use]
    pub fn new(fleet: &Fleet, connector: Connector) -> Self {
        Self { pool: Pool::new(fleet.all().len(), connector, 1, KEEP) }
    }

    /// Gets `path` of an upstream that belongs to the fleet, by the upstream's own scheme.
    ///
    /// # Errors
    ///
    /// When it can't be reached, answers anything but 200, or is not through within `limit` and `max_bytes`.
    ///
    /// # Cancel safety
    ///
    /// A fetch that is given up closes its HTTP/1.1 connection, or resets its stream of HTTP/2.
    pub async fn fetch(
        &self,
        upstream: &Upstream,
        path: &str,
        limit: Duration,
        max_bytes: usize,
    ) -> Result<Fetched, FetchError> {
        match tokio::time::timeout(limit, self.exchange(upstream, path, max_bytes)).await {
            Ok(done) => done,
            Err(_elapsed) => Err(FetchError::Late(limit)),
        }
    }

    async fn exchange(
        &self,
        upstream: &Upstream,
        path: &str,
        max_bytes: usize,
    ) -> Result<Fetched, FetchError> {
        let answer = self.ask(upstream, path).await?;
        let status = answer.status();
        let mut body = answer.into_body();
        let page = read(&mut body, max_bytes).await;
        // What was read to its end leaves a connection for the next time, whatever it said.
        if page.is_ok()
            && let Some(connection) = body.take_connection()
        {
            self.pool.put_back(upstream.endpoint(), connection, Instant::now());
        }
        if !is_ok(status) {
            return Err(FetchError::Status(status));
        }
        Ok(Fetched { body: page? })
    }

    /// Asks once more when a kept connection turns out to be closed: asking twice does no harm. But once only,
    /// or a peer that takes and drops would be asked for ever.
    async fn ask(
        &self,
        upstream: &Upstream,
        path: &str,
    ) -> Result<Response<EndpointBody>, FetchError> {
        let mut may_repeat = true;
        loop {
            let endpoint = upstream.endpoint();
            let connection =
                match self.pool.checkout(endpoint, HttpVersion::Any, Instant::now()).await {
                    Ok(connection) => connection,
                    Err(error) => {
                        // Seen between two probes: it is used again as soon as it is back.
                        upstream.note(Some(&error));
                        return Err(error.into());
                    }
                };
            if !connection.was_reused() {
                upstream.note(None);
            }
            let request = request(endpoint, path, connection.is_h2())?;
            let was_reused = connection.was_reused();
            match connection.send(request, &[]).await {
                Ok(answer) => return Ok(answer),
                Err(_) if may_repeat && was_reused => may_repeat = false,
                Err(error) => return Err(FetchError::Broken(error.into_error())),
            }
        }
    }
}

fn request(endpoint: &Endpoint, path: &str, h2: bool) -> Result<Request<UploadBody>, http::Error> {
    let path = PathAndQuery::try_from(path)?;
    let mut request = Request::get(path.as_str()).header(ACCEPT, "*/*").header(USER_AGENT, AGENT);
    if let Some(key) = &endpoint.authorization {
        request = request.header(AUTHORIZATION, key);
    }
    if !h2 {
        return request.header(HOST, endpoint.authority.as_str()).body(UploadBody::empty());
    }
    // HTTP/2 has no Host: scheme and authority are part of what is asked for.
    let scheme = match endpoint.scheme {
        Scheme::Https => uri::Scheme::HTTPS,
        Scheme::Http | Scheme::H2c => uri::Scheme::HTTP,
    };
    let uri = Uri::builder().scheme(scheme).authority(endpoint.authority.clone());
    request
        .uri(uri.path_and_query(path).build()?)
        .version(Version::HTTP_2)
        .body(UploadBody::empty())
}

async fn read(body: &mut EndpointBody, max_bytes: usize) -> Result<Vec<u8>, FetchError> {
    if usize::try_from(body.size_hint().lower()).is_ok_and(|bytes| bytes > max_bytes) {
        return Err(FetchError::TooLarge(max_bytes));
    }
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
        let Ok(data) = frame?.into_data() else { continue };
        if data.len() > max_bytes - bytes.len() {
            return Err(FetchError::TooLarge(max_bytes));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

// === impl Fetched ===

impl Fetched {
    /// The page as text. Bytes that are no text are replaced and not refused: they may be in an unused label.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        // Checking a whole page is many times faster than looking for the first flaw in it.
        match std::str::from_utf8(&self.body) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(&self.body),
        }
    }
}
