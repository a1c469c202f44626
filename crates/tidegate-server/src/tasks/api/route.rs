use super::error::TaskApiError;
use http::Method;
use tidegate::admission::MessageKind;
use tidegate::task::TaskId;

const TASKS: &str = "/v1/tasks";
const EXECUTORS: &str = "/v1/executors";
const WORKERS: &str = "/v1/workers";

/// Path of the task API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskRoute {
    /// `/v1/tasks`.
    All,
    /// `/v1/tasks/{id}`.
    One(TaskId),
    /// `/v1/tasks/{id}/cancel`.
    Cancel(TaskId),
    /// `/v1/tasks/{id}/output`.
    Output(TaskId),
    /// `/v1/tasks/{id}/events`.
    Events(TaskId),
    /// `/v1/tasks/{id}/progress`.
    Progress(TaskId),
    /// `/v1/executors`.
    Executors,
    /// `/v1/workers`.
    Workers,
    /// Unknown path below `/v1/tasks/`.
    UnknownPath,
}

/// Operation of the task API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Submits a task.
    Submit,
    /// Lists tasks.
    List,
    /// Returns a task.
    Get(TaskId),
    /// Cancels a task.
    Cancel(TaskId),
    /// Returns a task's output.
    Output(TaskId),
    /// Streams a task's changes.
    Events(TaskId),
    /// Returns a task's progress over time.
    Progress(TaskId),
    /// Lists the executors.
    Executors,
    /// Lists the workers that dial.
    Workers,
}

// === impl TaskRoute ===

impl TaskRoute {
    /// The route of a path; `None` when it is not the task API's.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        match path {
            TASKS => return Some(Self::All),
            EXECUTORS => return Some(Self::Executors),
            WORKERS => return Some(Self::Workers),
            _ => {}
        }
        let below = path.strip_prefix(TASKS)?.strip_prefix('/')?;
        let (id, action) = match below.split_once('/') {
            Some((id, action)) => (id, Some(action)),
            None => (below, None),
        };
        Some(match (TaskId::new(id), action) {
            (Ok(id), None) => Self::One(id),
            (Ok(id), Some("cancel")) => Self::Cancel(id),
            (Ok(id), Some("output")) => Self::Output(id),
            (Ok(id), Some("events")) => Self::Events(id),
            (Ok(id), Some("progress")) => Self::Progress(id),
            _ => Self::UnknownPath,
        })
    }

    /// The operation of a method on this route.
    ///
    /// # Errors
    ///
    /// When the path is unknown, or does not accept the method.
    pub(super) fn operation(self, method: &Method) -> Result<Operation, TaskApiError> {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        let (operation, allowed) = match self {
            Self::All if *method == Method::POST => (Some(Operation::Submit), ""),
            Self::All => (reads.then_some(Operation::List), "GET, HEAD, POST"),
            Self::One(id) if *method == Method::DELETE => (Some(Operation::Cancel(id)), ""),
            Self::One(id) => (reads.then_some(Operation::Get(id)), "GET, HEAD, DELETE"),
            Self::Cancel(id) => {
                ((*method == Method::POST).then_some(Operation::Cancel(id)), "POST")
            }
            Self::Output(id) => (reads.then_some(Operation::Output(id)), "GET, HEAD"),
            Self::Events(id) => ((*method == Method::GET).then_some(Operation::Events(id)), "GET"),
            Self::Progress(id) => (reads.then_some(Operation::Progress(id)), "GET, HEAD"),
            Self::Executors => (reads.then_some(Operation::Executors), "GET, HEAD"),
            Self::Workers => (reads.then_some(Operation::Workers), "GET, HEAD"),
            Self::UnknownPath => return Err(TaskApiError::UnknownPath),
        };
        operation.ok_or(TaskApiError::Method { allowed })
    }
}

// === impl Operation ===

impl Operation {
    /// Kind of the request, for classification.
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::Submit => MessageKind::TaskSubmit,
            Self::Cancel(_) => MessageKind::TaskCancel,
            Self::List | Self::Get(_) | Self::Output(_) | Self::Events(_) => MessageKind::TaskRead,
            Self::Progress(_) | Self::Executors | Self::Workers => MessageKind::TaskRead,
        }
    }

    /// True for an operation that changes something.
    pub const fn changes(&self) -> bool {
        matches!(self, Self::Submit | Self::Cancel(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::MessageClass;

    #[test]
    fn only_whole_paths_match() {
        let id = || TaskId::new("a:1").unwrap();
        let table = [
            ("/v1/tasks", Some(TaskRoute::All)),
            ("/v1/tasks/a:1", Some(TaskRoute::One(id()))),
            ("/v1/tasks/a:1/cancel", Some(TaskRoute::Cancel(id()))),
            ("/v1/tasks/a:1/output", Some(TaskRoute::Output(id()))),
            ("/v1/tasks/a:1/events", Some(TaskRoute::Events(id()))),
            ("/v1/tasks/a:1/progress", Some(TaskRoute::Progress(id()))),
            ("/v1/executors", Some(TaskRoute::Executors)),
            ("/v1/workers", Some(TaskRoute::Workers)),
            ("/v1/tasks/", Some(TaskRoute::UnknownPath)),
            ("/v1/tasks/a%20b", Some(TaskRoute::UnknownPath)),
            ("/v1/tasks/a/b", Some(TaskRoute::UnknownPath)),
            ("/v1/tasks/a/cancel/", Some(TaskRoute::UnknownPath)),
            ("/v1/tasksx", None),
            ("/v1/executors/a", None),
            ("/v2/tasks", None),
            ("/", None),
        ];
        for (path, expected) in table {
            assert_eq!(TaskRoute::of(path), expected, "{path}");
        }
    }

    #[test]
    fn every_operation_has_its_class() {
        let classes = [
            ("/v1/tasks", Method::POST, MessageClass::Dispatch),
            ("/v1/tasks", Method::GET, MessageClass::Data),
            ("/v1/tasks/a", Method::GET, MessageClass::Data),
            ("/v1/tasks/a", Method::DELETE, MessageClass::Control),
            ("/v1/tasks/a/cancel", Method::POST, MessageClass::Control),
            ("/v1/tasks/a/output", Method::HEAD, MessageClass::Data),
            ("/v1/tasks/a/events", Method::GET, MessageClass::Data),
            ("/v1/tasks/a/progress", Method::GET, MessageClass::Data),
            ("/v1/executors", Method::GET, MessageClass::Data),
            ("/v1/workers", Method::GET, MessageClass::Data),
        ];
        for (path, method, class) in classes {
            let operation = TaskRoute::of(path).unwrap().operation(&method).unwrap();
            assert_eq!(operation.kind().class(), class, "{method} {path}");
            assert_eq!(operation.changes(), class != MessageClass::Data, "{method} {path}");
        }
    }

    #[test]
    fn other_methods_are_refused_with_those_accepted() {
        for (path, method, expected) in [
            ("/v1/tasks", Method::PUT, "GET, HEAD, POST"),
            ("/v1/tasks/a", Method::POST, "GET, HEAD, DELETE"),
            ("/v1/tasks/a/cancel", Method::GET, "POST"),
            ("/v1/tasks/a/events", Method::HEAD, "GET"),
        ] {
            let refused = TaskRoute::of(path).unwrap().operation(&method);
            assert_eq!(refused, Err(TaskApiError::Method { allowed: expected }), "{method} {path}");
        }
    }
}
