use crate::admission::MessagePriority;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Maximum length of a runtime's name, in bytes.
const RUNTIME_BYTES_MAX: usize = 64;

/// Overhead of an argument or a variable besides its text, in bytes.
const EXTRA_BYTES: usize = 8;

/// Specification of a task. Never changes after submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// Runtime, such as `python`.
    pub runtime: String,
    /// Code to run.
    pub code: String,
    /// Arguments after the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables added to the runtime's environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Priority in the queue.
    pub priority: MessagePriority,
    /// Maximum run time of one attempt, in milliseconds.
    pub timeout_ms: u64,
    /// Retries after a failure of the task itself. Attempts lost with an executor are retried in any case.
    pub retries: u32,
}

/// Limits of a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLimits {
    /// Maximum length of the code, in bytes. Default 1 MiB.
    pub code_bytes_max: usize,
    /// Maximum run time of one attempt, in milliseconds. Default one day.
    pub timeout_ms_max: u64,
    /// Maximum number of retries. Default 100.
    pub retries_max: u32,
    /// Maximum size of all arguments and variables, in bytes. Default 64 KiB.
    pub extras_bytes_max: usize,
}

/// Error of a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// The runtime's name is invalid.
    Runtime {
        /// Name that was given, truncated.
        given: String,
    },
    /// The code is empty.
    CodeEmpty,
    /// The code is too long.
    CodeTooLarge {
        /// Length of the code.
        bytes: usize,
        /// Limit.
        bytes_max: usize,
    },
    /// The run time is 0, or too long.
    Timeout {
        /// Value given.
        given_ms: u64,
        /// Limit.
        max_ms: u64,
    },
    /// Too many retries.
    Retries {
        /// Value given.
        given: u32,
        /// Limit.
        max: u32,
    },
    /// Arguments and variables are too large.
    ExtrasTooLarge {
        /// Their size.
        bytes: usize,
        /// Limit.
        bytes_max: usize,
    },
    /// A variable's name is empty or contains `=` or NUL, or an argument or a value contains NUL.
    InvalidText {
        /// The argument or the variable's name.
        what: String,
    },
}

// === impl TaskSpec ===

impl TaskSpec {
    /// Approximate size in memory and in a store, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.runtime.len() + self.code.len() + self.extras_bytes()
    }

    fn extras_bytes(&self) -> usize {
        let env: usize = self.env.iter().map(|(name, value)| name.len() + value.len()).sum();
        // Each has an overhead, however short it is.
        let each = (self.args.len() + self.env.len()) * EXTRA_BYTES;
        self.args.iter().map(String::len).sum::<usize>() + env + each
    }

    /// Checks the specification against the limits.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn check(&self, limits: &TaskLimits) -> Result<(), SpecError> {
        let extras = self.extras_bytes();
        let plain = |b: u8| b.is_ascii_alphanumeric() || b".-_+".contains(&b);
        // An empty name is for an executor with a single runtime.
        if self.runtime.len() > RUNTIME_BYTES_MAX || !self.runtime.bytes().all(plain) {
            return Err(SpecError::Runtime { given: self.runtime.chars().take(80).collect() });
        }
        if self.code.is_empty() {
            return Err(SpecError::CodeEmpty);
        }
        if self.code.len() > limits.code_bytes_max {
            let (bytes, bytes_max) = (self.code.len(), limits.code_bytes_max);
            return Err(SpecError::CodeTooLarge { bytes, bytes_max });
        }
        if !(1..=limits.timeout_ms_max).contains(&self.timeout_ms) {
            let (given_ms, max_ms) = (self.timeout_ms, limits.timeout_ms_max);
            return Err(SpecError::Timeout { given_ms, max_ms });
        }
        if self.retries > limits.retries_max {
            return Err(SpecError::Retries { given: self.retries, max: limits.retries_max });
        }
        if extras > limits.extras_bytes_max {
            let bytes_max = limits.extras_bytes_max;
            return Err(SpecError::ExtrasTooLarge { bytes: extras, bytes_max });
        }
        let bad_arg = self.args.iter().find(|arg| arg.contains('\0'));
        let bad_env = self.env.iter().find(|(name, value)| {
            name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        });
        match bad_arg.or(bad_env.map(|(name, _)| name)) {
            Some(what) => Err(SpecError::InvalidText { what: what.clone() }),
            None => Ok(()),
        }
    }
}

// === impl TaskLimits ===

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            code_bytes_max: 1 << 20,
            timeout_ms_max: 24 * 3_600 * 1_000,
            retries_max: 100,
            extras_bytes_max: 64 << 10,
        }
    }
}

// === impl SpecError ===

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime { given } => write!(
                f,
                "{given:?} can't name a runtime: 1 … {RUNTIME_BYTES_MAX} of letters, digits and . - _ +"
            ),
            Self::CodeEmpty => write!(f, "code is empty: there is nothing to run"),
            Self::CodeTooLarge { bytes, bytes_max } => {
                write!(f, "code has {bytes} bytes: at most {bytes_max} are allowed")
            }
            Self::Timeout { given_ms, max_ms } => {
                write!(f, "a timeout of {given_ms} ms is not allowed: use 1 … {max_ms} ms")
            }
            Self::Retries { given, max } => {
                write!(f, "{given} retries are not allowed: at most {max}")
            }
            Self::ExtrasTooLarge { bytes, bytes_max } => {
                write!(
                    f,
                    "arguments and variables have {bytes} bytes: at most {bytes_max} are allowed"
                )
            }
            Self::InvalidText { what } => {
                write!(f, "{what:?} can't be passed to a process: remove NUL, and = from names")
            }
        }
    }
}

impl std::error::Error for SpecError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> TaskSpec {
        TaskSpec {
            runtime: "sh".to_owned(),
            code: "true".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            priority: MessagePriority::Normal,
            timeout_ms: 1_000,
            retries: 0,
        }
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_its_bound() {
        let limits = TaskLimits { code_bytes_max: 8, extras_bytes_max: 12, ..Default::default() };
        assert_eq!(spec().check(&limits), Ok(()));
        let wrong = |change: fn(&mut TaskSpec)| {
            let mut spec = spec();
            change(&mut spec);
            spec.check(&limits).unwrap_err().to_string()
        };
        assert!(wrong(|spec| spec.code = "x".repeat(9)).contains("9 bytes: at most 8"));
        assert!(wrong(|spec| spec.runtime = "a b".to_owned()).contains("can't name a runtime"));
        assert!(wrong(|spec| spec.runtime = "x".repeat(65)).contains("1 … 64"));
        assert!(wrong(|spec| spec.code.clear()).contains("nothing to run"));
        assert!(wrong(|spec| spec.timeout_ms = 0).contains("1 … 86400000 ms"));
        assert!(wrong(|spec| spec.timeout_ms = u64::MAX).contains("1 … 86400000 ms"));
        assert!(wrong(|spec| spec.retries = 101).contains("at most 100"));
        assert!(wrong(|spec| spec.args = vec!["abcde".to_owned()]).contains("at most 12"));
        assert!(wrong(|spec| spec.args = vec!["a\0".to_owned()]).contains("remove NUL"));
        assert!(
            wrong(|spec| drop(spec.env.insert("a=".to_owned(), "b".to_owned())))
                .contains("= from names")
        );
    }
}
