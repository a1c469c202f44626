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

// === impl ExecutorTarget ===

impl ExecutorTarget {
    /// Name of the executor, as in a task's `executor`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Http(target) => target.url.clone(),
            Self::Local(executor) => executor.id().to_owned(),
        }
    }
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
