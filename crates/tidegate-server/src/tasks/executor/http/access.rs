use super::request_error::RequestError;
use crate::config::{TlsFiles, TokenDigest};
use crate::http::admission::bearer;
use crate::tasks::executor::config::ExecutorConfigError;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::net::SocketAddr;

/// Access to the port of a worker. The default is open and plain, which is right on loopback alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerAccess {
    /// TLS files; `None` for plain text.
    pub tls: Option<TlsFiles>,
    /// Plain text was asked for, also beyond loopback.
    pub plain_text: bool,
    /// Token that callers must send, for all but health.
    pub token: Option<TokenDigest>,
}

// === impl WorkerAccess ===

impl WorkerAccess {
    /// Everything that an address beyond loopback lacks.
    pub(super) fn errors(&self, listen: SocketAddr) -> Vec<ExecutorConfigError> {
        if listen.ip().to_canonical().is_loopback() {
            return Vec::new();
        }
        let has_client_ca = self.tls.as_ref().is_some_and(|files| files.client_ca.is_some());
        let unsafe_text = self.tls.is_none() && !self.plain_text;
        let open = self.token.is_none() && !has_client_ca;
        let wrong = [
            unsafe_text.then_some(
                "a loopback address without TLS: give --tls-cert and --tls-key, or --tls off for \
                 plain text, which shows tokens and code to the network",
            ),
            open.then_some(
                "a loopback address while every caller can run code: set TIDEGATE_WORKER_TOKEN or \
                 --token-sha256, or ask for client certificates with --tls-client-ca",
            ),
        ];
        let error = |allowed| ExecutorConfigError::new("listen", listen, allowed);
        wrong.into_iter().flatten().map(error).collect()
    }

    /// Checks the token of a request.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), RequestError> {
        let Some(expected) = self.token else { return Ok(()) };
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        match shown.find_map(|value| bearer(value.as_bytes())) {
            None => Err(RequestError::TokenMissing),
            // Digests are compared: the time tells nothing about the token.
            Some(token) if TokenDigest::of(token) == expected => Ok(()),
            Some(_) => Err(RequestError::TokenUnknown),
        }
    }
}
