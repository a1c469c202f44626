use crate::http::ResponseBody;
use crate::http::error_response::{ErrorKind, ErrorResponse, ResponseFormat};
use crate::http::read_body::ReadError;
use crate::tasks::manager::TaskError;
use http::Response;
use std::time::Duration;
use tidegate::task::{IdError, SpecError};

/// Retry advice while a part of the manager is unavailable.
const SOON: Duration = Duration::from_secs(1);

/// Error of a request about tasks. Nothing changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TaskApiError {
    /// Error of the manager.
    #[error(transparent)]
    Manager(#[from] TaskError),
    /// Body of another content type.
    #[error("the body is {given}; expected application/json")]
    NotJsonType {
        /// Content type given.
        given: String,
    },
    /// Body that is not JSON.
    #[error("the body is not JSON: {0}")]
    NotJson(String),
    /// Body longer than the limit.
    #[error("the body is longer than {bytes_max} bytes")]
    TooLong {
        /// Longest body.
        bytes_max: usize,
    },
    /// Body that ended early, or did not arrive in time.
    #[error("the body is incomplete, or did not arrive in time")]
    Broken,
    /// Unknown field.
    #[error("{field:?} is no field of a task{}; known fields: {known}", hint(*nearest))]
    UnknownField {
        /// Field given.
        field: String,
        /// Nearest known field.
        nearest: Option<&'static str>,
        /// Known fields.
        known: String,
    },
    /// Invalid value of a field or a header.
    #[error("{field}: {given} was given; expected {expected}")]
    Value {
        /// Name of the field.
        field: &'static str,
        /// Value given.
        given: String,
        /// Values expected.
        expected: &'static str,
    },
    /// Invalid id.
    #[error("id: {0}")]
    Id(#[from] IdError),
    /// Invalid query parameter.
    #[error("{parameter}: {given:?} was given; expected {expected}")]
    Parameter {
        /// Name of the parameter.
        parameter: String,
        /// Value given.
        given: String,
        /// Values expected.
        expected: String,
    },
    /// Change requested by a web page of another origin.
    #[error("the request comes from a web page of another origin")]
    CrossOrigin,
    /// Tasks are off at this node.
    #[error(
        "this node runs no tasks: start it with --tasks, or set enabled = true in [tasks] of its configuration"
    )]
    Off,
    /// Workers are for operators.
    #[error(
        "workers are listed for operators alone: ask on the admin port, or with an operator's token"
    )]
    OperatorsOnly,
    /// The manager has no port for workers.
    #[error("this manager has no port for workers: start it with --workers")]
    NoWorkers,
    /// Too many watchers.
    #[error("too many watchers of tasks: poll the task itself, or retry later")]
    WatchersFull,
    /// Unknown path below `/v1/tasks/`.
    #[error(
        "unknown path; there are /v1/tasks, /v1/tasks/ID, and its /cancel, /output, /progress and /events, where an \
         id has 1 … 128 letters, digits and . _ : -"
    )]
    UnknownPath,
    /// Method that the path does not accept.
    #[error("this path accepts {allowed}")]
    Method {
        /// Methods accepted.
        allowed: &'static str,
    },
}

// === impl TaskApiError ===

impl TaskApiError {
    pub(super) fn of_reading(error: ReadError, bytes_max: usize) -> Self {
        match error {
            ReadError::TooLong => Self::TooLong { bytes_max },
            ReadError::Broken => Self::Broken,
        }
    }

    /// The response.
    #[must_use]
    pub fn respond(&self, format: ResponseFormat) -> Response<ResponseBody> {
        let (kind, reason) = self.kind();
        let retry_after = match self {
            Self::Manager(TaskError::QueueFull { retry_after, .. }) => Some(*retry_after),
            _ => (kind == ErrorKind::Unavailable).then_some(SOON),
        };
        ErrorResponse::new(kind, reason, &self.to_string())
            .field(self.field())
            .retry_after(retry_after)
            .respond(format)
    }

    fn kind(&self) -> (ErrorKind, &'static str) {
        match self {
            Self::Manager(error) => task_kind(error),
            Self::NotJsonType { .. } => (ErrorKind::UnsupportedMediaType, "not_json_type"),
            Self::NotJson(_) => (ErrorKind::BadRequest, "not_json"),
            Self::TooLong { .. } => (ErrorKind::TooLarge, "too_long"),
            Self::Broken => (ErrorKind::BadRequest, "upload_broken"),
            Self::UnknownField { .. } => (ErrorKind::Unprocessable, "unknown_field"),
            Self::Value { .. } | Self::Id(_) => (ErrorKind::Unprocessable, "wrong_value"),
            Self::Parameter { .. } => (ErrorKind::BadRequest, "wrong_parameter"),
            Self::CrossOrigin => (ErrorKind::Forbidden, "cross_origin"),
            Self::OperatorsOnly => (ErrorKind::Forbidden, "operators_only"),
            Self::NoWorkers => (ErrorKind::UnknownPath, "workers_off"),
            Self::Off => (ErrorKind::UnknownPath, "tasks_off"),
            Self::WatchersFull => (ErrorKind::Unavailable, "watchers_full"),
            Self::UnknownPath => (ErrorKind::UnknownPath, "unknown_path"),
            Self::Method { allowed } => (ErrorKind::MethodNotAllowed(allowed), "unknown_method"),
        }
    }

    /// The field that the error is about, if any.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::UnknownField { field, .. } => Some(field),
            Self::Value { field, .. } => Some(field),
            Self::Parameter { parameter, .. } => Some(parameter),
            Self::Id(_) => Some("id"),
            Self::Manager(TaskError::UnknownRuntime { .. }) => Some("runtime"),
            _ => None,
        }
    }
}

fn task_kind(error: &TaskError) -> (ErrorKind, &'static str) {
    match error {
        TaskError::Spec(SpecError::CodeTooLarge { .. } | SpecError::ExtrasTooLarge { .. }) => {
            (ErrorKind::TooLarge, "too_long")
        }
        TaskError::Spec(_) => (ErrorKind::Unprocessable, "wrong_value"),
        TaskError::UnknownRuntime { .. } => (ErrorKind::Unprocessable, "unknown_runtime"),
        TaskError::Refused(_) => (ErrorKind::Unprocessable, "wrong_value"),
        TaskError::IdInUse(_) => (ErrorKind::Conflict, "id_in_use"),
        TaskError::KeyInUse(_) => (ErrorKind::Conflict, "key_in_use"),
        TaskError::Over { .. } => (ErrorKind::Conflict, "over"),
        TaskError::NotFound(_) => (ErrorKind::NotFound, "unknown_task"),
        TaskError::QueueFull { .. } => (ErrorKind::Unavailable, "queue_full"),
        TaskError::Store(_) => (ErrorKind::Unavailable, "store_unavailable"),
        TaskError::Draining => (ErrorKind::Unavailable, "draining"),
    }
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!(" (did you mean {nearest}?)")).unwrap_or_default()
}
