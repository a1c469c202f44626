use super::config::{Protocol, Template};
use super::driver::ScheduledRequest;
use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use std::io;
use std::time::Duration;

/// HTTP request to send.
pub(super) type Outgoing = Request<Full<Bytes>>;

/// Validated template with the common parts of its requests.
pub(super) struct Prepared {
    pub deadline: Option<Duration>,
    method: Method,
    path: String,
    /// URI of requests without a suffix.
    uri: Uri,
    /// Authority of the URI with HTTP/2.
    authority: Option<Authority>,
    headers: HeaderMap,
    body: Bytes,
}

// === impl Prepared ===

impl Prepared {
    pub fn new(template: Template, authority: &Authority, protocol: Protocol) -> io::Result<Self> {
        let invalid = |error: String| io::Error::new(io::ErrorKind::InvalidInput, error);
        let mut headers = template.headers;
        let in_uri = match protocol {
            Protocol::Http2 => Some(authority.clone()),
            Protocol::Http1 => {
                let host = HeaderValue::from_str(authority.as_str());
                let host = host.map_err(|error| invalid(format!("{authority}: {error}")))?;
                headers.entry(header::HOST).or_insert(host);
                None
            }
        };
        let uri = uri(Bytes::from(template.path.clone()), in_uri.as_ref());
        let uri = uri.map_err(|error| invalid(format!("{}: {error}", template.path)))?;
        Ok(Self {
            deadline: template.deadline,
            method: template.method,
            path: template.path,
            uri,
            authority: in_uri,
            headers,
            body: template.body,
        })
    }

    /// Deadline of a request.
    pub fn deadline_of(&self, scheduled: &ScheduledRequest) -> Option<Duration> {
        self.deadline.map(|deadline| scheduled.due.saturating_add(deadline))
    }

    /// HTTP request; `None` if the suffix is not valid in a URI.
    pub fn request(&self, scheduled: &ScheduledRequest) -> Option<Outgoing> {
        let uri = match scheduled.suffix.as_str() {
            "" => self.uri.clone(),
            suffix => uri([&self.path, suffix].concat().into(), self.authority.as_ref()).ok()?,
        };
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers.clone();
        Some(request)
    }
}

fn uri(path: Bytes, authority: Option<&Authority>) -> Result<Uri, http::Error> {
    let path = PathAndQuery::from_maybe_shared(path)?;
    let mut parts = http::uri::Parts::default();
    parts.path_and_query = Some(path);
    if let Some(authority) = authority {
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(authority.clone());
    }
    Ok(Uri::from_parts(parts)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(path: &str, protocol: Protocol) -> io::Result<Prepared> {
        Prepared::new(Template::get(path), &Authority::from_static("host:81"), protocol)
    }

    fn scheduled(suffix: &str) -> ScheduledRequest {
        ScheduledRequest {
            suffix: suffix.to_owned(),
            ..ScheduledRequest::new(Duration::ZERO, 0, 0)
        }
    }

    #[test]
    fn the_authority_is_a_header_or_a_part_of_the_uri() {
        let first =
            prepared("/work", Protocol::Http1).unwrap().request(&scheduled("?ms=1.5")).unwrap();
        assert_eq!(first.uri(), "/work?ms=1.5");
        assert_eq!(first.headers()[header::HOST], "host:81");
        let second = prepared("/work", Protocol::Http2).unwrap().request(&scheduled("")).unwrap();
        assert_eq!(second.uri(), "http://host:81/work");
        assert!(second.headers().is_empty());
    }

    #[test]
    fn an_invalid_uri_is_refused() {
        assert!(prepared("/a b", Protocol::Http1).is_err());
        assert!(prepared("/a", Protocol::Http1).unwrap().request(&scheduled(" b")).is_none());
    }
}
