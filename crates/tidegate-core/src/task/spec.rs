use crate::admission::MessagePriority;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The longest name of a runtime.
const RUNTIME_BYTES_MAX: usize = 64;

/// What an argument or a variable costs besides its text.
const EXTRA_BYTES: usize = 8;

/// What is to be done. Never changes after it was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// What runs it, such as `python`.
    pub runtime: String,
    /// What it runs.
    pub code: String,
    /// Arguments after the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Added to the runtime's environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Who goes first.
    pub priority: MessagePriority,
    /// How long one attempt may run.
    pub timeout_ms: u64,
    /// How often it is tried again after it failed by itself. What an executor loses is tried again anyway.
    pub retries: u32,
}

/// What a task may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLimits {
    /// The longest code, in bytes. Default 1 MiB.
    pub code_bytes_max: usize,
    /// The longest time of one attempt. Default a day.
    pub timeout_ms_max: u64,
    /// The most retries. Default 100.
    pub retries_max: u32,
    /// Arguments and variables in all, in bytes. Default 64 KiB.
    pub extras_bytes_max: usize,
}

/// A task can't be as asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// The runtime's name can't be one.
    Runtime {
        /// What was asked for, as far as it is worth showing.
        given: String,
    },
    /// Nothing is to be run.
    CodeEmpty,
    /// The code is too long.
    CodeTooLarge {
        /// Its bytes.
        bytes: usize,
        /// The most there may be.
        bytes_max: usize,
    },
    /// The time is 0, or too long.
    Timeout {
        /// What was asked for.
        given_ms: u64,
        /// The longest there may be.
        max_ms: u64,
    },
    /// Too many retries.
    Retries {
        /// What was asked for.
        given: u32,
        /// The most there may be.
        max: u32,
    },
    /// Arguments and variables are too long.
    ExtrasTooLarge {
        /// Their bytes.
        bytes: usize,
        /// The most there may be.
        bytes_max: usize,
    },
    /// A variable's name is empty or has a `=` or a NUL, or an argument or a value has a NUL.
    Unspeakable {
        /// The argument or the variable's name.
        what: String,
    },
}

// === impl TaskSpec ===

impl TaskSpec {
    /// What it holds in memory and in a store, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.runtime.len() + self.code.len() + self.extras_bytes()
    }

    fn extras_bytes(&self) -> usize {
        let env: usize = self.env.iter().map(|(name, value)| name.len() + value.len()).sum();
        // Each costs something by itself, however short it is.
        let each = (self.args.len() + self.env.len()) * EXTRA_BYTES;
        self.args.iter().map(String::len).sum::<usize>() + env + each
    }

    /// Whether it is within what a task may ask for.
    ///
    /// # Errors
    ///
    /// The first thing that is not.
    pub fn check(&self, limits: &TaskLimits) -> Result<(), SpecError> {
        let extras = self.extras_bytes();
        let plain = |b: u8| b.is_ascii_alphanumeric() || b".-_+".contains(&b);
        // None at all is for an executor that has only one.
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
            Some(what) => Err(SpecError::Unspeakable { what: what.clone() }),
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
                write!(f, "code has {bytes} bytes, and at most {bytes_max} are taken")
            }
            Self::Timeout { given_ms, max_ms } => {
                write!(f, "a timeout of {given_ms} ms can't be had: 1 … {max_ms} ms")
            }
            Self::Retries { given, max } => {
                write!(f, "{given} retries are too many: at most {max}")
            }
            Self::ExtrasTooLarge { bytes, bytes_max } => {
                write!(
                    f,
                    "arguments and variables have {bytes} bytes, at most {bytes_max} are taken"
                )
            }
            Self::Unspeakable { what } => {
                write!(f, "{what:?} can't be passed to a process: no NUL, and no = in a name")
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
    fn what_is_too_much_is_told_with_its_bound() {
        let limits = TaskLimits { code_bytes_max: 8, extras_bytes_max: 12, ..Default::default() };
        assert_eq!(spec().check(&limits), Ok(()));
        let wrong = |change: fn(&mut TaskSpec)| {
            let mut spec = spec();
            change(&mut spec);
            spec.check(&limits).unwrap_err().to_string()
        };
        assert!(wrong(|spec| spec.code = "x".repeat(9)).contains("9 bytes, and at most 8"));
        assert!(wrong(|spec| spec.runtime = "a b".to_owned()).contains("can't name a runtime"));
        assert!(wrong(|spec| spec.runtime = "x".repeat(65)).contains("1 … 64"));
        assert!(wrong(|spec| spec.code.clear()).contains("nothing to run"));
        assert!(wrong(|spec| spec.timeout_ms = 0).contains("1 … 86400000 ms"));
        assert!(wrong(|spec| spec.timeout_ms = u64::MAX).contains("1 … 86400000 ms"));
        assert!(wrong(|spec| spec.retries = 101).contains("at most 100"));
        assert!(wrong(|spec| spec.args = vec!["abcde".to_owned()]).contains("at most 12"));
        assert!(wrong(|spec| spec.args = vec!["a\0".to_owned()]).contains("no NUL"));
        assert!(
            wrong(|spec| drop(spec.env.insert("a=".to_owned(), "b".to_owned()))).contains("no =")
        );
    }
}
