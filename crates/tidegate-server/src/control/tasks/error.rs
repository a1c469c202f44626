use crate::control::read_body::ReadError;
use crate::manager::DeskError;
use tidegate::task::IdError;

/// Why a request about tasks was not followed. Nothing has changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TaskApiError {
    /// The desk did not grant it.
    #[error(transparent)]
    Desk(#[from] DeskError),
    /// The body is of another type.
    #[error("the body is {given}; expected is application/json")]
    NotJsonType {
        /// What it is said to be.
        given: String,
    },
    /// The body is no JSON.
    #[error("the body is not JSON: {0}")]
    NotJson(String),
    /// The body is longer than it may be.
    #[error("the body is longer than {bytes_max} bytes")]
    TooLong {
        /// The most there may be.
        bytes_max: usize,
    },
    /// The body did not come, or not in time.
    #[error("the body did not come to its end")]
    Broken,
    /// There is no such field.
    #[error("{field:?} is no field of a task{}; there are: {known}", meant(*nearest))]
    UnknownField {
        /// Which.
        field: String,
        /// What was probably meant.
        nearest: Option<&'static str>,
        /// What there is.
        known: String,
    },
    /// A field or a header has a value that can't be.
    #[error("{field}: {given} was given; expected is {expected}")]
    Value {
        /// Which.
        field: &'static str,
        /// What was given.
        given: String,
        /// What is expected.
        expected: &'static str,
    },
    /// The id can't be one.
    #[error("id: {0}")]
    Id(#[from] IdError),
    /// A parameter of the query is wrong.
    #[error("{parameter}: {given:?} was given; expected is {expected}")]
    Parameter {
        /// Which.
        parameter: String,
        /// What was given.
        given: String,
        /// What is expected.
        expected: String,
    },
    /// A page of another site asks, by way of its reader's browser.
    #[error("the request comes from a page of another origin")]
    CrossOrigin,
    /// As many watch as may watch.
    #[error("as many watch tasks as may: ask for the task itself, or come back later")]
    WatchersFull,
    /// Nothing is there.
    #[error(
        "nothing is here; there are /v1/tasks, /v1/tasks/ID, and its /cancel, /output and /events, where an id has \
         1 … 128 of letters, digits and . _ : -"
    )]
    Nowhere,
    /// It is not asked by this method.
    #[error("this is asked by {allowed}")]
    Method {
        /// By which it is.
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

    /// The field that it is about, if it is about one.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::UnknownField { field, .. } => Some(field),
            Self::Value { field, .. } => Some(field),
            Self::Parameter { parameter, .. } => Some(parameter),
            Self::Id(_) => Some("id"),
            Self::Desk(DeskError::UnknownRuntime { .. }) => Some("runtime"),
            _ => None,
        }
    }
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!(", {nearest} was probably meant")).unwrap_or_default()
}
