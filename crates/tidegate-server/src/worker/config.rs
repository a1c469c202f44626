use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate::capacity::ExecutorSlots;
use tidegate::task::TaskLimits;

/// The most slots of one executor.
pub const SLOTS_MAX: u32 = 65_536;

/// Fences of one life for each millisecond of the one before: far more than can be granted in it. Together with
/// the time they stay below 2^53, so that languages whose numbers are floats can hold them until 2109.
const FENCE_BITS: u32 = 11;

/// How an executor is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorConfig {
    /// Its name: 1 … 64 of letters, digits and `. - _`.
    pub id: String,
    /// Executions at once, 1 … 65,536. Default 1.
    pub max_concurrent: u32,
    /// What an execution may ask for.
    pub limits: TaskLimits,
    /// How long an execution may run that does not say. Default 5 minutes.
    pub timeout_default: Duration,
    /// The most output of one execution that is kept, in bytes. Default 1 MiB.
    pub output_bytes_max: usize,
    /// How many executions are remembered that are over. Default 4,096.
    pub past_max: usize,
    /// How much of their output is, in bytes, the oldest going first. Default 64 MiB.
    pub past_bytes_max: usize,
    /// Below all fences; above those of every earlier life of the executor.
    pub fence_floor: u64,
}

/// Something in a configuration that can't be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerMistake {
    /// The flag, without its dashes.
    pub setting: &'static str,
    /// What was given.
    pub given: String,
    /// What is allowed.
    pub allowed: String,
}

// === impl ExecutorConfig ===

impl ExecutorConfig {
    /// The defaults, with a fence floor from the time of day: above every earlier life's unless the clock was set
    /// back in between.
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

    /// Everything that is out of its range.
    #[must_use]
    pub fn mistakes(&self) -> Vec<WorkerMistake> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let named = (1..=64).contains(&self.id.len()) && self.id.bytes().all(allowed);
        let slots = (1..=SLOTS_MAX).contains(&self.max_concurrent);
        let timeout_max = Duration::from_millis(self.limits.timeout_ms_max);
        let timed = !self.timeout_default.is_zero() && self.timeout_default <= timeout_max;
        let wrong = [
            (!named).then(|| {
                let allowed = "1 … 64 letters, digits, dots, dashes and underscores";
                WorkerMistake::new("executor-id", format_args!("{:?}", self.id), allowed)
            }),
            (!slots).then(|| {
                let allowed = format!("1 … {SLOTS_MAX} executions");
                WorkerMistake::new("max-concurrent", self.max_concurrent, &allowed)
            }),
            (!timed).then(|| {
                let allowed = format!("1 … {} ms", self.limits.timeout_ms_max);
                let given_ms = self.timeout_default.as_millis();
                WorkerMistake::new("timeout-ms", given_ms, &allowed)
            }),
        ];
        wrong.into_iter().flatten().collect()
    }
}

// === impl WorkerMistake ===

impl WorkerMistake {
    pub(super) fn new(setting: &'static str, given: impl fmt::Display, allowed: &str) -> Self {
        Self { setting, given: given.to_string(), allowed: allowed.to_owned() }
    }
}

impl fmt::Display for WorkerMistake {
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
    fn each_life_begins_above_all_that_the_one_before_can_have_given() {
        let at = |ms| UNIX_EPOCH + Duration::from_millis(ms);
        let (first, second) =
            (fence_floor(at(1_794_000_000_000)), fence_floor(at(1_794_000_000_500)));
        assert!(second - first > 500 * 1_000, "a million grants a second would not reach it");
        assert!(fence_floor(at(4_386_000_000_000)) < 1 << 53, "in 2108");
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        assert_eq!(ExecutorConfig::new("executor-1", 1).mistakes(), []);
        let mut config = ExecutorConfig::new("a b", 0);
        config.timeout_default = Duration::from_secs(86_401);
        let wrong: Vec<_> = config.mistakes().iter().map(|mistake| mistake.setting).collect();
        assert_eq!(wrong, ["executor-id", "max-concurrent", "timeout-ms"]);
    }
}
