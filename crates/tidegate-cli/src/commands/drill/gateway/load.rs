use super::answers::{Names, Verdict};
use super::faults::{Timeline, Unset};
use super::live::Live;
use super::requests::Requests;
use crate::commands::drill::stop::Stop;
use std::time::{Duration, Instant};
use tidegate_server::chance::Chance;
use tidegate_server::generator::{Answer, Driver, Failure, Progress, Shot};
use tidegate_sim::arrivals::Arrivals;
use tidegate_sim::measure::{Attempt, Ended, How, Recorder};
use tidegate_sim::scenario::{RetryPlan, Scenario};

/// What clients draw their waits from must not be what arrivals are drawn from.
const WAITS: u64 = 0x7761_6974;

/// Sends the requests of a scenario when they are due, does what its clients do with the answers, and keeps the
/// book.
pub struct Load {
    arrivals: Arrivals,
    requests: Requests,
    clients: Vec<Client>,
    names: Names,
    under_way: UnderWay,
    chance: Chance,
    stop: Stop,
    /// When nothing more is due.
    over_at: Duration,
    faults: Option<Timeline>,
    pub live: Live,
    pub book: Recorder,
    /// When it was stopped before its end.
    pub stopped_at: Option<Duration>,
    /// Whether anything ever answered.
    pub answered: bool,
}

/// What the clients of a class do.
#[derive(Clone, Copy, Debug)]
struct Client {
    deadline: Option<Duration>,
    retry: Option<RetryPlan>,
}

/// A request whose client is not done with it.
#[derive(Clone, Copy, Debug)]
struct Request {
    due: Duration,
    class: u16,
    /// How often its client came back.
    returns: u32,
}

/// Requests by number. A number is used again as soon as its request is over.
#[derive(Debug, Default)]
struct UnderWay {
    requests: Vec<Request>,
    free: Vec<u32>,
}

/// What a load needs besides its scenario.
pub struct Terms {
    pub requests: Requests,
    pub names: Names,
    pub stop: Stop,
    pub faults: Option<Timeline>,
}

// === impl Load ===

impl Load {
    pub fn new(scenario: &Scenario, seed: u64, terms: Terms) -> Self {
        let client = |class: &tidegate_sim::scenario::Class| Client {
            deadline: class.deadline_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)),
            retry: class.retry,
        };
        Self {
            arrivals: Arrivals::new(scenario, seed),
            requests: terms.requests,
            clients: scenario.classes.iter().map(client).collect(),
            names: terms.names,
            under_way: UnderWay::default(),
            chance: Chance::from_seed(seed ^ WAITS),
            stop: terms.stop,
            over_at: Duration::from_secs_f64(scenario.duration_s),
            faults: terms.faults,
            live: Live::default(),
            book: Recorder::new(scenario),
            stopped_at: None,
            answered: false,
        }
    }

    /// Sets no more faults, and says which could not be set.
    pub fn end_faults(&mut self) -> Unset {
        self.faults.take().map(Timeline::end).unwrap_or_default()
    }

    /// Enters into the book how an attempt went. Its client waits for each attempt as long as its deadline says.
    fn enter(&mut self, request: Request, shot_due: Duration, answer: &Answer<'_>) -> Went {
        let client = self.clients[usize::from(request.class)];
        let verdict = Verdict::of(answer, &self.names);
        match &verdict {
            Verdict::Refused { reason, .. } => {
                self.book.attempt(answer.at, request.class, Attempt::Refused(reason));
            }
            Verdict::Good { .. } | Verdict::Failed { .. } => {
                // What was never sent was not decided on.
                if let Some(sent) = answer.sent {
                    self.book.attempt(sent, request.class, Attempt::LetIn);
                }
            }
        }
        match verdict {
            Verdict::Good { worker } => {
                let waited = answer.at.saturating_sub(shot_due);
                let in_time = client.deadline.is_none_or(|deadline| waited <= deadline);
                if in_time {
                    self.live.good(answer.at.saturating_sub(request.due));
                } else {
                    self.live.failed();
                }
                Went { how: if in_time { How::Good } else { How::Failed }, worker, told: None }
            }
            Verdict::Refused { told, .. } => {
                self.live.refused();
                Went { how: How::Refused, worker: None, told }
            }
            Verdict::Failed { worker, .. } => {
                self.live.failed();
                Went { how: How::Failed, worker, told: None }
            }
        }
    }

    /// When the client comes back after an attempt that went so; `None` when it does not.
    fn back_at(&mut self, request: Request, went: Went, now: Duration) -> Option<Duration> {
        let client = self.clients[usize::from(request.class)];
        let plan = client.retry.filter(|plan| match went.how {
            How::Good => false,
            How::Refused => true,
            How::Failed => plan.failures,
        })?;
        let uniform = (self.chance.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let wait = plan.wait(request.returns + 1, went.told, uniform)?;
        // Nobody comes back when all is over, or in a time that can't be told.
        now.checked_add(wait).filter(|at| *at < self.over_at)
    }
}

/// How an attempt went.
#[derive(Clone, Copy, Debug)]
struct Went {
    how: How,
    worker: Option<u16>,
    /// When its client was told to come back.
    told: Option<Duration>,
}

impl Driver for Load {
    fn started(&mut self, start: Instant) {
        if let Some(faults) = &self.faults {
            faults.start(start);
        }
    }

    fn next(&mut self) -> Option<Shot> {
        let arrival = self.arrivals.next()?;
        let request = Request { due: arrival.at, class: arrival.class, returns: 0 };
        self.book.due(arrival.at, arrival.class);
        let id = self.under_way.insert(request);
        let suffix = self.requests.suffix(&arrival);
        Some(Shot { due: arrival.at, template: arrival.class, suffix, id })
    }

    fn ended(&mut self, shot: Shot, answer: &Answer<'_>) -> Option<Shot> {
        // What is cut off because somebody stopped the drill says nothing of the target.
        if self.stopped_at.is_some() {
            return None;
        }
        self.answered |= answer.result.is_ok();
        if let Some(sent) = answer.sent {
            self.live.sent(shot.due, sent);
        }
        let request = self.under_way.get(shot.id)?;
        let went = self.enter(request, shot.due, answer);
        let is_unsent = matches!(answer.result, Err(Failure::Unsent));
        if let Some(due) = self.back_at(request, went, answer.at).filter(|_| !is_unsent) {
            self.under_way.came_back(shot.id);
            return Some(Shot { due, ..shot });
        }
        self.under_way.remove(shot.id);
        let (due, class) = (request.due, request.class);
        self.book.ended(&Ended { due, at: answer.at, class, worker: went.worker, how: went.how });
        None
    }

    fn tick(&mut self, now: Duration, progress: &Progress) -> bool {
        self.live.tick(now, progress.in_flight + progress.waiting);
        if self.stop.is_asked() {
            self.stopped_at.get_or_insert(now);
        }
        self.stopped_at.is_none()
    }
}

// === impl UnderWay ===

impl UnderWay {
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

    fn came_back(&mut self, id: u64) {
        self.requests[id as usize].returns += 1;
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
    use tidegate_server::generator::Head;
    use tidegate_sim::scenario::What;

    const MS: Duration = Duration::from_millis(1);

    fn load() -> Load {
        let text = r#"
            about = "Who is refused comes back as told."
            duration_s = 10
            arrivals = "even"
            workers = { count = 1, places = 1, waiting = 1 }
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
        let (names, stop) = (Names::default(), Stop::default());
        Load::new(&scenario, 1, Terms { requests, names, stop, faults: None })
    }

    fn refusal(retry_after: Option<&'static str>) -> Head {
        let mut headers = HeaderMap::new();
        headers.extend(retry_after.map(|text| (RETRY_AFTER, HeaderValue::from_static(text))));
        Head { status: StatusCode::SERVICE_UNAVAILABLE, headers, body: Bytes::new() }
    }

    /// The next request of this class.
    fn next(load: &mut Load, class: u16) -> Shot {
        std::iter::from_fn(|| load.next()).find(|shot| shot.template == class).unwrap()
    }

    #[test]
    fn who_is_told_to_come_back_in_a_time_without_end_does_not() {
        let mut load = load();
        let mut back = |retry_after| {
            let shot = next(&mut load, 0);
            let (sent, at) = (Some(shot.due), shot.due + MS);
            let head = refusal(Some(retry_after));
            let due = shot.due;
            let back = load.ended(shot, &Answer { sent, at, result: Ok(&head) });
            back.map(|shot| shot.due - due)
        };
        assert_eq!(back("1"), Some(1001 * MS));
        assert_eq!(back("18446744073709551615"), None);
        assert_eq!(back("3600"), None, "all is over by then");
    }

    #[test]
    fn what_gave_up_before_it_was_sent_was_not_let_in_before_others() {
        for (is_sent, inversions) in [(false, 0.0), (true, 1.0)] {
            let mut load = load();
            let (high, low) = (next(&mut load, 0), next(&mut load, 1));
            let at = low.due.max(high.due) + MS;
            let head = refusal(None);
            let sent = is_sent.then_some(at);
            load.ended(low, &Answer { sent, at, result: Err(Failure::Deadline) });
            load.clients[0].retry = None;
            load.ended(high, &Answer { sent: Some(at), at, result: Ok(&head) });
            let found = load.book.conclude();
            assert_eq!(found.value(What::Inversions, "all", None), Some(inversions));
        }
    }
}
