use super::faults::{Timeline, UnsetFaults};
use super::live_stats::LiveStats;
use super::requests::Requests;
use super::verdict::{UpstreamNames, Verdict};
use crate::commands::drill::stop::StopRequest;
use std::time::{Duration, Instant};
use tidegate::rng::Rng;
use tidegate_sim::arrivals::Arrivals;
use tidegate_sim::measure::{Attempt, Ended, How, Recorder};
use tidegate_sim::scenario::{RetryPlan, Scenario};
use tidegate_testkit::generator::{Answer, Driver, Failure, Progress, ScheduledRequest};

/// Seed offset: retry waits and arrivals use different random sequences.
const RETRY_WAIT_STREAM: u64 = 0x7761_6974;

/// Load of a gateway scenario: sends requests when they are due, retries as their clients do, and records results.
pub struct Load {
    arrivals: Arrivals,
    requests: Requests,
    clients: Vec<Client>,
    names: UpstreamNames,
    open: OpenRequests,
    rng: Rng,
    stop: StopRequest,
    /// End of the load.
    over_at: Duration,
    faults: Option<Timeline>,
    pub live_stats: LiveStats,
    pub recorder: Recorder,
    /// Time of an early stop.
    pub stopped_at: Option<Duration>,
    /// At least one response arrived.
    pub answered: bool,
}

/// Deadline and retries of the clients of a class.
#[derive(Clone, Copy, Debug)]
struct Client {
    deadline: Option<Duration>,
    retry: Option<RetryPlan>,
}

/// Request that has not ended.
#[derive(Clone, Copy, Debug)]
struct Request {
    due: Duration,
    class: u16,
    /// Retries so far.
    retries: u32,
}

/// Open requests by number; numbers are reused.
#[derive(Debug, Default)]
struct OpenRequests {
    requests: Vec<Request>,
    free: Vec<u32>,
}

/// Inputs of a load besides its scenario.
pub struct LoadContext {
    pub requests: Requests,
    pub names: UpstreamNames,
    pub stop: StopRequest,
    pub faults: Option<Timeline>,
}

// === impl Load ===

impl Load {
    pub fn new(scenario: &Scenario, seed: u64, context: LoadContext) -> Self {
        let client = |class: &tidegate_sim::scenario::Class| Client {
            deadline: class.deadline_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)),
            retry: class.retry,
        };
        Self {
            arrivals: Arrivals::new(scenario, seed),
            requests: context.requests,
            clients: scenario.classes.iter().map(client).collect(),
            names: context.names,
            open: OpenRequests::default(),
            rng: Rng::from_seed(seed ^ RETRY_WAIT_STREAM),
            stop: context.stop,
            over_at: Duration::from_secs_f64(scenario.duration_s),
            faults: context.faults,
            live_stats: LiveStats::default(),
            recorder: Recorder::new(scenario),
            stopped_at: None,
            answered: false,
        }
    }

    /// Ends fault injection; returns the faults that could not be set.
    pub fn end_faults(&mut self) -> UnsetFaults {
        self.faults.take().map(Timeline::end).unwrap_or_default()
    }

    /// Records the result of an attempt; the deadline applies to each attempt.
    fn record_attempt(
        &mut self,
        request: Request,
        scheduled_due: Duration,
        answer: &Answer<'_>,
    ) -> AttemptResult {
        let client = self.clients[usize::from(request.class)];
        let verdict = Verdict::of(answer, &self.names);
        match &verdict {
            Verdict::Refused { reason, .. } => {
                self.recorder.attempt(answer.at, request.class, Attempt::Refused(reason));
            }
            Verdict::Good { .. } | Verdict::Failed { .. } => {
                // The gateway decided nothing about a request that was never sent.
                if let Some(sent) = answer.sent {
                    self.recorder.attempt(sent, request.class, Attempt::LetIn);
                }
            }
        }
        match verdict {
            Verdict::Good { upstream } => {
                let waited = answer.at.saturating_sub(scheduled_due);
                let in_time = client.deadline.is_none_or(|deadline| waited <= deadline);
                if in_time {
                    self.live_stats.good(answer.at.saturating_sub(request.due));
                } else {
                    self.live_stats.failed();
                }
                AttemptResult {
                    how: if in_time { How::Good } else { How::Failed },
                    upstream,
                    retry_after: None,
                }
            }
            Verdict::Refused { retry_after, .. } => {
                self.live_stats.refused();
                AttemptResult { how: How::Refused, upstream: None, retry_after }
            }
            Verdict::Failed { upstream, .. } => {
                self.live_stats.failed();
                AttemptResult { how: How::Failed, upstream, retry_after: None }
            }
        }
    }

    /// Time of the next attempt; `None` when the client does not retry.
    fn retry_at(
        &mut self,
        request: Request,
        result: AttemptResult,
        now: Duration,
    ) -> Option<Duration> {
        let client = self.clients[usize::from(request.class)];
        let plan = client.retry.filter(|plan| match result.how {
            How::Good => false,
            How::Refused => true,
            How::Failed => plan.failures,
        })?;
        let uniform = self.rng.fraction();
        let wait = plan.wait(request.retries + 1, result.retry_after, uniform)?;
        // No retry after the end of the load, nor at a time that overflows.
        now.checked_add(wait).filter(|at| *at < self.over_at)
    }
}

/// Result of an attempt.
#[derive(Clone, Copy, Debug)]
struct AttemptResult {
    how: How,
    upstream: Option<u16>,
    /// Retry-After of the refusal.
    retry_after: Option<Duration>,
}

impl Driver for Load {
    fn started(&mut self, start: Instant) {
        if let Some(faults) = &self.faults {
            faults.start(start);
        }
    }

    fn next(&mut self) -> Option<ScheduledRequest> {
        let arrival = self.arrivals.next()?;
        let request = Request { due: arrival.at, class: arrival.class, retries: 0 };
        self.recorder.due(arrival.at, arrival.class);
        let id = self.open.insert(request);
        let suffix = self.requests.suffix(&arrival);
        Some(ScheduledRequest { due: arrival.at, template: arrival.class, suffix, id })
    }

    fn ended(
        &mut self,
        scheduled: ScheduledRequest,
        answer: &Answer<'_>,
    ) -> Option<ScheduledRequest> {
        // Requests that an early stop cuts off say nothing about the target.
        if self.stopped_at.is_some() {
            return None;
        }
        self.answered |= answer.result.is_ok();
        if let Some(sent) = answer.sent {
            self.live_stats.sent(scheduled.due, sent);
        }
        let request = self.open.get(scheduled.id)?;
        let result = self.record_attempt(request, scheduled.due, answer);
        let is_unsent = matches!(answer.result, Err(Failure::Unsent));
        if let Some(due) = self.retry_at(request, result, answer.at).filter(|_| !is_unsent) {
            self.open.count_retry(scheduled.id);
            return Some(ScheduledRequest { due, ..scheduled });
        }
        self.open.remove(scheduled.id);
        let (due, class) = (request.due, request.class);
        self.recorder.ended(&Ended {
            due,
            at: answer.at,
            class,
            upstream: result.upstream,
            how: result.how,
        });
        None
    }

    fn tick(&mut self, now: Duration, progress: &Progress) -> bool {
        self.live_stats.tick(now, progress.in_flight + progress.waiting);
        if self.stop.is_requested() {
            self.stopped_at.get_or_insert(now);
        }
        self.stopped_at.is_none()
    }
}

// === impl OpenRequests ===

impl OpenRequests {
    fn insert(&mut self, request: Request) -> u64 {
        match self.free.pop() {
            Some(id) => {
                self.requests[id as usize] = request;
                u64::from(id)
            }
            None => {
                self.requests.push(request);
                self.requests.len() as u64 - 1
            }
        }
    }

    fn get(&self, id: u64) -> Option<Request> {
        self.requests.get(usize::try_from(id).ok()?).copied()
    }

    fn count_retry(&mut self, id: u64) {
        self.requests[id as usize].retries += 1;
    }

    fn remove(&mut self, id: u64) {
        self.free.push(id as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use hyper::header::{HeaderMap, HeaderValue, RETRY_AFTER};
    use hyper::{StatusCode, Uri};
    use tidegate_sim::scenario::What;
    use tidegate_testkit::generator::Reply;

    const MS: Duration = Duration::from_millis(1);

    fn load() -> Load {
        let text = r#"
            about = "Refused clients retry after Retry-After."
            duration_s = 10
            arrivals = "even"
            upstreams = { count = 1, slots = 1, queue = 1 }
            [[class]]
            name = "people"
            priority = "high"
            per_s = 10
            service = { kind = "fixed", ms = 1 }
            retry = { times = 3, wait = "told" }
            [[class]]
            name = "batch"
            priority = "low"
            per_s = 10
            service = { kind = "fixed", ms = 1 }
        "#;
        let scenario = Scenario::read("told", text).unwrap();
        let requests = Requests::new(&scenario, &Uri::from_static("http://127.0.0.1:1"));
        let (names, stop) = (UpstreamNames::default(), StopRequest::default());
        Load::new(&scenario, 1, LoadContext { requests, names, stop, faults: None })
    }

    fn refusal(retry_after: Option<&'static str>) -> Reply {
        let mut headers = HeaderMap::new();
        headers.extend(retry_after.map(|text| (RETRY_AFTER, HeaderValue::from_static(text))));
        Reply { status: StatusCode::SERVICE_UNAVAILABLE, headers, body: Bytes::new() }
    }

    /// Next request of this class.
    fn next(load: &mut Load, class: u16) -> ScheduledRequest {
        std::iter::from_fn(|| load.next()).find(|scheduled| scheduled.template == class).unwrap()
    }

    #[test]
    fn a_retry_after_the_end_of_the_load_does_not_happen() {
        let mut load = load();
        let mut retried_after = |retry_after| {
            let scheduled = next(&mut load, 0);
            let (sent, at) = (Some(scheduled.due), scheduled.due + MS);
            let head = refusal(Some(retry_after));
            let due = scheduled.due;
            let retry = load.ended(scheduled, &Answer { sent, at, result: Ok(&head) });
            retry.map(|scheduled| scheduled.due - due)
        };
        assert_eq!(retried_after("1"), Some(1001 * MS));
        assert_eq!(retried_after("18446744073709551615"), None);
        assert_eq!(retried_after("3600"), None, "the load is over by then");
    }

    #[test]
    fn a_request_that_was_never_sent_was_not_admitted_before_others() {
        for (is_sent, inversions) in [(false, 0.0), (true, 1.0)] {
            let mut load = load();
            let (high, low) = (next(&mut load, 0), next(&mut load, 1));
            let at = low.due.max(high.due) + MS;
            let head = refusal(None);
            let sent = is_sent.then_some(at);
            load.ended(low, &Answer { sent, at, result: Err(Failure::Deadline) });
            load.clients[0].retry = None;
            load.ended(high, &Answer { sent: Some(at), at, result: Ok(&head) });
            let found = load.recorder.conclude();
            assert_eq!(found.value(What::Inversions, "all", None), Some(inversions));
        }
    }
}
