//! The concurrency limit of an upstream, in closed loops that can be reckoned by hand.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;
use tidegate_core::limit::{
    ConcurrencyLimit, LimitConfig, LimitGoal, LimitMove, Observation, Started, UpstreamOutcome,
    step,
};
use tidegate_core::rng::Rng;

const MS: Duration = Duration::from_millis(1);

/// A server with slots, a spread of ±10 % and as many requests as the limit allows, or as are wanted.
struct Loop {
    limit: ConcurrencyLimit,
    slots: u32,
    wanted: u32,
    rng: Rng,
    now: Duration,
    ends: BinaryHeap<Reverse<(Duration, u64)>>,
    started: Vec<Started>,
}

impl Loop {
    fn new(config: LimitConfig, slots: u32) -> Self {
        Self {
            limit: ConcurrencyLimit::new(config),
            slots,
            wanted: u32::MAX,
            rng: Rng::new(1),
            now: Duration::ZERO,
            ends: BinaryHeap::new(),
            started: Vec::new(),
        }
    }

    /// Runs for so long; returns the mean of the limit found over the second half.
    fn run(&mut self, time: Duration) -> f64 {
        let (from, until) = (self.now + time / 2, self.now + time);
        let (mut sum, mut count) = (0.0, 0.0);
        while self.now < until {
            while self.limit.in_flight() < self.wanted && self.limit.allows(self.now) {
                let started = self.limit.on_start(self.now);
                let queue = f64::from(self.limit.in_flight()) / f64::from(self.slots);
                let latency = 20.0 * queue.max(1.0) * (0.9 + 0.2 * self.rng.fraction());
                let end = self.now + Duration::from_secs_f64(latency / 1e3);
                self.ends.push(Reverse((end, self.started.len() as u64)));
                self.started.push(started);
            }
            self.limit.on_waiting(self.now, self.wanted > self.limit.in_flight());
            let Some(Reverse((end, request))) = self.ends.pop() else { break };
            self.now = end;
            let started = self.started[request as usize];
            self.limit.on_end(end, started, UpstreamOutcome::Success);
            self.limit.tick(end);
            if self.now > from {
                sum += f64::from(self.limit.snapshot().found);
                count += 1.0;
            }
        }
        sum / f64::max(count, 1.0)
    }
}

#[test]
fn slots_are_found() {
    for slots in [4, 20, 200] {
        let found = Loop::new(LimitConfig::default(), slots).run(Duration::from_secs(20));
        let ratio = found / f64::from(slots);
        assert!((0.9..1.3).contains(&ratio), "{found} for {slots} slots");
    }
}

#[test]
fn more_slots_are_found_and_fewer() {
    let mut world = Loop::new(LimitConfig::default(), 20);
    world.run(Duration::from_secs(10));
    world.slots = 60;
    let more = world.run(Duration::from_secs(10));
    world.slots = 10;
    let fewer = world.run(Duration::from_secs(20));
    assert!((54.0..78.0).contains(&more), "{more}");
    assert!((9.0..14.0).contains(&fewer), "{fewer}");
}

#[test]
fn a_configured_concurrency_is_never_exceeded() {
    let mut world = Loop::new(LimitConfig { max: 10, ..LimitConfig::default() }, 200);
    for _ in 0..100 {
        world.run(100 * MS);
        assert!(world.limit.limit() <= 10 && world.limit.in_flight() <= 10);
    }
    assert_eq!(world.limit.snapshot().found, 10);
}

#[test]
fn in_calm_the_limit_is_twice_the_peak_and_never_shrinks() {
    let mut world = Loop::new(LimitConfig::default(), 200);
    world.wanted = 30;
    world.run(Duration::from_secs(5));
    let at_peak = world.limit.limit();
    assert!(at_peak >= 60, "{at_peak}");
    world.wanted = 2;
    for _ in 0..50 {
        world.run(100 * MS);
        assert!(world.limit.limit() >= at_peak, "no probe and no shrinking in calm");
    }
}

#[test]
fn a_refusal_is_believed() {
    let mut limit = ConcurrencyLimit::new(LimitConfig { start: 64, ..LimitConfig::default() });
    let started: Vec<_> = (0..40).map(|_| limit.on_start(Duration::ZERO)).collect();
    for (i, started) in started.into_iter().enumerate() {
        let (at, outcome) = match i < 25 {
            true => (20 * MS, UpstreamOutcome::Success),
            false => (MS, UpstreamOutcome::Refused),
        };
        if outcome == UpstreamOutcome::Refused {
            limit.on_end(at, started, outcome);
        }
    }
    // Refused at 26 … 40 in flight; the first eight end the round.
    assert_eq!(limit.last_move(), LimitMove::Refused);
    assert!((24..=32).contains(&limit.limit()), "{}", limit.limit());
}

#[test]
fn a_report_wins_and_expires() {
    let mut world = Loop::new(LimitConfig::default(), 20);
    world.run(Duration::from_secs(2));
    world.limit.on_report(world.now, 12, 3);
    assert_eq!((world.limit.limit(), world.limit.last_move()), (12, LimitMove::Reported));
    world.run(Duration::from_secs(2));
    assert_eq!(world.limit.limit(), 12, "the law does not move a reported limit");
    // Nothing waits there and the limit binds: there is room.
    world.limit.on_report(world.now, 12, 0);
    assert_eq!(world.limit.limit(), 13);
    let found = world.run(Duration::from_secs(30));
    assert!(found > 18.0, "after 10 s without a report the law goes on: {found}");
}

#[test]
fn a_dead_upstream_is_left_alone_and_probed() {
    let mut world = Loop::new(LimitConfig::default(), 20);
    world.run(Duration::from_secs(5));
    let (before, mut now) = (world.limit.snapshot().found, world.now);
    let mut limit = world.limit;
    for _ in 0..8 {
        let started = limit.on_start(now);
        limit.on_end(now + MS, started, UpstreamOutcome::ConnectFailed);
    }
    assert!(limit.snapshot().open && !limit.allows(now + MS));
    assert_eq!(limit.last_move().label(), "breaker_open");
    let mut probes = 0;
    for _ in 0..10_000 {
        now += MS;
        if limit.allows(now) {
            let started = limit.on_start(now);
            limit.on_end(now, started, UpstreamOutcome::ConnectFailed);
            probes += 1;
        }
    }
    assert!((5..=12).contains(&probes), "{probes} probes in 10 s");
    now += Duration::from_secs(2);
    let started = limit.on_start(now);
    limit.on_end(now + 20 * MS, started, UpstreamOutcome::Success);
    assert!(!limit.snapshot().open);
    assert_eq!(limit.limit(), before / 2, "half of what it was");
}

#[test]
fn timeouts_halve_the_limit() {
    let mut limit = ConcurrencyLimit::new(LimitConfig { start: 64, ..LimitConfig::default() });
    let started: Vec<_> = (0..16).map(|_| limit.on_start(Duration::ZERO)).collect();
    for (i, started) in started.into_iter().enumerate() {
        let lost = i % 4 != 3;
        let outcome = if lost { UpstreamOutcome::TimedOut } else { UpstreamOutcome::Success };
        limit.on_end(20 * MS, started, outcome);
    }
    limit.tick(2_000 * MS);
    assert_eq!((limit.limit(), limit.last_move()), (32, LimitMove::Failures));
}

#[test]
fn ignored_ends_say_nothing() {
    let mut limit = ConcurrencyLimit::new(LimitConfig::default());
    for i in 0..1_000 {
        let started = limit.on_start(i * MS);
        limit.on_end((i + 1) * MS, started, UpstreamOutcome::Ignored);
        limit.tick((i + 1) * MS);
    }
    assert_eq!((limit.limit(), limit.in_flight()), (4, 0));
    assert_eq!(limit.last_move(), LimitMove::Start);
}

#[test]
fn a_step_depends_on_nothing_else() {
    let config = LimitConfig { goal: LimitGoal::Latency, ..LimitConfig::default() };
    let state = tidegate_core::limit::LimitState::new(&config);
    let mut round = Observation { busy: 1.0, concurrency: 4.0, peak: 4, ..Observation::default() };
    (0..32).for_each(|i| round.latency.add(f64::from(i) / 32.0));
    round.ends = 32;
    let [once, again] = [0, 1].map(|_| step(&config, step(&config, state, &round), &round));
    assert_eq!(once, again);
    assert_eq!(once.found(), 8, "a start that binds doubles");
}

#[test]
fn goals_have_names() {
    for goal in [LimitGoal::Latency, LimitGoal::Balanced, LimitGoal::Throughput] {
        assert_eq!(goal.to_string().parse(), Ok(goal));
    }
    assert!("fast".parse::<LimitGoal>().is_err());
}

/// An inference server with room for 100 long requests: its reports raise the limit without waiting for one to
/// end.
#[test]
fn reports_without_waiting_requests_raise_a_limit_that_binds() {
    let mut limit = ConcurrencyLimit::new(LimitConfig::default());
    let mut now = Duration::ZERO;
    let mut sent = 0_u32;
    for _ in 0..10 {
        limit.on_waiting(now, true);
        while limit.allows(now) {
            let _started = limit.on_start(now);
            sent += 1;
        }
        now += Duration::from_millis(250);
        limit.on_report(now, sent.min(100), sent.saturating_sub(100));
    }
    assert_eq!(limit.limit(), 100, "full at 100, in 2.5 s and before any request has ended");
    assert_eq!(limit.last_move().label(), "reported");
}

/// Clients that give up are the only ends: without them the limit would stay where it overloads the upstream.
#[test]
fn clients_that_give_up_on_an_overloaded_upstream_lower_the_limit() {
    let mut limit = ConcurrencyLimit::new(LimitConfig::default());
    let mut now = Duration::ZERO;
    // Calm, with 10 requests of 50 ms at once.
    for _ in 0..100 {
        let started: Vec<_> = (0..10).map(|_| limit.on_start(now)).collect();
        now += 50 * MS;
        for one in started {
            limit.on_end(now, one, UpstreamOutcome::Success);
        }
        limit.tick(now);
    }
    let calm = limit.limit();
    // Every client leaves after 2 s without a response.
    for _ in 0..20 {
        limit.on_waiting(now, true);
        let started: Vec<_> = (0..calm).map(|_| limit.on_start(now)).collect();
        now += 2_000 * MS;
        for one in started {
            limit.on_end(now, one, UpstreamOutcome::Abandoned);
        }
        limit.tick(now);
    }
    assert!(limit.is_open() || limit.limit() < calm / 2, "{calm}: {:?}", limit.snapshot());
    // One that leaves early says nothing.
    let mut other = ConcurrencyLimit::new(LimitConfig::default());
    for _ in 0..100 {
        let started = other.on_start(now);
        now += 50 * MS;
        other.on_end(now, started, UpstreamOutcome::Success);
        let left = other.on_start(now);
        now += 20 * MS;
        other.on_end(now, left, UpstreamOutcome::Ignored);
    }
    assert!(!other.is_open() && other.limit() >= 4, "{:?}", other.snapshot());
}

/// A load about the capacity binds the limit in one round and not in the next. If a calm round forgot a cut, every
/// second one would double the limit again.
#[test]
fn a_cut_is_remembered_in_calm_and_forgotten_when_calm_lasts() {
    let mut world = Loop::new(LimitConfig::default(), 200);
    world.wanted = 60;
    world.run(Duration::from_secs(5));
    // The slots become 8, and there is more demand than they serve.
    (world.slots, world.wanted) = (8, u32::MAX);
    world.run(Duration::from_secs(10));
    let found = world.limit.limit();
    assert!((7..=12).contains(&found), "{found}");
    // Less than the limit, for fewer than 20 rounds.
    world.wanted = 7;
    world.run(1_600 * MS);
    assert_eq!(world.limit.limit(), found);
    world.run(Duration::from_secs(60));
    assert_eq!(world.limit.limit(), 2 * 7, "calm for much longer than 32 rounds");
}

#[test]
fn requests_that_timed_out_keep_their_places_for_as_long_again() {
    let mut limit = ConcurrencyLimit::new(LimitConfig { start: 8, ..LimitConfig::default() });
    let started: Vec<_> = (0..5).map(|_| limit.on_start(Duration::ZERO)).collect();
    for one in started {
        limit.on_end(2_000 * MS, one, UpstreamOutcome::TimedOut);
    }
    let limits = [2_000, 4_000, 12_000].map(|at| limit.limit_at(at * MS));
    let whole = limit.limit();
    assert!(whole >= 4, "halved once at most");
    assert_eq!(limits, [whole.saturating_sub(5).max(1), whole - 2, whole]);
    // What the upstream says of itself counts more than a guess.
    limit.on_report(2_500 * MS, 6, 1);
    assert_eq!(limit.limit_at(2_500 * MS), 6);
}

/// A gateway of one thread in front of a server without a bound: each request costs the gateway so much, so that a
/// response waits for its turn behind all others. Returns the limit that is found if it tells its own delay, or
/// does not.
fn found_by_a_busy_gateway(cost: Duration, clients: u32, tells: bool) -> f64 {
    let service = 2 * cost;
    let mut limit = ConcurrencyLimit::new(LimitConfig::default());
    let mut rng = Rng::new(1);
    let (mut now, mut in_flight) = (Duration::ZERO, std::collections::VecDeque::new());
    let (mut sum, mut count) = (0.0, 0.0);
    while now < Duration::from_secs(20) {
        while limit.in_flight() < clients && limit.allows(now) {
            now += cost / 2;
            in_flight.push_back((now, limit.on_start(now)));
        }
        limit.on_waiting(now, clients > limit.in_flight());
        let Some((sent, started)) = in_flight.pop_front() else { break };
        let spread = service.mul_f64(0.9 + 0.2 * rng.fraction());
        now = now.max(sent + spread) + cost / 2;
        if tells {
            limit.set_own_delay(cost * limit.in_flight());
        }
        limit.on_end(now, started, UpstreamOutcome::Success);
        if now > Duration::from_secs(10) {
            sum += f64::from(limit.snapshot().found);
            count += 1.0;
        }
    }
    sum / f64::max(count, 1.0)
}

#[test]
fn a_gateways_own_delay_is_no_overload_of_its_upstream() {
    let found = |tells| found_by_a_busy_gateway(Duration::from_micros(300), 64, tells);
    let (told, untold) = (found(true), found(false));
    assert!(untold < 16.0, "{untold}: without it, the test shows nothing");
    assert!(told >= 64.0, "{told} for 64 clients");
}

#[test]
fn an_upstream_that_is_faster_than_anyone_notices_needs_no_queue() {
    // 32 behind each other are 0.64 ms.
    let found = found_by_a_busy_gateway(Duration::from_micros(20), 32, false);
    assert!(found >= 32.0, "{found} for 32 clients");
}

#[test]
fn an_own_delay_hides_no_slots() {
    // A tenth of the service time, as a busy thread's turn would be.
    let mut world = Loop::new(LimitConfig::default(), 20);
    world.limit.set_own_delay(2 * MS);
    let found = world.run(Duration::from_secs(20));
    assert!((18.0..28.0).contains(&found), "{found} for 20 slots");
}

#[test]
fn clients_that_leave_all_at_once_open_no_breaker() {
    let mut limit = ConcurrencyLimit::new(LimitConfig { start: 64, ..LimitConfig::default() });
    let mut now = Duration::ZERO;
    for _ in 0..400 {
        let started = limit.on_start(now);
        now += MS;
        limit.on_end(now, started, UpstreamOutcome::Success);
    }
    let held: Vec<Started> = (0..32).map(|_| limit.on_start(now)).collect();
    // The upstream responds to one of them, and the client of all others leaves.
    now += 50 * MS;
    limit.on_end(now, held[0], UpstreamOutcome::Success);
    held[1..].iter().for_each(|left| limit.on_end(now, *left, UpstreamOutcome::Abandoned));
    assert!(!limit.is_open(), "it responds, and is not dead");

    // Clients that leave an upstream that has not responded since they came are all that tells it is dead.
    let held: Vec<Started> = (0..8).map(|_| limit.on_start(now)).collect();
    now += 50 * MS;
    held.iter().for_each(|left| limit.on_end(now, *left, UpstreamOutcome::Abandoned));
    assert!(limit.is_open());
}
