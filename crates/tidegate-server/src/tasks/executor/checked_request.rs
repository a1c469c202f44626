use super::config::ExecutorConfig;
use super::error::{ExecuteError, ReserveError};
use super::runner::Runner;
use crate::tasks::execution::{ExecuteBody, ReserveBody, Work};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;
use tidegate::MessagePriority;
use tidegate::capacity::ExecuteRefused;
use tidegate::task::{ExecutionKey, TaskId, TaskSpec, find_runtime};

/// Longest lifetime of a reservation.
const TTL_S_MAX: u64 = 3_600;
/// Longest name of a runtime, where the runner accepts any.
const RUNTIME_BYTES_MAX: usize = 64;
/// Prefix of a reservation's id.
const RESERVATION: &str = "r-";

/// A valid request to execute; it still needs a slot.
#[derive(Debug)]
pub(super) struct CheckedExecute {
    pub(super) work: Work,
    /// Hash of the work: a repeated request must have the same.
    pub(super) fingerprint: u64,
    pub(super) reservation: Option<u64>,
    pub(super) lease: Option<Duration>,
}

// === impl CheckedExecute ===

impl CheckedExecute {
    pub(super) fn new(
        body: ExecuteBody,
        config: &ExecutorConfig,
        runner: &Runner,
    ) -> Result<Self, ExecuteError> {
        let task = TaskId::new(&body.eval_id)?;
        if body.attempt == 0 {
            return Err(ExecuteError::Attempt);
        }
        let runtime = runtime(body.language, runner)?;
        let default_ms = u64::try_from(config.timeout_default.as_millis()).unwrap_or(u64::MAX);
        let spec = TaskSpec {
            runtime,
            code: body.code,
            args: body.args,
            env: body.env,
            priority: MessagePriority::Normal,
            timeout_ms: body.timeout_ms.unwrap_or(default_ms),
            retries: 0,
        };
        spec.check(&config.limits)?;
        let max_ms = config.limits.timeout_ms_max;
        let lease = match body.lease_ms {
            Some(given_ms) if !(1..=max_ms).contains(&given_ms) => {
                return Err(ExecuteError::Lease { given_ms, max_ms });
            }
            lease_ms => lease_ms.map(Duration::from_millis),
        };
        let reservation = body.reservation_id.as_deref().map(reservation_fence).transpose()?;
        let fingerprint = fingerprint(&spec);
        let work = Work {
            key: task.attempt(body.attempt),
            runtime: spec.runtime,
            code: spec.code,
            args: spec.args,
            env: spec.env,
            timeout: Duration::from_millis(spec.timeout_ms),
        };
        Ok(Self { work, fingerprint, reservation, lease })
    }
}

/// The execution and the lifetime of a valid reservation request.
pub(super) fn check_reserve(body: &ReserveBody) -> Result<(ExecutionKey, Duration), ReserveError> {
    let task = TaskId::new(&body.eval_id)?;
    if body.attempt == 0 {
        return Err(ReserveError::Attempt);
    }
    let wrong = || ReserveError::Ttl { given: body.ttl, max_s: TTL_S_MAX };
    // NaN fails both comparisons.
    if !(body.ttl > 0.0 && body.ttl <= TTL_S_MAX as f64) {
        return Err(wrong());
    }
    let ttl = Duration::try_from_secs_f64(body.ttl).map_err(|_| wrong())?;
    match ttl.is_zero() {
        true => Err(wrong()),
        false => Ok((task.attempt(body.attempt), ttl)),
    }
}

/// Id of the reservation with this fence.
pub(super) fn reservation_id(fence: u64) -> String {
    format!("{RESERVATION}{fence}")
}

fn reservation_fence(id: &str) -> Result<u64, ExecuteError> {
    let number = id.strip_prefix(RESERVATION).and_then(|number| number.parse().ok());
    // An id that was never granted is as gone as an expired one.
    number.ok_or(ExecuteError::Refused(ExecuteRefused::Gone))
}

fn runtime(requested: Option<String>, runner: &Runner) -> Result<String, ExecuteError> {
    let known = runner.runtimes();
    let Some(given) = requested else { return Ok(known.first().cloned().unwrap_or_default()) };
    if known.is_empty() && given.len() <= RUNTIME_BYTES_MAX {
        return Ok(given);
    }
    match find_runtime(&given, known.iter().map(String::as_str)) {
        Some(found) => Ok(found.to_owned()),
        None => {
            let given = given.chars().take(RUNTIME_BYTES_MAX).collect();
            Err(ExecuteError::UnknownRuntime { given, known: known.to_vec() })
        }
    }
}

/// Hash of the work alone, not of lease and reservation.
fn fingerprint(spec: &TaskSpec) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&spec.runtime, &spec.code, &spec.args, &spec.env, spec.timeout_ms).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::executor::runner::MockRunner;

    fn body() -> ExecuteBody {
        ExecuteBody {
            eval_id: "a".to_owned(),
            code: "1".to_owned(),
            attempt: 1,
            ..ExecuteBody::default()
        }
    }

    fn check(body: ExecuteBody) -> Result<CheckedExecute, ExecuteError> {
        let runtimes = vec!["python".to_owned(), "sh".to_owned()];
        let runner = Runner::Mock(MockRunner::new(Duration::ZERO, runtimes));
        CheckedExecute::new(body, &ExecutorConfig::new("e", 1), &runner)
    }

    #[test]
    fn the_fingerprint_covers_the_work_and_nothing_else() {
        let first = check(body()).unwrap().fingerprint;
        let same = ExecuteBody {
            language: Some("python".to_owned()),
            reservation_id: Some("r-7".to_owned()),
            lease_ms: Some(9),
            timeout_ms: Some(300_000),
            ..body()
        };
        assert_eq!(check(same).unwrap().fingerprint, first, "other lease and reservation");
        let changes: [fn(&mut ExecuteBody); 5] = [
            |body| body.code.push('2'),
            |body| body.language = Some("sh".to_owned()),
            |body| body.args.push("x".to_owned()),
            |body| drop(body.env.insert("x".to_owned(), String::new())),
            |body| body.timeout_ms = Some(1),
        ];
        for (nth, change) in changes.into_iter().enumerate() {
            let mut other = body();
            change(&mut other);
            assert_ne!(check(other).unwrap().fingerprint, first, "{nth}");
        }
    }

    #[test]
    fn invalid_requests_are_refused_with_their_reason() {
        let wrong = |change: fn(&mut ExecuteBody)| {
            let mut body = body();
            change(&mut body);
            check(body).unwrap_err().reason()
        };
        assert_eq!(wrong(|body| body.eval_id = "a b".to_owned()), "bad_id");
        assert_eq!(wrong(|body| body.attempt = 0), "bad_attempt");
        assert_eq!(wrong(|body| body.language = Some("cobol".to_owned())), "unknown_runtime");
        let versioned = ExecuteBody { language: Some("python3".to_owned()), ..body() };
        assert_eq!(check(versioned).unwrap().work.runtime, "python");
        assert_eq!(wrong(|body| body.timeout_ms = Some(0)), "bad_timeout");
        assert_eq!(wrong(|body| body.lease_ms = Some(0)), "bad_lease");
        assert_eq!(wrong(|body| body.code.clear()), "code_empty");
        assert_eq!(wrong(|body| body.reservation_id = Some("7".to_owned())), "reservation_gone");
    }

    #[test]
    fn a_reservation_lifetime_is_a_finite_positive_time_within_an_hour() {
        let ttl = |ttl| check_reserve(&ReserveBody { eval_id: "a".to_owned(), ttl, attempt: 1 });
        assert_eq!(ttl(0.25).unwrap().1, Duration::from_millis(250));
        assert!(ttl(3600.0).is_ok());
        for wrong in [0.0, -1.0, 3600.1, 1e-12, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(ttl(wrong), Err(ReserveError::Ttl { .. })), "{wrong}");
        }
    }
}
