use super::law::Limiter;
use super::server::nanos;
use super::{LimitLaw, LimitScenario};
use crate::agenda::Time;
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_core::limit::{Started, UpstreamOutcome};

/// A gateway: a bounded queue in front of a limit.
#[derive(Debug)]
pub(super) struct Gateway {
    pub(super) limiter: Limiter,
    pub(super) rate_per_s: f64,
    /// Plans of arrivals that are still valid have this number.
    pub(super) arrivals: u64,
    /// Arrival times of what waits.
    queue: VecDeque<Time>,
    in_flight: u32,
    throughput: Throughput,
    /// Since when the queue is full: further arrivals are refused without simulating each.
    full_since: Option<Time>,
    pub(super) tally: Tally,
}

/// A request at the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) gateway: usize,
    pub(super) arrived: Time,
    sent: Time,
    in_flight: u32,
    started: Option<Started>,
    is_over: bool,
}

/// Counts of a gateway.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) offered: f64,
    pub(super) refused: f64,
    pub(super) failed: f64,
    pub(super) delayed: f64,
    pub(super) responses: Vec<Response>,
    /// Limits at each tick.
    pub(super) limits: Vec<(Time, u32)>,
}

/// A successful response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Response {
    pub(super) at: Time,
    pub(super) arrived: Time,
    pub(super) latency: Time,
}

/// Throughput by which the queue is bounded.
#[derive(Debug, Default)]
struct Throughput {
    per_s: f64,
    count: u32,
    since: Time,
}

/// Interval at which throughput is measured.
const MEASURED_EVERY: Time = 250_000_000;
/// The queue at the start, before throughput is known, and its least bound.
const QUEUE_FIRST: usize = 512;
const QUEUE_LEAST: usize = 64;
/// Time until the first bound of the queue holds no longer.
const STARTED_UP: Time = 2_000_000_000;

// === impl Gateway ===

impl Gateway {
    pub(super) fn new(law: LimitLaw, scenario: &LimitScenario) -> Self {
        Self {
            limiter: Limiter::new(law, scenario),
            rate_per_s: scenario.rates[0].1 / f64::from(scenario.gateways.max(1)),
            arrivals: 0,
            queue: VecDeque::new(),
            in_flight: 0,
            throughput: Throughput::default(),
            full_since: None,
            tally: Tally::default(),
        }
    }

    /// Takes requests that arrive together; returns `true` if the queue is full now.
    pub(super) fn arrive(&mut self, now: Time, count: u32, scenario: &LimitScenario) {
        let bound = self.bound(now, scenario);
        for _ in 0..count {
            self.tally.offered += 1.0;
            if self.queue.len() < bound {
                self.queue.push_back(now);
            } else {
                self.tally.refused += 1.0;
            }
        }
    }

    /// Pauses arrivals while the queue is full; returns `true` if they are paused.
    pub(super) fn pause(&mut self, now: Time, scenario: &LimitScenario) -> bool {
        let is_full = scenario.burst == 1 && self.queue.len() >= self.bound(now, scenario);
        if is_full {
            self.full_since = Some(now);
        }
        is_full
    }

    /// Ends a pause once the queue has room; returns `true` if arrivals go on.
    pub(super) fn unpause(&mut self, now: Time, scenario: &LimitScenario) -> bool {
        self.full_since.is_some() && self.queue.len() < self.bound(now, scenario) && {
            self.account_for_pause(now);
            true
        }
    }

    /// Counts what arrived and was refused in a pause.
    pub(super) fn account_for_pause(&mut self, now: Time) {
        if let Some(since) = self.full_since.take() {
            let refused = self.rate_per_s * (now - since) as f64 / 1e9;
            self.tally.offered += refused;
            self.tally.refused += refused;
        }
    }

    /// Takes the next request to send, if there is one and the limit allows it.
    pub(super) fn send(
        &mut self,
        now: Time,
        number: usize,
        scenario: &LimitScenario,
    ) -> Option<Sent> {
        let at = Duration::from_nanos(now);
        while self.limiter.allows(at, self.in_flight) {
            let Some(arrived) = self.queue.pop_front() else { break };
            if now - arrived > nanos(scenario.wait_max_s) {
                self.tally.refused += 1.0;
                continue;
            }
            if now > arrived && now > nanos(scenario.judged_from_s) {
                self.tally.delayed += 1.0;
            }
            self.in_flight += 1;
            let started = self.limiter.on_start(at);
            let in_flight = self.in_flight;
            return Some(Sent {
                gateway: number,
                arrived,
                sent: now,
                in_flight,
                started,
                is_over: false,
            });
        }
        self.limiter.on_waiting(at, !self.queue.is_empty());
        None
    }

    /// Ends a request; `false` if it had ended before.
    pub(super) fn end(&mut self, now: Time, sent: &mut Sent, outcome: UpstreamOutcome) -> bool {
        if std::mem::replace(&mut sent.is_over, true) {
            return false;
        }
        self.in_flight -= 1;
        let latency = now - sent.sent;
        if outcome == UpstreamOutcome::Success {
            self.throughput.count += 1;
            self.tally.responses.push(Response { at: now, arrived: sent.arrived, latency });
        } else {
            self.tally.failed += 1.0;
        }
        let (at, latency_s) = (Duration::from_nanos(now), latency as f64 / 1e9);
        self.limiter.on_end(at, sent.started, latency_s, sent.in_flight, outcome);
        true
    }

    pub(super) fn tick(&mut self, now: Time) {
        self.throughput.tick(now);
        self.limiter.tick(Duration::from_nanos(now));
        self.tally.limits.push((now, self.limiter.limit()));
    }

    /// As many as are served in half the longest wait.
    fn bound(&self, now: Time, scenario: &LimitScenario) -> usize {
        if now <= STARTED_UP {
            return QUEUE_FIRST;
        }
        ((self.throughput.per_s * scenario.wait_max_s / 2.0) as usize).max(QUEUE_LEAST)
    }
}

// === impl Throughput ===

impl Throughput {
    fn tick(&mut self, now: Time) {
        let elapsed = now - self.since;
        if elapsed >= MEASURED_EVERY {
            let per_s = f64::from(self.count) * 1e9 / elapsed as f64;
            let weight = if self.per_s == 0.0 { 1.0 } else { 0.3 };
            self.per_s += weight * (per_s - self.per_s);
            (self.count, self.since) = (0, now);
        }
    }
}
