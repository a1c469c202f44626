use crate::config::ApiKey;
use crate::http::ClientTls;
use crate::tasks::executor::Executor;

/// Location of an executor.
#[derive(Clone)]
pub enum ExecutorTarget {
    /// Executor that speaks the HTTP contract.
    Http(HttpTarget),
    /// Executor of this process.
    Local(Executor),
}

/// An executor that speaks the HTTP contract.
#[derive(Clone, Debug)]
pub struct HttpTarget {
    /// Base URL.
    pub url: String,
    /// Token that the executor expects.
    pub token: Option<ApiKey>,
    /// TLS for an `https` URL.
    pub tls: Option<ClientTls>,
}
