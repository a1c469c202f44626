use super::TaskApiError;
use http::Method;
use tidegate::admission::MessageKind;
use tidegate::task::TaskId;

const TASKS: &str = "/v1/tasks";
const EXECUTORS: &str = "/v1/executors";

/// Where the tasks' part of the API answers.
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
    /// `/v1/executors`.
    Executors,
    /// Below `/v1/tasks/`, where nothing is.
    Nowhere,
}

/// What is asked of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Do one.
    Submit,
    /// Tell of many.
    List,
    /// Tell of one.
    Get(TaskId),
    /// Stop one.
    Cancel(TaskId),
    /// Tell what one wrote.
    Output(TaskId),
    /// Tell what becomes of one.
    Events(TaskId),
    /// Tell of the executors.
    Executors,
}

// === impl TaskRoute ===

impl TaskRoute {
    /// The place of this path; `None` when it has nothing to do with tasks.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        match path {
            TASKS => return Some(Self::All),
            EXECUTORS => return Some(Self::Executors),
            _ => {}
        }
        let below = path.strip_prefix(TASKS)?.strip_prefix('/')?;
        let (id, what) = match below.split_once('/') {
            Some((id, what)) => (id, Some(what)),
            None => (below, None),
        };
        Some(match (TaskId::new(id), what) {
            (Ok(id), None) => Self::One(id),
            (Ok(id), Some("cancel")) => Self::Cancel(id),
            (Ok(id), Some("output")) => Self::Output(id),
            (Ok(id), Some("events")) => Self::Events(id),
            _ => Self::Nowhere,
        })
    }

    /// What is asked here by this method.
    ///
    /// # Errors
    ///
    /// When nothing is here, or not by this method.
    pub(super) fn ask(self, method: &Method) -> Result<Ask, TaskApiError> {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        let (ask, allowed) = match self {
            Self::All if *method == Method::POST => (Some(Ask::Submit), ""),
            Self::All => (reads.then_some(Ask::List), "GET, HEAD, POST"),
            Self::One(id) if *method == Method::DELETE => (Some(Ask::Cancel(id)), ""),
            Self::One(id) => (reads.then_some(Ask::Get(id)), "GET, HEAD, DELETE"),
            Self::Cancel(id) => ((*method == Method::POST).then_some(Ask::Cancel(id)), "POST"),
            Self::Output(id) => (reads.then_some(Ask::Output(id)), "GET, HEAD"),
            Self::Events(id) => ((*method == Method::GET).then_some(Ask::Events(id)), "GET"),
            Self::Executors => (reads.then_some(Ask::Executors), "GET, HEAD"),
            Self::Nowhere => return Err(TaskApiError::Nowhere),
        };
        ask.ok_or(TaskApiError::Method { allowed })
    }
}

// === impl Ask ===

impl Ask {
    /// What such a request is, for classification.
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::Submit => MessageKind::TaskSubmit,
            Self::Cancel(_) => MessageKind::TaskCancel,
            Self::List | Self::Get(_) | Self::Output(_) | Self::Events(_) | Self::Executors => {
                MessageKind::TaskRead
            }
        }
    }

    /// Whether it changes something.
    pub const fn changes(&self) -> bool {
        matches!(self, Self::Submit | Self::Cancel(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::MessageClass;

    #[test]
    fn paths_are_ours_whole_and_only_so() {
        let id = || TaskId::new("a:1").unwrap();
        let table = [
            ("/v1/tasks", Some(TaskRoute::All)),
            ("/v1/tasks/a:1", Some(TaskRoute::One(id()))),
            ("/v1/tasks/a:1/cancel", Some(TaskRoute::Cancel(id()))),
            ("/v1/tasks/a:1/output", Some(TaskRoute::Output(id()))),
            ("/v1/tasks/a:1/events", Some(TaskRoute::Events(id()))),
            ("/v1/executors", Some(TaskRoute::Executors)),
            ("/v1/tasks/", Some(TaskRoute::Nowhere)),
            ("/v1/tasks/a%20b", Some(TaskRoute::Nowhere)),
            ("/v1/tasks/a/b", Some(TaskRoute::Nowhere)),
            ("/v1/tasks/a/cancel/", Some(TaskRoute::Nowhere)),
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
    fn every_ask_has_its_class() {
        let classes = [
            ("/v1/tasks", Method::POST, MessageClass::Dispatch),
            ("/v1/tasks", Method::GET, MessageClass::Data),
            ("/v1/tasks/a", Method::GET, MessageClass::Data),
            ("/v1/tasks/a", Method::DELETE, MessageClass::Control),
            ("/v1/tasks/a/cancel", Method::POST, MessageClass::Control),
            ("/v1/tasks/a/output", Method::HEAD, MessageClass::Data),
            ("/v1/tasks/a/events", Method::GET, MessageClass::Data),
            ("/v1/executors", Method::GET, MessageClass::Data),
        ];
        for (path, method, class) in classes {
            let ask = TaskRoute::of(path).unwrap().ask(&method).unwrap();
            assert_eq!(ask.kind().class(), class, "{method} {path}");
            assert_eq!(ask.changes(), class != MessageClass::Data, "{method} {path}");
        }
    }

    #[test]
    fn other_methods_are_told_which_there_are() {
        for (path, method, expected) in [
            ("/v1/tasks", Method::PUT, "GET, HEAD, POST"),
            ("/v1/tasks/a", Method::POST, "GET, HEAD, DELETE"),
            ("/v1/tasks/a/cancel", Method::GET, "POST"),
            ("/v1/tasks/a/events", Method::HEAD, "GET"),
        ] {
            let refused = TaskRoute::of(path).unwrap().ask(&method);
            assert_eq!(refused, Err(TaskApiError::Method { allowed: expected }), "{method} {path}");
        }
    }
}
