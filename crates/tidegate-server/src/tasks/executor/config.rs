use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate::capacity::ExecutorSlots;
use tidegate::task::TaskLimits;

/// Most slots of one executor.
pub const SLOTS_MAX: u32 = 65_536;

/// Bits for grants per millisecond, far more than can be granted. With the time in milliseconds above them, fences
/// stay below 2^53 until 2109: languages whose numbers are floats can represent them.
const FENCE_BITS: u32 = 11;

/// Configuration of an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorConfig {
    /// Name: 1 … 64 letters, digits and `. - _`.
    pub id: String,
    /// Executions at once, 1 … 65,536. Default 1.
    pub max_concurrent: u32,
    /// Limits of an execution request.
    pub limits: TaskLimits,
    /// Timeout of an execution whose request sets none. Default 5 minutes.
    pub timeout_default: Duration,
    /// Most output stored per execution, in bytes. Default 1 MiB.
    pub output_bytes_max: usize,
    /// Ended executions remembered. Default 4,096.
    pub past_max: usize,
    /// Most output of ended executions in memory, in bytes; the oldest is dropped first. Default 64 MiB.
    pub past_bytes_max: usize,
    /// Lower bound of all fences; above those of every earlier process of this executor.
    pub fence_floor: u64,
}

/// Setting outside of its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorConfigError {
    /// Name of the flag, without its dashes.
    pub setting: &'static str,
    /// Value given.
    pub given: String,
    /// Values allowed.
    pub allowed: String,
}

// === impl ExecutorConfig ===

impl ExecutorConfig {
    /// The defaults, with a fence floor from the wall clock: above those of every earlier process, unless the
    /// clock was set back in between.
    #[must_use]
    pub fn new(id: impl Into<String>, max_concurrent: u32) -> Self {
        Self {
            id: id.into(),
            max_concurrent,
            limits: TaskLimits::default(),
            timeout_default: Duration::from_secs(300),
            output_bytes_max: 1 << 20,
            past_max: ExecutorSlots::PAST_MAX,
            past_bytes_max: 64 << 20,
            fence_floor: fence_floor(SystemTime::now()),
        }
    }

    /// Every setting outside of its range.
    #[must_use]
    pub fn errors(&self) -> Vec<ExecutorConfigError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let named = (1..=64).contains(&self.id.len()) && self.id.bytes().all(allowed);
        let slots = (1..=SLOTS_MAX).contains(&self.max_concurrent);
        let timeout_max = Duration::from_millis(self.limits.timeout_ms_max);
        let timed = !self.timeout_default.is_zero() && self.timeout_default <= timeout_max;
        let wrong = [
            (!named).then(|| {
                let allowed = "1 … 64 letters, digits, dots, dashes and underscores";
                ExecutorConfigError::new("executor-id", format_args!("{:?}", self.id), allowed)
            }),
            (!slots).then(|| {
                let allowed = format!("1 … {SLOTS_MAX} executions");
                ExecutorConfigError::new("max-concurrent", self.max_concurrent, &allowed)
            }),
            (!timed).then(|| {
                let allowed = format!("1 … {} ms", self.limits.timeout_ms_max);
                let given_ms = self.timeout_default.as_millis();
                ExecutorConfigError::new("timeout-ms", given_ms, &allowed)
            }),
        ];
        wrong.into_iter().flatten().collect()
    }
}

// === impl ExecutorConfigError ===

impl ExecutorConfigError {
    pub(super) fn new(setting: &'static str, given: impl fmt::Display, allowed: &str) -> Self {
        Self { setting, given: given.to_string(), allowed: allowed.to_owned() }
    }
}

impl fmt::Display for ExecutorConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: given {}; allowed: {}", self.setting, self.given, self.allowed)
    }
}

fn fence_floor(now: SystemTime) -> u64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(0) << FENCE_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_starts_above_every_fence_of_the_one_before() {
        let at = |ms| UNIX_EPOCH + Duration::from_millis(ms);
        let (first, second) =
            (fence_floor(at(1_794_000_000_000)), fence_floor(at(1_794_000_000_500)));
        assert!(second - first > 500 * 1_000, "a million grants a second would not reach it");
        assert!(fence_floor(at(4_386_000_000_000)) < 1 << 53, "in 2108");
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        assert_eq!(ExecutorConfig::new("executor-1", 1).errors(), []);
        let mut config = ExecutorConfig::new("a b", 0);
        config.timeout_default = Duration::from_secs(86_401);
        let wrong: Vec<_> = config.errors().iter().map(|error| error.setting).collect();
        assert_eq!(wrong, ["executor-id", "max-concurrent", "timeout-ms"]);
    }
}
