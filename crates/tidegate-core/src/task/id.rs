use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Maximum length of a task's name, in bytes.
const BYTES_MAX: usize = 128;

/// Name of a task: 1 … 128 letters, digits and `. _ : -`. None of them needs escaping in a path, a log line or a
/// key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(Box<str>);

/// One attempt at a task: the key by which an executor knows it. Requests with the same key are the same
/// execution.
///
/// ```
/// use tidegate_core::task::ExecutionKey;
///
/// let key: ExecutionKey = "nightly-7@2".parse()?;
/// assert_eq!((key.task.as_str(), key.attempt), ("nightly-7", 2));
/// assert_eq!(key.to_string(), "nightly-7@2");
/// # Ok::<(), tidegate_core::task::IdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutionKey {
    /// Name of the task.
    pub task: TaskId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

/// Error for text that is no task name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdError {
    given: String,
}

// === impl TaskId ===

impl TaskId {
    /// Creates the name.
    ///
    /// # Errors
    ///
    /// If it is empty, too long, or has an invalid character.
    pub fn new(name: &str) -> Result<Self, IdError> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
        match (1..=BYTES_MAX).contains(&name.len()) && name.bytes().all(fits) {
            true => Ok(Self(name.into())),
            false => Err(IdError { given: name.chars().take(BYTES_MAX).collect() }),
        }
    }

    /// Text of the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Key of one attempt at the task.
    #[must_use]
    pub fn attempt(&self, attempt: u32) -> ExecutionKey {
        ExecutionKey { task: self.clone(), attempt }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TaskId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::new(text)
    }
}

impl TryFrom<String> for TaskId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        Self::new(&text)
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.0.into()
    }
}

// === impl ExecutionKey ===

impl fmt::Display for ExecutionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.task, self.attempt)
    }
}

impl FromStr for ExecutionKey {
    type Err = IdError;

    /// Parses `task@attempt`, or a task alone, which means its first attempt.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError { given: text.chars().take(BYTES_MAX).collect() };
        let Some((task, attempt)) = text.split_once('@') else {
            return TaskId::new(text).map(|task| task.attempt(1));
        };
        let attempt = attempt.parse().ok().filter(|attempt| *attempt > 0).ok_or_else(wrong)?;
        Ok(TaskId::new(task).map_err(|_| wrong())?.attempt(attempt))
    }
}

// === impl IdError ===

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = &self.given;
        write!(f, "{given:?} can't name a task: 1 … {BYTES_MAX} of letters, digits and . _ : -")
    }
}

impl std::error::Error for IdError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["a", "eval-1", "2026.11:x_y", &"a".repeat(128)] {
            assert_eq!(TaskId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a/b", "a@1", "é", "a\n", &"a".repeat(129)] {
            assert!(TaskId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_come_back_from_their_text() {
        let key = TaskId::new("a.1").unwrap().attempt(7);
        assert_eq!(key.to_string().parse::<ExecutionKey>().unwrap(), key);
        assert_eq!("a.1".parse::<ExecutionKey>().unwrap().attempt, 1);
        for bad in ["a@", "a@0", "a@x", "@1", "a@1@1", "a@-1"] {
            assert!(bad.parse::<ExecutionKey>().is_err(), "{bad}");
        }
    }
}
