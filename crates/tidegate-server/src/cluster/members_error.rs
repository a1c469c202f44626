use super::trust::ClusterError;
use crate::http::ResponseBody;
use crate::http::error_response::{ErrorKind, ErrorResponse, ResponseFormat};
use http::Response;
use tidegate::membership::MemberRole;

/// A request about members that was not followed. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum MembersError {
    /// The port is that of clients.
    #[error("members are shown to operators alone: ask on the admin port")]
    OperatorsPort,
    /// The path is unknown.
    #[error("the path is unknown; GET /v1/members, POST /v1/members/NODE/drain or /undrain")]
    UnknownPath,
    /// The method is none of the path.
    #[error("use {0}")]
    Method(&'static str),
    /// No member has the name.
    #[error("no member of the cell is named {0}; `tidegate members` lists them")]
    UnknownNode(String),
    /// The member is no worker.
    #[error("{node} is a {role}: workers alone are drained; a {role} drains when it gets SIGTERM")]
    NoWorker {
        /// The name.
        node: String,
        /// Its role.
        role: MemberRole,
    },
    /// The worker has had no session with this manager: it dials another one, or is away since before the start.
    #[error(
        "worker {node} has had no session with {manager} since the start of {manager}: drain it at the manager that \
         it dials, with --admin, or once it has joined again; nothing has changed"
    )]
    NoSession {
        /// The worker.
        node: String,
        /// This manager.
        manager: String,
    },
    /// The node has no workers.
    #[error("this node is no manager: drain at the manager of the worker, with --admin")]
    NoManager,
    /// A browser sent the request for a page of another site.
    #[error("the request comes from a page of another origin")]
    CrossOrigin,
    /// The change can't be persisted.
    #[error(transparent)]
    Files(#[from] ClusterError),
}

// === impl MembersError ===

impl MembersError {
    /// The response.
    pub fn respond(&self, format: ResponseFormat) -> Response<ResponseBody> {
        let (kind, reason) = match self {
            Self::OperatorsPort => (ErrorKind::Forbidden, "operators_port"),
            Self::UnknownPath => (ErrorKind::UnknownPath, "unknown_path"),
            Self::Method(allowed) => (ErrorKind::MethodNotAllowed(allowed), "unknown_method"),
            Self::UnknownNode(_) => (ErrorKind::NotFound, "unknown_node"),
            Self::NoWorker { .. } => (ErrorKind::Unprocessable, "no_worker"),
            Self::NoSession { .. } => (ErrorKind::Conflict, "no_session"),
            Self::NoManager => (ErrorKind::Conflict, "no_manager"),
            Self::CrossOrigin => (ErrorKind::Forbidden, "cross_origin"),
            Self::Files(_) => (ErrorKind::Unavailable, "not_persisted"),
        };
        ErrorResponse::new(kind, reason, &self.to_string()).respond(format)
    }
}
